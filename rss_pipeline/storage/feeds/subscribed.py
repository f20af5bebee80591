"""Feeds that users subscribe to and feeds.yaml does not list: their rows, and subscriptions moved to them.

Statements only; they go into the batch of what makes them necessary. The rows of subscriptions, and what they
change of a feed's row, are storage.subscriptions'.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import bucket_of
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.storage.database import Row, Statement
from rss_pipeline.storage.feeds.forget import end_statements
from rss_pipeline.storage.feeds.predicates import OPEN, SUBSCRIBED
from rss_pipeline.storage.feeds.recount import recount_urls
from rss_pipeline.storage.sql import compact, number
from rss_pipeline.storage.stale import follow_subscriptions


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFeed:
    """A feed by its address alone. `url` has neither userinfo nor fragment."""

    id: str
    url: str
    host: str


@lru_cache(maxsize=10_000)
def shown_url(url: str) -> str:
    """The URL of a feed as users see it, without the port that every request of its scheme has.

    A public form of a feed that users may not subscribe to differs from its URL by that alone.
    """
    parts = urlsplit(url)
    port = {"http": ":80", "https": ":443"}.get(parts.scheme, ":")
    return urlunsplit(parts._replace(netloc=parts.netloc.removesuffix(port)))


_ADD = f"""INSERT INTO feeds (id, url, host, bucket, registered, next_fetch_at, created_at)
  SELECT json_extract(value, '$.id'), json_extract(value, '$.url'), json_extract(value, '$.host'),
    {number("json_extract(value, '$.bucket')")}, 0, ?, ?
  FROM json_each(?) AS j WHERE {{condition}} ON CONFLICT DO NOTHING"""


MOST_NEW_FEEDS = 3_000
"""Feeds new to the installation that lists of a user may bring on a day (UTC): a whole account of them."""


def add_feeds(feeds: Sequence[NewFeed], *, now: datetime) -> list[Statement]:
    """Statements for the rows of these feeds, due at `now`; a feed that is stored already stays as it is.

    One that was forgotten half-way begins anew. They are scheduled by their subscription, which
    follows in the same batch.
    """
    return _add(feeds, "true", [], now=now)


def add_feeds_of_list(feeds: Sequence[NewFeed], *, user_id: str, now: datetime) -> list[Statement]:
    """Likewise, for a list of a user: none where that makes more than `MOST_NEW_FEEDS` on this day, also of
    lists that come at the same time."""
    day = now.date().isoformat()
    count = Statement(
        """UPDATE users SET new_feeds = ? + CASE WHEN new_feeds_day = ? THEN new_feeds ELSE 0 END,
        new_feeds_day = ? WHERE id = ?""",
        [len(feeds), day, day, user_id],
        name="count new feeds of a user",
    )
    fits = f"(SELECT new_feeds FROM users WHERE id = ?) <= {MOST_NEW_FEEDS}"
    return [count, *_add(feeds, fits, [user_id], now=now)]


def new_feeds_of_day(user_id: str, *, now: datetime) -> Statement:
    """A query for `n`, the number of feeds that lists of this user brought on this day."""
    return Statement(
        "SELECT CASE WHEN new_feeds_day = ? THEN new_feeds ELSE 0 END AS n FROM users WHERE id = ?",
        [now.date().isoformat(), user_id],
        name="count new feeds of a day",
    )


def _add(
    feeds: Sequence[NewFeed], condition: str, params: Sequence[str], *, now: datetime
) -> list[Statement]:
    given = compact([_row(feed) for feed in feeds])
    return [
        *end_statements(compact([feed.id for feed in feeds])),
        Statement(
            _ADD.format(condition=condition),
            [instant(now), instant(now), given, *params],
            name="add subscribed feeds",
        ),
    ]


def set_key(feed_ids: Sequence[str], name: str, value: str) -> Statement:
    """A statement that gives feeds the value of a key of a feature, unless feeds.yaml lists them."""
    assert name in FEED_KEYS
    sql = f"UPDATE feeds SET {name} = ? WHERE id IN (SELECT value FROM json_each(?)) AND listed = 0"
    return Statement(sql, [value, compact(list(feed_ids))], name="set a key of feeds")


def _row(feed: NewFeed) -> Row:
    return {**asdict(feed), "bucket": bucket_of(feed.host)}


_CHOSEN_BY_NOBODY = """SELECT f.id FROM json_each(?) AS j
  CROSS JOIN feeds AS f ON f.id = j.value
  WHERE NOT EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.feed_id = f.id AND NOT (
    coalesce(s.origin, '') = 'list' AND s.title IS NULL AND s.wished_interval IS NULL
    AND s.full_text_after IS NULL
    AND coalesce(s.folder, '') IN ('', coalesce(f.folder, ''))
    AND NOT EXISTS (SELECT 1 FROM item_states AS t
      WHERE t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.starred_at IS NOT NULL)))"""
"""The feeds, among a JSON list of ids, without a subscription that a user has made an own one."""


def take_out(ids: str, *, now: datetime) -> list[Statement]:
    """Statements after which these feeds, a JSON list of ids, are no longer listed.

    Subscriptions that came with the list end with it, unless one of the feed's users has chosen the feed:
    subscribed to it by address, or given it a star, a folder, a title or an interval. A feed that users
    subscribe to stays scheduled, without the options that only the list has: its interval, the
    keys of features, its title and folder there. How its items are identified and kept stays, else they came
    twice.
    """
    listed = "id IN (SELECT value FROM json_each(?))"
    return [
        Statement(
            f"""UPDATE users SET state_version = state_version + 1 WHERE id IN (
              SELECT user_id FROM subscriptions WHERE feed_id IN ({_CHOSEN_BY_NOBODY}))""",
            [ids],
            name="note ended subscriptions",
        ),
        Statement(
            f"DELETE FROM subscriptions WHERE feed_id IN ({_CHOSEN_BY_NOBODY})",
            [ids],
            name="end subscriptions of the list",
        ),
        *follow_subscriptions(json.loads(ids)),
        Statement(
            f"UPDATE feeds SET listed = 0, shared = 0, registered = {number(SUBSCRIBED)} WHERE {listed}",
            [ids],
            name="unregister feeds",
        ),
        *(each for key in FEED_KEYS.values() if key.leave is not None for each in key.leave.load()(ids)),
        Statement(
            f"""UPDATE feeds SET next_fetch_at = CASE WHEN enabled = 0 THEN ? ELSE next_fetch_at END,
              enabled = watched, interval = NULL, registered_title = NULL, folder = NULL
              {"".join(f", {name} = NULL" for name, key in FEED_KEYS.items() if not key.stays)}
            WHERE {listed} AND registered = 1""",
            [instant(now), ids],
            name="keep subscribed feeds",
        ),
    ]


def move_subscriptions(closed: Mapping[str, NewFeed], *, now: datetime) -> list[Statement]:
    """Statements that move the subscriptions of feeds that are not open any more, by id, to public forms of
    the same address, which are requested without headers, password and private hosts.

    Read states and stars stay behind: they are of items that came with the headers or from the private host.
    """
    moves = [{**_row(form), "closed": id} for id, form in closed.items()]
    if not moves:
        return []
    given, at = compact(moves), instant(now)
    of_closed = (
        f"""FROM feeds WHERE feeds.id = json_extract(j.value, '$.closed') AND NOT {OPEN} AND {SUBSCRIBED}"""
    )
    return [
        *end_statements(compact([form.id for form in closed.values()])),
        Statement(
            _ADD.format(condition=f"EXISTS (SELECT 1 {of_closed})"),
            [at, at, given],
            name="add public forms of feeds",
        ),
        Statement(
            f"""INSERT INTO subscriptions
              (user_id, feed_id, title, folder, position, wished_interval, full_text_after, read_up_to,
               added_at)
            SELECT s.user_id, public.id, s.title, s.folder, s.position, s.wished_interval,
              s.full_text_after, s.read_up_to, s.added_at
            FROM json_each(?) AS j
            CROSS JOIN subscriptions AS s ON s.feed_id = json_extract(j.value, '$.closed')
            CROSS JOIN (SELECT id, url FROM feeds WHERE forgotten = 0 AND {OPEN}) AS public
              ON public.url = json_extract(j.value, '$.url')
            WHERE EXISTS (SELECT 1 {of_closed}) ON CONFLICT DO NOTHING""",
            [given],
            name="move subscriptions",
        ),
        Statement(
            f"""UPDATE users SET state_version = state_version + 1 WHERE id IN (
              SELECT user_id FROM json_each(?) AS j JOIN subscriptions AS s
                ON s.feed_id = json_extract(j.value, '$.closed') WHERE EXISTS (SELECT 1 {of_closed}))""",
            [given],
            name="note moved subscriptions",
        ),
        Statement(
            f"""DELETE FROM subscriptions WHERE feed_id IN (
              SELECT json_extract(j.value, '$.closed') FROM json_each(?) AS j
              WHERE EXISTS (SELECT 1 {of_closed}))""",
            [given],
            name="end subscriptions of closed feeds",
        ),
        *follow_subscriptions([*closed, *(form.id for form in closed.values())]),
        # Not unused, as if its subscribers had left it: it is the operator's, and stays when it is taken out.
        Statement(
            f"""UPDATE feeds SET registered = listed, wished_interval = NULL, unused_since = NULL
            WHERE id IN (SELECT json_extract(value, '$.closed') FROM json_each(?)) AND NOT {SUBSCRIBED}""",
            [given],
            name="end wishes for closed feeds",
        ),
        *recount_urls([form.url for form in closed.values()], at=now),
    ]
