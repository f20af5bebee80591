"""What a clean came to, how long it may take and who hears of it: the values of cleaning.py."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import islice

REFUSALS_KEPT = 100


class Allowance:
    """How long a clean may take, in seconds; None is for as long as it takes."""

    def __init__(self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._began = clock()

    def is_spent(self, share: float = 1.0) -> bool:
        """Whether this share of the time is over."""
        return self._seconds is not None and self._clock() - self._began >= share * self._seconds


@dataclass(slots=True, kw_only=True)
class Removed:
    """What went of one feed, or would go: rows, and objects with their bytes."""

    items: int = 0
    item_versions: int = 0
    image_tasks: int = 0
    images: int = 0
    image_bytes: int = 0
    backups: int = 0
    backup_bytes: int = 0


@dataclass(slots=True, kw_only=True)
class CleanResult:
    """What a clean came to. In a dry run what it would have come to; nothing was written."""

    dry_run: bool
    by_feed: dict[str, Removed] = field(default_factory=dict)
    backups_renewed: int = 0
    """Put again, so that they do not age out."""
    leftovers: int = 0
    """Half-written files of killed processes."""
    items_waiting: int = 0
    """Past their time, but a run is at their images."""
    items_left: int = 0
    """Past their time, but not reached."""
    refused: int = 0
    """Keys that the object store did not delete or copy."""
    refusals: dict[str, str] = field(default_factory=dict)
    """The first of them, with the store's reason."""
    out_of_time: bool = False

    @property
    def total(self) -> Removed:
        """Over all feeds."""
        total = Removed()
        for removed in self.by_feed.values():
            for each in fields(Removed):
                setattr(total, each.name, getattr(total, each.name) + getattr(removed, each.name))
        return total

    @property
    def is_unfinished(self) -> bool:
        """Something due is still there; the next clean takes it up."""
        return self.out_of_time or bool(self.items_waiting or self.refused)

    def figures(self) -> dict[str, int | bool]:
        """Its numbers, by name."""
        return {
            "dry_run": self.dry_run,
            "unfinished": self.is_unfinished,
            **{f"{name}_removed": number for name, number in asdict(self.total).items()},
            "backups_renewed": self.backups_renewed,
            "leftovers_removed": self.leftovers,
            "items_waiting": self.items_waiting,
            "items_left": self.items_left,
            "keys_refused": self.refused,
        }

    def of(self, feed_id: str) -> Removed:
        """The feed's line."""
        return self.by_feed.setdefault(feed_id, Removed())

    def refuse(self, refused: Mapping[str, str]) -> None:
        """Note keys that the store would not touch."""
        self.refused += len(refused)
        room = max(REFUSALS_KEPT - len(self.refusals), 0)
        self.refusals |= dict(islice(refused.items(), room))
