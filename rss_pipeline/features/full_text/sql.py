"""The statements of full text: which items get their article, what was fetched, and what is shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.settings import Settings
from rss_pipeline.storage.accounts.user_rows import note_change_of_items
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.items.body_parts import own_text
from rss_pipeline.storage.kept_html import drop_where
from rss_pipeline.storage.refresh.new_addresses import AN_HOUR, give_turns_to
from rss_pipeline.storage.sql import compact, number
from rss_pipeline.storage.stale import mark_stale

OWN_CHARACTERS = 200_000
"""Characters of the feed's own HTML that are compared with the page."""
_VERSION = (
    "guid_source, link, title, pub_date, pub_date_source, pub_date_raw, updated_at, base_url, comments_url,"
    " author, authors, categories, enclosures, content_omitted, summary, content_html"
)
_ARRIVED = "coalesce((SELECT max(i.arrived) FROM items AS i WHERE i.feed_id = feeds.id), 0)"
_SWITCHED = "SELECT feed_id FROM subscriptions WHERE full_text_after IS NOT NULL"
"""The feeds with articles by the switch of a subscription."""
BEGUN, INTERRUPTED = "begun", "interrupted"
"""Verdicts where there is no answer: it may come yet; it never will."""
SOON = "its page is requested in a moment"
IN_TURN = f"a user has {AN_HOUR} new addresses an hour; this page has its turn then"


def begin_articles(ids: str) -> list[Statement]:
    """Statements by which these feeds, a JSON list, get articles for items that come from now on."""
    chosen = "id IN (SELECT value FROM json_each(?))"
    return [
        Statement(
            f"""UPDATE feeds SET full_text_after = {_ARRIVED}
            WHERE {chosen} AND full_text IS NOT NULL AND full_text_after IS NULL""",
            [ids],
            name="begin articles of feeds",
        ),
        Statement(
            f"""UPDATE feeds SET full_text_after = NULL, full_text_decision = NULL
            WHERE {chosen} AND full_text IS NULL AND full_text_after IS NOT NULL
              AND id NOT IN ({_SWITCHED})""",
            [ids],
            name="end articles of feeds",
        ),
    ]


def leave_articles(ids: str) -> list[Statement]:
    """Statements by which these feeds, a JSON list, get no more articles."""
    return [
        Statement(
            f"""UPDATE feeds SET full_text_after = NULL, full_text_decision = NULL
            WHERE id IN (SELECT value FROM json_each(?)) AND full_text_after IS NOT NULL
              AND id NOT IN ({_SWITCHED})""",
            [ids],
            name="leave articles of feeds",
        )
    ]


def feeds_with_articles(database: Database, *, now: datetime) -> list[Row]:
    """The feeds that want articles: id, full_text, full_text_after, full_text_decision, and of the users
    whose switch is on one with the fewest new addresses that wait: the owner, if that is one of them."""
    return database.query(
        f"""SELECT f.id, f.full_text, f.full_text_decision,
          coalesce(f.full_text_after, (SELECT min(s.full_text_after) FROM subscriptions AS s
            WHERE s.feed_id = f.id AND s.full_text_after IS NOT NULL)) AS full_text_after,
          (SELECT u.id FROM subscriptions AS s CROSS JOIN users AS u ON u.id = s.user_id
           WHERE s.feed_id = f.id AND s.full_text_after IS NOT NULL
           ORDER BY (SELECT count(*) FROM new_addresses AS n WHERE n.user_id = u.id AND n.begins_at > ?),
             u.created_at, u.id LIMIT 1) AS user_id
        FROM feeds AS f WHERE f.full_text_after IS NOT NULL OR f.id IN ({_SWITCHED}) ORDER BY f.id""",
        [instant(now)],
        name="find feeds with articles",
    ).rows


def end_articles(feed_ids: Sequence[str], *, now: datetime) -> list[Statement]:
    """Statements by which nobody wants articles of these feeds any more: what a user's switch has waiting is
    given up with its turns."""
    ids = compact(list(feed_ids))
    waiting = """SELECT item_id FROM articles WHERE status = 'pending' AND user_id IS NOT NULL
      AND for_all = 1 AND feed_id IN (SELECT value FROM json_each(?))"""
    return [
        *leave_articles(ids),
        Statement(
            f"""UPDATE articles SET for_all = 0 WHERE item_id IN ({waiting})
            AND item_id IN (SELECT item_id FROM article_readers)""",
            [ids],
            name="leave waiting articles to who requested them",
        ),
        Statement(
            f"DELETE FROM new_addresses WHERE begins_at > ? AND address IN ({waiting})",
            [instant(now), ids],
            name="give up turns of articles",
        ),
        Statement(
            f"DELETE FROM articles WHERE item_id IN ({waiting})", [ids], name="give up waiting articles"
        ),
    ]


def want_new(
    database: Database, feed_id: str, *, after: int, most: int, user_id: str | None, now: datetime
) -> int:
    """Let the items of a feed that arrived behind a number have their article, the newest `most` of them,
    but for those of its first document; return their number. What a user's switch wants waits for its turn
    among the new addresses of that user (storage/refresh/new_addresses.py)."""
    rows = database.query(
        """SELECT i.id,
          (SELECT a.status FROM articles AS a WHERE a.item_id = i.id AND a.for_all = 0) AS of_some
        FROM feeds AS f CROSS JOIN items AS i ON i.feed_id = f.id
        WHERE f.id = ? AND i.arrived > ? AND i.link IS NOT NULL AND i.created_at > f.first_stored_at
        ORDER BY i.arrived DESC LIMIT ?""",
        [feed_id, after, most],
        name="find new items without an article",
    ).rows
    found = [row["id"] for row in rows]
    ids = compact(found)
    # The newest first, which matters where they wait for turns.
    wanted, *_ = database.batch(
        [
            Statement(
                """INSERT INTO articles (item_id, feed_id, next_attempt_at, user_id)
                SELECT i.id, i.feed_id, ?, ? FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
                WHERE true ON CONFLICT (item_id) DO NOTHING""",
                [instant(now), user_id, ids],
                name="want articles of new items",
            ),
            *_for_all([row["id"] for row in rows if row["of_some"]]),
            *_shown(feed_id, [row["id"] for row in rows if row["of_some"] == "shown"], now),
            *([] if user_id is None else _in_turn(user_id, found, now)),
            Statement(
                f"""UPDATE feeds SET full_text_after = {_ARRIVED}
                WHERE id = ? AND coalesce(full_text_after, -1) < {_ARRIVED}""",
                [feed_id],
                name="note the last item with an article",
            ),
        ]
    )
    return wanted.changes


def _in_turn(user_id: str, item_ids: Sequence[str], now: datetime) -> list[Statement]:
    is_new = """EXISTS (SELECT 1 FROM articles AS a WHERE a.item_id = j.value AND a.user_id = ?
      AND a.status = 'pending' AND a.attempts = 0)"""
    return [
        *give_turns_to(user_id, item_ids, condition=is_new, params=[user_id], now=now),
        Statement(
            """UPDATE articles SET next_attempt_at = n.begins_at, reason = ? FROM new_addresses AS n
            WHERE n.user_id = ? AND n.begins_at > ? AND n.address = articles.item_id
              AND articles.item_id IN (SELECT value FROM json_each(?)) AND articles.status = 'pending'""",
            [IN_TURN, user_id, instant(now), compact(list(item_ids))],
            name="let articles wait for their turn",
        ),
    ]


def want_since(database: Database, feed_id: str, *, since: datetime | None, most: int, now: datetime) -> int:
    """Let stored items of a feed have their article, those collected since an instant, the newest `most`;
    also where the answer of a request was lost."""
    return database.query(
        f"""INSERT INTO articles (item_id, feed_id, next_attempt_at)
        SELECT i.id, i.feed_id, ? FROM items AS i
        WHERE i.feed_id = ? AND i.created_at >= ? AND i.link IS NOT NULL
        ORDER BY i.created_at DESC, i.arrived DESC LIMIT ? ON CONFLICT (item_id) DO UPDATE SET
          status = 'pending', verdict = NULL, reason = NULL, next_attempt_at = excluded.next_attempt_at
        WHERE articles.verdict = '{INTERRUPTED}'""",
        [instant(now), feed_id, "" if since is None else instant(since), most],
        name="want articles of stored items",
    ).changes


def request_article(user_id: str, item_id: str, *, now: datetime) -> list[Statement]:
    """Statements by which a subscriber wants the article of an item, and sees it: a page that was never
    requested has its turn among the new addresses of that user, one that failed is tried again."""
    return [
        Statement(
            """INSERT INTO article_readers (user_id, item_id) SELECT s.user_id, i.id FROM items AS i
            CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
            WHERE i.id = ? AND i.link IS NOT NULL ON CONFLICT DO NOTHING""",
            [user_id, item_id],
            name="show an article to who requests it",
        ),
        Statement(
            f"""INSERT INTO articles (item_id, feed_id, next_attempt_at, reason, user_id, for_all)
            SELECT i.id, i.feed_id, ?, ?, s.user_id, 0 FROM items AS i
            CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
            WHERE i.id = ? AND i.link IS NOT NULL
            ON CONFLICT (item_id) DO UPDATE SET next_attempt_at = excluded.next_attempt_at,
              reason = excluded.reason, status = 'pending',
              verdict = CASE WHEN articles.status = 'pending' THEN articles.verdict END
            WHERE articles.status = 'pending' AND articles.attempts > 0
              OR articles.verdict = '{INTERRUPTED}'""",
            [instant(now), SOON, user_id, item_id],
            name="request an article",
        ),
        *_in_turn(user_id, [item_id], now),
    ]


def hide_article(user_id: str, item_id: str) -> Statement:
    """A statement after which a user sees the feed's own text again, unless the article is for all."""
    return Statement(
        "DELETE FROM article_readers WHERE user_id = ? AND item_id = ?",
        [user_id, item_id],
        name="hide an article from a user",
    )


def restore_readers(user_id: str, items: str) -> list[Statement]:
    """Statements that show a user the articles of items again, a JSON list of lists with an id each."""
    return [
        Statement(
            """INSERT INTO article_readers (user_id, item_id)
            SELECT ?, i.id FROM json_each(?) AS j
            CROSS JOIN items AS i ON i.id = json_extract(j.value, '$[0]')
            WHERE true ON CONFLICT DO NOTHING""",
            [user_id, items],
            name="restore who requested articles",
        )
    ]


def next_requested(database: Database) -> datetime | None:
    """The time of the next request for an article that a user waits for and that was not requested so far;
    None where there is none."""
    [row] = database.query(
        """SELECT min(next_attempt_at) AS at FROM articles AS a WHERE status = 'pending' AND attempts = 0
        AND EXISTS (SELECT 1 FROM article_readers AS r WHERE r.item_id = a.item_id)""",
        name="look for requested articles",
    ).rows
    return from_instant(row["at"])


def waiting_of(database: Database, feed_id: str, *, now: datetime, most: int) -> list[Row]:
    """The items of a feed that wait for a later request: link, the time, and the reason."""
    return database.query(
        """SELECT i.link, a.next_attempt_at AS until, a.reason
        FROM articles AS a CROSS JOIN items AS i ON i.id = a.item_id
        WHERE a.feed_id = ? AND a.status = 'pending' AND a.next_attempt_at > ?
        ORDER BY a.next_attempt_at, i.arrived LIMIT ?""",
        [feed_id, instant(now), most],
        name="find waiting articles",
    ).rows


def due_articles(
    database: Database, *, now: datetime, most: int, feed_id: str | None = None, is_requested: bool = False
) -> list[Row]:
    """The articles to be requested now, the longest due first, with what is needed of items and feeds.
    `is_requested`: those alone for which a user waits."""
    one = "" if feed_id is None else "AND a.feed_id = ?"
    awaited = "EXISTS (SELECT 1 FROM article_readers AS r WHERE r.item_id = a.item_id)"
    if is_requested:
        one += f" AND {awaited}"
    return database.query(
        f"""SELECT a.item_id, a.feed_id, a.attempts, a.verdict, a.for_all, {number(awaited)} AS is_awaited,
          i.arrived, i.link, i.title,
          substr({own_text("i")}, 1, {OWN_CHARACTERS}) AS own_html, f.url AS feed_url, f.allow_private,
          f.private_hosts, f.images
        FROM articles AS a CROSS JOIN items AS i ON i.id = a.item_id CROSS JOIN feeds AS f ON f.id = a.feed_id
        WHERE a.status = 'pending' AND a.next_attempt_at <= ? {one}
        ORDER BY a.next_attempt_at, i.arrived LIMIT ?""",
        [instant(now), *([] if feed_id is None else [feed_id]), most],
        name="find due articles",
    ).rows


def is_wanted(database: Database, settings: Settings) -> bool:  # noqa: ARG001 - other features ask them
    """True if a feed gets articles, or an item waits for one."""
    [row] = database.query(
        f"""SELECT EXISTS (SELECT 1 FROM feeds WHERE full_text IS NOT NULL) OR EXISTS ({_SWITCHED})
          OR EXISTS (SELECT 1 FROM articles WHERE status = 'pending') AS wanted""",
        name="look for wanted articles",
    ).rows
    return bool(row["wanted"])


def is_due(database: Database, *, now: datetime) -> bool:
    """True if an article is due, or a feed has items that came since its articles were last wanted."""
    [row] = database.query(
        f"""SELECT EXISTS (SELECT 1 FROM articles WHERE status = 'pending' AND next_attempt_at <= ?) AS due,
          EXISTS (SELECT 1 FROM feeds WHERE full_text_after < {_ARRIVED}) OR EXISTS (
            SELECT 1 FROM subscriptions AS s CROSS JOIN feeds ON feeds.id = s.feed_id
            WHERE s.full_text_after < {_ARRIVED} AND feeds.full_text_after IS NULL) AS new""",
        [instant(now)],
        name="look for due articles",
    ).rows
    return bool(row["due"] or row["new"])


def requested_since(database: Database, since: datetime) -> dict[str, int]:
    """The number by host of the requests for articles whose last one is since an instant: a page is requested
    three times at most, within a day."""
    rows = database.query(
        """SELECT host, sum(attempts) AS n FROM articles
        WHERE requested_at >= ? AND host <> '' GROUP BY host""",
        [instant(since)],
        name="count articles of hosts",
    ).rows
    return {row["host"]: int(row["n"]) for row in rows}


def begin(item_ids: Iterable[str], *, host: str, at: datetime) -> Statement:
    """A statement that notes a request which is made next."""
    return Statement(
        """UPDATE articles SET verdict = ?, host = ?, requested_at = ?, attempts = attempts + 1
        WHERE item_id IN (SELECT value FROM json_each(?)) AND status = 'pending'""",
        [BEGUN, host, instant(at), compact(list(item_ids))],
        name="begin requests for articles",
    )


def put_off(
    item_ids: Iterable[str],
    until: datetime,
    reason: str,
    *,
    has_ended: bool = False,
    kind: str | None = None,
) -> Statement:
    """A statement that lets articles wait. `has_ended`: no request of them is under way, and the last one
    was a failure of this kind. It is an attempt also where not even the robots.txt could be requested."""
    return Statement(
        """UPDATE articles SET next_attempt_at = ?, reason = ?,
          verdict = CASE WHEN CAST(? AS INTEGER) = 0 THEN verdict ELSE ? END,
          attempts = attempts
            + CASE WHEN CAST(? AS INTEGER) = 1 AND coalesce(verdict, '') <> ? THEN 1 ELSE 0 END
        WHERE item_id IN (SELECT value FROM json_each(?)) AND status = 'pending'""",
        [
            instant(until),
            reason,
            int(has_ended),
            kind,
            int(kind is not None),
            BEGUN,
            compact(list(item_ids)),
        ],
        name="put off articles",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The end of the request for an article."""

    item_id: str
    feed_id: str
    host: str
    verdict: str
    """A verdict on the page, or the kind of a failure."""
    reason: str
    html: str | None = None
    """The article, where it is shown."""
    backup_key: str | None = None
    own_characters: int | None = None
    page_characters: int | None = None
    for_all: bool = True
    """False: it is shown to those alone who requested it."""
    requested_at: datetime | None = None
    """The time of the request, where it is not stored."""
    was_requested: bool = True


def record(one: Fetched, *, was_shown: bool, now: datetime) -> list[Statement]:
    """Statements that end the request for an article. A text that is shown from now on, or no more, leaves
    the feed's own as an earlier version of the item, by which all that keeps texts sees the change."""
    is_shown = one.html is not None
    begun = Statement(
        """INSERT INTO articles (item_id, feed_id, next_attempt_at, for_all)
        VALUES (?, ?, ?, CAST(? AS INTEGER)) ON CONFLICT (item_id) DO NOTHING""",
        [one.item_id, one.feed_id, instant(now), int(one.for_all)],
        name="begin an article",
    )
    ended = Statement(
        """UPDATE articles SET status = ?, verdict = ?, reason = ?, host = coalesce(host, ?), html = ?,
          backup_key = coalesce(?, backup_key), own_characters = ?, page_characters = ?,
          requested_at = CASE WHEN CAST(? AS INTEGER) = 1 THEN coalesce(?, requested_at) END,
          attempts = CASE WHEN attempts = 0 THEN CAST(? AS INTEGER) ELSE attempts END
        WHERE item_id = ?""",
        [
            "shown" if is_shown else "none",
            one.verdict,
            one.reason,
            one.host,
            one.html,
            one.backup_key,
            one.own_characters,
            one.page_characters,
            int(one.was_requested),
            None if one.requested_at is None else instant(one.requested_at),
            int(one.was_requested),
            one.item_id,
        ],
        name="end the request for an article",
    )
    if not (is_shown or was_shown):
        return [begun, ended]
    if not one.for_all:
        return [begun, ended, note_change_of_items()]
    return [begun, ended, *_shown(one.feed_id, [one.item_id], now)]


def _for_all(item_ids: Sequence[str]) -> list[Statement]:
    if not item_ids:
        return []
    return [
        Statement(
            "UPDATE articles SET for_all = 1 WHERE item_id IN (SELECT value FROM json_each(?))",
            [compact(list(item_ids))],
            name="show articles to all",
        )
    ]


def _shown(feed_id: str, item_ids: Sequence[str], now: datetime) -> list[Statement]:
    if not item_ids:
        return []
    ids = compact(list(item_ids))
    return [
        Statement(
            f"""INSERT INTO item_versions (item_id, replaced_at, {_VERSION})
            SELECT id, ?, {_VERSION} FROM items WHERE id IN (SELECT value FROM json_each(?))
            ON CONFLICT DO NOTHING""",
            [instant(now), ids],
            name="keep the feed's text as a version",
        ),
        *mark_stale(compact([feed_id])),
        drop_where("items.id IN (SELECT value FROM json_each(?))", [ids]),
        note_change_of_items(),
    ]


def decide(feed_id: str, decision: str) -> Statement:
    """A statement that keeps what `auto` decided for a feed (JSON)."""
    return Statement(
        "UPDATE feeds SET full_text_decision = ? WHERE id = ? AND full_text = 'auto'",
        [decision, feed_id],
        name="decide on full text",
    )


def compared(database: Database, feed_id: str, *, most: int) -> list[Row]:
    """The newest ended requests of a feed: verdict, and characters of both texts."""
    return database.query(
        """SELECT a.verdict, a.own_characters, a.page_characters FROM items AS i
        CROSS JOIN articles AS a ON a.item_id = i.id
        WHERE i.feed_id = ? AND a.status <> 'pending' ORDER BY i.arrived DESC LIMIT ?""",
        [feed_id, most],
        name="compare articles with their items",
    ).rows


def day_before(now: datetime) -> datetime:
    """The beginning of the span in which a host's requests for articles are counted."""
    return now - timedelta(days=1)


def pages_of(item_ids: Sequence[str]) -> Statement:
    """A query for those of these items that have an article, and whether somebody has starred them."""
    return Statement(
        """SELECT a.item_id, EXISTS (SELECT 1 FROM item_states AS t
            WHERE t.item_id = a.item_id AND t.starred_at IS NOT NULL) AS starred
        FROM json_each(?) AS j CROSS JOIN articles AS a ON a.item_id = j.value""",
        [compact(list(item_ids))],
        name="find items of pages",
    )


def items_of_pages(item_ids: Sequence[str]) -> Statement:
    """A query for these items with their article as it is, NULL where there is none, for `read_again`."""
    return Statement(
        f"""SELECT i.id AS item_id, i.feed_id, i.link, i.title,
          substr({own_text("i")}, 1, {OWN_CHARACTERS}) AS own_html, f.images, a.status, a.verdict, a.html,
          a.for_all
        FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
        CROSS JOIN feeds AS f ON f.id = i.feed_id LEFT JOIN articles AS a ON a.item_id = i.id""",
        [compact(list(item_ids))],
        name="read items of pages",
    )


def begin_anew() -> Statement:
    """A statement after which no stored item of a feed with articles is a new one."""
    return Statement(
        f"UPDATE feeds SET full_text_after = {_ARRIVED} WHERE full_text_after IS NOT NULL",
        name="begin articles after a restore",
    )


def forget_pages(keys: Sequence[str], item_ids: Sequence[str]) -> Statement:
    """A statement after which these articles have no page in the object store."""
    return Statement(
        """UPDATE articles SET backup_key = NULL WHERE item_id IN (SELECT value FROM json_each(?))
        AND backup_key IN (SELECT value FROM json_each(?))""",
        [compact(list(item_ids)), compact(list(keys))],
        name="forget pages of articles",
    )


def look_at_feed(feed_id: str, user_id: str | None) -> Statement:
    """A query for full_text, full_text_decision and `switched` of a feed; for a user, of one that the user
    subscribes to."""
    only = "" if user_id is None else "AND id IN (SELECT feed_id FROM subscriptions WHERE user_id = ?)"
    return Statement(
        f"""SELECT full_text, full_text_decision, id IN ({_SWITCHED}) AS switched FROM feeds
        WHERE id = ? {only}""",
        [feed_id, *([] if user_id is None else [user_id])],
        name="look at the full text of a feed",
    )


def count_articles(feed_id: str) -> Statement:
    """A query for the articles of a feed by status, and where there is none by verdict: items, a reason, and
    the latest time of a request."""
    return Statement(
        """SELECT status, CASE WHEN status = 'none' THEN verdict END AS verdict, count(*) AS items,
          max(reason) AS reason, max(next_attempt_at) AS until
        FROM articles WHERE feed_id = ? GROUP BY 1, 2 ORDER BY 3 DESC, 2""",
        [feed_id],
        name="count articles of a feed",
    )


def hosts_of_feed(feed_id: str, since: datetime) -> Statement:
    """A query for the hosts of a feed's articles with the requests for articles of all feeds since an
    instant."""
    return Statement(
        """SELECT host, sum(attempts) AS n FROM articles WHERE requested_at >= ? AND host IN (
          SELECT host FROM articles WHERE feed_id = ? AND requested_at >= ? AND host <> '')
        GROUP BY host ORDER BY n DESC, host LIMIT 5""",
        [instant(since), feed_id, instant(since)],
        name="count requests of a feed's hosts",
    )


def look_at_item(user_id: str, item_id: str) -> Statement:
    """A query for the article of an item of the user's feeds."""
    return Statement(
        """SELECT a.status, a.verdict, a.reason, a.next_attempt_at, a.own_characters, a.page_characters,
          a.attempts, a.html IS NOT NULL AS has_article, a.for_all, i.link, f.needs_access,
          EXISTS (SELECT 1 FROM article_readers AS r WHERE r.user_id = s.user_id AND r.item_id = i.id)
            AS is_reader
        FROM items AS i CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
        CROSS JOIN feeds AS f ON f.id = i.feed_id LEFT JOIN articles AS a ON a.item_id = i.id
        WHERE i.id = ?""",
        [user_id, item_id],
        name="look at the full text of an item",
    )


def count_waiting(now: datetime) -> Statement:
    """A query for the articles that wait for a later request, of all feeds."""
    return Statement(
        """SELECT count(*) AS waiting, count(user_id) AS in_turn FROM articles
        WHERE status = 'pending' AND next_attempt_at > ?""",
        [instant(now)],
        name="count waiting articles",
    )
