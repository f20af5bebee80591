"""A page in Dagster: the event of a feed says that its page was rebuilt."""

from rss_pipeline_tests.features.pages.site import link, page
from rss_pipeline_tests.features.pages.test_visits import listed, serve
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.server import FeedServer


def test_the_event_of_a_page_says_that_it_was_rebuilt(
    dagster_pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline = dagster_pipeline
    rows = "".join(
        f'<div class="row"><span><a href="{link(n)}">The title of entry {n}</a></span></div>'
        for n in (9, *range(6))
    )
    url = serve(server, listed(*range(6)), page(f"<section>{rows}</section>").encode())
    pipeline.register(url, "news", page="auto")
    for _ in range(2):
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(days=1)
    after, before = pipeline.events("news")
    assert "the page was rebuilt on 2026-03-03" in after["warning"]
    assert "warning" not in before
