"""Columns of the feeds table: one table per value that a `Feed` holds, for reading and for writing.

No statements are here. A new field needs a line in its table, and a migration for its column.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.feed import (
    FailureHistory,
    Feed,
    FeedAddress,
    GapHistory,
    HttpState,
    ScheduleState,
    UnfinishedWork,
    Validators,
    ValidatorsState,
)
from rss_pipeline.collector.models.hold import LedTo
from rss_pipeline.collector.models.item import PublisherHints
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.storage.database import Database, Result, Row, Statement
from rss_pipeline.storage.sql import chunked, compact, seconds


@dataclass(frozen=True, slots=True)
class _Type:
    """The conversion of a column's value to a field's, and back. Numbers may come as doubles (D1)."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _from_seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def _instant(value: datetime | None) -> str | None:
    return None if value is None else instant(value)


def _list(text: str | None) -> list[Any]:
    return [] if text is None else list(json.loads(text))


_TEXT = _Type(_same, _same)
_FLAG = _Type(bool, int)
_NUMBER = _Type(_whole, _same)
_SECONDS = _Type(_from_seconds, seconds)
_INSTANT = _Type(from_instant, _instant)
_INSTANTS = _Type(
    lambda text: tuple(filter(None, map(from_instant, _list(text)))),
    lambda times: compact([instant(at) for at in times]),
)
_TEXTS = _Type(lambda text: tuple(_list(text)), lambda texts: compact(list(texts)))
_NUMBERS = _Type(lambda text: frozenset(map(int, _list(text))), lambda numbers: compact(sorted(numbers)))


def _validators(text: str | None) -> ValidatorsState:
    if text is None:
        return ValidatorsState()
    known = json.loads(text)
    return ValidatorsState(
        dated=from_instant(known.get("dated")),
        false=known.get("false", 0),
        checked_at=from_instant(known.get("checked_at")),
        others=tuple(
            Validators(url=url, etag=etag, last_modified=modified, dated=from_instant(dated), false=false)
            for url, etag, modified, dated, false in known.get("others", ())
        ),
    )


def validators_text(state: ValidatorsState) -> str | None:
    """The column `validators_state`, without what is not there."""
    others = [
        [each.url, each.etag, each.last_modified, _instant(each.dated), each.false] for each in state.others
    ]
    known = {
        "dated": _instant(state.dated),
        "false": state.false,
        "checked_at": _instant(state.checked_at),
        "others": others,
    }
    given = {name: value for name, value in known.items() if value}
    return compact(given) if given else None


def _led_to(text: str | None) -> LedTo | None:
    if text is None:
        return None
    known = json.loads(text)
    at = from_instant(known["at"])
    assert at is not None
    return LedTo(
        source=known["source"],
        url=known["url"],
        is_permanent=bool(known["permanent"]),
        at=at,
        fresh_until=from_instant(known["fresh_until"]),
    )


def led_to_text(led: LedTo | None) -> str | None:
    """The column `led_to`."""
    if led is None:
        return None
    return compact(
        {
            "source": led.source,
            "url": led.url,
            "permanent": int(led.is_permanent),
            "at": instant(led.at),
            "fresh_until": _instant(led.fresh_until),
        }
    )


_LED_TO = _Type(_led_to, led_to_text)
_VALIDATORS = _Type(_validators, validators_text)

_Columns = Mapping[str, tuple[str, _Type]]
"""Field of the value to column of the table."""

_FEED: _Columns = {
    "id": ("id", _TEXT),
    "url": ("url", _TEXT),
    "title": ("title", _TEXT),
    "link": ("link", _TEXT),
    "language": ("language", _TEXT),
    "created_at": ("created_at", _INSTANT),
    "interval": ("interval", _SECONDS),
    "wished_interval": ("wished_interval", _SECONDS),
    "auto_is_wished": ("auto_is_wished", _FLAG),
    "key": ("item_key", _TEXT),
    "images": ("images", _FLAG),
    "keep_days": ("keep_days", _NUMBER),
    "max_size": ("max_size", _NUMBER),
    "allow_private": ("allow_private", _FLAG),
    "private_hosts": ("private_hosts", _TEXTS),
    "needs_access": ("needs_access", _FLAG),
    "brought_by": ("brought_by", _TEXT),
    "counted_day": ("counted_day", _TEXT),
    "day_items": ("day_items", _NUMBER),
    "day_backup_bytes": ("day_backup_bytes", _NUMBER),
    "led_to": ("led_to", _LED_TO),
}
_ADDRESS: _Columns = {
    "fetch_url": ("fetch_url", _TEXT),
    "host": ("host", _TEXT),
    "move_url": ("move_url", _TEXT),
    "move_since": ("move_since", _INSTANT),
}
_HTTP: _Columns = {
    "etag": ("last_etag", _TEXT),
    "last_modified": ("last_modified", _TEXT),
    "validators_url": ("validators_url", _TEXT),
    "validators_state": ("validators_state", _VALIDATORS),
    "content_hash": ("content_hash", _TEXT),
    "failed_hash": ("failed_hash", _TEXT),
    "failed_version": ("failed_version", _TEXT),
    "cut_hash": ("cut_hash", _TEXT),
    "cuts": ("cuts", _NUMBER),
    "charset": ("charset", _TEXT),
    "former_charset": ("former_charset", _TEXT),
    "last_body_at": ("last_body_at", _INSTANT),
    "host_answered": ("host_answered", _FLAG),
    "network": ("network", _TEXT),
}
_SCHEDULE: _Columns = {
    "next_fetch_at": ("next_fetch_at", _INSTANT),
    "planned_at": ("planned_at", _INSTANT),
    "last_fetched_at": ("last_fetched_at", _INSTANT),
    "last_visited_at": ("last_visited_at", _INSTANT),
    "last_success_at": ("last_success_at", _INSTANT),
    "outage_pauses": ("outage_pauses", _NUMBER),
    "items_listed": ("items_listed", _NUMBER),
}
_HINTS: _Columns = {
    "max_age": ("max_age", _NUMBER),
    "ttl": ("ttl", _SECONDS),
    "updates": ("rhythm", _INSTANTS),
    "skip_hours": ("skip_hours", _NUMBERS),
    "skip_days": ("skip_days", _NUMBERS),
}
_GAPS: _Columns = {
    "count": ("gaps", _NUMBER),
    "last_at": ("last_gap_at", _INSTANT),
    "halvings": ("gap_halvings", _NUMBER),
    "halved_at": ("halved_at", _INSTANT),
}
_FAILURES: _Columns = {
    "in_a_row": ("consecutive_failures", _NUMBER),
    "since": ("failing_since", _INSTANT),
    "last_kind": ("last_error_kind", _TEXT),
    "last_message": ("last_error", _TEXT),
    "reported_kind": ("failure_reported_kind", _TEXT),
    "reported_at": ("failure_reported_at", _INSTANT),
}
_UNFINISHED: _Columns = {
    "claims": ("unclosed_claims", _NUMBER),
    "backup_unsure": ("backup_unsure", _FLAG),
    "images_pending": ("images_pending", _FLAG),
}


def _names(columns: _Columns) -> tuple[str, ...]:
    return tuple(name for name, _ in columns.values())


NUMBER_COLUMNS = frozenset(
    name
    for columns in (_FEED, _ADDRESS, _HTTP, _SCHEDULE, _HINTS, _GAPS, _FAILURES, _UNFINISHED)
    for name, type_ in columns.values()
    if type_ in (_FLAG, _NUMBER, _SECONDS)
)
"""Columns that hold whole numbers."""
ADDRESS_COLUMNS = _names(_ADDRESS)
HINT_COLUMNS = _names(_HINTS)
# Read with the claim, for only a feed with a wish needs it, and its index has both.
_AUTO_IS_WISHED = """(wished_interval IS NOT NULL AND (listed = 1 OR EXISTS (
  SELECT 1 FROM subscriptions AS s WHERE s.feed_id = feeds.id AND s.wished_interval IS NULL
))) AS auto_is_wished"""
_MOST_USERS = 3
BROUGHT_BY = f"""CASE WHEN listed = 1 OR (SELECT count(*) FROM users) < 2 THEN '' ELSE coalesce((
  SELECT CAST(json_group_array(user_id) AS TEXT) FROM (
  SELECT s.user_id FROM subscriptions AS s WHERE s.feed_id = feeds.id ORDER BY s.wished_interval, s.user_id
  LIMIT {_MOST_USERS}) AS few), '') END AS brought_by"""
"""The users of a feed that feeds.yaml does not list, a few of them as one value: a feed of two users does not
wait for all that one of them has besides. Where there is one user, all feeds are that user's. In the order of
an index, so that no row is read for the rest."""
_READ = {"auto_is_wished": _AUTO_IS_WISHED, "brought_by": BROUGHT_BY}
FEED_COLUMNS = ", ".join(
    [
        _READ.get(name, name)
        for columns in (_FEED, _ADDRESS, _HTTP, _SCHEDULE, _HINTS, _GAPS, _FAILURES, _UNFINISHED)
        for name in _names(columns)
    ]
    + list(FEED_KEYS)
    + [key.memory for key in FEED_KEYS.values() if key.memory is not None]
)


def feed_of(row: Row) -> Feed:
    """The `Feed` of a row with FEED_COLUMNS."""

    def fields(columns: _Columns) -> dict[str, Any]:
        return {field: type_.read(row[name]) for field, (name, type_) in columns.items()}

    return Feed(
        **fields(_FEED),
        feature_keys={name: row[name] for name in FEED_KEYS if row[name] is not None},
        memories={
            name: row[key.memory]
            for name, key in FEED_KEYS.items()
            if key.memory is not None and row[key.memory] is not None
        },
        address=FeedAddress(**fields(_ADDRESS)),
        http=HttpState(**fields(_HTTP)),
        schedule=ScheduleState(
            **fields(_SCHEDULE), hints=PublisherHints(**fields(_HINTS)), gaps=GapHistory(**fields(_GAPS))
        ),
        failures=FailureHistory(**fields(_FAILURES)),
        unfinished=UnfinishedWork(**fields(_UNFINISHED)),
    )


def hints_row(hints: PublisherHints) -> Row:
    """The values of HINT_COLUMNS."""
    return _written(_HINTS, hints)


def address_row(address: FeedAddress) -> Row:
    """The values of ADDRESS_COLUMNS."""
    return _written(_ADDRESS, address)


def _written(columns: _Columns, value: object) -> Row:
    return {name: type_.write(getattr(value, field)) for field, (name, type_) in columns.items()}


# Feeds by id, and single facts of them.


def known_pages(database: Database) -> dict[str, tuple[str | None, str | None]]:
    """Feed id to title and web page, of all feeds."""
    rows = database.query("SELECT id, title, link FROM feeds", name="read titles").rows
    return {row["id"]: (row["title"], row["link"]) for row in rows}


def feed_titles(database: Database, ids: Iterable[str]) -> dict[str, str]:
    """Feed id to title, of those among these feeds that have one."""
    rows = database.query(
        """SELECT id, title FROM feeds
        WHERE title <> '' AND id IN (SELECT value FROM json_each(?))""",
        [compact(sorted(set(ids)))],
        name="read titles of feeds",
    ).rows
    return {row["id"]: row["title"] for row in rows}


def feeds_by_id(database: Database, ids: Sequence[str]) -> dict[str, Feed]:
    """These feeds by id; unknown ids are left out."""
    rows = database.query(
        f"SELECT {FEED_COLUMNS} FROM feeds WHERE id IN (SELECT value FROM json_each(?))",
        [compact(list(ids))],
        name="read feeds",
    ).rows
    return {row["id"]: feed_of(row) for row in rows}


def not_our_outage(database: Database, ids: Sequence[str], *, answered: bool) -> frozenset[str]:
    """The feeds among these that fail by themselves although an outage of ours postponed them.

    A host has answered since that outage, or just now (`answered`), so our network was up. An answer that
    the outage's own run stored later does not count, nor one of our own network against other feeds.
    """
    rows = database.query(
        f"""SELECT id FROM feeds WHERE id IN (SELECT value FROM json_each(?)) AND schedule_kind = 'our_outage'
        AND (? = 1 OR strftime('%Y-%m-%dT%H:%M:%SZ', next_fetch_at, '-' || ({_SETTLED}) || ' seconds')
          < CASE allow_private WHEN 1 THEN (SELECT max(last_fetched_at) FROM feeds)
            ELSE (SELECT max(last_fetched_at) FROM feeds WHERE allow_private = 0) END)""",
        [compact(list(ids)), int(answered)],
        name="find outages of ours that are over",
    ).rows
    return frozenset(row["id"] for row in rows)


def any_answered(database: Database) -> bool:
    """True if any feed was ever answered, with any status."""
    rows = database.query(
        "SELECT 1 FROM feeds WHERE last_fetched_at IS NOT NULL LIMIT 1", name="find an answered feed"
    ).rows
    return bool(rows)


_SETTLED = "CASE outage_pauses {} ELSE 3360 END".format(
    " ".join(f"WHEN {n} THEN {max(300 * 2 ** (n - 1), 300) - 240}" for n in range(5))
)
"""Seconds from 4 min after an outage, when its run has ended, until its feeds are due again."""


def forget_failed_document(database: Database, feed_id: str, document_hash: str) -> None:
    """Forget that this document could not be read, unless another one has failed since."""
    database.query(
        """UPDATE feeds SET failed_hash = NULL, failed_version = NULL WHERE id = ? AND failed_hash = ?""",
        [feed_id, document_hash],
        name="forget failed document",
    )


# The ids of feeds: of all, read page by page, for there may be a million; and those that are taken.

_PAGE = 5_000


def feed_ids(database: Database) -> Iterator[str]:
    """The ids of all feeds, in their order."""
    after = ""
    while True:
        rows = database.query(
            f"SELECT id FROM feeds WHERE id > ? ORDER BY id LIMIT {_PAGE}", [after], name="read feed ids"
        ).rows
        yield from (row["id"] for row in rows)
        if len(rows) < _PAGE:
            return
        after = rows[-1]["id"]


def stored_urls(ids: Iterable[str]) -> list[Statement]:
    """Queries for the feeds with these ids, and with each of these and a number; `urls_by_id` reads them."""
    return [
        Statement(
            # All that begin with the id and a hyphen: no other sign of an id comes before the dot.
            """SELECT feeds.id, feeds.url FROM json_each(?) AS j
            CROSS JOIN feeds ON feeds.id >= j.value AND feeds.id < j.value || '.'
            WHERE feeds.forgotten = 0""",
            [chunk],
            name="find taken ids",
        )
        for chunk in chunked(map(compact, ids))
    ]


def urls_by_id(found: Iterable[Result]) -> dict[str, str]:
    """The results of `stored_urls`."""
    return {row["id"]: row["url"] for result in found for row in result.rows}
