"""The speed of search: `make bench`, or `python -m benchmarks.reader.search`.

A SQLite database of 1,000,000 items of 3,500 feeds, in English, Chinese and Japanese, and one of items of
3.5 KB of HTML. The index is built, then searched by a user of 100 feeds and by one of three: whole searches,
with the items and snippets of a page of 50. Times are of the processor: on a busy machine those of the clock
say nothing. The texts are made up: words as often as in real ones (Zipf).
"""

import argparse
import itertools
import json
import os
import platform
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from pathlib import Path

from benchmarks.run import Verdict
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.sanitize.html import plain_text
from rss_pipeline.features.search.index_build import bring_up_to_date
from rss_pipeline.features.search.index_file import IndexFile, open_to_write
from rss_pipeline.features.search.search_query import parse
from rss_pipeline.features.search.service import Order, Search
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.schema import migrate

FEEDS = 3_500
GOALS = "p95 below 50 ms for the newest 50, built at 5,000 items a second, index below 1.2 times the text"
_FIRST = 1_770_000_000_000_000
_AT = "2026-02-18T08:30:00Z"
_HAN = [chr(0x4E00 + n * 7 % 3_000) for n in range(3_000)]
_KANA = [chr(0x3042 + n) for n in range(80)]
_USERS = {"few": range(3_000, 3_003), "many": range(0, FEEDS, 35), "all": range(3_000)}


class Texts:
    """Made-up sentences: English ones, and of each five one in Chinese or Japanese."""

    def __init__(self) -> None:
        self._chance = random.Random(16)
        self.words = [f"w{n * 2654435761 % 2**32:x}" for n in range(200_000)]
        self.pairs = ["".join(self._chance.choices(_HAN, k=2)) for _ in range(20_000)]
        self._latin = self._bank(self.words, " ", 20)
        self._han = self._bank(self.pairs, "", 12)
        kana = ["".join(self._chance.choices(_KANA, k=3)) for _ in range(5_000)]
        self._japanese = self._bank([*itertools.chain(*zip(self.pairs, kana, strict=False))], "", 12)

    def _bank(self, words: Sequence[str], between: str, count: int) -> list[str]:
        often = list(itertools.accumulate(1 / (n + 1) for n in range(len(words))))
        return [between.join(self._chance.choices(words, cum_weights=often, k=count)) for _ in range(40_000)]

    def paragraphs(self, number: int, count: int) -> str:
        """HTML of so many sentences."""
        bank = (self._latin, self._latin, self._latin, self._latin, self._han, self._latin, self._japanese)
        chosen = self._chance.choices(bank[number % 7], k=count)
        return "".join(f"<p>{sentence[:40]}<b>{sentence[40:]}</b>.</p>" for sentence in chosen)


def fill(path: Path, texts: Texts, items: int, sentences: int) -> None:
    """A new database with so many items, and the users of `_USERS`."""
    with closing(SqliteDatabase(path)) as database:
        migrate(database)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.executemany(
            """INSERT INTO feeds (id, url, title, host, next_fetch_at, created_at, listed)
            VALUES (?, ?, ?, ?, ?, ?, 1)""",
            [
                (f"f{n:04}", f"https://f{n}.example/", f"Feed {n}", f"f{n}.example", _AT, _AT)
                for n in range(FEEDS)
            ],
        )
        for user, feeds in _USERS.items():
            connection.execute(
                "INSERT INTO users (id, name, password_hash, created_at) VALUES (?, ?, 'x', ?)",
                [user, user, _AT],
            )
            connection.executemany(
                "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at) VALUES (?, ?, 0, ?)",
                [(user, f"f{n:04}", _AT) for n in feeds],
            )
        _add(connection, texts, range(items), sentences)
        connection.commit()


def _add(connection: sqlite3.Connection, texts: Texts, numbers: range, sentences: int) -> None:
    chance = random.Random(numbers.start)

    def rows() -> Iterator[tuple[object, ...]]:
        for n in numbers:
            feed = min(int(chance.paretovariate(0.7) * 20 - 20), FEEDS - 1)
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + n * 60))
            title = " ".join(chance.choices(texts.words[:5_000], k=5))
            html = texts.paragraphs(n, sentences)
            yield (
                f"{n:032x}",
                f"f{feed:04}",
                str(n),
                title,
                at,
                html,
                at,
                f"Author {feed % 50}",
                _FIRST + n * 1_000,
            )

    connection.executemany(
        """INSERT INTO items (id, feed_id, guid, title, pub_date, content_html, created_at, author, arrived,
          guid_source, pub_date_source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'guid', 'feed')""",
        rows(),
    )
    connection.execute(
        "INSERT OR REPLACE INTO sequences (name, value) VALUES ('items', ?)", [_FIRST + numbers[-1] * 1_000]
    )


def build(database: SqliteDatabase, file: IndexFile, name: str, items: int) -> list[Verdict]:
    """Build the index; its speed and its size."""
    began, cpu = time.monotonic(), time.process_time()
    done = bring_up_to_date(file, database, now=utc_now())
    cpu, clock = time.process_time() - cpu, time.monotonic() - began
    assert done.added == items
    text = 0
    for row in database.query("SELECT title, author, content_html FROM items LIMIT 20000").rows:
        text += sum(
            len(part.encode()) for part in (row["title"], row["author"], plain_text(row["content_html"]))
        )
    text = text * items // min(items, 20_000)
    file.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    size = file.path.stat().st_size
    print(f"{name}: {items / cpu:,.0f} items/s of processor, {items / clock:,.0f} by the clock", flush=True)
    return [
        # 5,000 items a second.
        Verdict(name=f"{name}: built, CPU (ms / 1,000 items)", value=cpu / items * 1e6, goal=200),
        Verdict(name=f"{name}: index / text", value=size / text, goal=1.2),
    ]


def queries(texts: Texts) -> dict[str, list[str]]:
    """Searches by their kind."""
    words, pairs = texts.words, texts.pairs
    chance = random.Random(3)
    return {
        "the commonest words": words[:10],
        "common words": chance.sample(words[10:500], 10),
        "rare words": chance.sample(words[20_000:], 10),
        "two words": [" ".join(chance.sample(words[:300], 2)) for _ in range(10)],
        "phrases": [f'"{words[a]} {words[b]}"' for a, b in itertools.product(range(3), range(5, 8))],
        "Chinese and Japanese": [*pairs[:5], *chance.sample(pairs[100:5_000], 5)],
        "a word without another": [f"{words[n]} -{words[n + 1]}" for n in range(0, 20, 2)],
        "a word in some months": [f"{word} after:2023-12 before:2024-03-15" for word in words[:10]],
        "a word in old months": [f"{word} before:2023-12-01" for word in words[:10]],
        "an author": [f"author:author {word}" for word in words[:5]],
        "a feed": [f"feed:f3001 {word}" for word in words[:5]],
    }


def search(database: SqliteDatabase, file: IndexFile, user: str, text: str, order: Order = "date") -> float:
    """The processor's milliseconds for a page of 50."""

    def read(*statements: Statement) -> list[Result]:
        return database.batch(statements)

    started = time.process_time()
    Search(
        open_index=lambda: nullcontext(file), read=read, user_id=user, query=parse(text), order=order
    ).results()
    return (time.process_time() - started) * 1_000


def _timed(run: Callable[[str], float], found: Sequence[str]) -> list[float]:
    """The best of three for each."""
    return [min(run(text) for _ in range(3)) for text in found]


def searches(database: SqliteDatabase, file: IndexFile, texts: Texts) -> list[Verdict]:
    """The p95 of all searches of each user, and the worst kinds."""
    verdicts = []
    for user in _USERS:
        every: list[float] = []
        for kind, found in queries(texts).items():
            times = _timed(lambda text, user=user: search(database, file, user, text), found)
            every += times
            print(f"  {user:5} {kind:26} {statistics.median(times):7.1f} {max(times):7.1f} ms", flush=True)
        p95 = statistics.quantiles(every, n=20)[-1]
        name = f"newest 50, user of {len(_USERS[user]):,} feeds, p95, CPU (ms)"
        verdicts.append(Verdict(name=name, value=p95, goal=50))
    singles = _timed(
        lambda text: search(database, file, "many", text), [pair[0] for pair in texts.pairs[:10]]
    )
    verdicts.append(Verdict(name="one Chinese character, worst, CPU (ms)", value=max(singles), goal=50))
    ranked = _timed(lambda text: search(database, file, "many", text, "rank"), texts.words[:5])
    verdicts.append(Verdict(name="by rank, the commonest words, CPU (ms)", value=max(ranked), goal=50))
    return verdicts


def main() -> None:
    """Measure, print, and write JSON where that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--long-items", type=int, default=30_000, help="of 3.5 KB of HTML")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    texts = Texts()
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for name, items, sentences in (
            ("items of 3.5 KB", arguments.long_items, 22),
            ("short items", arguments.items, 2),
        ):
            path = Path(folder, f"{items}-{sentences}.sqlite")
            fill(path, texts, items, sentences)
            with (
                closing(SqliteDatabase(path)) as database,
                open_to_write(path.with_suffix(".search")) as file,
            ):
                verdicts += build(database, file, name, items)
                if sentences == 2:
                    verdicts += searches(database, file, texts)
                    with closing(sqlite3.connect(path)) as connection, connection:
                        _add(connection, texts, range(items, items + 500), sentences)
                    cpu = time.process_time()
                    bring_up_to_date(file, database, now=utc_now())
                    verdicts.append(
                        Verdict(
                            name="500 new items, CPU (ms)",
                            value=(time.process_time() - cpu) * 1e3,
                            goal=2_000,
                        )
                    )
            path.unlink()
    print(f"goals: {GOALS}")
    for one in verdicts:
        print(f"{one.name:56} {one.value:9.2f}  goal {one.goal:g}  {'met' if one.is_met else 'MISSED'}")
    print(f"load {os.getloadavg()[0]:.1f}")
    if arguments.json is not None:
        arguments.json.write_text(
            json.dumps({"verdicts": [{**asdict(one), "met": one.is_met} for one in verdicts]}, indent=2)
        )


if __name__ == "__main__":
    main()
