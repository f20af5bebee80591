"""Sensors after the clock was put back: Dagster starts none until the time of its last tick has come again.

That feeds are due again is storage.feeds.claimable's.
https://docs.dagster.io/guides/automate/sensors
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

import dagster as dg

from rss_pipeline.orchestration.dagster_private import InstigatorType, SensorInstigatorData

LATE = timedelta(minutes=1)
PUT_BACK_SECONDS = 60.0


class WallClock:
    """The machine's clock beside one that cannot be set: shows when it was put back."""

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._ahead = wall() - steady()

    def was_put_back(self) -> bool:
        """True if it was put back by more than `PUT_BACK_SECONDS` since the last call."""
        ahead = self._wall() - self._steady()
        before, self._ahead = self._ahead, ahead
        return ahead < before - PUT_BACK_SECONDS


def heal_ticks(instance: dg.DagsterInstance, *, now: datetime) -> int:
    """Let the last tick of each sensor that has one in the future be now; return their number.

    A daemon that is running reads it at its next look, within seconds.
    """
    healed = 0
    for state in instance.all_instigator_state(instigator_type=InstigatorType.SENSOR):
        data = state.instigator_data
        if not isinstance(data, SensorInstigatorData):
            continue
        last = max(data.last_tick_timestamp or 0.0, data.last_tick_start_timestamp or 0.0)
        if last > (now + LATE).timestamp():
            ticked = data._replace(
                last_tick_timestamp=now.timestamp(), last_tick_start_timestamp=now.timestamp()
            )
            instance.update_instigator_state(state.with_data(ticked))
            healed += 1
    return healed
