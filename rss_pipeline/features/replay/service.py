"""Replays: a feed's backups in time order with the result for each feed, retired items brought back, and the
parts of a replay of all feeds.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any, Self
from zlib import crc32

from rss_pipeline.batched import batched
from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features import FEATURES
from rss_pipeline.features.feature import InReplay, ReadAgain
from rss_pipeline.features.replay import steps
from rss_pipeline.features.replay.model import (
    FINDINGS_KEPT,
    BackupVisit,
    BackupVisits,
    Difference,
    NoLongerRead,
    Replayed,
    Unreadable,
)
from rss_pipeline.features.replay.steps import slices
from rss_pipeline.pipeline.registry.sync import registered_accesses
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.pipeline.visits.identify import Planned
from rss_pipeline.storage.backups.backups import list_backups
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feed_row import feed_ids, feeds_by_id
from rss_pipeline.storage.items import tombstones
from rss_pipeline.storage.objects import ObjectStore

NO_FEED_IN_IT = frozenset({"not_a_feed", "html", "empty_body", "no_list", "list_lost"})
"""Kinds of documents that had no items when they came either: reported, and not an error of the replay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayProblem:
    """A backup that gave no items, and why."""

    backup_key: str
    kind: str
    message: str

    @property
    def is_expected(self) -> bool:
        return self.kind in NO_FEED_IN_IT


def read_again(
    run: RunContext,
    *,
    pool: ParserPool,
    spool: Spool,
    feed_ids: Sequence[str],
    dry_run: bool = False,
    is_restore: bool = False,
) -> ReadAgain:
    """Let features read again what they keep of these feeds' items in the object store."""
    total = ReadAgain()
    for feature in FEATURES:
        if feature.read_again is None:
            continue
        read = feature.read_again.load()
        done = read(run, pool=pool, spool=spool, feed_ids=feed_ids, dry_run=dry_run, is_restore=is_restore)
        total.read += done.read
        total.changed += done.changed
        total.shown += done.shown
        total.unread += done.unread
    return total


@dataclass(slots=True, kw_only=True)
class FeedReplay:
    """The result of a replay of one feed; grows while its backups are read, in time order."""

    feed: Feed
    backups: int = 0
    replayed: int = 0
    items_new: int = 0
    items_gone: int = 0
    items_differ: int = 0
    items_repaired: int = 0
    items_cut: int = 0
    findings: list[Difference] = field(default_factory=list)
    """The first 200."""
    problems: list[ReplayProblem] = field(default_factory=list)
    earliest: datetime | None = None
    """The time of the oldest backup that can be read."""
    newest: Parsed | None = None
    """The newest whole document with stored items."""
    cut: Parsed | None = None
    """A newer document, which was cut off; its items are stored as far as it goes."""
    failed_since: Failure | None = None
    """The failure of the newest document, where it cannot be read."""
    features: tuple[InReplay, ...] = ()
    """The work of features beside the replay."""

    def add(self, visit: BackupVisit) -> None:
        """Take in the feed's next backup."""
        self.backups += 1
        match visit.outcome:
            case Replayed() as replayed:
                self.replayed += 1
                self.items_new += replayed.items_new
                self.items_gone += replayed.items_gone
                self.items_differ += replayed.items_differ
                self.items_repaired += replayed.items_repaired
                self.items_cut += replayed.items_cut
                self.findings += replayed.findings[: FINDINGS_KEPT - len(self.findings)]
                charset, former = self.feed.http.codecs_after(replayed.parsed.header)
                http = replace(self.feed.http, charset=charset, former_charset=former)
                self.feed = replace(self.feed, http=http)
                if replayed.parsed.cut_off:
                    self.cut = replayed.parsed
                else:
                    self.newest, self.cut = replayed.parsed, None
                self.failed_since = None
                for each in self.features:
                    each.add(replayed.parsed)
                self.earliest = self.earliest or replayed.parsed.document.response.fetched_at
            case Failure() as failure:
                self.problems.append(
                    ReplayProblem(backup_key=visit.key, kind=failure.kind, message=failure.message)
                )
                self.failed_since = failure
                self.earliest = self.earliest or failure.fetched_at
            case NoLongerRead(failure=failure) as unread:
                # A kind of its own: a document that had items is expected to have them.
                message = f"{unread.items_gone} items were stored of it once. {failure.message}"
                self.problems.append(
                    ReplayProblem(backup_key=visit.key, kind="no_longer_read", message=message)
                )
                self.items_gone += unread.items_gone
                self.findings += unread.findings[: FINDINGS_KEPT - len(self.findings)]
                self.failed_since = failure
                self.earliest = self.earliest or failure.fetched_at
            case Unreadable(message=message):
                self.problems.append(ReplayProblem(backup_key=visit.key, kind="unreadable", message=message))
            case outcome:
                raise AssertionError(f"{visit.key} ended as {type(outcome).__name__}")

    def end(self, database: Database) -> None:
        """Let features end their work, once all backups were added."""
        for each in self.features:
            each.end(database)

    @property
    def unread(self) -> list[ReplayProblem]:
        """The problems to fix: these backups should have given items."""
        return [problem for problem in self.problems if not problem.is_expected]

    @property
    def counts(self) -> dict[str, int]:
        return {
            "backups": self.backups,
            "backups_replayed": self.replayed,
            "backups_without_feed": len(self.problems) - len(self.unread),
            "backups_unread": len(self.unread),
            "items_new": self.items_new,
            "items_gone": self.items_gone,
            "items_differ": self.items_differ,
            "items_repaired": self.items_repaired,
            "items_cut": self.items_cut,
        }

    @property
    def findings_in_all(self) -> int:
        return self.items_new + self.items_gone + self.items_differ


def in_replay(feed: Feed) -> tuple[InReplay, ...]:
    """The work of features beside the replay of this feed."""
    return tuple(each.replaying.of_feed.load()(feed) for each in FEATURES if each.replaying is not None)


def backup_visits(
    feed: Feed,
    objects: ObjectStore,
    *,
    access: Access | None = None,
    dry_run: bool = False,
    repair: bool = False,
    retired_since: datetime | None = None,
) -> BackupVisits:
    """A visit of each backup of a feed, oldest first. `access` is the feed's in feeds.yaml."""
    handled: set[str] = set()
    features = in_replay(feed)
    planned: Planned = {}
    secrets = Secrets.of(access or Access())
    infos = list(list_backups(objects, feed.id))
    return [
        BackupVisit(
            feed=feed,
            backup_key=info.key,
            backup_bytes=info.size,
            following=None if later is None else later.key,
            dry_run=dry_run,
            repair=repair,
            secrets=secrets,
            retired_since=retired_since,
            handled=handled,
            features=features,
            planned=planned,
        )
        for info, later in zip_longest(infos, infos[1:])
    ]


def one_feed(database: Database, feed_id: str) -> Feed:
    """The feed as it is stored now.

    Raises:
        RssPipelineError: there is no such feed.
    """
    feed = feeds_by_id(database, [feed_id]).get(feed_id)
    if feed is None:
        raise RssPipelineError(
            f"no feed {feed_id} is stored: it was forgotten, or the database was lost; `rss-pipeline restore`"
            " brings back every feed that has backups"
        )
    return feed


def replay_feeds(
    ids: Sequence[str],
    *,
    run: RunContext,
    pool: ParserPool,
    spool: Spool,
    dry_run: bool = False,
    repair: bool = False,
    retired_since: datetime | None = None,
) -> Iterator[FeedReplay]:
    """Replay these feeds, one after the other; yields the result of each as it is done. One that was removed
    since its id was listed is left out.

    With `retired_since` items that were retired since then come back, too.

    Several small feeds share a passage through the steps, a large one takes several: the spool holds some
    32 MB of documents at a time, however many there are.
    """
    run.progress.begin("feeds", len(ids))
    under_way: dict[str, FeedReplay] = {}
    options: dict[str, Any] = {"dry_run": dry_run, "repair": repair, "retired_since": retired_since}
    database = None if dry_run else run.database
    for passage in slices(_visits_of(ids, under_way, run, options)):
        visits = steps.parse(passage, run=run, pool=pool, spool=spool)
        visits = steps.store(visits, run=run)
        visits = steps.extract_images(visits, run=run, pool=pool)
        for visit in visits:
            under_way[visit.feed.id].add(visit)
            if isinstance(visit.outcome, Replayed):
                visit.outcome.parsed.path.unlink(missing_ok=True)
        yield from _done(run, under_way, database, but=visits[-1].feed.id)
    yield from _done(run, under_way, database)


def _visits_of(
    ids: Sequence[str], under_way: dict[str, FeedReplay], run: RunContext, options: Mapping[str, Any]
) -> Iterator[BackupVisit]:
    """The visits of these feeds, listed one feed after the other; a feed without backups is under way too."""
    accesses = registered_accesses(run.settings)
    for some in batched(ids, 100):
        feeds = feeds_by_id(run.database, some)
        for id in some:
            if (feed := feeds.get(id)) is None:
                continue  # It was removed since the ids were listed, which may be hours ago.
            visits = backup_visits(feed, run.objects, access=accesses.get(id), **options)
            features = visits[0].features if visits else in_replay(feed)
            under_way[id] = FeedReplay(feed=feed, features=features)
            yield from visits


def _done(
    run: RunContext, under_way: dict[str, FeedReplay], database: Database | None, *, but: str | None = None
) -> Iterator[FeedReplay]:
    """Feeds with all of their backups read; a passage may end inside a feed, and the next one be listed.

    Features end their work in `database`.
    """
    ids = list(under_way)
    for id in ids if but is None else ids[: ids.index(but)]:
        run.progress.advance("feeds")
        replay = under_way.pop(id)
        if database is not None:
            replay.end(database)
        yield replay


def summed(replays: Iterable[FeedReplay]) -> dict[str, int]:
    """The counts of several feeds together."""
    total: dict[str, int] = {}
    for replay in replays:
        for name, count in replay.counts.items():
            total[name] = total.get(name, 0) + count
    return total


# Retired items brought back from the backups: what a clean removed under a wrong clock or setting.
# It may be ended at any moment and started again: a tombstone goes in the batch that brings its item back.


@dataclass(slots=True, kw_only=True)
class Revived:
    """The result; grows while the feeds are read."""

    feeds: int = 0
    items_retired: int = 0
    """Since the instant."""
    items_revived: int = 0
    items_lost: int = 0
    """In no backup any more. Those that their feed still lists come back with its next document."""
    problems: list[ReplayProblem] = field(default_factory=list)
    """Backups that could not be read."""

    def as_json(self) -> dict[str, Any]:
        """The result for programs."""
        return asdict(self)


def revive(run: RunContext, *, pool: ParserPool, spool: Spool, since: datetime) -> Revived:
    """Store the items again that were retired since then, by the database's clock, and drop their tombstones.

    They are as new as their arrival, so that the next clean does not retire them again.
    """
    known = set(feed_ids(run.database))
    retired = {
        each.feed_id: each.items
        for each in tombstones.retired_since(run.database, since)
        if each.feed_id in known
    }
    revived = Revived(feeds=len(retired), items_retired=sum(retired.values()))
    for replay in replay_feeds(list(retired), run=run, pool=pool, spool=spool, retired_since=since):
        lost = tombstones.drop_since(run.database, replay.feed.id, since=since)
        revived.items_lost += lost
        revived.items_revived += retired[replay.feed.id] - lost
        revived.problems += replay.unread
    return revived


# The parts of a replay of all feeds: several runs at once, each of which reads the backups of its own feeds.
# By the feed's id, and not by its host as the shards of polls: a replay requests nothing, one host may have a
# tenth of all feeds, and a feed that moves to another host meanwhile would change its shard.

PARTS_A_SHARD = 16
"""With a shard for each 3,000 feeds a part has some 200 of them: a run that is killed loses minutes."""
MOST_PARTS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPart:
    """One of `of` parts of all feeds; the first has number 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"

    @classmethod
    def read(cls, text: str) -> Self:
        """The inverse of `str`.

        Raises:
            ValueError: it is no part.
        """
        found = re.fullmatch(r"(\d{1,4}) of (\d{1,4})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"{text!r} is no part; a part is `1 of 16`")
        return cls(number=int(found[1]), of=int(found[2]))

    def has(self, feed_id: str) -> bool:
        """True for the feeds of this part: the same on each machine, and at any time."""
        return crc32(feed_id.encode()) % self.of == self.number - 1


def parts(shards: int) -> list[ReplayPart]:
    """The parts of a replay where polls have so many shards."""
    count = min(PARTS_A_SHARD * shards, MOST_PARTS)
    return [ReplayPart(number=number, of=count) for number in range(1, count + 1)]


def feeds_of(database: Database, part: ReplayPart) -> list[str]:
    """The ids of the feeds of a part, in their order. In memory is no more than those and a page."""
    return list(filter(part.has, feed_ids(database)))
