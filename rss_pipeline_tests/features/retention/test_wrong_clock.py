"""Retention and wrong clocks: no clock, fast or slow, removes what is not old.

Each case runs on SQLite and a folder, and on D1 and R2 in workerd. What is refused is in test_refusal.py.
"""

from datetime import timedelta
from email.utils import format_datetime

import pytest

from rss_pipeline.errors import CleanRefused
from rss_pipeline_tests.features.retention.archive import NEW, OLD, add_rest, age, cleaned, let_visited, stock
from rss_pipeline_tests.features.retention.test_clean import contents
from rss_pipeline_tests.support.pipeline import Clock, Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

AHEAD = timedelta(days=181)


@pytest.fixture
def pipeline(place: Pipeline) -> Pipeline:
    """An installation of each kind. Not that of conftest.py, which is pipeline."""
    return place


@pytest.fixture
def stocked(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    stock(pipeline, server)
    for id in ("one", "two"):
        age(pipeline, id, 0, *OLD, *NEW)
    return pipeline


def test_a_clock_half_a_year_ahead_removes_nothing(stocked: Pipeline) -> None:
    before = contents(stocked)
    with pytest.raises(CleanRefused, match="181 d before"):
        cleaned(stocked, now=stocked.clock() + AHEAD)
    assert contents(stocked) == before


def test_backups_stay_too_and_those_that_must_not_expire_are_put_again(stocked: Pipeline) -> None:
    now = max(info.modified for info in stocked.objects.list("backups/")) + AHEAD
    stocked.objects.put("backups/one/2020-01-01T00:00:00Z.xml", b"x", content_type="text/xml")
    age(stocked, "one", -10_000)
    age(stocked, "two", -10_000)
    dry = cleaned(stocked, now=now, dry_run=True)
    assert (dry.backups_renewed, dry.figures()["backups_waiting"], dry.total.backups) == (2, 1, 0)
    assert "181 d" not in (dry.refusal or "")
    with pytest.raises(CleanRefused):
        cleaned(stocked, now=now)
    assert len(stocked.backups("one")) == 2
    let_visited(stocked, now, days=1)
    waiting = cleaned(stocked, now=now)
    assert (waiting.total.backups, waiting.figures()["backups_waiting"]) == (0, 1), "the visits say it jumped"
    let_visited(stocked, now, days=28)
    assert cleaned(stocked, now=now).total.backups == 1


def test_where_nothing_would_be_removed_a_long_silence_is_no_error(stocked: Pipeline) -> None:
    came = cleaned(stocked, now=stocked.clock() + timedelta(days=10))
    assert (came.refusal, came.total.items) == (None, 0)


def test_a_person_may_confirm_it(stocked: Pipeline) -> None:
    assert cleaned(stocked, now=stocked.clock() + AHEAD, confirmed=True).total.items == 10


def test_polls_under_the_wrong_clock_do_not_help_it_where_many_items_are_due(
    stocked: Pipeline, server: FeedServer
) -> None:
    body = rss(*(f"n{n}" for n in range(1_000)))
    stocked.register(server.route("127.0.0.9", "/feed", Answer(body=body)), "big")
    stocked.poll()
    for id in ("one", "two"):
        age(stocked, id, 0)
    stocked.database.query("UPDATE items SET arrived = NULL")
    let_visited(stocked, stocked.clock() + AHEAD)
    with pytest.raises(CleanRefused, match="1,010 of 1,040 items"):
        cleaned(stocked, now=stocked.clock() + AHEAD)
    assert len(stocked.guids("big")) == 1_000


def test_polls_under_the_wrong_clock_do_not_help_it_in_a_small_store(
    stocked: Pipeline, server: FeedServer
) -> None:
    """Neither at once, nor when they brought as much as there was, nor in small steps."""
    for id in ("one", "two"):
        age(stocked, id, 0)
    stocked.database.query("UPDATE items SET arrived = NULL")
    stocked.database.query("UPDATE feeds SET keep_days = NULL")
    before = stocked.rows("SELECT id FROM items ORDER BY id")
    stocked.clock.turn(seconds=AHEAD.total_seconds())
    let_visited(stocked, stocked.clock(), days=1)
    with pytest.raises(CleanRefused, match=r"40 of 40 items .*more than half.*rss-pipeline clean --yes"):
        cleaned(stocked)
    body = rss(*(f"n{n}" for n in range(50)))
    stocked.register(server.route("127.0.0.9", "/feed", Answer(body=body)), "more")
    stocked.poll("more")
    with pytest.raises(CleanRefused, match="no feed was visited from"):
        cleaned(stocked)
    assert [row["id"] for row in before] == [
        row["id"] for row in stocked.rows("SELECT id FROM items WHERE feed_id <> 'more' ORDER BY id")
    ]
    let_visited(stocked, stocked.clock(), days=28)
    age(stocked, "more", 181, *(f"n{n}" for n in range(20)))
    stocked.database.query("UPDATE feeds SET keep_days = 100000 WHERE id <> 'more'")
    assert cleaned(stocked).total.items == 20
    age(stocked, "more", 181)
    stocked.clock.turn(seconds=23 * 3_600)
    with pytest.raises(CleanRefused, match=r"30 of 70 items .*and 20 were removed in the last 24 hours"):
        cleaned(stocked)
    stocked.clock.turn(seconds=3_601)
    assert cleaned(stocked).total.items == 30, "a day later"


@pytest.mark.parametrize("is_right", [False, True])
def test_a_clock_that_steps_by_six_days_is_distinguished_from_a_machine_that_runs_once_a_week(
    pipeline: Pipeline, server: FeedServer, is_right: bool
) -> None:
    """By the dates of three publishers; a fourth one is always wrong, and proves nothing."""
    pipeline.set(keep_days=20)
    right = Clock()
    for n in range(1, 5):

        def answer(_: Request, n: int = n) -> Answer:
            now = right() - timedelta(days=40 if n == 4 else 0, seconds=n)
            return Answer(body=rss("a", "b"), headers={"Date": format_datetime(now, usegmt=True)})

        pipeline.register(server.route(f"127.{n}.0.1", "/feed", answer), f"feed{n}", keep="20d")
    add_rest(pipeline)
    for _ in range(4):
        pipeline.poll(all_feeds=True)
        # The real clock of the database is none of this test.
        pipeline.database.query("UPDATE items SET arrived = NULL")
        assert cleaned(pipeline).total.items == 0
        pipeline.clock.turn(days=6)
        right.turn(days=6 if is_right else 0)
    pipeline.poll(all_feeds=True)
    if is_right:
        assert cleaned(pipeline).total.items == 8
    else:
        with pytest.raises(CleanRefused, match="3 publishers or more say that it is 24 days earlier"):
            cleaned(pipeline)
        assert cleaned(pipeline, confirmed=True).total.items == 8


def test_what_a_slow_clock_collected_is_as_old_as_its_arrival(pipeline: Pipeline, server: FeedServer) -> None:
    """The machine woke up in 2019; the items before show what time it is at least."""
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "one")
    pipeline.poll()
    right = pipeline.clock()
    pipeline.clock.turn(days=-2_500)
    server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b", "c")))
    pipeline.poll("one")
    assert [row["created_at"][:4] for row in pipeline.items("one")] == ["2026", "2019", "2019"]
    pipeline.clock.now = right
    let_visited(pipeline, right)
    assert cleaned(pipeline).total.items == 0
    assert pipeline.guids("one") == ["a", "b", "c"]
