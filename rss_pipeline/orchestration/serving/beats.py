"""Beats: moments at which the waits of all processes of `up` end.

A processor at rest takes longer to wake than most looks take, so it wakes for all of them at once. Beats are
those of the system's monotonic clock, which all processes have in common.
"""

import math
import threading
import time

BEAT = 0.5
"""Seconds between two beats."""
JUST = 0.01
"""Seconds behind a beat that count as on it."""


def until_beat(seconds: float = 0.0, *, every: float = BEAT, now: float | None = None) -> float:
    """Seconds to the first beat that is as far away as that, of beats so many seconds apart; to the next one
    if they are farther apart than that."""
    now = time.monotonic() if now is None else now
    beat = math.floor(now / every) + 1 if seconds < every else math.ceil((now + seconds - JUST) / every)
    return beat * every - now


class OnBeats:
    """An event, waits for which end on a beat where nothing sets it before."""

    def __init__(self, event: threading.Event, *, every: float = BEAT) -> None:
        self._event, self._every = event, every

    def wait(self, timeout: float) -> bool:
        """Wait as `threading.Event` does."""
        return self._event.wait(until_beat(timeout, every=self._every))
