"""The result of a clean."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import islice

from rss_pipeline.storage.database import Room

REFUSALS_KEPT = 100


@dataclass(slots=True, kw_only=True)
class Removed:
    """Rows, and objects with their bytes, that were removed of one feed, or would be."""

    items: int = 0
    item_versions: int = 0
    image_tasks: int = 0
    images: int = 0
    image_bytes: int = 0
    backups: int = 0
    backup_bytes: int = 0


@dataclass(slots=True, kw_only=True)
class CleanResult:
    """The result of a clean. In a dry run the result that it would have; nothing was written."""

    dry_run: bool
    by_feed: dict[str, Removed] = field(default_factory=dict)
    feeds: int = 0
    """Unused feeds that were removed, with what `by_feed` has of them."""
    backups_renewed: int = 0
    """Put again under their keys, so that they do not age out."""
    backups_through: str | None = None
    """The last key that was looked at; None where that was the last of all."""
    users_backed_up: int = 0
    """Users with a new backup of their state: it had changed, or the backup was old."""
    leftovers: int = 0
    """Half-written files, and folders for documents, of killed processes."""
    backups_waiting: int = 0
    """Past their time, by a clock that may have jumped."""
    items_waiting: int = 0
    """Past their time, but a run is downloading their images."""
    items_left: int = 0
    """Past their time, but not reached."""
    was_full: bool = False
    """The database had no room for a row."""
    refused: int = 0
    """Keys that the object store did not delete or copy."""
    refusals: dict[str, str] = field(default_factory=dict)
    """The first of them, with the store's reason."""
    out_of_time: bool = False
    room: Room | None = None
    """The room of a database that is a file of this machine, afterwards."""
    refusal: str | None = None
    """Why a clean that is not confirmed removes nothing; only a dry run has a result then."""

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
        """Something due is left; the next clean removes it."""
        return self.out_of_time or bool(self.items_waiting or self.refused)

    def figures(self) -> dict[str, int | bool]:
        """Its numbers, by name."""
        return {
            "dry_run": self.dry_run,
            "unfinished": self.is_unfinished,
            # Of installations with readers only.
            **({"feeds_removed": self.feeds} if self.feeds else {}),
            **{f"{name}_removed": number for name, number in asdict(self.total).items()},
            "backups_renewed": self.backups_renewed,
            "users_backed_up": self.users_backed_up,
            **({"backups_waiting": self.backups_waiting} if self.backups_waiting else {}),
            "leftovers_removed": self.leftovers,
            "items_waiting": self.items_waiting,
            "items_left": self.items_left,
            "keys_refused": self.refused,
        }

    def of(self, feed_id: str) -> Removed:
        """The feed's line."""
        return self.by_feed.setdefault(feed_id, Removed())

    def refuse(self, refused: Mapping[str, str]) -> None:
        """Note keys that the store refused to delete or copy."""
        self.refused += len(refused)
        room = max(REFUSALS_KEPT - len(self.refusals), 0)
        self.refusals |= dict(islice(refused.items(), room))
