"""Rows that the tests of this room store: feeds, items, answers, and visits through the real statements."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed, FeedAddress, FeedSpec, NextVisit
from rss_pipeline.collector.models.identity import MAX_TITLE_CHARACTERS
from rss_pipeline.collector.models.item import FeedHeader, Item, PublisherHints
from rss_pipeline.collector.models.outcome import Document, Ending, IfGap, NotModified, Parsed, Response
from rss_pipeline.storage.accounts.user_rows import note_change_of_items
from rss_pipeline.storage.database import MAX_VALUE_BYTES, Database, Row, Statement, item_bytes
from rss_pipeline.storage.feeds import claims, closings, leases, registered
from rss_pipeline.storage.feeds.claimable import Due, Named, Wanted
from rss_pipeline.storage.items import items
from rss_pipeline.storage.kept_html import drop_where
from rss_pipeline.storage.sql import DB_NOW, compact

NOW = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def spec(id: str, *, host: str | None = None, **fields: Any) -> FeedSpec:
    """A registered feed; each has a host of its own unless one is named."""
    host = host or f"{id}.example"
    named = {"id": id, "has_own_id": True, "url": f"https://{host}/{id}", "host": host}
    return FeedSpec(**{**named, **fields})


def register(database: Database, *specs: FeedSpec, now: datetime = NOW) -> registered.RegistryChanges:
    """Make these, and no others, the registry; new ones are due at `now`."""
    changes = registered.registry_changes(specs, registered.registry_rows(database), path="feeds.yaml")
    registered.apply(database, changes, now=now)
    return changes


def claim(
    database: Database,
    wanted: Wanted | None = None,
    *,
    now: datetime = NOW,
    run_id: str = "run",
    lease_seconds: int = 180,
    limit: int = 500,
    suspects: bool = False,
    company: int | None = None,
    lease_now: datetime | None = None,
) -> claims.Claim:
    """A claim of what is due at `now`, unless something else is wanted."""
    return claims.claim(
        database,
        Due(now=now) if wanted is None else wanted,
        run_id=run_id,
        lease_seconds=lease_seconds,
        limit=limit,
        suspects=suspects,
        company=company,
        lease_now=lease_now,
    )


def claim_one(database: Database, id: str = "a", *, now: datetime = NOW) -> tuple[Feed, str]:
    """This feed, claimed whether or not it is due or suspect, and asked; and the token."""
    for suspects in (False, True):
        found = claim(database, Named(ids=[id], now=now), limit=1, suspects=suspects)
        if found.feeds:
            database.batch([leases.free_hosts([found.token])])
            return found.feeds[0], found.token
    raise AssertionError(f"{id} cannot be claimed")


def ids(claim: claims.Claim) -> list[str]:
    return [feed.id for feed in claim.feeds]


def feed_row(database: Database, id: str = "a") -> Row:
    return database.query("SELECT * FROM feeds WHERE id = ?", [id]).rows[0]


def change(database: Database, sql: str, *params: str | int | None) -> None:
    """Put a row into a state that would take long to reach."""
    assert database.query(sql, params).changes > 0


def response(*, at: datetime = NOW, **fields: Any) -> Response:
    known = {
        "status": 200,
        "requested_url": "https://a.example/a",
        "url": "https://a.example/a",
        "fetched_at": at,
        "fetch_ms": 12,
        "content_type": "application/rss+xml",
    }
    return Response(**{**known, **fields})


def later(at: datetime = NOW + HOUR) -> NextVisit:
    return NextVisit(at=at, reason="in an hour")


def ending(
    feed: Feed,
    next: NextVisit | None = None,
    *,
    address: FeedAddress | None = None,
    if_gap: IfGap | None = None,
) -> Ending:
    """An ending that leaves the feed where it is, due in an hour, unless other values are given."""
    return Ending(next=next or later(), address=address or feed.address, if_gap=if_gap)


def unchanged(
    database: Database,
    feed: Feed,
    token: str,
    *,
    now: datetime = NOW,
    body_bytes: int = 0,
    next: NextVisit | None = None,
    **fields: Any,
) -> bool:
    """Close a visit with a 304 (or same bytes); whether it was still ours."""
    outcome = NotModified(response=response(at=now, status=304, **fields), body_bytes=body_bytes)
    visit = closings.UnchangedVisit(
        feed=feed, token=token, outcome=outcome, ending=ending(feed, next or later(now + HOUR))
    )
    return feed.id in closings.close_unchanged(database, [visit], now=now)


def failed(
    database: Database,
    feed: Feed,
    token: str,
    *,
    now: datetime = NOW,
    next: NextVisit | None = None,
    **fields: Any,
) -> bool:
    """Close a visit with a failure; whether it was still ours."""
    outcome = Failure(**{"kind": "timeout", "message": "no answer within 30 s", **fields})
    visit = closings.FailedVisit(
        feed=feed, token=token, outcome=outcome, ending=ending(feed, next or later(now + HOUR))
    )
    return feed.id in closings.close_failed(database, [visit], now=now)


def item(guid: str = "1", **fields: Any) -> Item:
    known = {"guid": guid, "guid_source": "guid", "title": f"Title {guid}", "content_html": f"<p>{guid}</p>"}
    return Item(**{**known, **fields})


def inserts(
    feed: Feed,
    token: str,
    some: Sequence[Item],
    *,
    at: datetime = NOW,
    backup_key: str | None = None,
    item_bytes: int = MAX_VALUE_BYTES,
) -> list[Statement]:
    return [
        statement
        for chunk in items.item_rows(feed.id, some, fetched_at=at, item_bytes=item_bytes)
        for statement in items.insert_statements(
            chunk,
            feed_id=feed.id,
            token=token,
            fetched_at=at,
            backup_key=backup_key or f"backups/{feed.id}/{instant(at)}.xml",
        )
    ]


def closing(
    feed: Feed,
    token: str,
    some: Sequence[Item],
    *,
    at: datetime = NOW,
    now: datetime | None = None,
    backup_key: str | None = None,
    content_hash: str = "hash",
    answer: Response | None = None,
    address: FeedAddress | None = None,
    if_gap: IfGap | None = None,
    **header: Any,
) -> Statement:
    """The closing statement of a document with these items; `header` are fields of its FeedHeader."""
    known = {
        "format": "rss20",
        "title": "A feed",
        "link": "https://a.example/",
        "language": "en",
        "charset": "utf-8",
        "charset_rule": "utf-8",
        "hints": PublisherHints(updates=(at,)),
    }
    fetched = Document(
        response=answer or response(at=at),
        path=Path("body"),
        body_bytes=9,
        content_hash=content_hash,
        backup_key=backup_key or f"backups/{feed.id}/{instant(at)}.xml",
    )
    parsed = Parsed(
        document=fetched,
        path=Path("rows"),
        header=FeedHeader(**{**known, **header}),
        items_seen=len(some),
        duplicate_guids=0,
        dropped_items=0,
        bad_dates=(),
    )
    stored = closings.StoredDocument(
        feed=feed,
        token=token,
        parsed=parsed,
        item_ids=[id for chunk in items.item_rows(feed.id, some, fetched_at=at) for id in chunk.ids],
        ending=ending(feed, later(at + HOUR), address=address, if_gap=if_gap),
    )
    return closings.closing_statement(stored, now=now or at)


def store(database: Database, feed: Feed, token: str, some: Sequence[Item] = (), **fields: Any) -> int | None:
    """Store a document and close its visit; how many items the close calls new, None where it was lost."""
    shared = {name: fields[name] for name in ("at", "backup_key") if name in fields}
    there = item_bytes(database)
    *_, closed = database.batch(
        [*inserts(feed, token, some, item_bytes=there, **shared), closing(feed, token, some, **fields)]
    )
    return int(closed.rows[0]["items_new"]) if closed.rows else None


def visit(
    database: Database, some: Sequence[Item] = (), *, id: str = "a", at: datetime = NOW, **fields: Any
) -> int | None:
    """Claim and store, as one visit does."""
    feed, token = claim_one(database, id, now=at)
    return store(database, feed, token, some, at=at, **fields)


def document(path: Path, *, at: datetime = NOW, content_hash: str = "hash", **fields: Any) -> Document:
    return Document(
        response=response(at=at, **fields),
        path=path,
        body_bytes=path.stat().st_size,
        content_hash=content_hash,
    )


def leases_clock(database: Database) -> datetime:
    row = database.query("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now') AS now").rows[0]
    return datetime.fromisoformat(row["now"])


def retire(database: Database, *ids: str, at: datetime | None = None) -> None:
    """Leave tombstones of these items, as retention does; their image tasks must have gone."""
    among = [compact(list(ids))]
    chosen = "id IN (SELECT value FROM json_each(?))"
    *_, gone = database.batch(
        [
            Statement(
                f"""INSERT INTO expired_items (feed_id, guid, expired_at, link, title, pub_date)
                SELECT feed_id, guid, {DB_NOW}, link, substr(title, 1, {MAX_TITLE_CHARACTERS}),
                  CASE pub_date_source WHEN 'feed' THEN pub_date END FROM items WHERE {chosen}""",
                [None if at is None else instant(at), *among],
                name="write tombstones",
            ),
            drop_where(f"items.{chosen}", among),
            note_change_of_items(),
            Statement(f"DELETE FROM items WHERE {chosen} RETURNING id", among, name="delete old items"),
        ]
    )
    assert len(gone.rows) == len(ids)
