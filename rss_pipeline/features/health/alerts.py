"""Alerts: facts that go to the user's webhook, each once, whoever noticed it. One cursor knows which went.

Failed checks, checks that are well again, failed runs, and feeds with a tenth failure in a row are such
facts; any check of the table alerts that names a state for it. The daemon looks by a sensor
(dagster.py). The reader and the workers look in a thread, because a daemon that has ended cannot
say so. The form and the delivery of a message are webhook.py's.
"""

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

from rss_pipeline.collector.models.clock import Clock, from_instant, instant, utc_now
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.health.checks import health_checks
from rss_pipeline.features.health.model import OFTEN, Check, Finding, Look, evaluate
from rss_pipeline.features.health.sql import just_prominent
from rss_pipeline.features.health.webhook import AlertFailed, Fact, room_for, send
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.installation import alert_cursor, replace_alert_cursor

BACKOFF = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 4, 8, 16, 32, 60))
"""The back-off after the first, second ... message in a row that the webhook refused; then the last one."""
REMINDED = timedelta(days=1)
"""A check that goes on failing is reported again after so long."""
CONFIRMED = timedelta(minutes=2)
"""A fact that may pass by itself is reported if it is the same after so long,"""
CONFIRMED_CHANGING = timedelta(minutes=30)
"""and if it changes meanwhile, after so long: a poll after a night without one is at work."""
OVERLAP = timedelta(minutes=15)
"""The time of a visit and its write to the database are at most this far apart: as long as a poll runs."""
_SENDING = timedelta(minutes=1)
"""A message is accepted or refused within this time, or its process was killed."""
_MOST_WAITING = 20
_ATTEMPTS = 5
LOOK_SECONDS = 60.0
LOOK_SECONDS_PAID = 600.0
"""The seconds between two looks where each request and each row is paid for."""

_logger = logging.getLogger(__name__)

Kind = Literal["check", "well", "run", "feed"]
"""A check that failed, one that is well again, a run, a feed."""
_OF_CHECKS: tuple[Kind, ...] = ("check", "well")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFact:
    """Something that a person should know, under a key by which it is known again."""

    kind: Kind
    key: str
    fields: Sequence[Fact]
    changes: str | None = None
    """For a fact that may pass by itself: a text that is the same while nothing gets better."""
    goes_on: bool = False
    """True if it is reported again each day."""

    @property
    def id(self) -> str:
        """The key among facts of all kinds."""
        return f"{self.kind} {self.key}"


@dataclass(frozen=True, slots=True)
class AlertCursor:
    """The facts that were reported, and the back-off of the webhook."""

    since: datetime
    """Feeds with an older tenth failure were reported or never will be."""
    reported: Mapping[str, datetime] = field(default_factory=dict)
    """Facts to the time of the message about them."""
    unconfirmed: Mapping[str, tuple[datetime, str]] = field(default_factory=dict)
    """Facts that may pass by themselves: first seen when, and as what."""
    recovered: Mapping[str, datetime] = field(default_factory=dict)
    """Facts that were reported and are over, to the time since when: this is to be reported."""
    looked_at: Mapping[str, datetime] = field(default_factory=dict)
    """Checks to the time of their last evaluation, where it costs."""
    waiting: tuple[AlertFact, ...] = ()
    """Failed runs that the webhook did not accept: nobody finds them again."""
    refusals: int = 0
    """Messages in a row that the webhook refused."""
    again_at: datetime | None = None

    @classmethod
    def read(cls, text: str | None, now: datetime) -> "AlertCursor":
        """The cursor in this text; without one it begins now: feeds that failed before are not reported."""
        try:
            read = json.loads(text or "")
            since = from_instant(read["since"])
            return cls(
                # A clock that was wrong must not silence the alerts until then.
                (now if since is None else min(since, now)).astimezone(UTC),
                _times(read.get("reported"), now),
                {
                    str(id): (at, str(changes))
                    for id, (text_at, changes) in dict(read.get("unconfirmed") or {}).items()
                    if (at := _time(text_at, now)) is not None
                },
                _times(read.get("recovered"), now),
                _times(read.get("looked_at"), now),
                tuple(
                    AlertFact(kind="run", key=str(key), fields=[(str(t), str(v)) for t, v in fields])
                    for key, fields in dict(read.get("waiting") or {}).items()
                ),
                int(read.get("refusals") or 0),
                from_instant(read.get("again_at")),
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            return cls(now)

    def write(self) -> str:
        """The text from which `read` makes it again."""
        parts: dict[str, Any] = {
            "since": instant(self.since),
            "reported": {id: instant(at) for id, at in sorted(self.reported.items())},
            "unconfirmed": {
                id: [instant(at), changes] for id, (at, changes) in sorted(self.unconfirmed.items())
            },
            "recovered": {id: instant(at) for id, at in sorted(self.recovered.items())},
            "looked_at": {name: instant(at) for name, at in sorted(self.looked_at.items())},
            "waiting": {fact.key: list(fact.fields) for fact in self.waiting},
            "refusals": self.refusals,
            "again_at": None if self.again_at is None else instant(self.again_at),
        }
        return json.dumps({name: value for name, value in parts.items() if value})

    def is_backing_off(self, now: datetime) -> bool:
        """True if the webhook refused the last message, and it is too early for the next."""
        # A clock that was wrong: no back-off is longer than the last one.
        return self.again_at is not None and now < self.again_at <= now + BACKOFF[-1]

    def refused(self, now: datetime) -> "AlertCursor":
        """The cursor after a refused message, of which nothing counts as reported. The next is sent later."""
        wait = BACKOFF[min(self.refusals, len(BACKOFF) - 1)]
        return replace(self, refusals=self.refusals + 1, again_at=now + wait)


class CursorStore(Protocol):
    """The place where the cursor is between two looks."""

    def read(self) -> str | None:
        """The cursor; None before the first time."""
        ...

    def replace(self, before: str | None, after: str) -> bool:
        """Replace it; False if it was not `before` any more."""
        ...


@dataclass(frozen=True, slots=True)
class StoredCursor:
    """The cursor that all processes share, in the database."""

    database: Database

    def read(self) -> str | None:
        """The cursor; None before the first time."""
        return alert_cursor(self.database)

    def replace(self, before: str | None, after: str) -> bool:
        """Replace it; False if it was not `before` any more."""
        return replace_alert_cursor(self.database, before, after)


@dataclass(slots=True)
class OwnCursor:
    """The cursor of this process alone, for while the database cannot be used."""

    text: str | None = None

    def read(self) -> str | None:
        """The cursor; None before the first time."""
        return self.text

    def replace(self, before: str | None, after: str) -> bool:
        """Replace it; False if it was not `before` any more."""
        if self.text != before:
            return False
        self.text = after
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerted:
    """The result of `alert`: the facts that were sent, or the reason why none was."""

    sent: Sequence[AlertFact] = ()
    refused: str | None = None
    """The sentence about a webhook that did not accept the message."""
    is_backing_off: bool = False


def alert(
    settings: Settings,
    store: CursorStore,
    facts: Sequence[AlertFact],
    *,
    now: datetime,
    looked_at: Collection[str] = (),
) -> Alerted:
    """Send those of these facts that were not reported yet, as one message. A fact counts as reported once
    the webhook has accepted it: where it does not, or this process is killed, it is sent later.

    A fact of kind "well" says that the check of its key is no longer bad: it is sent if that was reported,
    and when the check fails again, it is reported again. `looked_at` are checks that were evaluated now.

    Raises:
        InfrastructureError: the cursor could not be read or written.
    """
    for _ in range(_ATTEMPTS):
        text = store.read()
        cursor = AlertCursor.read(text, now)
        updated, new = _weighed(cursor, facts, now=now, looked_at=looked_at)
        if settings.alert_webhook is None:
            return Alerted()
        is_backing_off = cursor.is_backing_off(now)
        sent = [] if is_backing_off else _fitting(new)
        after = _with_waiting(updated, new) if new else updated
        if sent:
            # Written first: of two processes that notice the same, one sends. If it is killed, another does.
            after = replace(after, again_at=now + _SENDING)
        if (text is None or after != cursor) and not store.replace(text, after.write()):
            continue
        if not sent:
            return Alerted(is_backing_off=is_backing_off)
        return _send(settings, store, sent, now=now, looked_at=looked_at)
    return Alerted()


def _send(
    settings: Settings,
    store: CursorStore,
    facts: Sequence[AlertFact],
    *,
    now: datetime,
    looked_at: Collection[str],
) -> Alerted:
    evaluated = {fact.key for fact in facts if fact.kind in _OF_CHECKS}.intersection(looked_at)
    try:
        send(settings, _headline(facts), _fields(facts), is_good=all(fact.kind == "well" for fact in facts))
    except AlertFailed as failed:
        _note(store, lambda found: found.refused(now), now)
        return Alerted(refused=str(failed))
    _note(store, lambda found: _reported(found, facts, now, evaluated), now)
    return Alerted(sent=facts)


def _note(store: CursorStore, change: Callable[[AlertCursor], AlertCursor], now: datetime) -> None:
    """Change the cursor as it is by now: others may have noted what they noticed while a message was sent."""
    for _ in range(_ATTEMPTS):
        text = store.read()
        if store.replace(text, change(AlertCursor.read(text, now)).write()):
            return


def _weighed(
    cursor: AlertCursor,
    facts: Sequence[AlertFact],
    *,
    now: datetime,
    looked_at: Collection[str],
) -> tuple[AlertCursor, list[AlertFact]]:
    """The cursor with what is over taken out, and the facts that are to be sent."""
    well = {f"check {fact.key}" for fact in facts if fact.kind == "well"}
    recovered = {id: now for id in well if id in cursor.reported} | dict(cursor.recovered)
    reported = {
        id: at
        for id, at in cursor.reported.items()
        # Feeds that failed before that are not found again.
        if id not in well and (id.startswith("check ") or at >= cursor.since - OVERLAP)
    }
    unconfirmed = {id: seen for id, seen in cursor.unconfirmed.items() if id not in well}
    new: list[AlertFact] = []
    for fact in [*facts, *(each for each in cursor.waiting if each.id not in {f.id for f in facts})]:
        if fact.kind == "well":
            if f"check {fact.key}" in recovered:
                new.append(fact)
            continue
        # It failed again before anybody heard that it was well.
        recovered.pop(fact.id, None)
        at = reported.get(fact.id)
        if at is not None and not (fact.goes_on and now - at >= REMINDED):
            continue
        if fact.changes is not None and at is None:
            first, changes = unconfirmed.setdefault(fact.id, (now, fact.changes))
            if now - first < (CONFIRMED if changes == fact.changes else CONFIRMED_CHANGING):
                continue
        new.append(fact)
    checked = {**cursor.looked_at, **dict.fromkeys(looked_at, now)}
    cursor = replace(
        cursor, reported=reported, unconfirmed=unconfirmed, recovered=recovered, looked_at=checked
    )
    return cursor, new


def _reported(
    cursor: AlertCursor, sent: Sequence[AlertFact], now: datetime, evaluated: Collection[str]
) -> AlertCursor:
    ids = {fact.id for fact in sent if fact.kind != "well"}
    well = {f"check {fact.key}" for fact in sent if fact.kind == "well"}
    return replace(
        cursor,
        looked_at={**cursor.looked_at, **dict.fromkeys(evaluated, now)},
        since=now,
        reported={**cursor.reported, **dict.fromkeys(ids, now)},
        unconfirmed={id: seen for id, seen in cursor.unconfirmed.items() if id not in ids},
        recovered={id: at for id, at in cursor.recovered.items() if id not in well},
        waiting=tuple(fact for fact in cursor.waiting if fact.id not in ids),
        refusals=0,
        again_at=None,
    )


def _with_waiting(cursor: AlertCursor, new: Sequence[AlertFact]) -> AlertCursor:
    """The cursor with what is not reported yet: runs wait in it, checks are evaluated anew."""
    runs = {fact.id: fact for fact in (*cursor.waiting, *new) if fact.kind == "run"}
    checks = {fact.key for fact in new if fact.kind in _OF_CHECKS}
    return replace(
        cursor,
        waiting=tuple(runs.values())[-_MOST_WAITING:],
        looked_at={name: at for name, at in cursor.looked_at.items() if name not in checks},
    )


def _fitting(facts: Sequence[AlertFact]) -> list[AlertFact]:
    """The facts of the next message. All feeds are of it: those without room are counted in its text, and a
    check lists them. A check or run without room waits for the next message."""
    order: Mapping[Kind, int] = {"check": 0, "well": 1, "run": 2, "feed": 3}
    chosen: list[AlertFact] = []
    for fact in sorted(facts, key=lambda each: order[each.kind]):
        fields = _fields([*chosen, fact])
        if fact.kind == "feed" or not chosen or room_for(fields) == len(fields):
            chosen.append(fact)
    return chosen


def _fields(facts: Sequence[AlertFact]) -> list[Fact]:
    fields = [each for fact in facts for each in fact.fields]
    return fields[: room_for(fields)]


def _headline(sent: Sequence[AlertFact]) -> str:
    counts = Counter(fact.kind for fact in sent)
    parts = []
    if number := counts["check"]:
        names = ", ".join(fact.key for fact in sent if fact.kind == "check")
        parts.append(f"{'a check has' if number == 1 else f'{number} checks have'} failed: {names}")
    if number := counts["well"]:
        names = ", ".join(fact.key for fact in sent if fact.kind == "well")
        parts.append(f"{'a check is' if number == 1 else f'{number} checks are'} well again: {names}")
    if number := counts["run"]:
        jobs = {value for fact in sent if fact.kind == "run" for name, value in fact.fields if name == "job"}
        parts.append(f"{'a run' if number == 1 else f'{number} runs'} of {', '.join(sorted(jobs))} failed")
    if number := counts["feed"]:
        count = "a feed has" if number == 1 else f"{number} feeds have"
        hidden = sum(len(fact.fields) for fact in sent) - len(_fields(sent))
        more = f"; {hidden} more are in the check feeds_answer" if hidden else ""
        parts.append(f"{count} failed ten times in a row; each is now visited once a day{more}")
    return f"rss_pipeline: {'; '.join(parts)}"


def _times(read: object, now: datetime) -> dict[str, datetime]:
    found = {str(id): _time(at, now) for id, at in (read.items() if isinstance(read, dict) else ())}
    return {id: at for id, at in found.items() if at is not None}


def _time(text: str, now: datetime) -> datetime | None:
    """The time, by our clock: that of another machine may be a little ahead. One that was wrong is none."""
    at = from_instant(text)
    return None if at is None or at > now + BACKOFF[-1] else min(at, now)


def seconds_between_looks(settings: Settings) -> float:
    """The time from one look to the next."""
    return LOOK_SECONDS_PAID if settings.pays_by_row else LOOK_SECONDS


def look(database: Database, settings: Settings, *, now: datetime) -> Alerted:
    """Evaluate the checks that are due, look for feeds with a tenth failure, and alert.

    Raises:
        InfrastructureError: the database cannot be used.
    """
    store = StoredCursor(database)
    cursor = AlertCursor.read(store.read(), now)
    place = Look(database=database, objects=lambda: open_objects(settings), settings=settings, now=now)
    due = [
        check
        for check in health_checks(settings)
        if check.alert is not None and _age(cursor, check, now) >= check.every
    ]
    feeds = [_feed_fact(row) for row in just_prominent(database, since=cursor.since - OVERLAP)]
    return report_checks(place, [(check, evaluate(check, place)) for check in due], more=feeds)


def report_checks(
    place: Look, found: Sequence[tuple[Check, Finding | None]], *, more: Sequence[AlertFact] = ()
) -> Alerted:
    """Send an alert about the checks that are bad or well again, and `more`. Nothing where no webhook is
    set."""
    facts = [
        check_fact(check, finding)
        if check.is_bad(finding)
        else AlertFact(kind="well", key=check.name, fields=[(check.name, finding.found)])
        for check, found_of in found
        if check.alert is not None
        for finding in [found_of or Finding(check.name, "ok", "nothing is wrong any more")]
    ]
    if place.settings.alert_webhook is None or not (facts or more):
        return Alerted()
    return alert(
        place.settings,
        StoredCursor(place.database),
        [*facts, *more],
        now=place.now,
        looked_at=[check.name for check, _ in found if check.every != OFTEN],
    )


def report_unusable(settings: Settings, store: CursorStore, error: Exception, *, now: datetime) -> Alerted:
    """Send an alert about stores that have not been usable for a while, by a cursor that is not in them."""
    fact = AlertFact(
        kind="check", key="stores", fields=[("stores", str(error))], changes=instant(now), goes_on=True
    )
    return alert(settings, store, [fact], now=now)


def report_usable(settings: Settings, own: OwnCursor, *, now: datetime) -> OwnCursor:
    """Send an alert about stores that can be used again, where it was reported that they could not.

    Return the cursor for the next time.
    """
    if own.text is None:
        return own
    alert(
        settings,
        own,
        [AlertFact(kind="well", key="stores", fields=[("stores", "they can be used")])],
        now=now,
    )
    return own if AlertCursor.read(own.text, now).recovered else OwnCursor()


def check_fact(check: Check, finding: Finding) -> AlertFact:
    """A check that has failed, as a fact. Feeds may wait, and machines be away, for a moment."""
    changes = None
    if check.may_pass:
        changes = str(finding.rows[0].get("due_since", "")) if finding.rows else ""
    return AlertFact(
        kind="check",
        key=check.name,
        fields=[(check.name, finding.sentences)],
        changes=changes,
        goes_on=True,
    )


@contextmanager
def watching(
    settings: Settings,
    *,
    clock: Clock = utc_now,
    is_ours: Callable[[Database], bool] = lambda _: True,
    seconds: float | None = None,
) -> Iterator[bool]:
    """Look again and again in a thread, as long as the block; False where no webhook is set.

    `is_ours` is called before each look: False leaves the look to others.
    """
    if settings.alert_webhook is None:
        yield False
        return
    over = threading.Event()
    thread = threading.Thread(
        target=_watch,
        args=(settings, clock, is_ours, over, seconds or seconds_between_looks(settings)),
        name="alerts",
        daemon=True,
    )
    thread.start()
    try:
        yield True
    finally:
        over.set()


def _watch(
    settings: Settings,
    clock: Clock,
    is_ours: Callable[[Database], bool],
    over: threading.Event,
    seconds: float,
) -> None:
    own = OwnCursor()
    # The first look is soon, the second confirms what it saw.
    wait = min(seconds, LOOK_SECONDS) / 6
    while not over.wait(wait):
        wait = seconds
        try:
            try:
                with open_database(settings) as database:
                    if is_ours(database):
                        refused = look(database, settings, now=clock()).refused
                        if refused is not None:
                            _logger.warning("%s", refused)
                own = report_usable(settings, own, now=clock())
            except (RssPipelineError, OSError) as error:
                report_unusable(settings, own, error, now=clock())
        # The process that this thread is beside goes on, whatever is wrong with a check.
        except Exception:
            _logger.exception("no look for alerts")


def _age(cursor: AlertCursor, check: Check, now: datetime) -> timedelta:
    at = cursor.looked_at.get(check.name)
    return timedelta.max if at is None else now - at


def _feed_fact(row: Row) -> AlertFact:
    return AlertFact(kind="feed", key=f"{row['id']} {row['prominent_at']}", fields=[_feed_field(row)])


def _feed_field(row: Row) -> Fact:
    title = (row["title"] or "").strip() or row["id"]
    # A long URL must not leave the reason out.
    url, reason = row["url"][:200], (row["last_error"] or "no reason is recorded")[:300]
    return title, f"{url} — {reason} (last success: {row['last_success_at'] or 'never'})"
