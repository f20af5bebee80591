"""The start of a poll, case by case."""

from datetime import UTC, datetime, time, timedelta

import pytest

from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, backoff
from rss_pipeline.pipeline.triggers.starts import decide, decide_sweep
from rss_pipeline.storage.feeds.due import DueSummary
from rss_pipeline_tests.support.pipeline import NOON, Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def ago(**time: float) -> datetime:
    return NOON - timedelta(**time)


def due(count: int = 1, *, never: int = 0, minutes: float = 0, live: tuple[str, ...] = ()) -> DueSummary:
    oldest = None if count == 0 else ago(minutes=minutes).strftime("%Y-%m-%dT%H:%M:%SZ")
    return DueSummary(due=count, never_fetched=never, oldest_due_at=oldest, live_run_ids=live)


def run(state: str, *, started: float | None = None, ended: float | None = None, id: str = "r") -> JobRun:
    """A run that started and ended so many minutes ago."""
    return JobRun(
        run_id=id * 12,
        state=state,
        started_at=None if started is None else ago(minutes=started),
        ended_at=None if ended is None else ago(minutes=ended),
    )


LIVE = ("r" * 12,)

DECISIONS: dict[str, tuple[DueSummary, list[JobRun], type, str]] = {
    "nothing is due": (due(0), [], Wait, "No feed is due."),
    "nothing is due, though runs failed": (due(0), [run("failed", ended=0)], Wait, "No feed is due."),
    "a feed is new": (due(1, never=1), [], Start, "1 feeds were never visited."),
    "one is due, not for long": (due(1, minutes=3.9), [], Wait, "none for 4 minutes yet"),
    "one is due for four minutes": (due(3, minutes=4), [], Start, "3 feeds are due, the oldest since 11:56"),
    "99 are due at once": (due(99), [], Wait, "99 feeds are due, none for 4 minutes yet"),
    "100 are due at once": (due(100), [], Start, "100 feeds or more are due."),
    "a run waits in the queue": (due(100), [run("waiting")], Wait, "Run rrrrrrrr is about to start."),
    "a run has just started": (
        due(100),
        [run("running", started=2.9)],
        Wait,
        "Run rrrrrrrr is still running.",
    ),
    "a run is in progress": (
        due(100, live=LIVE),
        [run("running", started=50)],
        Wait,
        "Run rrrrrrrr is still running.",
    ),
    "a run of a clock that was put back died": (
        due(100),
        [run("running", started=-1_200)],
        Start,
        "100 feeds",
    ),
    "a store failed before the clock was put back": (
        due(100),
        [run("failed", ended=-1_200)],
        Start,
        "100 feeds or more",
    ),
    "a run died with its lease": (due(100), [run("running", started=3)], Start, "100 feeds or more"),
    "another run's lease is not this run's": (
        due(100, live=("backfill",)),
        [run("running", started=3)],
        Start,
        "100 feeds or more",
    ),
    "behind a dead run one is alive": (
        due(100, live=LIVE),
        [run("running", started=5, id="x"), run("running", started=9)],
        Wait,
        "Run rrrrrrrr is still running.",
    ),
    "a poll failed, and a feed is new": (
        due(1, never=1),
        [run("failed", ended=0.5)],
        Wait,
        "The last 1 runs failed because a store or our network did not work;"
        " the next run starts at 12:00:30 UTC.",
    ),
    "a poll failed a minute ago": (due(1, never=1), [run("failed", ended=1)], Start, "never visited"),
    "two failed, the last a minute ago": (
        due(100),
        [run("failed", ended=1), run("failed", ended=5)],
        Wait,
        "The last 2 runs failed",
    ),
    "one failed, was mended": (
        due(100),
        [run("succeeded", ended=0.1), run("failed", ended=0.2)],
        Start,
        "100 feeds",
    ),
}


@pytest.mark.parametrize(("feeds", "runs", "kind", "reason"), DECISIONS.values(), ids=DECISIONS)
def test_a_poll_starts_when_it_is_worth_one_and_says_why_or_why_not(
    feeds: DueSummary, runs: list[JobRun], kind: type, reason: str
) -> None:
    decision = decide(feeds, runs, now=NOON)
    assert type(decision) is kind
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("runs", "live", "kind"),
    [
        ([], (), Start),
        ([run("succeeded", ended=3.9)], (), Wait),
        ([run("succeeded", ended=4)], (), Start),
        ([run("succeeded", ended=-1_200)], (), Start),
        ([run("failed", ended=0.2)], (), Wait),
        ([run("running", started=50)], LIVE, Wait),
    ],
)
def test_work_for_which_no_feed_is_due_starts_a_poll_as_often_as_a_feed(
    runs: list[JobRun], live: tuple[str, ...], kind: type
) -> None:
    assert type(decide(due(0, live=live), runs, now=NOON, has_work=True)) is kind


@pytest.mark.parametrize(
    ("states", "count", "minutes"),
    [
        ([], 0, None),
        (["succeeded"], 0, None),
        (["succeeded", "failed", "failed"], 0, None),
        (["canceled", "failed"], 1, 1),
        (["offline"] * 8, 0, None),
        (["offline", "failed"], 1, 1),
        (["running", "failed", "failed"], 2, 2),
        (["failed"], 1, 1),
        (["failed", "succeeded", "failed"], 1, 1),
        (["failed", "canceled", "failed"], 2, 2),
        (["failed"] * 3, 3, 4),
        (["failed"] * 4, 4, 8),
        (["failed"] * 5, 5, 16),
        (["failed"] * 6, 6, 30),
        (["failed"] * 2000, 2000, 30),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, list) else str(value),
)
def test_failed_polls_in_a_row_double_the_wait_from_a_minute_up_to_half_an_hour(
    states: list[str], count: int, minutes: int | None
) -> None:
    runs = [run(state, ended=n) for n, state in enumerate(states)]
    failed, until = backoff(runs)
    assert failed == count
    newest = next((r.ended_at for r in runs if r.state == "failed"), None)
    assert until == (None if minutes is None or newest is None else newest + timedelta(minutes=minutes))


def test_a_failed_run_without_an_end_does_not_hold_polling_up() -> None:
    assert backoff([run("failed")]) == (1, None)
    assert isinstance(decide(due(100), [run("failed")], now=NOON), Start)


@pytest.fixture
def feed(pipeline: Pipeline, server: FeedServer) -> str:
    id = pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed", interval="1h")
    pipeline.sync()
    return id


FIVE = time(5, 0)
TODAY, YESTERDAY = datetime(2026, 3, 2, 5, 0, 1, tzinfo=UTC), datetime(2026, 3, 1, 5, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "state", "starts"),
    [
        (None, "running", True),
        (YESTERDAY, "succeeded", True),
        (TODAY, "waiting", False),
        (TODAY, "running", False),
        (TODAY, "succeeded", False),
        (TODAY, "failed", True),
    ],
)
def test_all_feeds_are_visited_once_a_day_however_many_ticks_there_are(
    since: datetime | None, state: str, starts: bool
) -> None:
    """A daemon that was off for days makes up for each missed tick; other polls are no reason to wait."""
    runs = [run("succeeded"), JobRun(run_id="s" * 12, state=state, all_since=since)]
    decision = decide_sweep(runs, now=NOON, at=FIVE, timezone="UTC")
    assert isinstance(decision, Start) is starts, decision
    if isinstance(decision, Start):
        config = {"all": True, "not_visited_since": "2026-03-02T12:00:00Z"}
        assert decision.run_config == {"ops": {"claim": {"config": config}}}
