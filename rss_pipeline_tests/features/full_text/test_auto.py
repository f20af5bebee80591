"""`auto` on feeds made by a program: truncated ones get articles, and those with whole texts do not."""

import html
from collections.abc import Iterable

import pytest

from rss_pipeline_tests.features.full_text.made import MadeFeed, made_feeds
from rss_pipeline_tests.features.full_text.test_articles import fetched
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer


def entries(server: FeedServer, host: str, items: Iterable[tuple[int, str]]) -> bytes:
    """A document with these texts of the feed."""
    listed = "".join(
        f"<item><guid isPermaLink='false'>{n}</guid><title>Item {n}</title>"
        f"<link>{server.url(host, f'/{n}')}</link><description>{html.escape(own)}</description></item>"
        for n, own in items
    )
    return f'<rss version="2.0"><channel><title>A feed</title>{listed}</channel></rss>'.encode()


def decisions(pipeline: Pipeline, server: FeedServer, feeds: list[MadeFeed]) -> dict[int, bool | None]:
    """The decision on each feed; None where there is none."""
    for number, feed in enumerate(feeds):
        host = f"127.0.1.{number + 1}"
        old, new = [(9, "<p>An old item.</p>")], list(enumerate(own for own, _ in feed.items))
        for n, (_, page) in enumerate(feed.items):
            server.route(host, f"/{n}", Answer(body=page.encode(), headers={"Content-Type": "text/html"}))
        url = server.route(
            host,
            "/feed",
            Answer(body=entries(server, host, old)),
            Answer(body=entries(server, host, [*new, *old])),
        )
        pipeline.register(url, f"feed-{number}", full_text="auto")
    pipeline.poll()
    pipeline.poll(all_feeds=True)
    found = fetched(pipeline).decisions
    return {
        number: found[f"feed-{number}"].is_truncated if f"feed-{number}" in found else None
        for number in range(len(feeds))
    }


def test_auto_knows_a_truncated_feed_of_each_kind(pipeline: Pipeline, server: FeedServer) -> None:
    feeds = made_feeds(0)
    assert decisions(pipeline, server, feeds) == {n: each.is_truncated for n, each in enumerate(feeds)}


@pytest.mark.soak
def test_auto_knows_forty_feeds_of_forty(pipeline: Pipeline, server: FeedServer) -> None:
    feeds = [feed for seed in range(10) for feed in made_feeds(seed)]
    found = decisions(pipeline, server, feeds)
    assert len(found) == 40
    wrong = [(feeds[n].kind, n, said) for n, said in found.items() if said != feeds[n].is_truncated]
    assert wrong == []
