"""What the topics of a large installation cost a poll: without news, and with news of a hundred feeds.

    python -m benchmarks.topics [--feeds 5000] [--topics 500] [--members 20] [--news 100]
    python -m benchmarks.topics --cloudflare --feeds 100 --topics 20 --news 10

Each feed has thirty items of 1.5 KB of HTML. CPU is that of the process that publishes, memory the most it
has beyond what it had before. With --cloudflare the stores are D1 and R2
in workerd, and their operations are counted. The figures of docs/topics.md come from here.
"""

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.cloudflare_cost import Counting
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.topics.publish import Publication, PublicationStores, publish
from rss_pipeline.features.topics.sql import due
from rss_pipeline.storage.database import Row
from rss_pipeline_tests.features.topics.stored import set_topics, topic
from rss_pipeline_tests.support.pipeline import Pipeline, on_cloudflare
from rss_pipeline_tests.support.services.cloudflare import Cloudflare, local_cloudflare
from rss_pipeline_tests.support.stored import add_feeds, add_items, item

START = datetime(2026, 2, 1, tzinfo=UTC)
ITEMS = 30
HTML = "<p>" + "A sentence with <b>some</b> <a href='/page'>links</a> &amp; marks. " * 21 + "</p>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("feeds", 5_000), ("topics", 500), ("members", 20), ("news", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--cloudflare", action="store_true")
    options = parser.parse_args()
    if options.cloudflare:
        with tempfile.TemporaryDirectory() as folder, local_cloudflare() as cloudflare:
            count(Path(folder), cloudflare, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own, whose memory is not measured.
        filling = get_context("spawn").Process(target=fill, args=(Path(folder), options))
        filling.start()
        filling.join()
        measure(Path(folder), options)


def fill(home: Path, options: argparse.Namespace, **settings: Any) -> None:
    pipeline = Pipeline(home, **settings)
    chance = random.Random(1)
    ids = [f"feed-{number}" for number in range(options.feeds)]
    for start in range(0, len(ids), 200):
        some = ids[start : start + 200]
        add_feeds(pipeline.database, *some, first_stored_at=instant(START))
        add_items(pipeline.database, _items(some, chance))
    topics = [
        topic(f"topic-{number}", *chance.sample(ids, options.members), title=f"Topic {number}")
        for number in range(options.topics)
    ]
    set_topics(pipeline.database, *topics)
    pipeline.close()


def _items(ids: list[str], chance: random.Random) -> Iterator[Row]:
    """Half an item a day of each feed, at any time."""
    for id in ids:
        for number in range(ITEMS):
            at = instant(START + timedelta(hours=48 * number + chance.random() * 48))
            yield item(id, f"{number}", at, content_html=f"{HTML}{number}")


def measure(home: Path, options: argparse.Namespace) -> None:
    pipeline = Pipeline(home)
    pipeline.clock.now = START + timedelta(days=90)
    stores = PublicationStores.of(pipeline.settings, pipeline.database, pipeline.objects)

    def published() -> list[Publication]:
        pipeline.clock.turn(hours=1)
        return publish(stores, clock=pipeline.clock)

    measured(f"first publication of {options.topics} topics", published)
    pipeline.clock.turn(hours=1)
    seconds = []
    for _ in range(100):
        before = time.perf_counter()
        assert due(pipeline.database, now=pipeline.clock()) == []
        seconds.append(time.perf_counter() - before)
    print(f"a poll without news: {1_000 * statistics.median(seconds):.2f} ms, one query")
    with_news = random.Random(2).sample(range(options.feeds), options.news)
    add_items(
        pipeline.database,
        (item(f"feed-{n}", "news", instant(pipeline.clock()), content_html=HTML) for n in with_news),
    )
    measured(f"news of {options.news} feeds", published)
    pipeline.close()


def count(home: Path, cloudflare: Cloudflare, options: argparse.Namespace) -> None:
    """Operations of D1 and R2, as they count them."""
    where = on_cloudflare(cloudflare)
    fill(home, options, **where)
    pipeline = Pipeline(home, **where)
    pipeline.clock.now = START + timedelta(days=90)
    database = Counting(cloudflare.url, cloudflare.token)
    stores = PublicationStores.of(pipeline.settings, database, pipeline.objects)

    def published(what: str) -> None:
        Counting.counts.clear()
        done = publish(stores, clock=pipeline.clock)
        figures = {name: Counting.counts[name] for name in ("requests", "rows_read", "rows_written")}
        figures["puts"] = sum(len(each.changed) for each in done)
        print(f"{what}: {len(done)} topics, {figures}")
        if done:
            print("  a topic:", {name: round(figure / len(done), 1) for name, figure in figures.items()})
        pipeline.clock.turn(hours=1)

    published("first publication")
    published("a poll without news")
    add_items(
        pipeline.database,
        (
            item(f"feed-{n}", "news", instant(pipeline.clock()), content_html=HTML)
            for n in range(options.news)
        ),
    )
    published(f"news of {options.news} feeds")
    database.close()
    pipeline.close()


def measured(what: str, act: Callable[[], Any]) -> Any:
    memory, cpu, wall = _most_memory(), time.process_time(), time.perf_counter()
    done = act()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    puts = sum(len(each.changed) for each in done)
    each = 1_000 * cpu / max(1, len(done))
    print(
        f"{what}: {len(done)} topics, {puts} documents, {cpu:.2f} s CPU ({each:.1f} ms a topic),"
        f" {wall:.1f} s, {_most_memory() - memory:.0f} MB more"
    )
    return done


def _most_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


if __name__ == "__main__":
    main()
