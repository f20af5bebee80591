"""Waits that end together, and Dagster's daemons that wait so."""

import threading
import time
from collections.abc import Generator
from typing import Any, cast

import pytest

from rss_pipeline.orchestration.dagster_private import IntervalDaemon
from rss_pipeline.orchestration.serving.beats import OnBeats, until_beat
from rss_pipeline.orchestration.serving.daemon import on_beats
from rss_pipeline_tests.support.waiting import soon


@pytest.mark.parametrize(
    ("seconds", "now", "end"),
    [
        pytest.param(0.0, 10.0, 10.5, id="the next one, not this one"),
        pytest.param(0.0, 10.499, 10.5, id="the next one, however near"),
        pytest.param(0.5, 10.003, 10.5, id="from just behind a beat, one beat"),
        pytest.param(5.0, 10.003, 15.0, id="from just behind a beat, ten beats"),
        pytest.param(0.5, 10.2, 11.0, id="not sooner than it is to be"),
        pytest.param(37.3, 10.2, 47.5, id="and hardly later"),
    ],
)
def test_a_wait_ends_on_a_beat(seconds: float, now: float, end: float) -> None:
    assert now + until_beat(seconds, now=now) == pytest.approx(end)


def test_a_wait_of_less_than_a_beat_ends_on_the_next_one() -> None:
    assert 10.2 + until_beat(0.5, every=2.0, now=10.2) == pytest.approx(12.0)
    assert 11.9 + until_beat(0.5, every=2.0, now=11.9) == pytest.approx(12.0)


def test_an_event_ends_a_wait_at_once() -> None:
    event = threading.Event()
    event.set()
    assert OnBeats(event, every=10_000).wait(20_000)


LATE = 0.05


class _Waits(threading.Event):
    """An event that is never set; a list of the moments until which it was waited for, all of which go by.

    Every other wait ends late, as on a busy machine.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        seconds = cast("float", timeout)
        self.ends.append(time.monotonic() + seconds)
        return super().wait(seconds + (LATE if len(self.ends) % 2 else 0))


class _Daemon(IntervalDaemon[Any]):
    iterations = 0

    @classmethod
    def daemon_type(cls) -> str:
        return "OF_AN_INTERVAL"

    def run_iteration(self, workspace_process_context: Any) -> Generator[None, None, None]:
        self.iterations += 1
        # What takes a moment is not over sooner.
        threading.Event().wait(LATE)
        yield None


@pytest.mark.parametrize(("seconds", "every"), [(2, 2.0), (0, 0.5)])
def test_a_daemon_of_an_interval_wakes_once_for_each(seconds: int, every: float) -> None:
    """Dagster's looks at the time twice a second, whatever the interval is, or all the time where it is 0."""

    def wakes_once() -> bool:
        """A machine that stops for half of an interval leaves a wait out: then it is tried again."""
        daemon = _Daemon(interval_seconds=seconds)
        [same] = on_beats([daemon])
        waits = _Waits()
        loop = same.core_loop(cast("Any", None), waits)
        while daemon.iterations < 4:
            next(loop)
        # The first wait begins between two beats, and may be over before half of the interval is.
        return 3 <= len(waits.ends) <= 4 and all(end % every < every / 3 for end in waits.ends)

    soon(wakes_once, seconds=30)
