"""Sixty pages in place of an article, as servers send them: none is shown, and each has its reason."""

import random
from collections.abc import Mapping

import pytest

from rss_pipeline.features.full_text.service import fetch_articles
from rss_pipeline_tests.features.full_text.made import around, article, hostile_pages
from rss_pipeline_tests.features.full_text.test_articles import HOST, collect, ended, shown
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

HTML = {"Content-Type": "text/html"}
INSIDE = "127.0.0.3"
_RUSSIAN = "".join(f"<p>Мост номер {n} через реку открыли утром, и город вышел к нему.</p>" for n in range(9))


def answers(server: FeedServer) -> dict[str, Answer]:
    """By name, fifty documents and ten ways of servers."""
    server.route(INSIDE, "/inside", Answer(body=article().encode()))
    text, large = article().encode(), article(paragraphs=40).encode()
    chunked = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    pages = {
        each.name: Answer(
            body=each.body,
            headers={} if each.content_type is None else {"Content-Type": each.content_type},
        )
        for each in hostile_pages()
    }
    ways = {
        "50 MB": Answer(body=large * (50_000_000 // len(large)), headers=HTML),
        "50 MB packed": Answer(body=large * (50_000_000 // len(large)), headers=HTML, gzip=True),
        "endless chunks": Answer(raw=chunked, endless=b"1000\r\n" + b"<p>words in all " * 256 + b"\r\n"),
        "half of it": Answer(body=text, headers=HTML, cut_after=len(text) // 2),
        "gone": Answer(status=404, body=text, headers=HTML),
        "a private address": Answer(status=302, headers={"Location": "http://10.0.0.1/"}),
        "the machine's own": Answer(status=302, headers={"Location": "http://169.254.169.254/latest"}),
        "a host inside": Answer(status=302, headers={"Location": server.url(INSIDE, "/inside")}),
        "a circle": Answer(status=302, headers={"Location": "/circle"}),
        "another charset than it says": Answer(
            body=around(f"<article>{_RUSSIAN}</article>", title="Мост").encode("koi8-r"),
            headers={"Content-Type": "text/html; charset=windows-1251"},
        ),
    }
    return pages | ways


def none_is_shown(pipeline: Pipeline, server: FeedServer, wanted: Mapping[str, Answer]) -> None:
    paths = {name: f"/{n}" for n, name in enumerate(wanted)}
    for name, answer in wanted.items():
        server.route(HOST, paths[name], answer)
    server.route(HOST, "/circle", Answer(status=302, headers={"Location": "/circle"}))
    # The feed opens its own host, and no other one inside.
    collect(pipeline, server, paths, allow_private=True)
    own = shown(pipeline)
    with pipeline.session(deadline=20.0) as session, session.step():
        done = fetch_articles(session)
    # An endless one may also take too long on a busy machine: it is requested again, and not shown.
    found = {name: each for name, each in ended(pipeline).items() if name != "endless chunks"}
    # An address inside is tried again as one that is unknown: users are not to see which it is.
    left = {name: each for name, each in found.items() if each[0] != "none"}
    assert {each for each in left.values() if each != ("pending", "blocked_address")} == set()
    assert (done.shown, done.none + done.waiting) == (0, len(wanted))
    assert all(row["reason"] for row in pipeline.rows("SELECT reason FROM articles"))
    assert shown(pipeline) == own
    assert server.asked(INSIDE) == []


def test_no_page_of_a_seeded_tenth_is_shown(pipeline: Pipeline, server: FeedServer) -> None:
    every = answers(server)
    assert len(every) == 60
    chosen = random.Random(2151).sample(sorted(every), 6)
    none_is_shown(pipeline, server, {name: every[name] for name in chosen})


@pytest.mark.soak
def test_no_page_of_sixty_is_shown(pipeline: Pipeline, server: FeedServer) -> None:
    none_is_shown(pipeline, server, answers(server))
