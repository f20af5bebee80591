"""The context of one run: its settings, its stores, its clock and its progress.

It holds no state. What a run opens and has to close is session.py's.
"""

from dataclasses import dataclass, field

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Settings, stores, clock and progress of one run."""

    settings: Settings
    database: Database
    objects: ObjectStore
    run_id: str
    clock: Clock
    progress: Progress = field(default_factory=NoProgress)
