"""The statements of pages: their settings, what is known of their lists, the rules of hosts for robots."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Feed, FeedSpec
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.features.pages.known import Known, mark, page_in
from rss_pipeline.pipeline.adding.offer import Offer
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.feeds.predicates import LAST_VISIT_FAILED, POLLED
from rss_pipeline.storage.sql import compact


def register_pages(specs: Sequence[FeedSpec]) -> list[Statement]:
    """Statements after which feeds with another key `page` than before are read anew: their last document may
    have another list now, and what is known of the former one says nothing."""
    settings = [[spec.id, text and mark(text)] for spec in specs for text in [spec.feature_keys.get("page")]]
    return [
        Statement(
            """UPDATE feeds SET page_known = '{"home":"' || json_extract(page_known, '$.home') || '"}',
              content_hash = NULL, failed_hash = NULL, cut_hash = NULL,
              last_etag = NULL, last_modified = NULL, validators_state = NULL,
              next_fetch_at = coalesce(last_visited_at, next_fetch_at)
            FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS settings
              FROM json_each(?)) AS j
            WHERE feeds.id = j.id AND CASE WHEN page_known IS NULL
              THEN page IS NOT NULL ELSE json_extract(page_known, '$.settings') IS NOT j.settings END""",
            [compact(settings)],
            name="register pages",
        )
    ]


def accept_page(feed_id: str, value: str, offer: Offer) -> list[Statement]:
    """Statements after which a page with this value of its key has the entries of an offer, whatever it had
    before."""
    known = replace(Known.of_text(offer.memory) or Known(), settings=mark(value), is_confirmed=True)
    return [
        Statement(
            """UPDATE feeds SET page_known = ?, content_hash = NULL, failed_hash = NULL, last_etag = NULL,
              last_modified = NULL, validators_state = NULL,
              next_fetch_at = coalesce(last_visited_at, next_fetch_at) WHERE id = ?""",
            [known.to_text(), feed_id],
            name="accept page",
        )
    ]


def note_page(feed: Feed, token: str, parsed: Parsed) -> list[Statement]:
    """Record what a document shows of the page's list; for the batch that closes the visit, before that."""
    found = page_in(parsed)
    if found is None or (text := found.known.to_text()) == feed.memories.get("page"):
        return []
    return [
        Statement(
            "UPDATE feeds SET page_known = ? WHERE id = ? AND lease_token = ?",
            [text, feed.id, token],
            name="note page",
        )
    ]


def pages_to_confirm(database: Database) -> list[Row] | None:
    """The pages without a list that is certain, or without the one that they had; None without any page."""
    [count, found] = database.batch(
        [
            Statement(
                f"SELECT 1 FROM feeds WHERE {POLLED} AND page IS NOT NULL LIMIT 1", name="look for a page"
            ),
            Statement(
                f"""SELECT id AS feed, url, last_error_kind AS kind FROM feeds
                WHERE {LAST_VISIT_FAILED} AND page IS NOT NULL AND last_error_kind IN ('no_list', 'list_lost')
                ORDER BY listed DESC, id""",
                name="find pages to confirm",
            ),
        ]
    )
    return found.rows if count.rows else None


def restore_page(database: Database, feed_id: str, *, settings: str, known: str) -> None:
    """Record what the newest backup shows of a page's list, where nothing is known."""
    database.query(
        """UPDATE feeds SET page = coalesce(page, ?), page_known = ?
        WHERE id = ? AND page_known IS NULL AND (page = ? OR page IS NULL AND listed = 0)""",
        [settings, known, feed_id, settings],
        name="restore page",
    )


def robots_since(database: Database, origin: str, since: datetime) -> tuple[str | None, str | None] | None:
    """The rules of an origin as JSON, and the sentence on why there are none; None if it was not requested
    since an instant."""
    rows = database.query(
        "SELECT rules, refusal FROM robots WHERE origin = ? AND requested_at > ?",
        [origin, instant(since)],
        name="read the rules for robots",
    ).rows
    return (rows[0]["rules"], rows[0]["refusal"]) if rows else None


def keep_robots(origin: str, *, rules: str | None, refusal: str | None, at: datetime) -> Statement:
    """A statement that keeps the rules of an origin, or the sentence on why they are not known."""
    return Statement(
        """INSERT INTO robots (origin, requested_at, rules, refusal) VALUES (?, ?, ?, ?)
        ON CONFLICT (origin) DO UPDATE SET requested_at = excluded.requested_at,
          rules = excluded.rules, refusal = excluded.refusal""",
        [origin, instant(at), rules, refusal],
        name="keep the rules for robots",
    )


def drop_robots(before: datetime) -> Statement:
    """A statement that removes what was read before an instant."""
    return Statement(
        "DELETE FROM robots WHERE requested_at <= ?", [instant(before)], name="drop old rules for robots"
    )
