"""Newsboat shows a page's entries with their texts."""

from pathlib import Path

import pytest

from rss_pipeline.web.authority import Authority
from rss_pipeline_tests.api.google_reader.phone import Phone
from rss_pipeline_tests.features.pages.site import TITLES, WORDS, entries, page
from rss_pipeline_tests.support.clients import newsboat
from rss_pipeline_tests.support.clients.newsboat import Newsboat
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.reader import Reader, served
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(newsboat.MISSING), reason=f"not installed: {', '.join(newsboat.MISSING)}"),
]


def test_newsboat_shows_the_entries_of_a_page_with_their_texts(
    pipeline: Pipeline, server: FeedServer, tmp_path: Path
) -> None:
    port = free_port()
    pipeline.set(reader_hosts=(Authority("127.0.0.1", port),))
    url = server.route("127.0.0.2", "/news/", Answer(body=page(entries()).encode()))
    id = pipeline.register(url, "news", page="auto", shared=True)
    pipeline.poll()
    with Reader.on(pipeline.settings) as reader, served(reader.app, port=port):
        phone = Phone.of_new_user(reader, "ann")
        phone.subscribe(id)
        pipeline.rows("UPDATE subscriptions SET read_up_to = 0")
        api = f"http://127.0.0.1:{port}/greader"
        boat = Newsboat(tmp_path / "newsboat", url=api, name="ann", password=phone.password)
        assert boat.reload() == "6 unread articles"
        articles = boat.articles()
    assert sorted(article.title for article in articles) == sorted(TITLES)
    assert all(WORDS in article.content for article in articles)
