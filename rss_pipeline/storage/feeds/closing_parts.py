"""Parts of the statements that close a visit: the document's columns, the feed's address, and gaps.

Each part is a piece of SQL and the values that it reads from the JSON `v.value`. The statements are in
closings.py; the decisions (which document shows a gap, which redirect counts) in collector.schedule.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from urllib.parse import urlsplit

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Feed, FeedAddress, NextVisit, Validators, ValidatorsState
from rss_pipeline.collector.models.item import FeedHeader
from rss_pipeline.collector.models.outcome import IfGap, Parsed, Response
from rss_pipeline.collector.models.shard import bucket_of
from rss_pipeline.collector.models.warning import FeedWarning, sentences
from rss_pipeline.storage.database import Row, Statement
from rss_pipeline.storage.feeds.feed_row import (
    ADDRESS_COLUMNS,
    HINT_COLUMNS,
    NUMBER_COLUMNS,
    address_row,
    hints_row,
    validators_text,
)
from rss_pipeline.storage.feeds.predicates import has_warning
from rss_pipeline.storage.sql import FIELD, NUMBER_FIELD, compact, number, storable
from rss_pipeline.storage.stale import mark_stale_if

SENTENCE = "no item in common with the document before: items were probably missed between the two"


def from_json(*columns: str) -> str:
    """Assignments to columns of feeds, each from the field of its name in `v.value`."""
    return ", ".join(f"{column} = {_field(column)}" for column in columns)


def _field(column: str) -> str:
    return (NUMBER_FIELD if column in NUMBER_COLUMNS else FIELD).format(column)


def without_comments(sql: str) -> str:
    """The statement without its lines of comment, which are for readers: D1 gets it with every document."""
    return re.sub(r"^\s*--.*\n", "", sql, flags=re.MULTILINE)


VALIDATOR_COLUMNS = (
    "last_etag",
    "last_modified",
    "validators_url",
    "validators_state",
)


MOST_OTHER_VALIDATORS = 3
_MOST_OTHER_CHARACTERS = 2_000


def validators(feed: Feed, response: Response, *, overwrite: bool) -> Row:
    """ETag, Last-Modified and the URL they belong to after this answer (RFC 9110 15.4.5).

    A document overwrites both, also with nothing; those of the document before are kept where another URL
    gave them. A 304 updates those it carries, of the URL that gave it.
    """
    http, url = feed.http, response.url
    known = http.validators_at(url, requested_url=feed.requested_url)
    newest = http.newest_validators(http.validators_url or feed.requested_url)
    given = Validators(
        url=url,
        etag=response.etag,
        last_modified=response.last_modified,
        dated=response.dated or response.fetched_at,
        false=response.false_validators,
    )
    if not overwrite and known is not None:
        given = replace(
            given,
            etag=given.etag or known.etag,
            last_modified=given.last_modified or known.last_modified,
            dated=given.dated if given.last_modified else known.dated,
        )
    others = [each for each in http.validators_state.others if each.url != url]
    if not overwrite and known is not None and url != newest.url:
        return _validators_row(newest, [given, *others], checked_at=http.validators_state.checked_at)
    checked_at = None if overwrite else http.validators_state.checked_at
    return _validators_row(given, others if url == newest.url else [newest, *others], checked_at=checked_at)


def _validators_row(newest: Validators, others: Sequence[Validators], *, checked_at: datetime | None) -> Row:
    has_any = newest.etag or newest.last_modified
    small = [each for each in others if 0 < _characters(each) <= _MOST_OTHER_CHARACTERS]
    state = ValidatorsState(
        dated=newest.dated if newest.last_modified else None,
        false=newest.false,
        checked_at=checked_at,
        others=tuple(small[:MOST_OTHER_VALIDATORS]),
    )
    return {
        "last_etag": newest.etag,
        "last_modified": newest.last_modified,
        "validators_url": newest.url if has_any else None,
        "validators_state": validators_text(state),
        # For the warning of them.
        "false_validators": newest.false,
    }


def _characters(validators: Validators) -> int:
    return len(validators.etag or "") + len(validators.last_modified or "")


def answered_url(feed: Feed, response: Response) -> str | None:
    """The column `answered_url`: None for the address that was requested, and for a feed with a password."""
    return None if feed.needs_access or response.url == feed.requested_url else response.url


def kept_validators(feed: Feed) -> Row:
    """The validators as they are: a document that was cut off has none that a 304 may rest on."""
    http = feed.http
    newest = http.newest_validators(http.validators_url or feed.requested_url)
    state = http.validators_state
    return _validators_row(replace(newest, dated=state.dated), state.others, checked_at=state.checked_at)


SET_DOCUMENT = f"""{
    from_json(
        *VALIDATOR_COLUMNS,
        "content_hash",
        "cut_hash",
        "cuts",
        "answered_url",
        "last_body_at",
        "link",
        "description",
        "language",
        "charset",
        "former_charset",
        "warning",
        "warning_kinds",
        *HINT_COLUMNS,
    )
},
  title = coalesce(registered_title, {FIELD.format("title")}, title)"""
"""Assignments of what a stored document leaves in its feed, from the fields of `document_row`."""


def document_row(feed: Feed, parsed: Parsed) -> Row:
    """The fields that `SET_DOCUMENT` reads."""
    charset, former = feed.http.codecs_after(parsed.header)
    response, header, hash = parsed.document.response, parsed.header, parsed.document.content_hash
    return {
        **(kept_validators(feed) if parsed.cut_off else validators(feed, response, overwrite=True)),
        "content_hash": feed.http.content_hash if parsed.cut_off else hash,
        "cut_hash": hash if parsed.cut_off else None,
        "cuts": feed.http.cuts + 1 if parsed.cut_off else 0,
        "answered_url": answered_url(feed, response),
        "last_body_at": instant(response.fetched_at),
        "title": header.title,
        "link": header.link,
        "description": header.description,
        "language": header.language,
        "charset": charset,
        "former_charset": former,
        **warning_row(parsed.warnings),
        **hints_row(header.hints),
    }


def mark_header(feed: Feed, token: str, header: FeedHeader) -> list[Statement]:
    """Mark topics stale if their entries show another title or link of this feed from now on, or fewer
    items of its first document; before the statement that closes the visit."""
    is_first = feed.http.last_body_at is None
    if not is_first and header.title in (None, feed.title) and header.link == feed.link:
        return []
    condition = """EXISTS (SELECT 1 FROM feeds WHERE id = ? AND lease_token = ? AND (
      first_stored_at IS NULL OR title IS NOT coalesce(registered_title, ?, title) OR link IS NOT ?))"""
    return mark_stale_if(feed.id, condition, [feed.id, token, header.title, header.link])


def warning_row(warnings: Iterable[FeedWarning]) -> Row:
    """The columns `warning` and `warning_kinds`."""
    warnings = tuple(warnings)
    text = sentences(warnings)
    return {
        "warning": text and storable(text[:2000]),
        "warning_kinds": compact([warning.kind for warning in warnings]) if warnings else None,
    }


# A sync may have given the feed another URL, or a password, during the visit: its result is void then.
_SAME_ENTRY = f"(url = {FIELD.format('url')} AND needs_access = {NUMBER_FIELD.format('needs_access')})"

SET_ADDRESS = ", ".join(
    f"{column} = CASE WHEN {_SAME_ENTRY} THEN {value} ELSE {column} END"
    for column, value in (
        *((column, _field(column)) for column in ADDRESS_COLUMNS),
        ("bucket", f"coalesce({NUMBER_FIELD.format('bucket')}, bucket)"),
    )
)
"""Assignments of the feed's address, from the fields of `set_address_row`."""


def set_address_row(feed: Feed, address: FeedAddress, answer: Response | None = None) -> Row:
    """The fields that `SET_ADDRESS` reads: the address from now on, and the entry that it follows from.

    The bucket is that of the host which gave the answer: feeds that lead to one host are visited by one run
    then, with the feeds of that host. Without an answer it stays, unless the address changes.
    """
    host = None if address.host == feed.address.host else address.host
    if answer is not None:
        host = urlsplit(answer.url).hostname if answer.url != answer.requested_url else address.host
    return {
        **address_row(address),
        "url": feed.url,
        "needs_access": int(feed.needs_access),
        "bucket": None if host is None else bucket_of(host),
    }


SET_SCHEDULE = from_json("next_fetch_at", "schedule_reason", "schedule_kind", "not_before")


def schedule_row(next: NextVisit) -> Row:
    """The fields that `SET_SCHEDULE` and `SET_GAP` read."""
    return {
        "next_fetch_at": instant(next.at),
        "schedule_reason": next.reason,
        "schedule_kind": next.kind,
        "not_before": None if next.not_before is None else instant(next.not_before),
    }


_DAY = "substr(clock.now, 1, 10)"
_PLACE = "'$.\"' || substr(clock.now, 9, 2) || '\"'"


def count_visit(outcome: str) -> str:
    """The assignment that counts a visit in `visit_days` (migration 0027), from `clock(now)`.

    `outcome` is SQL for 'news' (with new items), 'unchanged' or 'failed'.
    """
    place = f"{_PLACE} || CASE {outcome} WHEN 'news' THEN '[1]' WHEN 'unchanged' THEN '[2]' ELSE '[3]' END"
    first = ", ".join(number(f"{outcome} = '{each}'") for each in ("news", "unchanged", "failed"))
    return f"""visit_days = CASE WHEN json_extract(visit_days, {_PLACE} || '[0]') = {_DAY}
    THEN json_set(visit_days, {place}, {number(f"json_extract(visit_days, {place})")} + 1)
    ELSE json_set(coalesce(visit_days, '{{}}'), {_PLACE}, json_array({_DAY}, {first})) END"""


def count_day(items: str) -> str:
    """The assignments that count new items and bytes of new backups of the feed's day, from `clock(now)`, SQL
    for the number of items, and the field `new_backup_bytes`."""
    is_counted = f"counted_day = {_DAY}"
    return f"""day_items = CASE WHEN {is_counted} THEN day_items ELSE 0 END + {items},
  day_backup_bytes = CASE WHEN {is_counted} THEN day_backup_bytes ELSE 0 END
    + {NUMBER_FIELD.format("new_backup_bytes")},
  day_image_bytes = CASE WHEN {is_counted} THEN day_image_bytes ELSE 0 END,
  counted_day = {_DAY}"""


_OF_DOCUMENT = "(SELECT id FROM listed)"
# Only the feed's latest items before this document: a title may well come again after a year.
_EARLIER = f"""SELECT title, link FROM items WHERE feed_id = {FIELD.format("id")} AND id NOT IN {_OF_DOCUMENT}
  ORDER BY created_at DESC LIMIT 1000"""
_OTHERWISE_KNOWN = f"""(SELECT count(*) FROM items WHERE id IN {_OF_DOCUMENT}
  AND (title IN (SELECT title FROM ({_EARLIER})) OR link IN (SELECT link FROM ({_EARLIER}))))"""
GAP_FOUND = f"""SELECT CASE WHEN {NUMBER_FIELD.format("may_be_gap")} = 1
    AND fresh.n = {NUMBER_FIELD.format("items_listed")}
  THEN CAST(2 * {_OTHERWISE_KNOWN} < fresh.n AS INTEGER) ELSE 0 END FROM fresh, v"""
"""1 or 0, from `listed(id)`, `fresh(n)` and `v(value)`. 1: all items are new, and fewer than half of them
have a title or a link that is known. Otherwise the guids have changed, not the items."""

# A feed with unstable guids has new ones in each document.
_IS_GAP = f"(gap.found = 1 AND NOT {has_warning('unstable_guids')})"


def _if_gap(value: str, otherwise: str) -> str:
    return f"CASE WHEN {_IS_GAP} THEN {value} ELSE {otherwise} END"


SET_GAP = f"""next_fetch_at = {_if_gap(FIELD.format("gap_next"), FIELD.format("next_fetch_at"))},
  planned_at = {_if_gap(FIELD.format("gap_next"), FIELD.format("next_fetch_at"))},
  schedule_reason = {_if_gap(FIELD.format("gap_reason"), FIELD.format("schedule_reason"))},
  schedule_kind = {FIELD.format("schedule_kind")},
  not_before = {FIELD.format("not_before")},
  gaps = gaps + {number(_IS_GAP)},
  last_gap_at = {_if_gap("clock.now", "last_gap_at")},
  gap_halvings = {_if_gap(NUMBER_FIELD.format("halvings"), "gap_halvings")},
  halved_at = {_if_gap(FIELD.format("halved_at"), "halved_at")}"""
"""Assignments of the next visit and the gaps, from `gap(found)`, `clock(now)` and the fields of `gap_row`."""
GAP_FACT = _if_gap(f"'{compact({'gap': SENTENCE})}'", "'{}'")
"""The fact that a gap adds to a change, as JSON."""


def gap_row(if_gap: IfGap | None) -> Row:
    """The fields that `GAP_FOUND` and `SET_GAP` read; None if new items alone would not show a gap."""
    if if_gap is None:
        return {"may_be_gap": 0}
    halved_at = if_gap.gaps.halved_at
    return {
        "may_be_gap": 1,
        "gap_next": instant(if_gap.next.at),
        "gap_reason": if_gap.next.reason,
        "halvings": if_gap.gaps.halvings,
        "halved_at": None if halved_at is None else instant(halved_at),
    }
