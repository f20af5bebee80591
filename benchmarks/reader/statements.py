"""The time of the reader's statements in SQLite: `python -m benchmarks.reader.statements`.

The database is store.py's. Times are of one process, through `Database`, with the results as values.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.reader.store import fill, user_id
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Result, Statement, Value
from rss_pipeline.storage.items import body_parts as bodies
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.subscriptions import item_lists, item_query, listing
from rss_pipeline.storage.subscriptions import item_states as states
from rss_pipeline.storage.subscriptions.chosen import Chosen, Filter, Page, Scope, Shown

ROUNDS = 60


def measure(
    database: SqliteDatabase,
    what: str,
    limit: float,
    build: Callable[[str], tuple[Sequence[Statement], object]],
) -> None:
    """Print the p50 and the p95 of a batch and its values, each time for another user."""
    took = []
    for user in range(ROUNDS):
        statements, parse = build(user_id(user))
        begun = time.perf_counter()
        results = (
            [database.query(*_call(one)) for one in statements]
            if len(statements) == 1
            else (database.batch(statements))
        )
        if callable(parse):
            parse(results[0])
        took.append((time.perf_counter() - begun) * 1000)
    p50, p95 = statistics.median(took), sorted(took)[int(len(took) * 0.95)]
    print(f"{what:44} p50 {p50:7.2f} ms  p95 {p95:7.2f} ms  wanted {limit:g} ms")


def _call(statement: Statement) -> tuple[str, Sequence[Value]]:
    return statement.sql, statement.params


def main() -> None:
    """Fill a database, and measure."""
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder, "rss.sqlite"))
        migrate(database)
        fill(database)
        unread, thousand = Filter(is_read=False), Page(limit=1_000)
        page = Page(limit=100)

        def feed_of(user: str) -> str:
            return str(
                database.query(
                    "SELECT feed_id FROM subscriptions WHERE user_id = ? LIMIT 1", [user], name="pick"
                ).rows[0]["feed_id"]
            )

        def hundred(user: str) -> list[int]:
            found = database.batch([item_lists.list_numbers(user, Filter(), page)])[0]
            return list(item_lists.numbers_of(found, page).numbers)

        def ids(user: str) -> list[str]:
            found = database.batch([item_lists.list_items(user, Filter(), page)])[0]
            return [one.id for one in item_lists.items_of(found, page).items]

        def numbers(result: Result) -> object:
            return item_lists.numbers_of(result, thousand)

        def items(result: Result) -> object:
            return item_lists.items_of(result, page)

        measure(
            database, "feed list, 100 feeds", 3, lambda user: ([listing.list_feeds(user)], listing.feed_rows)
        )
        measure(
            database,
            "unread counts, 100 feeds",
            5,
            lambda user: ([item_query.count_unread(user)], item_query.unread_counts),
        )
        measure(
            database,
            "numbers of unread items, n=1,000",
            5,
            lambda user: ([item_lists.list_numbers(user, unread, thousand)], numbers),
        )
        measure(
            database,
            "numbers of all items, n=1,000",
            5,
            lambda user: ([item_lists.list_numbers(user, Filter(), thousand)], numbers),
        )
        measure(
            database,
            "page of 100 unread items of all feeds",
            5,
            lambda user: ([item_lists.list_items(user, unread, page)], items),
        )
        measure(
            database,
            "page of 100 items of a feed",
            2,
            lambda user: (
                [item_lists.list_items(user, Filter(scope=Scope(feed_id=feed_of(user))), page)],
                items,
            ),
        )
        measure(
            database,
            "100 items by number",
            2,
            lambda user: (
                [item_lists.items_by(user, Chosen.by_numbers(hundred(user)))],
                item_lists.named_items,
            ),
        )
        measure(
            database,
            "contents of 100 items",
            2,
            lambda user: ([bodies.sources(ids(user), most_characters=500_000)], None),
        )
        measure(
            database,
            "mark a feed read",
            1,
            lambda user: (
                states.mark_shown(user, Shown(scope=Scope(feed_id=feed_of(user)), up_to=2**52)),
                None,
            ),
        )
        measure(
            database,
            "mark one item read",
            1,
            lambda user: (
                states.mark_items(user, Chosen.by_numbers(hundred(user)[:1]), is_read=True),
                None,
            ),
        )
        measure(
            database,
            "mark 1,000 items read",
            30,
            lambda user: (
                states.mark_items(user, Chosen.by_numbers(hundred(user) * 10), is_read=True),
                None,
            ),
        )
        measure(
            database,
            "star an item",
            1,
            lambda user: (states.star_items(user, Chosen.by_numbers(hundred(user)[:1]), at=utc_now()), None),
        )
        database.close()


if __name__ == "__main__":
    main()
