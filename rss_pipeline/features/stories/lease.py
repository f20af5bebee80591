"""The lease of the one who writes stories, and what is stored under it: members, moves, and how far it is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.stories import sql
from rss_pipeline.features.stories.model import Join
from rss_pipeline.features.stories.sql import Ends, Member, Moved, Writer
from rss_pipeline.features.stories.window import VERSION
from rss_pipeline.storage.accounts.user_rows import note_change_of_items
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.stories import LATER
from rss_pipeline.storage.sql import new_token
from rss_pipeline.storage.stale import mark_items_stale

LEASE = timedelta(seconds=180)
FULL_TEXT = 500
"""Characters of a text with which an item may lead a story."""


class StoriesBusy(RssPipelineError):
    """Another process is writing stories."""


class NewerMethod(RssPipelineError):
    """A newer version of the method has decided items of this database."""


@dataclass(slots=True)
class Lease:
    """The right to decide, as long as nobody else has taken it."""

    database: Database
    born: str
    """A mark of the database."""
    stored: str
    writer: Writer

    @property
    def window_of(self) -> str:
        """The mark of windows that know all moves: one that was saved before the last move is of another."""
        return f"{self.born} {self.writer.moves}".rstrip()

    def commit(
        self,
        members: Sequence[Member] = (),
        moved: Sequence[Moved] = (),
        *,
        follows: bool = True,
        **more: Any,
    ) -> None:
        """Store members and moves, and how far the writer is: these fields of it. Not `follows`: members go
        into no stories that users have chosen.

        Raises:
            StoriesBusy: another process has taken over; nothing was stored.
        """
        now = datetime.fromisoformat(sql.ends(self.database).now)
        if moved:
            more["moves"] = new_token()
        more["members"] = self.writer.members + len(members)
        after = replace(self.writer, until=instant(now + LEASE), version=VERSION, **more)
        ids = [*(each.item_id for each in members), *(each.item_id for each in moved)]
        notes = [note_change_of_items(), *mark_items_stale(ids)] if ids else []
        first, *_ = self.database.batch(
            [
                *sql.add_members(after, self.stored, members, version=VERSION, follows=follows),
                *sql.move(after, moved),
                *notes,
            ]
        )
        if first.changes == 0 and str(after) != self.stored:
            raise StoriesBusy("another process writes the stories now")
        self.stored, self.writer = str(after), after


@contextmanager
def hold(database: Database, ends: Ends) -> Iterator[Lease]:
    """Take the lease, and release it.

    Raises:
        StoriesBusy: another process has it.
        NewerMethod: a newer version decides here; this one would undo its order.
    """
    before = ends.writer
    if before.version > VERSION:
        raise NewerMethod("a newer rss_pipeline writes the stories of this database: update this one")
    if before.token and before.until > ends.now:
        raise StoriesBusy("another process writes the stories now")
    until = instant(datetime.fromisoformat(ends.now) + LEASE)
    writer = replace(before, token=new_token(), until=until)
    [taken] = database.batch([sql.take(ends.stored, writer)])
    if taken.changes == 0:
        raise StoriesBusy("another process began to write the stories at this moment")
    lease = Lease(database, ends.identity, str(writer), writer)
    try:
        yield lease
    finally:
        # Of a lease that another process has taken meanwhile nothing is released.
        database.batch([sql.take(lease.stored, sql.released(lease.writer))])


def member(
    id: str,
    story: str,
    article: str,
    characters: int,
    *,
    evidence: str | None = None,
    joins: tuple[Join, ...] = (),
    ordinal: int | None = None,
) -> Member:
    """The row of an item with a text of so many characters."""
    return Member(
        item_id=id,
        story_id=story,
        article=article,
        later=0 if characters >= FULL_TEXT else LATER,
        evidence=evidence,
        joins=joins,
        ordinal=ordinal,
    )
