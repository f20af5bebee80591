"""The stored feeds that a user may name by an address."""

from collections.abc import Sequence

from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.feeds.predicates import OPEN, UNUSED
from rss_pipeline.storage.sql import compact


def named_feeds(user_id: str, hosts: Sequence[str]) -> Statement:
    """A query for `id`, `url`, `title`, `open`, `waits`, `unused` and `subscribed` of the feeds that may have
    an address at one of these hosts, those first that a user should get where one address has several forms.
    `waits`: its document has not been seen so far, and no visit is planned. `unused`: its last subscriber has
    left it.

    A feed that has moved has its new host in its row. URLs are compared by the caller, who knows their forms.
    """
    return Statement(
        f"""SELECT id, url, title, {OPEN} AS open,
          registered = 0 AND last_visited_at IS NULL AS waits, {UNUSED} AS unused,
          EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.user_id = ? AND s.feed_id = feeds.id) AS subscribed
        FROM feeds
        WHERE forgotten = 0 AND (fetch_url IS NOT NULL OR host IN (SELECT value FROM json_each(?)))
        ORDER BY subscribed DESC, listed DESC, registered DESC, created_at, id""",
        [user_id, compact(list(hosts))],
        name="find named feeds",
    )


def subscription_count(user_id: str) -> Statement:
    """A query for `n`, the number of a user's subscriptions."""
    return Statement(
        "SELECT count(*) AS n FROM subscriptions WHERE user_id = ?", [user_id], name="count subscriptions"
    )
