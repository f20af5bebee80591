"""The types of the health checks: what a check is, what it looks at, and what it finds. Reads nothing
itself."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from rss_pipeline.collector.models.feed import FeedSpec, Member
from rss_pipeline.collector.models.feed_names import feed_name, short_title
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.health.sql import (
    FROM_USERS,
    BackupLoss,
    Concerned,
    FeedFindings,
    backup_loss,
    feed_findings,
)
from rss_pipeline.pipeline.hindrances import Hindrance, of_machine, of_polls
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backups.expiry import Orphans, find_orphans
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds.feed_row import feed_titles
from rss_pipeline.storage.installation import poll_trouble, poll_trouble_of
from rss_pipeline.storage.objects import ObjectStore

State = Literal["ok", "warning", "failure"]
STATES: tuple[State, ...] = ("ok", "warning", "failure")
"""From good to bad."""

OFTEN = timedelta()
SELDOM = timedelta(minutes=75)
"""For a check that reads more than an index entry: the job `check_health` evaluates it each hour, and whoever
finds that it did not, does so instead."""
BACKUPS_LOOKED_AT = 25
"""The number of feeds with a look for their newest backup at each check: one request for each."""
ORPHANS_SECONDS = 5.0
SKEW_WARNING = timedelta(seconds=60)
SKEW_FAILURE = timedelta(minutes=15)
"""S3 refuses requests signed by a clock that is further off."""
UNREPORTED_AFTER = timedelta(hours=1)
_NAMED = 5
_CONCERNED = frozenset({"feed", "feeds", "host", "stream", "topic"})
"""First columns whose rows are what is wrong, and not all that there is."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: how bad it is, what was found, and how to fix it."""

    name: str
    state: State
    found: str
    """A clause without a full stop."""
    fix: str = ""
    """Sentences, on one line or several; empty where all is well."""
    figures: Mapping[str, int | float] = field(default_factory=dict)
    """Numbers under stable names, so that the UI can plot them."""
    rows: Sequence[Row] = ()
    """The feeds or hosts concerned, each with its name in the first column."""

    @property
    def sentences(self) -> str:
        """Finding and fix as one text."""
        return f"{self.found}. {self.fix}".rstrip()

    def naming(self) -> "Finding":
        """The finding with its first rows named in the sentence, for whoever does not show them as a
        table."""
        names = [
            feed_name(str(value), row.get("title"))
            for row in self.rows
            for name, value in [next(iter(row.items()))]
            if name in _CONCERNED
        ]
        if self.state == "ok" or not names or names[0] in self.found:
            return self
        return replace(self, found=f"{self.found} ({some(names)})")

    def as_json(self) -> dict[str, str]:
        """The finding for programs."""
        return {"name": self.name, "state": self.state, "found": self.found, "fix": self.fix}


@dataclass(frozen=True, kw_only=True)
class Look:
    """The place and the time of an evaluation, and what several checks of one look read together."""

    database: Database
    objects: Callable[[], ObjectStore]
    settings: Settings
    now: datetime
    specs: Sequence[FeedSpec] | None = None
    """The feeds of feeds.yaml; None where it was not read or has mistakes."""
    at_once: bool = False
    """True where many checks are evaluated: the feeds table is read once for all, not once for each."""

    @cached_property
    def feeds(self) -> FeedFindings:
        """The feeds with a problem, by problem."""
        return feed_findings(self.database, unreported_before=self.now - UNREPORTED_AFTER)

    @cached_property
    def hindrances(self) -> Sequence[Hindrance]:
        """All that keeps feeds from being visited now."""
        trouble = poll_trouble_of(self.database.batch([poll_trouble()])[0])
        return [*of_machine(self.settings), *of_polls(trouble)]

    @cached_property
    def loss(self) -> BackupLoss:
        """The items that a restore would lose of the feeds that changed last."""
        return backup_loss(self.database, self.objects(), limit=BACKUPS_LOOKED_AT)

    @cached_property
    def orphans(self) -> Orphans:
        """Objects without a row and rows without an object, as far as the time allowed reaches."""
        until = time.monotonic() + ORPHANS_SECONDS
        return find_orphans(
            self.database, self.objects(), now=self.now, is_over=lambda: time.monotonic() > until
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A health check: its function, and who sees the result."""

    name: str
    find: Callable[[Look], Finding | None]
    """None where it has nothing to say, such as of topics where there are none."""
    description: str = ""
    """The state in which it passes, for the UI."""
    asset: Literal["feeds", "images"] | None = None
    """The asset that has it in the UI; it is in the metrics, too. None if it is in neither."""
    kind: Literal["sql", "file", "python"] = "sql"
    """The kind of its evaluation, as the UI shows it. "file" opens the object store."""
    doctor: str | None = None
    """`doctor`'s name of it; None if `doctor` does not show it."""
    alert: State | None = None
    """The state from which on it alerts; None if it does not."""
    may_pass: bool = False
    """True for what may be over in a moment: it alerts if it is the same a little later."""
    every: timedelta = SELDOM
    """The age at which a result is too old for alerts."""
    follows: str = ""
    """The check behind which it is shown; of a feature's checks alone, the table has the order of others."""
    is_on: Callable[[Settings], bool] = lambda _: True
    """False where there is nothing of its kind in an installation with these settings."""
    watch: "Watch | None" = None
    """A sensor that evaluates it, too."""

    def evaluate(self, look: Look) -> Finding | None:
        """The result, with the titles of the feeds in its rows."""
        found = self.find(look)
        return found and replace(found, rows=_titled(look.database, found.rows))

    def is_bad(self, finding: Finding) -> bool:
        """True if this result alerts."""
        return self.alert is not None and STATES.index(finding.state) >= STATES.index(self.alert)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A sensor of the main machine, for a check that no run can evaluate while it is bad."""

    sensor: str
    description: str
    look: Callable[[Look], tuple[Finding, str]]
    """The result, and a text that changes when it is to be recorded anew."""
    seconds: int = 30


def evaluate(check: Check, look: Look) -> Finding | None:
    """The result; a check that cannot be evaluated has failed."""
    try:
        return check.evaluate(look)
    except (RssPipelineError, OSError) as error:
        return Finding(check.name, "failure", str(error), "See the message; the other checks went on.")


def _titled(database: Database, rows: Sequence[Row]) -> Sequence[Row]:
    key = next((each for each in ("feed", "stream") if rows and each in rows[0]), None)
    if key is None or "title" in rows[0]:
        return rows
    titles = feed_titles(database, [Member.of(row[key]).feed_id for row in rows])
    if not titles:
        return rows
    of_rows = (short_title(titles.get(Member.of(row[key]).feed_id)) for row in rows)
    return [{key: row[key], "title": title, **row} for row, title in zip(rows, of_rows, strict=True)]


def listed(
    name: str,
    read: Callable[[Look], Concerned | None],
    *,
    right: str,
    wrong: str,
    fix: str | Callable[[Sequence[Row]], str],
    verb: tuple[str, str] = ("has", "have"),
    things: tuple[str, str] = ("feed", "feeds"),
    description: str = "",
    asset: Literal["feeds", "images"] | None = None,
    doctor: str | None = None,
    follows: str = "",
) -> Check:
    """A check that warns of the feeds that `read` finds: their number, the verb for one or several, and
    `wrong`.

    It says `right` where there are none, and nothing where `read` returns None.
    """

    def find(look: Look) -> Finding | None:
        found = read(look)
        if found is None:
            return None
        figures = {things[1].partition(" ")[0]: found.count}
        if not found.count:
            return Finding(name, "ok", right, figures=figures)
        sentence = f"{counted(found.count, *things)} {verb[found.count != 1]} {wrong}"
        to_do = fix if isinstance(fix, str) else fix(found.rows)
        return Finding(name, "warning", sentence, to_do, figures, found.rows)

    return Check(name=name, find=find, description=description, asset=asset, doctor=doctor, follows=follows)


def worst_of(name: str, found: Sequence[tuple[State, str, str]]) -> Finding:
    """One finding of several, each a state, a sentence and its fix: the worst state, and all that they
    say."""
    state = max((each[0] for each in found), key=STATES.index)
    fixes = dict.fromkeys(fix for _, _, fix in found)
    return Finding(name, state, "; ".join(sentence for _, sentence, _ in found), " ".join(fixes))


def advice(rows: Sequence[Row], ours: str, of_users: str) -> str:
    """The advice for feeds of feeds.yaml, for those that users brought, or both."""
    parts = {
        ours: any(row["brought_by"] != FROM_USERS for row in rows),
        of_users: any(FROM_USERS in row["brought_by"] for row in rows),
    }
    return " ".join(part for part, fits in parts.items() if fits)


def some(names: Sequence[str]) -> str:
    """The first of these names, and the number of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def counted(count: int, one: str, several: str) -> str:
    """A number with its noun."""
    return f"{count:,} {one if count == 1 else several}"
