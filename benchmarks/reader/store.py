"""A database of many users for the benchmarks of the reader, filled by SQL. The HTML of the newer half of the
items is kept, as polls do it for all.

1,000 users subscribe 100 of 1,000 feeds each, in ten folders; 100,000 items of 3.5 KB of HTML. Each user has
read half of every feed; of every fifth feed, some items above that are read and some below it kept unread.
"""

import random
from collections.abc import Sequence

from rss_pipeline.pipeline.session.renew_html import renew
from rss_pipeline.storage.database import Database, Statement, Value
from rss_pipeline.storage.sql import compact

USERS, FEEDS, ITEMS, SUBSCRIBED = 1_000, 1_000, 100, 100
FIRST = 1_770_000_000_000_000
"""The number of the first item; the others follow a thousand apart."""
_AT = "2026-02-18T08:30:00Z"
_PARAGRAPH = (
    "<p>A sentence with <b>some</b> <a href='/page'>links</a> &amp; marks, as people write it in their pages."
    " <img src='/image.png' alt='A picture'> It has another sentence behind the picture.</p>"
)
_PARAGRAPHS = 18


def feed_id(number: int) -> str:
    """The id of a feed by its place."""
    return f"f{number:04}"


def user_id(number: int) -> str:
    """The id of a user by its place. The name is the same."""
    return f"{number:032x}"


def fill(database: Database, urls: Sequence[str] = ()) -> None:
    """Put users, feeds, items and states into an empty database; `urls` are those of the feeds."""
    chance = random.Random(15)
    urls = urls or [f"https://{feed_id(number)}.example/" for number in range(FEEDS)]
    series = "WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < ?)"
    numbered: list[tuple[str, list[Value]]] = [
        (
            f"""{series} INSERT INTO users (id, name, password_hash, created_at)
            SELECT printf('%032x', n), printf('%032x', n), 'x', ? FROM n""",
            [USERS - 1, _AT],
        ),
        (
            """INSERT INTO feeds (id, url, link, title, host, next_fetch_at, created_at, listed)
            SELECT printf('f%04d', key), value, printf('https://f%04d.example/', key),
              printf('Feed %d', key), printf('f%04d.example', key), ?, ?, 1 FROM json_each(?)""",
            [_AT, _AT, compact(list(urls))],
        ),
        (
            # In the order of arrival, feeds alternate.
            f"""{series} INSERT INTO items (id, feed_id, guid, link, title, pub_date, content_html,
              created_at, guid_source, pub_date_source, arrived)
            SELECT printf('%032x', n), printf('f%04d', n % {FEEDS}), n, 'https://example.org/' || n,
              'Item ' || n, ?, '<h1>' || n || '</h1>' || replace(hex(zeroblob({_PARAGRAPHS})), '00', ?),
              ?, 'guid', 'feed', {FIRST} + n * 1000 FROM n""",
            [FEEDS * ITEMS - 1, _AT, _PARAGRAPH, _AT],
        ),
    ]
    for sql, params in numbered:
        database.query(sql, params, name="fill")
    renew(database, is_over=lambda: False, most=ITEMS * FEEDS)
    statements = [one for user in range(USERS) for one in _states(chance, user_id(user))]
    for start in range(0, len(statements), 200):
        database.batch(statements[start : start + 200])


def _states(chance: random.Random, user: str) -> list[Statement]:
    feeds = chance.sample(range(FEEDS), SUBSCRIBED)
    # Of each feed, item 50 is the last one that is read by number.
    rows = [
        [feed_id(feed), FIRST + (50 * FEEDS + feed) * 1000, f"Folder {place % 10}"]
        for place, feed in enumerate(feeds)
    ]
    exceptions = [
        [feed_id(feed), FIRST + (nth * FEEDS + feed) * 1000, f"{nth * FEEDS + feed:032x}", int(nth > 50)]
        for feed in feeds[:20]
        for nth in (10, 20, 70, 80, 90)
    ]
    return [
        Statement(
            """INSERT INTO subscriptions (user_id, feed_id, read_up_to, folder, added_at)
            SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), ?
            FROM json_each(?)""",
            [user, _AT, compact(rows)],
            name="fill",
        ),
        Statement(
            """INSERT INTO item_states (user_id, feed_id, arrived, item_id, is_read)
            SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]'),
              json_extract(value, '$[2]'), json_extract(value, '$[3]') FROM json_each(?)""",
            [user, compact(exceptions)],
            name="fill",
        ),
    ]
