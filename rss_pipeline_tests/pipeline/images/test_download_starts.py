"""The decisions to start a download of images: what has to wait, for how long, and beside which runs."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from rss_pipeline.pipeline.triggers.runs import JobRun, Start
from rss_pipeline.pipeline.triggers.starts import decide_fresh, decide_retries, most_at_once
from rss_pipeline.storage.images.image_claims import ImagesDue
from rss_pipeline_tests.support.pipeline import NOON


def due(
    fresh: int = 0, retries: int = 0, *, requested: int = 0, waited: int = 0, live: tuple[str, ...] = ()
) -> ImagesDue:
    oldest = datetime.fromtimestamp(NOON.timestamp() - 60 * waited, UTC).isoformat() if fresh else None
    return ImagesDue(
        fresh=fresh, retries=retries, requested=requested, oldest_fresh_at=oldest, live_run_ids=live
    )


RUNNING = [JobRun(run_id="r" * 8, state="running", started_at=datetime(2026, 3, 2, 11, 0, tzinfo=UTC))]


@pytest.mark.parametrize(
    ("decide", "waiting", "runs", "starts"),
    [
        (decide_fresh, due(), [], False),
        (decide_fresh, due(1, waited=1), [], False),
        (decide_fresh, due(1, waited=2), [], True),
        (decide_fresh, due(100), [], True),
        (decide_fresh, due(100), [JobRun(run_id="q", state="waiting")], False),
        (decide_fresh, due(100), RUNNING, True),
        (decide_fresh, due(100, live=("r" * 8,)), RUNNING, False),
        (decide_fresh, due(0, 5), [], False),
        # A user waits.
        (decide_fresh, due(1, requested=1, waited=0), [], True),
        (decide_fresh, due(0, 2, requested=1), [], True),
        (decide_fresh, due(1, requested=1, live=("r" * 8,)), RUNNING, False),
        (decide_fresh, due(1, requested=1), [JobRun(run_id="f", state="failed", ended_at=NOON)], False),
        (decide_retries, due(5, waited=9), [], False),
        (decide_retries, due(0, 1), [], True),
        (decide_retries, due(0, 1, live=("r" * 8,)), RUNNING, False),
        (
            decide_retries,
            due(0, 1),
            [JobRun(run_id="f", state="failed", ended_at=NOON)],
            False,
        ),
    ],
)
def test_when_a_download_starts(
    decide: Callable[..., object], waiting: ImagesDue, runs: list[JobRun], starts: bool
) -> None:
    assert isinstance(decide(waiting, runs, now=NOON), Start) is starts


def running(*ids: str) -> list[JobRun]:
    return [
        JobRun(run_id=id, state="running", started_at=datetime(2026, 3, 2, 11, 0, tzinfo=UTC)) for id in ids
    ]


@pytest.mark.parametrize(
    ("waiting", "runs", "starts"),
    [
        (due(100, live=("a",)), running("a"), True),
        (due(99, waited=9, live=("a",)), running("a"), False),
        (due(100, live=("a", "b")), running("b", "a"), False),
        (due(100, live=("a",)), running("dead", "a"), True),
        (due(100, live=("a",)), [JobRun(run_id="q", state="waiting"), *running("a")], False),
        (due(100, live=("a",)), [*running("a"), JobRun(run_id="f", state="failed", ended_at=NOON)], False),
    ],
    ids=["a second", "few wait", "two run", "one of them is dead", "one is about to", "after a failure"],
)
def test_a_second_download_starts_beside_the_first_where_many_wait_and_two_may_run(
    waiting: ImagesDue, runs: list[JobRun], starts: bool
) -> None:
    assert isinstance(decide_fresh(waiting, runs, now=NOON, at_once=2), Start) is starts


def test_downloads_at_once_are_a_quarter_of_the_shards() -> None:
    found = [most_at_once(shards) for shards in (1, 4, 7, 8, 16, 64, 1024)]
    assert found == [1, 1, 1, 2, 4, 8, 8]
