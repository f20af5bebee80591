"""Claiming image tasks, and counting those that can be claimed.

An item's tasks are image_tasks.py's, the end of a claimed task image_closings.py's, a lease's renewal and end
feeds/leases.py's. A task with the token of a lease that is not live was interrupted: its object may be in the
store already.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import IMAGE_AGAIN_AFTER, IMAGE_RETRY_WRONG_CLOCK, HostGap
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database, Row, Statement, one
from rss_pipeline.storage.feeds.claims import RANKED_FIRST
from rss_pipeline.storage.feeds.stored_holds import KnownHolds, known_holds, known_statement
from rss_pipeline.storage.images.image_closings import REFERER_DAYS
from rss_pipeline.storage.images.image_tasks import REQUESTED
from rss_pipeline.storage.sql import DB_NOW, EXPIRY, LIVE_TOKENS, chunked, compact, new_token

PER_HOST = 200
"""Tasks of one host in one claim: what its two connections get through in a round."""

_COUNTED = 1000
COUNTED_IMAGES = 10_000
_DUE_AT = "coalesce(t.next_attempt_at, t.created_at)"
_DUE = f"""FROM image_tasks AS t JOIN items ON items.id = t.item_id JOIN feeds ON feeds.id = items.feed_id
  WHERE t.status = 'pending' AND {_DUE_AT} <= ? AND feeds.images = 1
    AND (t.lease_token IS NULL
      OR t.lease_token NOT IN ({LIVE_TOKENS}))
    -- One text: D1 is paid for each look into a list, and thousands of images may wait for a host.
    AND instr((SELECT coalesce(group_concat('<' || host || '>', ''), '') FROM (
      SELECT j.value AS host FROM leases, json_each(leases.image_hosts) AS j WHERE expires_at > {DB_NOW}
      UNION ALL SELECT host FROM image_holds WHERE hold_until > ?
      UNION ALL SELECT host FROM hosts WHERE hold_until > ?) AS held), '<' || t.host || '>') = 0"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedAccess:
    """The private hosts that a feed opens."""

    url: str
    """Its registered URL: with `allow_private`, images may be at its host although that is private."""
    allow_private: bool
    private_hosts: tuple[str, ...]
    """Names, addresses and networks that it opens besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTask:
    """A claimed image task with the values of its item and feed that a download needs."""

    id: str
    feed_id: str
    guid: str
    item_link: str | None
    """None as well where the feed is private, or its URL has a query, which may hold a token: its links are
    not shown to image hosts."""
    url: str
    host: str
    position: int
    attempts: int
    found_at: datetime
    was_interrupted: bool
    """A run that held it ended without recording a result: its image may be stored already."""
    is_private: bool
    """The feed needs a password or headers, or private hosts are open to it: everybody may not see its
    images."""
    feed: FeedAccess
    is_requested: bool
    """A user waits for it."""
    postponed_at: datetime | None
    """Time of the last attempt, if that failed through an outage of our own network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRequest:
    """A request of this day for an image URL, on behalf of one task."""

    task_id: str
    asked_at: datetime
    key: str | None
    """The key of the image; None if the request failed."""
    failure: Failure | None
    inside: frozenset[str]
    """The private hosts that were requested because the feed of the task opens them."""
    feed: FeedAccess
    again_at: datetime
    """The time from which the URL may be requested again: the next attempt of the task, or a day later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageClaim:
    token: str
    tasks: tuple[ImageTask, ...]
    holds: KnownHolds
    referers: frozenset[str] = frozenset()
    """The hosts that need a Referer, of those claimed."""


def claim_images(
    database: Database,
    *,
    now: datetime,
    run_id: str,
    lease_seconds: int,
    limit: int,
    token: str | None = None,
    lease_now: datetime | None = None,
) -> ImageClaim:
    """Take pending tasks that are due at `now`, the longest due first, in one transaction.

    A claim takes tasks of feeds that archive images, where no live lease holds the task or downloads images
    from its host, and the host is not on hold: at most `limit`, at most `PER_HOST` of a host, and no more
    than 1 MB of their texts.
    """
    token = token or new_token()
    clock = None if lease_now is None else instant(lease_now)
    at = instant(now)
    lease = [token, run_id, clock, lease_seconds, lease_seconds]
    candidates = f"""SELECT t.id, t.host, {_DUE_AT} AS due,
      length(t.original_url) + length(items.guid) + coalesce(length(items.link), 0) AS size {_DUE}"""
    choosing = [at, clock, clock, at, at]
    results = database.batch(
        [
            *_heal_wrong_clock(now),
            # As with feeds: nearly always the oldest few thousand have hosts enough among them.
            Statement(
                _INSERT_LEASE.format(
                    expiry=EXPIRY, candidates=f"{candidates} ORDER BY due LIMIT {RANKED_FIRST}"
                )
                + " WHERE n = max(?, 1)",
                [*lease, *choosing, PER_HOST, limit, limit],
                name="choose images among the oldest",
            ),
            Statement(
                _INSERT_LEASE.format(
                    expiry=EXPIRY,
                    candidates=f"{candidates} AND NOT EXISTS (SELECT 1 FROM leases WHERE token = ?)",
                )
                + " WHERE n > 0",
                [*lease, *choosing, token, PER_HOST, limit],
                name="choose images among all",
            ),
            Statement(
                f"""SELECT t.id, items.feed_id, items.guid, items.link, t.original_url, t.host, t.position,
                t.attempts, t.lease_token, t.last_error_kind, t.created_at, t.updated_at,
                feeds.url AS feed_url, feeds.fetch_url, feeds.needs_access, feeds.allow_private,
                feeds.private_hosts, feeds.host AS feed_host, feeds.last_fetched_at
                FROM image_tasks AS t JOIN items ON items.id = t.item_id
                  JOIN feeds ON feeds.id = items.feed_id
                WHERE t.id IN {_OF_LEASE} ORDER BY {_DUE_AT}, t.id""",
                [token],
                name="read claimed images",
            ),
            Statement(
                f"UPDATE image_tasks SET lease_token = ? WHERE id IN {_OF_LEASE}",
                [token, token],
                name="claim images",
            ),
            Statement(
                """SELECT host FROM image_referers WHERE learned_at > ? AND host IN (
                  SELECT value FROM json_each((SELECT image_hosts FROM leases WHERE token = ?)))""",
                [instant(now - REFERER_DAYS), token],
                name="read hosts that need a Referer",
            ),
            known_statement(now),
        ]
    )
    holds = known_holds(results[-1])
    return ImageClaim(
        token=token,
        tasks=tuple(map(_task, results[-4].rows)),
        holds=replace(holds, image_gaps=_after_feeds(holds, results[-4].rows, now=now)),
        referers=frozenset(row["host"] for row in results[-2].rows),
    )


def _after_feeds(holds: KnownHolds, rows: Sequence[Row], *, now: datetime) -> list[HostGap]:
    """The gaps of images after the last request of all: a host's limit counts those for its feeds as well."""
    asked = [(row["feed_host"], at) for row in rows if (at := from_instant(row["last_fetched_at"]))]
    asked += [(gap.host, gap.asked_at) for gap in holds.gaps]
    return [
        replace(
            gap, asked_at=max([gap.asked_at, *(at for host, at in asked if host == gap.host and at <= now)])
        )
        for gap in holds.image_gaps
    ]


def earlier_requests(
    database: Database, hashes: Iterable[str], *, now: datetime
) -> dict[str, EarlierRequest]:
    """The requests of the last day for URLs with these hashes (`url_hash`), the newest of each."""
    since = now - IMAGE_AGAIN_AFTER
    days = compact([instant(at)[:10] for at in {since, now}])
    found: dict[str, EarlierRequest] = {}
    for chunk in chunked(map(compact, sorted(hashes))):
        rows = database.query(
            """SELECT u.url_hash, u.asked_at, u.failed, u.inside, t.id, t.status, t.r2_key, t.last_error,
              t.next_attempt_at,
              f.url AS feed_url, f.allow_private, f.private_hosts
            FROM json_each(?) AS d CROSS JOIN json_each(?) AS j
              CROSS JOIN image_urls AS u ON u.day = d.value AND u.url_hash = j.value AND u.asked_at > ?
              CROSS JOIN image_tasks AS t ON t.id = u.task_id CROSS JOIN items AS i ON i.id = t.item_id
              CROSS JOIN feeds AS f ON f.id = i.feed_id
            ORDER BY u.asked_at""",
            [days, chunk, instant(since)],
            name="read earlier requests of images",
        ).rows
        found.update((row["url_hash"], _request(row)) for row in rows if _has_result(row))
    return found


def _has_result(row: Row) -> bool:
    """False where the task was given another URL since, or its result was never recorded."""
    return row["last_error"] is not None if row["failed"] else row["status"] == "success"


def _request(row: Row) -> EarlierRequest:
    failed, asked_at = row["failed"], datetime.fromisoformat(row["asked_at"])
    next_at = from_instant(row["next_attempt_at"]) if failed and row["status"] == "pending" else None
    return EarlierRequest(
        task_id=row["id"],
        asked_at=asked_at,
        again_at=next_at or asked_at + IMAGE_AGAIN_AFTER,
        key=None if failed else row["r2_key"],
        failure=Failure(kind=failed, message=row["last_error"]) if failed else None,
        inside=frozenset(json.loads(row["inside"] or "[]")),
        feed=_access(row),
    )


def _access(row: Row) -> FeedAccess:
    return FeedAccess(
        url=row["feed_url"],
        allow_private=bool(row["allow_private"]),
        private_hosts=tuple(json.loads(row["private_hosts"] or "[]")),
    )


_OF_LEASE = "(SELECT value FROM json_each((SELECT image_tasks FROM leases WHERE token = ?)))"
_INSERT_LEASE = f"""INSERT INTO leases
    (token, run_id, expires_at, seconds, feeds, hosts, image_tasks, image_hosts)
  SELECT ?, ?, {{expiry}}, ?, '[]', '[]', tasks, hosts FROM (
    SELECT json_group_array(id) AS tasks, json_group_array(DISTINCT host) AS hosts, count(*) AS n FROM (
      SELECT id, host, row_number() OVER oldest AS place, sum(size) OVER oldest AS bytes FROM (
        SELECT *, row_number() OVER (PARTITION BY host ORDER BY due, id) AS turn FROM ({{candidates}})
      ) WHERE turn <= ? WINDOW oldest AS (ORDER BY due, id ROWS UNBOUNDED PRECEDING)
      ORDER BY due, id LIMIT ?
    ) WHERE bytes <= {MAX_PARAMETER_BYTES} OR place = 1
  )"""


def _heal_wrong_clock(now: datetime) -> list[Statement]:
    return [
        Statement(
            "UPDATE image_tasks SET next_attempt_at = ?"
            " WHERE status = 'pending' AND coalesce(next_attempt_at, created_at) > ?",
            [instant(now), instant(now + IMAGE_RETRY_WRONG_CLOCK)],
            name="heal image schedules",
        ),
        Statement(
            "DELETE FROM image_holds WHERE hold_until > ?",
            [instant(now + IMAGE_RETRY_WRONG_CLOCK)],
            name="drop image holds of a wrong clock",
        ),
    ]


def _task(row: Row) -> ImageTask:
    has_query = any("?" in (row[name] or "") for name in ("feed_url", "fetch_url"))
    private = row["needs_access"] or row["allow_private"] or has_query
    postponed = row["last_error_kind"] == "our_outage"
    return ImageTask(
        id=row["id"],
        feed_id=row["feed_id"],
        guid=row["guid"],
        item_link=None if private else row["link"],
        url=row["original_url"],
        host=row["host"],
        position=int(row["position"]),
        attempts=int(row["attempts"]),
        found_at=datetime.fromisoformat(row["created_at"]),
        was_interrupted=row["lease_token"] is not None,
        is_private=bool(row["needs_access"] or row["allow_private"] or row["private_hosts"]),
        feed=_access(row),
        is_requested=row["last_error_kind"] == REQUESTED,
        postponed_at=datetime.fromisoformat(row["updated_at"]) if postponed else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesDue:
    """The tasks a claim would find, and the runs with a live lease. Counts stop at 1,000."""

    fresh: int
    """Never tried."""
    retries: int
    """Tried before, and due again."""
    requested: int
    """Tasks of both kinds that a user waits for."""
    oldest_fresh_at: str | None
    live_run_ids: tuple[str, ...]


def images_due(database: Database, now: datetime, *, lease_now: datetime | None = None) -> ImagesDue:
    """Return the counts that start a download, by the claim's own conditions."""
    clock = None if lease_now is None else instant(lease_now)
    at = instant(now)
    *_, counts, live = database.batch(
        [
            *_heal_wrong_clock(now),
            Statement(
                f"""SELECT count(*) FILTER (WHERE attempts = 0) AS fresh,
                count(*) FILTER (WHERE attempts > 0) AS retries,
                count(*) FILTER (WHERE last_error_kind = '{REQUESTED}') AS requested,
                min(CASE WHEN attempts = 0 THEN due END) AS oldest FROM (
                  SELECT t.attempts, t.last_error_kind, {_DUE_AT} AS due {_DUE}
                  ORDER BY due LIMIT {_COUNTED})""",
                [at, clock, clock, at, at],
                name="count due images",
            ),
            Statement(
                f"SELECT DISTINCT run_id FROM leases WHERE expires_at > {DB_NOW} AND image_tasks <> '[]'",
                [clock],
                name="read live image runs",
            ),
        ]
    )
    row = one(counts) or {}
    return ImagesDue(
        fresh=int(row["fresh"]),
        retries=int(row["retries"]),
        requested=int(row["requested"]),
        oldest_fresh_at=row["oldest"],
        live_run_ids=tuple(lease["run_id"] for lease in live.rows),
    )


def last_answer(database: Database) -> datetime | None:
    """The last time a feed's host answered, with any status: our network was up then. One of our own network
    proves so only where there are no others."""
    rows = database.query(
        """SELECT coalesce(max(CASE allow_private WHEN 0 THEN last_fetched_at END),
          max(last_fetched_at)) AS at FROM feeds""",
        name="read last answer",
    )
    row = one(rows) or {}
    return None if row["at"] is None else datetime.fromisoformat(row["at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesWaiting:
    """The images that are still to be downloaded, of feeds that archive them."""

    images: int
    """At most COUNTED_IMAGES: more are not counted."""
    due_since: datetime | None
    """The earliest time at which one could have been requested; None where there is none."""


def images_waiting(database: Database) -> ImagesWaiting:
    """Count the images without an attempt that was the last."""
    row = database.query(
        f"""SELECT count(*) AS n, min(due) AS due FROM (
          SELECT coalesce(t.next_attempt_at, t.created_at) AS due
          FROM image_tasks AS t CROSS JOIN items AS i ON i.id = t.item_id
            CROSS JOIN feeds AS f ON f.id = i.feed_id AND f.images = 1
          WHERE t.status = 'pending' ORDER BY due LIMIT {COUNTED_IMAGES}) AS waiting""",
        name="count waiting images",
    ).rows[0]
    return ImagesWaiting(images=int(row["n"]), due_since=from_instant(row["due"]))
