"""Refresh now, as a user has it: the request for a visit of a feed, or of many; its answer, and the task that
follows it.

The visits themselves are refresh_run.py's. The reader makes no request to a publisher.
"""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.failures import shown_error, shown_kind, what_to_do
from rss_pipeline.reader.query import Query
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Result, Row, one
from rss_pipeline.storage.refresh.new_addresses import AN_HOUR, Queue, queue_of, read_queue
from rss_pipeline.storage.refresh.refresh_requests import (
    FEED_SPAN,
    MOST_OF_FEED,
    USER_SPAN,
    RefreshRequest,
    RequestKind,
    SearchRequest,
    has_too_many,
    request_statements,
    task_statement,
)
from rss_pipeline.storage.subscriptions.chosen import Scope
from rss_pipeline.storage.subscriptions.refreshes import (
    Requested,
    list_tasks,
    named_tasks,
    request_many,
    requested_of,
)

_HERE_SECONDS = 2
_ELSEWHERE_SECONDS = 30
"""Until a visit begins: below `up`, and where a sensor has to find the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A visit begins in about so many seconds."""

    task_id: str
    delay_seconds: int
    queue: Queue = field(default_factory=Queue)
    """The user's new addresses that wait for their turn."""
    begins_at: datetime | None = None
    """The turn of a new address; for a visit a minute after the feed's last answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitRunning:
    """The feed, or the address, is being visited; the task is done when that visit is."""

    task_id: str
    delay_seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nothing is requested before `until`: the host, or our own limit for one feed, says so."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TooMany:
    """The user has made too many requests; the next one is taken within so many seconds."""

    retry_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPolled:
    """The feed is not visited at all; the sentence says why."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSubscribed:
    """The user does not subscribe to this feed, or there is none."""


RefreshAnswer = Queued | VisitRunning | Held | TooMany | NotPolled | NotSubscribed

TaskState = Literal["queued", "running", "done"]
Outcome = Literal["stored", "unchanged", "failed", "held", "refused", "subscribed", "known", "offered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The end of a task."""

    outcome: Outcome
    items_new: int
    milliseconds: int
    """From the request to the end of the visit."""
    error_kind: str | None = None
    error: str | None = None
    what_to_do: str | None = None
    until: datetime | None = None
    """For `held`: the end of the hold."""
    offer: Mapping[str, Any] | None = None
    """For `offered`: what would be collected of an address without a feed, as `Offer.shown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A request for a visit as its users see it."""

    id: str
    kind: RequestKind
    feed_id: str | None
    """For a search: the feed that was found, once it is done."""
    address: str | None
    state: TaskState
    requested_at: datetime
    begins_at: datetime | None
    """The turn of a search, where its user has brought many new addresses; for a visit a minute after the
    feed's last answer."""
    finished_at: datetime | None
    result: TaskResult | None
    wishes: Wishes
    """The user's for the subscription, of a search."""


def new_request(
    user_id: str, feed_id: str, *, now: datetime, kind: RequestKind = "refresh"
) -> RefreshRequest:
    """A request for a visit, with an id that cannot be guessed."""
    return RefreshRequest(id=secrets.token_hex(16), user_id=user_id, feed_id=feed_id, now=now, kind=kind)


def new_search(user_id: str, address: str, *, now: datetime, wishes: Wishes | None = None) -> SearchRequest:
    """A request for the feed of an address, likewise."""
    id = secrets.token_hex(16)
    return SearchRequest(id=id, user_id=user_id, address=address, now=now, wishes=wishes or Wishes())


def refresh_feed(caller: Caller, settings: Settings, feed_id: str) -> RefreshAnswer:
    """Request a visit of a feed now, or join the request that is open for it.

    Raises:
        NoSession, DatabaseUnavailable: as Caller's methods.
    """
    request = new_request(caller.user_id, feed_id, now=caller.clock())
    return answer_to(request, caller.write(*request_statements(request)), settings)


def refresh_feeds(caller: Caller, settings: Settings, *, folder: str | None = None) -> Requested:
    """Request a visit of each feed of a folder, or of all."""
    *_, found = caller.write(*request_many(caller.user_id, Scope(folder=folder), now=caller.clock()))
    requested = requested_of(found)
    if requested.requested:
        set_mark(settings)
    return requested


def answer_to(request: RefreshRequest, results: Sequence[Result], settings: Settings) -> RefreshAnswer:
    """The answer by the results of `request_statements`, the last ones of a batch; sets the mark for `up`."""
    row = one(results[-1])
    if row is None:
        return NotSubscribed()
    if row["task_id"] is not None:
        set_mark(settings)
        if row["state"] == "running" or row["is_visited"]:
            return VisitRunning(task_id=row["task_id"])
        begins_at = from_instant(row["begins_at"])
        if begins_at is None or begins_at <= request.now:
            return Queued(task_id=row["task_id"], delay_seconds=_delay(settings))
        delay = _delay(settings) + int((begins_at - request.now).total_seconds())
        return Queued(task_id=row["task_id"], delay_seconds=delay, begins_at=begins_at)
    if not row["is_polled"]:
        return NotPolled(message="This feed is not collected: it is switched off, or no longer registered.")
    if row["hold_until"] is not None:
        reason = f"{row['hold_host']} wants no requests: {row['hold_reason']}"
        if not row["hold_host"]:
            reason = "Its new documents of today have reached their limit; it is visited again tomorrow."
        if row["waits_for_turn"]:
            reason = f"At most {AN_HOUR} new addresses of a user are visited within an hour."
        return Held(until=datetime.fromisoformat(row["hold_until"]), reason=reason)
    if has_too_many(row):
        return TooMany(retry_after=int(USER_SPAN.total_seconds()))
    minutes = FEED_SPAN.seconds // 60
    reason = f"This feed was refreshed {MOST_OF_FEED} times within {minutes} minutes."
    return Held(until=request.now + FEED_SPAN, reason=reason)


def search_answer(
    request: SearchRequest, results: Sequence[Result], settings: Settings
) -> Queued | VisitRunning | TooMany:
    """The answer by the results of `search_request_statements`, as `answer_to`."""
    row = one(results[-1])
    if row is None:
        return TooMany(retry_after=int(USER_SPAN.total_seconds()))
    set_mark(settings)
    if row["state"] == "running":
        return VisitRunning(task_id=row["task_id"])
    begins_at = from_instant(row["begins_at"])
    delay = _delay(settings)
    if begins_at is not None and begins_at > request.now:
        delay += int((begins_at - request.now).total_seconds())
    else:
        begins_at = None
    return Queued(
        task_id=row["task_id"], delay_seconds=delay, queue=queue_of(results[-2]), begins_at=begins_at
    )


def _delay(settings: Settings) -> int:
    return _HERE_SECONDS if settings.database.is_here else _ELSEWHERE_SECONDS


def task(user_id: str, id: str, *, now: datetime) -> Query[Task | None]:
    """A task of this user, or one that this user joined, until a day after its end."""

    def read(found: Result) -> Task | None:
        row = one(found)
        return None if row is None else task_of(row)

    return Query.of(task_statement(user_id, id, now=now), read)


def tasks(user_id: str, *, since: datetime, now: datetime, limit: int) -> Query[Sequence[tuple[Task, str]]]:
    """The tasks of a user that are not done, and then those that were requested since, the newest first, each
    with its feed's title, or its URL. Searches are not among them."""
    return Query.of(
        list_tasks(user_id, since=since, now=now, limit=limit),
        lambda found: [(task_of(each.row), each.name) for each in named_tasks(found)],
    )


def queue(user_id: str, *, now: datetime) -> Query[Queue]:
    """The new addresses of a user that wait for their turn."""
    return Query.of(read_queue(user_id, now=now), queue_of)


def task_of(row: Row) -> Task:
    """The task of a row."""
    result = None if row["result"] is None else json.loads(row["result"])
    return Task(
        id=row["id"],
        kind=row["kind"],
        feed_id=row["feed_id"] or (result or {}).get("feed_id"),
        address=row["address"],
        state=row["state"],
        requested_at=datetime.fromisoformat(row["requested_at"]),
        begins_at=from_instant(row.get("begins_at")),
        finished_at=from_instant(row["finished_at"]),
        result=None if result is None else _result_of(result),
        wishes=Wishes(**json.loads(row.get("wishes") or "{}")),
    )


def _result_of(result: Row) -> TaskResult:
    kind = result.get("error_kind")
    return TaskResult(
        outcome=result["outcome"],
        items_new=int(result.get("items_new", 0)),
        milliseconds=int(result["milliseconds"]),
        error_kind=None if kind is None else shown_kind(kind),
        error=shown_error(kind, result.get("error")),
        what_to_do=None if kind is None else what_to_do(kind),
        until=from_instant(result.get("until")),
        offer=result.get("offer"),
    )


# The file that shows the processes of `up`, on the same machine, that a request for a visit was made.
# They check it several times a second, which costs nothing, and the database only when it has changed.
# Requests from other machines are found by the sensor `refresh_feeds_when_requested`.

NAME = "refresh_requested"


def set_mark(settings: Settings) -> None:
    """Set the mark. Called after the request is stored; where it cannot be written, the sensor finds the
    request."""
    path = settings.home / NAME
    with suppress(OSError):
        # Not `touch`: the clock of a file system may be coarser than two requests are apart.
        path.write_text(f"{os.getpid()}\n", "utf-8")


def read_mark(settings: Settings) -> int | None:
    """A number that differs after each request; None while there was none."""
    try:
        return (settings.home / NAME).stat().st_mtime_ns
    except OSError:
        return None
