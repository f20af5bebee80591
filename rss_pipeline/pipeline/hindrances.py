"""Hindrances: all that keeps feeds from being visited now, as far as this installation knows. The reader's
pages, its JSON API and `doctor` have them from here.

What a poll met is a note in the database (storage/installation.py), written by the poll. The rest is looked
at here: the disk, and what is switched off in Dagster's UI. The sentences are for all who read: they name no
address and no folder. The log of `up` and `doctor` have the details.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from rss_pipeline.errors import InfrastructureError, ensure_room
from rss_pipeline.pipeline.dagster_tables import switched_off
from rss_pipeline.settings import Settings
from rss_pipeline.storage.installation import PollTrouble

POLLING = "poll_feeds_when_due"
"""The sensor that starts polls."""
DOWNLOADING = ("download_images_when_waiting", "retry_images")
"""The sensor and the schedule that start downloads of images."""

Kind = Literal["offline", "objects", "disk_full", "polls_off", "not_running"]

SENTENCES: dict[Kind, str] = {
    "offline": "No feed could be reached: the server seems to be offline. It tries again every few minutes.",
    "objects": "The server cannot use its store of documents, so no feed is visited. It tries again every few"
    " minutes; whoever runs it finds the reason with `rss-pipeline doctor`.",
    "disk_full": "The disk of the server is full, so no feed is visited. Whoever runs it has to make room.",
    "polls_off": f"Polls are switched off in Dagster's UI (`{POLLING}` on the page Automation), so no feed is"
    " visited by itself.",
    "not_running": "The part of the server that visits feeds is not running. Whoever runs it starts it with"
    " `rss-pipeline up`; its log says why it ended.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindrance:
    """One thing that keeps feeds from being visited."""

    kind: Kind
    since: datetime | None = None
    """None where that is not known."""

    @property
    def text(self) -> str:
        return SENTENCES[self.kind]


def of_machine(settings: Settings) -> Iterator[Hindrance]:
    """Hindrances that are seen without our database."""
    try:
        ensure_room(settings.home, settings.dagster_home)
    except InfrastructureError:
        yield Hindrance(kind="disk_full")
    # A poll ends before it has a session, and can note nothing.
    if any(map(_is_unusable, _folders(settings))):
        yield Hindrance(kind="objects")
    if POLLING in switched_off(settings):
        yield Hindrance(kind="polls_off")


def _folders(settings: Settings) -> list[Path]:
    folder = settings.objects.folder
    return [] if folder is None else [folder, folder / ".incoming"]


def _is_unusable(folder: Path) -> bool:
    return os.path.lexists(folder) and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK))


def of_polls(trouble: PollTrouble | None) -> Iterator[Hindrance]:
    """The hindrance that the last poll met."""
    if trouble is not None:
        yield Hindrance(kind=trouble.kind, since=trouble.since)
