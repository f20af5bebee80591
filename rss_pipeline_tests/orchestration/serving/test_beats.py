"""Waits that end together, and Dagster's daemons that wait so."""

import threading
from collections.abc import Generator
from typing import Any, cast

import pytest

from rss_pipeline.orchestration.dagster_private import IntervalDaemon
from rss_pipeline.orchestration.serving.beats import OnBeats, until_beat
from rss_pipeline.orchestration.serving.daemon import on_beats


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
    assert now + until_beat(seconds, every=0.5, now=now) == pytest.approx(end)


def test_a_wait_of_less_than_a_beat_ends_on_the_next_one() -> None:
    assert 10.2 + until_beat(0.5, every=2.0, now=10.2) == pytest.approx(12.0)
    assert 11.9 + until_beat(0.5, every=2.0, now=11.9) == pytest.approx(12.0)


def test_an_event_ends_a_wait_at_once() -> None:
    event = threading.Event()
    event.set()
    assert OnBeats(event, every=10_000).wait(20_000)


LATE = 0.1


class _Waits(threading.Event):
    """An event that is never set; a list of the seconds for which it was waited for, all of which go by.

    Every other wait ends late, as on a busy machine.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        seconds = cast("float", timeout)
        self.seconds.append(seconds)
        return super().wait(seconds + (LATE if len(self.seconds) % 2 else 0))


class _EachSecond(IntervalDaemon[Any]):
    def __init__(self) -> None:
        super().__init__(interval_seconds=1)
        self.iterations = 0

    @classmethod
    def daemon_type(cls) -> str:
        return "EACH_SECOND"

    def run_iteration(self, workspace_process_context: Any) -> Generator[None, None, None]:
        self.iterations += 1
        yield None


def test_a_daemon_of_an_interval_wakes_once_for_each() -> None:
    """Dagster's looks at the time twice a second, whatever the interval is."""
    daemon = _EachSecond()
    [same] = on_beats([daemon])
    waits = _Waits()
    loop = same.core_loop(cast("Any", None), waits)
    while daemon.iterations < 4:
        next(loop)
    # The first wait begins between two beats, and may be over before half of the interval is.
    assert len(waits.seconds) <= 4
    assert all(0 < seconds <= 1 for seconds in waits.seconds)
