"""A fleet to simulate: its feeds, machines and settings, and the deaths it is to see."""

import math
from dataclasses import MISSING, dataclass, field, fields

from rss_pipeline.pipeline.triggers.runs import STARTING_GRACE
from rss_pipeline.pipeline.triggers.starts import MANY_DUE, POLL_PATIENCE, look_seconds
from rss_pipeline.pipeline.visits.claim import SUSPECTS_SECONDS
from rss_pipeline.pipeline.visits.poll import ROUND_SECONDS
from rss_pipeline.settings import Settings
from rss_pipeline.storage.feeds.claims import PER_HOST
from rss_pipeline_tests.simulation.costs import Costs, World

MINUTE, HOUR = 60.0, 3600.0
_BEFORE_AND_AFTER = 20.0
"""Seconds of a run without requests, and of its start."""


def _default(name: str) -> float:
    [found] = [each.default for each in fields(Settings) if each.name == name]
    if found is MISSING or not isinstance(found, int | float):
        raise TypeError(f"{name} has no number as its default")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One simulation. Times are in seconds."""

    feeds: int
    hosts: str = "lists"
    """`lists`, `smallweb`, or a number of equal hosts (hosts.py)."""
    interval: float = 30 * MINUTE
    spread: float = 0.03
    """The share of the interval, up or down: SPREAD_PER_CENT of collector.schedule.next_visit."""
    shards: int = 1
    workers: int = 1
    runs: int = 2
    """At once on each worker."""
    cores: float = 2
    """The lag of each worker."""
    one_machine: bool = False
    """All workers share `cores`, with Postgres."""
    batch_size: int = int(_default("batch_size"))
    concurrency: int = int(_default("fetch_concurrency"))
    host_delay: float = _default("host_delay_seconds")
    lease_seconds: float = _default("lease_seconds")
    per_host: int = PER_HOST
    round_seconds: float = ROUND_SECONDS
    patience: float = POLL_PATIENCE.total_seconds()
    many_due: int = MANY_DUE
    starting_grace: float = STARTING_GRACE.total_seconds()
    suspects_seconds: float = SUSPECTS_SECONDS
    tick: float | None = None
    """Between two looks of the sensor; None: as in the code."""
    all_due: bool = False
    """All feeds are new and due when it begins; it ends when each was visited. Else they are spread."""
    every_document_new: bool = False
    registry: int = 0
    """Feeds in the workers' feeds.yaml, which each run reads. They need none."""
    hours: float = 5.0
    warm_up: float = 0.5 * HOUR
    """Before figures count."""
    dying: float = 0.0
    """The share of workers that are killed at `dies_at`, to come back at `back_at`."""
    dies_at: float = 2 * HOUR
    back_at: float = 3 * HOUR
    seed: int = 1
    costs: Costs = field(default_factory=Costs)
    world: World = field(default_factory=World)

    @property
    def look_every(self) -> float:
        """Between two looks of the sensor."""
        return look_seconds(self.shards) if self.tick is None else self.tick

    @property
    def crowd(self) -> float:
        """The most feeds of a host that are visited in an interval: each needs its answer and the delay, and
        a run with `per_host` of them is followed by the next one after a look of the sensor.
        """
        each = self.host_delay + self.world.mean_response
        lasts = min(each * self.per_host, self.round_seconds) + _BEFORE_AND_AFTER
        return self.interval * self.per_host / (math.ceil(lasts / self.look_every) * self.look_every)
