"""The result of a purge of Dagster's history, as numbers. No Dagster is imported."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Freed:
    """The removed files, their bytes, and the removed rows of events."""

    files: int = 0
    bytes: int = 0
    events: int = 0


@dataclass(slots=True, kw_only=True)
class Purged:
    """The result of a purge; of a dry run what it would have removed."""

    dry_run: bool
    runs: int = 0
    events: int = 0
    """Rows of the log that all runs share; the rows in a run's own file are removed with the file."""
    files: int = 0
    bytes: int = 0
    backfills: int = 0
    ticks: int = 0
    orphans: int = 0
    """Runs that were deleted before, with files that stayed."""
    heartbeats: int = 0
    """Feeds recorded again, because their newest materialization is removed, or was lost."""
    runs_kept: int = 0
    """Old runs that are kept, because they hold the newest materialization of something."""
    runs_left: int = 0
    """Old runs that were not reached in time."""

    @property
    def is_unfinished(self) -> bool:
        """True with old runs left; the next purge continues."""
        return self.runs_left > 0

    def add(self, freed: Freed) -> None:
        """Add what was removed."""
        self.files += freed.files
        self.bytes += freed.bytes
        self.events += freed.events

    def figures(self) -> dict[str, int | bool]:
        """The numbers, by name."""
        removed = ("runs", "events", "files", "bytes", "backfills", "ticks", "orphans")
        numbers = asdict(self)
        return {
            "dry_run": self.dry_run,
            "unfinished": self.is_unfinished,
            **{f"{name}_removed": numbers[name] for name in removed},
            "heartbeats": self.heartbeats,
            "runs_kept": self.runs_kept,
            "runs_left": self.runs_left,
        }
