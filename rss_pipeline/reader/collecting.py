"""The hindrances that pages and the JSON API show, so that they promise no visit that does not come."""

import threading
import time
from collections.abc import Callable, Sequence

from rss_pipeline.pipeline.hindrances import Hindrance, of_machine, of_polls
from rss_pipeline.reader.query import Query
from rss_pipeline.settings import Settings
from rss_pipeline.storage import installation
from rss_pipeline.storage.installation import PollTrouble
from rss_pipeline.web import healthz

__all__ = ["Collecting", "Hindrance", "PollTrouble", "poll_trouble"]

LOOK_SECONDS = 10.0
"""A look at the machine is good for so long."""
MISSING_SECONDS = 45.0
"""A process of `up` that is started again is back by then."""


def poll_trouble() -> Query[PollTrouble | None]:
    """The hindrance that the last poll met."""
    return Query.of(installation.poll_trouble(), installation.poll_trouble_of)


class Collecting:
    """The looks of one reader. Safe to call from several threads."""

    def __init__(self, settings: Settings, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._seconds = seconds
        self._lock = threading.Lock()
        self._looked_at: float | None = None
        self._found: tuple[Hindrance, ...] = ()

    @property
    def is_stale(self) -> bool:
        """True where `hindrances` would look at the machine, which reads files."""
        return self._looked_at is None or self._seconds() - self._looked_at > LOOK_SECONDS

    def hindrances(self, trouble: PollTrouble | None) -> Sequence[Hindrance]:
        """The hindrances of now, that of the last poll among them; none where all is well."""
        with self._lock:
            if self.is_stale:
                self._found = tuple(of_machine(self._settings))
                self._looked_at = self._seconds()
        # The servers of `up` see its processes. A reader alone may be beside a daemon on another machine.
        missing, since = healthz.missing()
        is_out = missing and since > MISSING_SECONDS
        ours = [Hindrance(kind="not_running")] if is_out else []
        return [*ours, *self._found, *of_polls(trouble)]
