"""The spool: a folder of one run for bodies and parsed rows, which are too large for memory."""

from dataclasses import dataclass, field
from pathlib import Path

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import InfrastructureError, file_error
from rss_pipeline.held_folders import HeldFolder
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore


class Spool:
    """A folder below `root`, made at its first use and removed with the run."""

    def __init__(self, root: Path, *, run_id: str) -> None:
        self._root = root
        self._run_id = run_id
        self._held: HeldFolder | None = None

    @property
    def folder(self) -> Path:
        """The existing folder. Raises InfrastructureError if it cannot be made."""
        if self._held is None:
            try:
                self._held = HeldFolder(self._root, prefix=f"{self._run_id[:8]}-")
            except OSError as error:
                raise InfrastructureError(
                    file_error(f"the spool folder {self._root} cannot be used", error, self._root)
                ) from error
        return self._held.path

    def remove(self) -> None:
        """Remove the folder with all files in it."""
        if self._held is not None:
            self._held.remove()


# The context of one run: its settings, its stores, its clock and its progress.
#
# It holds no state. What a run opens and has to close is session.py's.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Settings, stores, clock and progress of one run."""

    settings: Settings
    database: Database
    objects: ObjectStore
    run_id: str
    clock: Clock
    progress: Progress = field(default_factory=NoProgress)
