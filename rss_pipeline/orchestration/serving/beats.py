"""Beats: moments at which the waits of all processes of `up` end.

A processor at rest takes longer to wake than most looks take, so it wakes for all of them at once. Beats are
those of the system's monotonic clock, which all processes have in common.
"""

import math
import threading
import time

BEAT = 0.5
"""Seconds between two beats."""
_JUST = 0.01
"""Seconds behind a beat that count as on it."""


def until_beat(seconds: float = 0.0, *, every: float = BEAT, now: float | None = None) -> float:
    """Return the time from now to the first beat that is at least so many seconds away. Beats are `every`
    seconds apart; a shorter wait ends on the next one."""
    now = time.monotonic() if now is None else now
    beat = math.floor(now / every) + 1 if seconds < every else math.ceil((now + seconds - _JUST) / every)
    return beat * every - now


class OnBeats:
    """An event whose waits end on a beat, unless it is set before."""

    def __init__(self, event: threading.Event, *, every: float = BEAT) -> None:
        self._event, self._every = event, every

    def wait(self, timeout: float) -> bool:
        """Wait as `threading.Event` does."""
        return self._event.wait(until_beat(timeout, every=self._every))
