"""Assets of your own on top of rss_pipeline: a digest of each feed's news, and a front page over all feeds.

`feed_digest` runs for exactly the feeds that brought items, each in a run of its own, and reads the items
since its last run. `front_page` has no partitions: one run for everything that is new, which suits many feeds
better. Not here: the feeds, which feeds.yaml lists, and the pipeline, which workspace.yaml loads as well.
"""

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

import dagster as dg
from bs4 import BeautifulSoup

from rss_pipeline.downstream import (
    FEED_ITEMS,
    FeedReader,
    FeedReaderResource,
    StoredItem,
    feed_changed,
    feed_reader_resource,
    feeds_partitions,
    last_cursor,
)

FOLDER = Path(os.environ.get("DIGEST_FOLDER", "digests"))
WORDS_SHOWN = 60
ON_THE_FRONT_PAGE = timedelta(days=1)
ITEMS_ON_THE_FRONT_PAGE = 100


@dg.asset(
    partitions_def=feeds_partitions,
    deps=[FEED_ITEMS],
    automation_condition=feed_changed(),
    group_name="digest",
    kinds={"markdown"},
    description="A feed's items since its last digest, as a Markdown file in `digests/<feed>/`.",
)
def feed_digest(
    context: dg.AssetExecutionContext, feed_reader: FeedReaderResource
) -> dg.MaterializeResult[None]:
    feed_id, since = context.partition_key, last_cursor(context)
    # Named after the cursor it starts from: a run that is repeated after a crash writes the same file again.
    target = FOLDER / feed_id / f"{since or 'first'}.md"
    items = words = 0
    cursor, titles = since, []
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", encoding="utf-8") as file:
        for item in feed_reader.items(feed_id, since=since):
            text = _text(item)
            file.write(_as_markdown(item, text))
            items, words, cursor = items + 1, words + len(text), item.cursor
            titles.append(f"- {_plain(item.title)}")
    if not items:
        target.unlink()
    return dg.MaterializeResult(
        metadata={
            "items": items,
            "words": words,
            "titles": dg.MetadataValue.md("\n".join(titles[:20])),
            **({"file": dg.MetadataValue.path(str(target.absolute()))} if items else {}),
            # Also when nothing came: the next run looks for it in the newest materialization.
            **({"cursor": cursor} if cursor else {}),
        }
    )


@dg.asset(
    deps=[FEED_ITEMS],
    automation_condition=feed_changed(),
    group_name="digest",
    kinds={"html"},
    description="The items of the last day over all feeds, as one page with the archived images.",
)
def front_page(feed_reader: FeedReaderResource) -> dg.MaterializeResult[None]:
    since = datetime.now(UTC) - ON_THE_FRONT_PAGE
    newest: list[StoredItem] = []
    for item in feed_reader.items(since=since, html=True):
        newest.append(item)
        if len(newest) > 2 * ITEMS_ON_THE_FRONT_PAGE:
            newest = _newest(newest)
    FOLDER.mkdir(parents=True, exist_ok=True)
    target = FOLDER / "index.html"
    target.write_text(_page(_newest(newest), feed_reader), "utf-8")
    return dg.MaterializeResult(
        metadata={"items": len(_newest(newest)), "page": dg.MetadataValue.url(target.absolute().as_uri())}
    )


def _newest(items: Iterable[StoredItem]) -> list[StoredItem]:
    return sorted(items, key=lambda item: item.published_at, reverse=True)[:ITEMS_ON_THE_FRONT_PAGE]


def _text(item: StoredItem) -> list[str]:
    """Return the words of an item's content."""
    return BeautifulSoup(item.content_html or item.summary or "", "html.parser").get_text(" ").split()


def _as_markdown(item: StoredItem, text: list[str]) -> str:
    more = " ..." if len(text) > WORDS_SHOWN else ""
    link = f"\n<{item.link}>\n" if item.link else ""
    return (
        f"## {_plain(item.title)}\n{item.published_at:%Y-%m-%d %H:%M} UTC\n{link}\n"
        f"{_plain(' '.join(text[:WORDS_SHOWN]))}{more}\n\n"
    )


def _plain(text: str | None) -> str:
    """Return foreign text for Markdown, with all markup escaped."""
    return "".join(f"\\{c}" if c in r"\`*_[]<>#" else c for c in " ".join((text or "(no title)").split()))


def _page(items: Iterable[StoredItem], reader: FeedReader) -> str:
    # A frame each: no foreign script runs, no foreign style reaches the page, and only images are loaded.
    entries = "\n".join(
        f"<details><summary>{escape(item.title or '(no title)')} <small>{escape(item.feed_title or '')}"
        f' {item.published_at:%H:%M}</small></summary><p><a href="{escape(item.link or "")}">read there</a>'
        f"</p>{reader.frame(item)}</details>"
        for item in items
    )
    style = "body{font:1rem sans-serif;max-width:50rem;margin:auto}iframe{width:100%;height:30rem;border:0}"
    return (
        f"<!doctype html>{reader.page_head()}<title>Front page</title><style>{style}</style>"
        f"<h1>Front page</h1>\n{entries}\n"
    )


follow_feeds = dg.AutomationConditionSensorDefinition(
    name="follow_feeds",
    target=[feed_digest, front_page],
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    # After the polls, which have -1: items are collected before they are digested.
    run_tags={"dagster/priority": "-2"},
)

defs = dg.Definitions(
    assets=[feed_digest, front_page],
    sensors=[follow_feeds],
    resources={"feed_reader": feed_reader_resource()},
    executor=dg.in_process_executor,
)
