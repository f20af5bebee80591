"""A run that is killed while it requests articles: none is requested again, unless a person says so."""

import os
import signal
from collections.abc import Iterator

import pytest

from rss_pipeline.features.full_text import sql
from rss_pipeline_tests.features.full_text.made import article
from rss_pipeline_tests.features.full_text.test_articles import HOST, asked, collect, ended, fetched
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

MODULE = "rss_pipeline_tests.features.full_text.dying_articles"
PAGES = [f"/{n}" for n in range(5)]


@pytest.fixture(scope="module")
def prepared() -> Iterator[Prepared]:
    """Processes that are killed, without the second of their imports."""
    with Prepared(MODULE) as prepared:
        yield prepared


def fetched_after(pipeline: Pipeline) -> None:
    """The fetch of the next run, some minutes after one that was killed."""
    pipeline.lapse_leases()
    pipeline.clock.turn(minutes=10)
    fetched(pipeline)


@pytest.mark.slow
def test_a_request_that_was_cut_off_by_a_kill_is_the_only_loss_and_is_made_again_when_a_person_says_so(
    pipeline: Pipeline, server: FeedServer, prepared: Prepared
) -> None:
    pids: list[int] = []

    def kill(_: Request) -> Answer:
        if pids:
            os.kill(pids.pop(), signal.SIGKILL)
        return Answer(body=article(3).encode())

    for n, path in enumerate(PAGES):
        server.route(HOST, path, kill if n == 2 else Answer(body=article(n + 1).encode()))
    collect(pipeline, server, {str(n): path for n, path in enumerate(PAGES)})
    killed = prepared.start(MODULE, str(pipeline.settings.home), "0")
    pids.append(killed.pid)
    assert killed.wait() == -signal.SIGKILL
    fetched_after(pipeline)
    [lost] = [guid for guid, (status, _) in ended(pipeline).items() if status != "shown"]
    assert (lost, ended(pipeline)[lost]) == ("2", ("none", "interrupted"))
    assert sorted(asked(server)) == PAGES
    [row] = pipeline.rows("SELECT reason, attempts FROM articles WHERE status = 'none'")
    assert (row["attempts"], "killed" in row["reason"]) == (1, True)

    sql.want_since(pipeline.database, "feed", since=None, most=9, now=pipeline.clock())
    fetched(pipeline)
    assert ended(pipeline)["2"] == ("shown", "article")
    assert sorted(asked(server)) == sorted([*PAGES, "/2", "/old"])


@pytest.mark.slow
def test_pages_that_came_before_a_kill_are_read_from_their_backups(
    pipeline: Pipeline, server: FeedServer, prepared: Prepared
) -> None:
    for n, path in enumerate(PAGES):
        server.route(HOST, path, Answer(body=article(n + 1).encode()))
    collect(pipeline, server, {str(n): path for n, path in enumerate(PAGES)})
    killed = prepared.start(MODULE, str(pipeline.settings.home), str(len(PAGES)))
    assert killed.wait() == -signal.SIGKILL
    assert sorted(asked(server)) == PAGES
    assert pipeline.rows("SELECT * FROM articles WHERE status <> 'pending'") == []
    fetched_after(pipeline)
    assert set(ended(pipeline).values()) == {("shown", "article")}
    assert sorted(asked(server)) == PAGES
