"""Counts over all feeds and items, the feeds with their state, and what is wrong with them, for `status`.

Reads only: a database without the right to write is enough. Each statement begins with SELECT, for a store
to know that it needs no transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import UNREACHED_KINDS
from rss_pipeline.collector.models.hold import IMAGE_RETRY_WRONG_CLOCK
from rss_pipeline.storage.database import Database, Row, one
from rss_pipeline.storage.feeds.feed_row import any_answered
from rss_pipeline.storage.feeds.predicates import (
    ANSWERED_BY,
    DISABLED,
    FAILING,
    FAILING_LONG,
    GONE,
    HEALTH,
    LAST_VISIT_FAILED,
    MOVED,
    NOT_ANSWERING,
    POLLED,
    REDIRECTING,
    SUBSCRIBED,
    UNLISTED,
    UNUSED,
    UNWATCHED,
    WARNED,
    has_warning,
)
from rss_pipeline.storage.feeds.stored_holds import DUE_NOW, WRONG_CLOCK, free_since
from rss_pipeline.storage.images.image_closings import image_totals
from rss_pipeline.storage.images.image_tasks import REQUESTED
from rss_pipeline.storage.sql import NOW

MANY = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts over everything stored."""

    registered: int
    disabled: int
    unwatched: int
    """Names and pages in the list without any source."""
    unregistered: int
    """Neither in feeds.yaml nor subscribed to."""
    unused: int
    """The feeds among them that their last subscriber left: the clean removes them."""
    subscribed: int
    """Scheduled although feeds.yaml does not list them: users of the reader subscribe to them."""
    due: int
    """Without feeds on hold, or on a host that is."""
    failing: int
    not_answering: int
    failing_long: int
    gone: int
    moved: int
    redirecting: int
    """These six as storage.feeds.predicates defines them."""
    sharing: int
    """Polled feeds with items left out, because another one has the same guid or link."""
    gaps: int
    """Documents of registered feeds, so far, that had no item in common with the one before."""
    items: int
    image_tasks: dict[str, int]
    next_fetch_at: str | None
    """The next visit of any polled feed; none before a hold ends."""


def overview(database: Database, *, now: datetime) -> Overview:
    """The counts, in four queries."""
    feeds = database.query(
        f"""SELECT
          count(*) FILTER (WHERE {POLLED}) AS registered,
          count(*) FILTER (WHERE {DISABLED}) AS disabled,
          count(*) FILTER (WHERE {UNWATCHED}) AS unwatched,
          count(*) FILTER (WHERE {UNLISTED}) AS unregistered,
          count(*) FILTER (WHERE {UNUSED}) AS unused,
          count(*) FILTER (WHERE listed = 0 AND registered = 1 AND {SUBSCRIBED}) AS subscribed,
          count(*) FILTER (WHERE {DUE_NOW}) AS due,
          count(*) FILTER (WHERE {FAILING}) AS failing,
          count(*) FILTER (WHERE {NOT_ANSWERING}) AS not_answering,
          count(*) FILTER (WHERE {FAILING_LONG}) AS failing_long,
          count(*) FILTER (WHERE {GONE}) AS gone,
          count(*) FILTER (WHERE {MOVED}) AS moved,
          count(*) FILTER (WHERE {REDIRECTING}) AS redirecting,
          count(*) FILTER (WHERE {POLLED} AND {has_warning("shared_guids")}) AS sharing,
          coalesce(sum(CASE WHEN registered = 1 THEN gaps END), 0) AS gaps,
          min(CASE WHEN {POLLED} THEN {free_since()} END) AS next_visit_at
        FROM feeds""",
        [instant(now), instant(now), instant(now)],
        name="count feeds",
    ).rows[0]
    items = database.query("SELECT count(*) AS n FROM items", name="count items").rows[0]["n"]
    totals = image_totals(database)
    by_status = {"pending": totals.pending, "success": totals.success, "failed": totals.failed}
    return Overview(
        registered=int(feeds["registered"]),
        disabled=int(feeds["disabled"]),
        unwatched=int(feeds["unwatched"]),
        unregistered=int(feeds["unregistered"]),
        unused=int(feeds["unused"]),
        subscribed=int(feeds["subscribed"]),
        due=int(feeds["due"]),
        failing=int(feeds["failing"]),
        not_answering=int(feeds["not_answering"]),
        failing_long=int(feeds["failing_long"]),
        gone=int(feeds["gone"]),
        moved=int(feeds["moved"]),
        redirecting=int(feeds["redirecting"]),
        sharing=int(feeds["sharing"]),
        gaps=int(feeds["gaps"]),
        next_fetch_at=feeds["next_visit_at"],
        items=int(items),
        image_tasks={status: count for status, count in by_status.items() if count},
    )


def feed_health(database: Database, *, feed_id: str | None = None, limit: int | None = None) -> list[Row]:
    """One row for each feed, or for one: polled feeds that fail first, then by the next visit.

    `health` is a word of predicates.HEALTH. `newest_item_at` is the publication time of the newest item that
    the feed lists, else the time at which the last item was collected; in the future there are announcements
    only. `same_as` is another registered feed that leads to the same address; `held_until` is the end of a
    hold that comes after `next_fetch_at`, `hold_reason` its reason where it is the feed's own.
    """
    # Items and JSON are read for the listed feeds only: D1 counts the rows, and 5,000 feeds are many.
    rows = database.query(
        f"""SELECT feeds.id, feeds.url, feeds.title, health, feeds.registered, feeds.listed, feeds.enabled,
        consecutive_failures, last_error_kind, last_error, warning, last_fetched_at, last_success_at,
        next_fetch_at, schedule_reason, fetch_url, move_url, move_since, needs_access, gaps, last_gap_at,
        same_as,
        nullif({free_since()}, next_fetch_at) AS held_until,
        (SELECT reason FROM feed_holds WHERE feed_id = feeds.id
          AND hold_until > coalesce((SELECT hold_until FROM hosts WHERE hosts.host = feeds.host), '')
        ) AS hold_reason,
        coalesce(
          (SELECT max(value) FROM json_each(feeds.rhythm) WHERE value <= {NOW}),
          (SELECT max(created_at) FROM items WHERE feed_id = feeds.id)) AS newest_item_at,
        (SELECT count(*) FROM items WHERE feed_id = feeds.id) AS items
        FROM (
          SELECT id, {HEALTH} AS health,
            CASE WHEN registered = 0 THEN NULL
              WHEN min(id) OVER same <> id THEN min(id) OVER same
              WHEN max(id) OVER same <> id THEN max(id) OVER same END AS same_as,
            row_number() OVER (ORDER BY registered DESC, enabled DESC,
              CASE WHEN {POLLED} THEN consecutive_failures ELSE 0 END DESC,
              warning IS NULL, next_fetch_at, id) AS place
          FROM feeds WHERE forgotten = 0
          WINDOW same AS (PARTITION BY registered, {ANSWERED_BY})
        ) AS listed CROSS JOIN feeds ON feeds.id = listed.id
        WHERE {"place <= ?" if feed_id is None else "listed.id = ?"} ORDER BY place""",
        [(MANY if limit is None else limit) if feed_id is None else feed_id],
        name="list feed states",
    ).rows
    for row in rows:
        row.update({name: bool(row[name]) for name in ("registered", "listed", "enabled", "needs_access")})
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error of last visits, or a warning of last documents, and the feeds that it holds for."""

    kind: str
    """The kind of a failure, or `warning`."""
    sentence: str
    """With `<host>` in the place of the host where feeds of several hosts have it."""
    count: int
    feeds: Sequence[tuple[str, str | None, int]]
    """The first of the feeds: id, title, and failures in a row."""


def problems(database: Database, *, limit: int, feeds: int) -> tuple[list[Problem], int]:
    """The most frequent problems of polled feeds, failures first, and the number of all.

    Each has the first `feeds` of its feeds.
    """
    rows = database.query(
        f"""SELECT * FROM (WITH found AS (
          SELECT id, title, host, coalesce(last_error_kind, 'unknown') AS kind,
            coalesce(last_error, '') AS sentence, consecutive_failures AS failures
          FROM feeds WHERE {LAST_VISIT_FAILED}
          UNION ALL
          SELECT id, title, host, 'warning', warning, 0
          FROM feeds WHERE {WARNED} AND consecutive_failures = 0),
        placed AS (SELECT *, replace(sentence, host, '<host>') AS same FROM found),
        counted AS (
          SELECT *, count(*) OVER alike AS count, min(host) OVER alike <> max(host) OVER alike AS hosts,
            row_number() OVER (PARTITION BY kind, same ORDER BY failures DESC, id) AS nth
          FROM placed WINDOW alike AS (PARTITION BY kind, same)),
        ranked AS (
          SELECT *, dense_rank() OVER (ORDER BY kind = 'warning', count DESC, kind, same) AS rank
          FROM counted)
        SELECT kind, CASE WHEN hosts THEN same ELSE sentence END AS sentence, count, id, title, failures,
          rank, ranks, nth
        FROM (SELECT *, max(rank) OVER () AS ranks FROM ranked)
        WHERE rank <= ? AND nth <= ?) ORDER BY rank, nth""",
        [limit, feeds],
        name="group problems of feeds",
    ).rows
    grouped: dict[int, list[Row]] = {}
    for row in rows:
        grouped.setdefault(int(row["rank"]), []).append(row)
    found = [
        Problem(
            kind=group[0]["kind"],
            sentence=group[0]["sentence"],
            count=int(group[0]["count"]),
            feeds=[(row["id"], row["title"], int(row["failures"])) for row in group],
        )
        for group in grouped.values()
    ]
    return found, int(rows[0]["ranks"]) if rows else 0


def find_feeds(database: Database, text: str) -> list[Row]:
    """Feeds that match an id, a URL, or a part of id, URL or title: an exact match alone, else all.

    `failed` is 1 for a feed that is polled and failed at its last visit, gone or not.
    """
    columns = f"""id, url, title, registered, listed, unused_since, enabled, watched, last_visited_at,
        consecutive_failures, last_error_kind, last_error, next_fetch_at, streams,
        ({LAST_VISIT_FAILED}) AS failed"""
    exact = database.query(
        f"SELECT {columns} FROM feeds WHERE forgotten = 0 AND (id = ? OR url = ?)",
        [text, text],
        name="find a feed by its address",
    ).rows
    return (
        exact
        or database.query(
            f"""SELECT {columns} FROM feeds WHERE forgotten = 0 AND (instr(lower(id), lower(?)) > 0
        OR instr(lower(url), lower(?)) > 0 OR instr(lower(coalesce(title, '')), lower(?)) > 0)
        ORDER BY id LIMIT 20""",
            [text, text, text],
            name="find feeds by a text",
        ).rows
    )


_WITHOUT_ANSWER = f"""{LAST_VISIT_FAILED}
  AND last_error_kind IN ({", ".join(f"'{kind}'" for kind in sorted(UNREACHED_KINDS))})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreached:
    """Feeds that were postponed because no feed could be reached."""

    feeds: int
    hosts: int
    next_fetch_at: str


def unreached(database: Database) -> Unreached | None:
    """These feeds; None as soon as any feed was answered."""
    if any_answered(database):
        return None
    row = database.query(
        f"""SELECT count(*) AS feeds, count(DISTINCT host) AS hosts, min(next_fetch_at) AS next_fetch_at
        FROM feeds WHERE {POLLED} AND schedule_kind IS 'our_outage'""",
        name="count unreached feeds",
    ).rows[0]
    if not row["feeds"]:
        return None
    return Unreached(
        feeds=int(row["feeds"]), hosts=int(row["hosts"]), next_fetch_at=str(row["next_fetch_at"])
    )


def without_answer(database: Database) -> Mapping[str, int]:
    """The number of polled feeds by the kind of failure, where no server answered the last visit of any of
    them; empty where one did, or where a feed was not visited so far."""
    answered = database.query(
        f"SELECT 1 FROM feeds WHERE {POLLED} AND NOT ({_WITHOUT_ANSWER}) LIMIT 1",
        name="find a feed with an answer",
    ).rows
    if answered:
        return {}
    rows = database.query(
        f"""SELECT last_error_kind AS kind, count(*) AS feeds FROM feeds WHERE {_WITHOUT_ANSWER}
        GROUP BY last_error_kind ORDER BY feeds DESC, kind""",
        name="count feeds without an answer",
    ).rows
    return {str(row["kind"]): int(row["feeds"]) for row in rows}


# A look at what waits for the sensors that start runs, in one request that reads a dozen rows.
#
# Each value is the end of an index: what waits already is not read again, however much of it there is. The
# counts and conditions of the runs themselves are read where one of these values has changed.


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestWork:
    """The newest of everything for which runs are started."""

    feeds_since: str
    """The newest instant at which a feed became due or a hold of feeds ended; empty for none."""
    images_since: str
    """The same of images and their hosts."""
    images_requested: bool
    """A user waits for an image."""
    requests: bool
    """A user's request for a visit is not done."""
    topics: bool
    """A topic changed since it was published."""
    articles: bool
    """A user waits for an article."""
    wrong_clock: bool
    """Something is scheduled further away than anything of ours: the next claim puts that right."""


def _newest(value: str, rows: str) -> str:
    return f"(SELECT {value} FROM {rows} AND {value} <= ? ORDER BY {value} DESC LIMIT 1)"


def _beyond(value: str, rows: str) -> str:
    return f"EXISTS (SELECT 1 FROM {rows} AND {value} > ?)"


_POLLED = f"feeds WHERE {POLLED}"
_PENDING, _ATTEMPT = "image_tasks WHERE status = 'pending'", "coalesce(next_attempt_at, created_at)"
_HOLDS = {table: f"{table} WHERE hold_until IS NOT NULL" for table in ("hosts", "feed_holds", "image_holds")}
_QUERY = f"""SELECT
  {_newest("next_fetch_at", _POLLED)} AS feed, {_newest("hold_until", _HOLDS["hosts"])} AS host,
  {_newest("hold_until", _HOLDS["feed_holds"])} AS feed_hold,
  {_newest(_ATTEMPT, _PENDING)} AS image, {_newest("hold_until", _HOLDS["image_holds"])} AS image_host,
  EXISTS (SELECT 1 FROM image_tasks WHERE status = 'pending' AND last_error_kind = '{REQUESTED}') AS wanted,
  EXISTS (SELECT 1 FROM refresh_requests WHERE state <> 'done') AS requests,
  EXISTS (SELECT 1 FROM topics WHERE stale > 0) AS topics,
  EXISTS (SELECT 1 FROM articles WHERE status = 'pending' AND for_all = 0 AND attempts = 0
    AND next_attempt_at <= ?) AS articles"""
_WRONG_CLOCK = f"""{_beyond("next_fetch_at", _POLLED)} OR {_beyond("hold_until", _HOLDS["hosts"])}
    OR {_beyond("hold_until", _HOLDS["feed_holds"])} OR {_beyond("hold_until", _HOLDS["image_holds"])}
    OR {_beyond(_ATTEMPT, _PENDING)}"""


def waiting(database: Database, *, now: datetime, with_clock: bool = True) -> NewestWork:
    """Return what waits at `now`, each kind by its newest instant. Without `with_clock` a wrong clock is not
    looked for, which takes nearly half of the rows."""
    at, late = instant(now), instant(now + WRONG_CLOCK)
    image_late = instant(now + IMAGE_RETRY_WRONG_CLOCK)
    sql, params = f"{_QUERY}, 0 AS wrong_clock", 6 * [at]
    if with_clock:
        sql = f"{_QUERY}, {_WRONG_CLOCK} AS wrong_clock"
        params += [late, late, late, image_late, image_late]
    row = one(database.query(sql, params, name="look for what waits"))
    assert row is not None
    newest = {name: row[name] or "" for name in ("feed", "host", "feed_hold", "image", "image_host")}
    return NewestWork(
        feeds_since=max(newest["feed"], newest["host"], newest["feed_hold"]),
        images_since=max(newest["image"], newest["host"], newest["image_host"]),
        images_requested=bool(row["wanted"]),
        requests=bool(row["requests"]),
        topics=bool(row["topics"]),
        articles=bool(row["articles"]),
        wrong_clock=bool(row["wrong_clock"]),
    )
