"""Closing statements: what a visit writes into its feed when it ends, and the release of its claim.

Every statement is guarded by the lease's token: once another run has taken the feed over, a visit changes
nothing. When the feed is next and where is decided in collector.schedule; pieces that several statements
share are in closing_parts.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import PROMINENT_FAILURES, Feed
from rss_pipeline.collector.models.outcome import Ending, NotModified, Parsed
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.feeds.closing_parts import (
    GAP_FACT,
    GAP_FOUND,
    SET_ADDRESS,
    SET_DOCUMENT,
    SET_GAP,
    SET_SCHEDULE,
    VALIDATOR_COLUMNS,
    answered_url,
    count_day,
    count_visit,
    document_row,
    from_json,
    gap_row,
    kept_validators,
    schedule_row,
    set_address_row,
    validators,
    without_comments,
)
from rss_pipeline.storage.feeds.predicates import has_warning
from rss_pipeline.storage.feeds.stored_holds import feed_statements
from rss_pipeline.storage.feeds.visit_facts import confirmed_patch, facts_of_document, known_facts
from rss_pipeline.storage.sql import FIELD, NUMBER_FIELD, chunked, compact, number, storable

HEARTBEAT = timedelta(days=7)
"""Every living feed is reported at least this often, so that older run history may be purged."""

_IS_NEWS = f"""(consecutive_failures > 0 OR last_success_at IS NULL OR reported_at IS NULL
  OR reported_at <= {{heartbeat}} OR fetch_url IS NOT {FIELD.format("fetch_url")})"""
"""A change worth an event although no item is new: the first success, one after failures, an adopted address,
a heartbeat. Reads the row as it was before the visit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnchangedVisit:
    """The visit of a feed with a stored document that is still current."""

    feed: Feed
    token: str
    outcome: NotModified
    ending: Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedVisit:
    """A failed visit."""

    feed: Feed
    token: str
    outcome: Failure
    ending: Ending
    was_check: bool = False
    """It was to show whether the validators are true."""


def close_unchanged(
    database: Database, visits: Sequence[UnchangedVisit], *, now: datetime, others: Sequence[Statement] = ()
) -> set[str]:
    """Close visits that brought nothing new; ids of those that were still ours to close.

    `others` go into the same batch, and not at all where there are no visits.
    """
    return _close(
        database,
        "close unchanged visits",
        _UNCHANGED,
        [_unchanged_row(visit) for visit in visits],
        now,
        others,
    )


def close_failed(database: Database, visits: Sequence[FailedVisit], *, now: datetime) -> set[str]:
    """Close visits that failed, one more failure each; ids of those that were still ours to close."""
    holds = [visit.ending.hold for visit in visits if visit.ending.hold is not None]
    return _close(
        database,
        "close failed visits",
        _FAILED,
        [_failed_row(visit) for visit in visits],
        now,
        feed_statements(holds),
    )


def _close(
    database: Database, name: str, sql: str, rows: list[Row], now: datetime, others: Sequence[Statement] = ()
) -> set[str]:
    params = [instant(now), instant(now - HEARTBEAT)]
    statements = [
        Statement(sql, [*params, chunk], name=name, planned_once=True)
        for chunk in chunked(map(compact, rows))
    ]
    if not statements:
        return set()
    results = database.batch([*statements, *others])
    return {row["id"] for result in results[: len(statements)] for row in result.rows}


def _unchanged_row(visit: UnchangedVisit) -> Row:
    response = visit.outcome.response
    has_body = visit.outcome.body_bytes > 0
    cut_off = visit.outcome.cut_off
    return {
        "id": visit.feed.id,
        "token": visit.token,
        **(kept_validators(visit.feed) if cut_off else validators(visit.feed, response, overwrite=has_body)),
        **set_address_row(visit.feed, visit.ending.address, response),
        "max_age": response.max_age,
        "answered_url": answered_url(visit.feed, response),
        "network": response.network,
        "body_at": instant(response.fetched_at) if has_body else None,
        "cut_off": int(cut_off),
        **schedule_row(visit.ending.next),
        "facts": compact(confirmed_patch(visit.outcome)),
    }


_STAYS = f"""({NUMBER_FIELD.format("cut_off")} = 1 OR NOT {has_warning("cut_off")})
  AND ({NUMBER_FIELD.format("false_validators")} > 0 OR NOT {has_warning("false_validators")})"""
"""The warnings of a cut document, and those of one that came under false validators, end with that."""

_UNCHANGED = without_comments(f"""WITH clock(now, heartbeat) AS (SELECT ?, ?)
  UPDATE feeds SET
  {from_json(*VALIDATOR_COLUMNS, "max_age", "answered_url")},
  -- A gap shows only in a document that came when it was planned.
  {SET_SCHEDULE}, planned_at = {FIELD.format("next_fetch_at")},
  {SET_ADDRESS},
  -- A 304 brings no body: long after the last one, a request goes without validators, for it may be false.
  last_body_at = coalesce({FIELD.format("body_at")}, last_body_at),
  -- Most visits are no news, and an event for each would cost more than the visit.
  change_count = change_count + {number(_IS_NEWS.format(heartbeat="clock.heartbeat"))},
  changed_at = CASE WHEN {_IS_NEWS.format(heartbeat="clock.heartbeat")} THEN clock.now ELSE changed_at END,
  -- The facts of a change that is not reported yet stay: its new items would be lost to the event.
  last_change = CASE WHEN {_IS_NEWS.format(heartbeat="clock.heartbeat")} AND change_count = reported_count
    THEN json_patch(coalesce(last_change, '{{}}'), {FIELD.format("facts")}) ELSE last_change END,
  last_fetched_at = clock.now, last_visited_at = clock.now, last_success_at = clock.now,
  consecutive_failures = 0, last_error_kind = NULL, last_error = NULL, host_answered = 1,
  -- After a 304 the unreadable document may come again, from another cache: it gets no second backup.
  failed_hash = CASE WHEN {FIELD.format("body_at")} IS NULL THEN failed_hash END,
  -- The whole document is current again, or the same cut one came: its warning stays.
  cut_hash = CASE WHEN {NUMBER_FIELD.format("cut_off")} = 1 THEN cut_hash END,
  cuts = CASE WHEN {NUMBER_FIELD.format("cut_off")} = 1 THEN cuts + 1 ELSE 0 END,
  warning = CASE WHEN {_STAYS} THEN warning END, warning_kinds = CASE WHEN {_STAYS} THEN warning_kinds END,
  {count_visit("'unchanged'")},
  -- A run that died between store and extract_images left items without a search for images.
  images_pending = max(images_pending, {number("unclosed_claims > 1")}, backup_unsure),
  lease_token = NULL, unclosed_claims = 0, backup_unsure = 0,
  network = coalesce({FIELD.format("network")}, network), outage_pauses = 0, led_to = NULL
  FROM clock, json_each(?) AS v
  -- Another run may have taken the feed over: then this visit writes nothing.
  WHERE feeds.id = {FIELD.format("id")} AND feeds.lease_token = {FIELD.format("token")} RETURNING id""")


def _failed_row(visit: FailedVisit) -> Row:
    failure = visit.outcome
    return {
        "id": visit.feed.id,
        "token": visit.token,
        "last_error_kind": failure.kind,
        "last_error": storable(failure.message[:2000]),
        "host_answered": int(failure.answered),
        "network": failure.network,
        "failed_hash": failure.document_hash,
        "failed_version": failure.parser_version,
        "new_backup_bytes": failure.new_backup_bytes,
        "was_check": int(visit.was_check),
        **schedule_row(visit.ending.next),
        **set_address_row(visit.feed, visit.ending.address),
    }


_FAILED = without_comments(f"""WITH clock(now, heartbeat) AS (SELECT ?, ?)
  UPDATE feeds SET
  {from_json("last_error_kind", "last_error", "host_answered")},
  -- Without planned_at: after a failure no document shows a gap.
  {SET_SCHEDULE},
  {SET_ADDRESS},
  -- A failure without a document, such as a time-out, says nothing of the last unreadable one.
  failed_hash = coalesce({FIELD.format("failed_hash")}, failed_hash),
  failed_version = CASE WHEN {FIELD.format("failed_hash")} IS NULL THEN failed_version
    ELSE {FIELD.format("failed_version")} END,
  -- Only an answer counts as fetched: hosts that do not answer prove no outage of ours.
  last_fetched_at = CASE WHEN {NUMBER_FIELD.format("host_answered")} = 1 THEN clock.now
    ELSE last_fetched_at END,
  last_visited_at = clock.now, consecutive_failures = consecutive_failures + 1,
  failing_since = CASE consecutive_failures WHEN 0 THEN clock.now ELSE failing_since END,
  validators_state = CASE WHEN {NUMBER_FIELD.format("was_check")} = 1
    THEN json_set(coalesce(validators_state, '{{}}'), '$.checked_at', clock.now) ELSE validators_state END,
  -- The alert goes by the moment at which a feed became prominent, once.
  prominent_at = CASE consecutive_failures + 1 WHEN {PROMINENT_FAILURES} THEN clock.now ELSE prominent_at END,
  {count_visit("'failed'")},
  -- Also a document that cannot be read has a backup, and may be another one each time.
  {count_day("0")},
  -- Items may be stored although the visit failed: in a run that died, or before the refused statement.
  images_pending = max(images_pending, {number("unclosed_claims > 1")}, backup_unsure,
    CAST({FIELD.format("last_error_kind")} = 'storage_rejected' AS INTEGER)),
  lease_token = NULL, unclosed_claims = 0, backup_unsure = 0,
  network = coalesce({FIELD.format("network")}, network), outage_pauses = 0, led_to = NULL
  FROM clock, json_each(?) AS v
  WHERE feeds.id = {FIELD.format("id")} AND feeds.lease_token = {FIELD.format("token")} RETURNING id""")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document with its items in the same batch, or in one before. `item_ids` are all that it lists."""

    feed: Feed
    token: str
    parsed: Parsed
    item_ids: Sequence[str]
    ending: Ending


def closing_statement(stored: StoredDocument, *, now: datetime) -> Statement:
    """Validators, hash, counts, schedule and the release of the claim, in one guarded statement.

    It goes last, in the batch of the last items. Its row says how many items are new, and whether the
    document showed a gap, so that the ending `if_gap` was written.
    """
    feed, parsed, document = stored.feed, stored.parsed, stored.parsed.document
    wanted = {
        "id": feed.id,
        "token": stored.token,
        **document_row(feed, parsed),
        "network": document.response.network,
        "new_backup_bytes": document.new_backup_bytes,
        **schedule_row(stored.ending.next),
        # A text: Postgres does not keep the order of what is in an object.
        "facts": compact(known_facts(facts_of_document(parsed))),
        # Of a cut document no one knows what it lists; the next one is compared with the whole one.
        "items_listed": feed.schedule.items_listed if parsed.cut_off else len(stored.item_ids),
        **set_address_row(feed, stored.ending.address, document.response),
        **gap_row(stored.ending.if_gap),
    }
    return Statement(
        _STORED,
        [
            compact(list(stored.item_ids)),
            document.backup_key,
            instant(now),
            instant(now - HEARTBEAT),
            compact(wanted),
        ],
        name="close visit",
        planned_once=True,
    )


_NEWS = f"(fresh.n > 0 OR {_IS_NEWS.format(heartbeat='clock.heartbeat')})"
_STORED = without_comments(f"""WITH listed(id) AS (SELECT value FROM json_each(?)),
  -- New items, by the backup key and by the time since the last stored document: a run that died after its
  -- items counted none of them, whether the document is still the same or has changed meanwhile.
  fresh(n, unseen) AS (
    SELECT count(*), coalesce(sum(CAST(images_extracted_at IS NULL AS INTEGER)), 0)
    FROM items JOIN feeds ON feeds.id = items.feed_id
    WHERE items.id IN (SELECT id FROM listed)
      AND (items.backup_key = ? OR items.created_at > coalesce(feeds.last_body_at, ''))),
  clock(now, heartbeat) AS (SELECT ?, ?),
  -- Once each, and not for each field and each column that they are used for.
  v(value) AS MATERIALIZED (SELECT json(?)), gap(found) AS MATERIALIZED ({GAP_FOUND})
  UPDATE feeds SET
  -- Validators go in with the release of the claim, after all items: no 304 hides items that are not stored.
  {SET_DOCUMENT},
  {from_json("items_listed")},
  first_stored_at = coalesce(first_stored_at, last_body_at, {FIELD.format("last_body_at")}),
  {SET_ADDRESS},
  {SET_GAP},
  change_count = change_count + {number(_NEWS)},
  changed_at = CASE WHEN {_NEWS} THEN clock.now ELSE changed_at END,
  -- The data version: it grows with new items only, so downstream runs do not start for a heartbeat.
  items_version = CASE WHEN fresh.n > 0 THEN clock.now || '/' || (change_count + 1) ELSE items_version END,
  -- The new items of a change that is not reported yet are added up: one event reports both.
  last_change = CASE WHEN {_NEWS} OR change_count > reported_count THEN
    json_patch({GAP_FACT}, json_set({FIELD.format("facts")}, '$.items_new', fresh.n
      + CASE WHEN change_count > reported_count
        THEN coalesce(CAST(json_extract(last_change, '$.items_new') AS INTEGER), 0) ELSE 0 END))
    ELSE last_change END,
  {count_visit("CASE WHEN fresh.n > 0 THEN 'news' ELSE 'unchanged' END")},
  {count_day("fresh.n")},
  -- Until extract_images has written their tasks: a run may die before.
  images_pending = CASE WHEN fresh.unseen > 0 AND images = 1 THEN 1 ELSE images_pending END,
  last_fetched_at = clock.now, last_visited_at = clock.now, last_success_at = clock.now,
  consecutive_failures = 0, last_error_kind = NULL, last_error = NULL, failed_hash = NULL, host_answered = 1,
  lease_token = NULL, unclosed_claims = 0, backup_unsure = 0,
  network = coalesce({FIELD.format("network")}, network), outage_pauses = 0, led_to = NULL
  FROM fresh, clock, v, gap
  -- Another run may have taken the feed over: then this visit writes nothing.
  WHERE feeds.id = {FIELD.format("id")} AND feeds.lease_token = {FIELD.format("token")}
  -- Columns have their new values here: this visit's version, and this visit's gap.
  RETURNING id, CASE WHEN items_version = last_fetched_at || '/' || change_count
    THEN CAST(json_extract(last_change, '$.items_new') AS INTEGER) ELSE 0 END AS items_new,
    last_gap_at IS last_fetched_at AS gap""")


def add_warning(database: Database, feed_id: str, warning: FeedWarning) -> None:
    """Give the feed one more warning, unless it has one of that kind."""
    database.query(
        f"""UPDATE feeds SET warning = CASE WHEN warning IS NULL THEN ? ELSE warning || '; ' || ? END,
        warning_kinds = json_insert(coalesce(warning_kinds, '[]'), '$[#]', ?)
        WHERE id = ? AND NOT {has_warning(warning.kind)}""",
        [warning.sentence, warning.sentence, warning.kind, feed_id],
        name="add warning",
    )
