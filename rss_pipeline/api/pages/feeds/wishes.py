"""A user's wishes for a subscription, as the forms have them: own title, folder, interval."""

from collections.abc import Mapping
from dataclasses import dataclass

from rss_pipeline.api.fields import (
    LONGEST_INTERVAL,
    MAX_FOLDER_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    SHORTEST_INTERVAL,
)
from rss_pipeline.storage.refresh.refresh_requests import Wishes

INTERVALS: Mapping[int, str] = {
    900: "every 15 minutes",
    1_800: "every 30 minutes",
    3_600: "every hour",
    7_200: "every 2 hours",
    14_400: "every 4 hours",
    28_800: "every 8 hours",
    43_200: "every 12 hours",
    86_400: "once a day",
}
"""Seconds between visits that the forms offer. Programs may wish others."""


@dataclass(frozen=True, slots=True)
class FormMistake:
    """A value of a form that cannot be used; the sentence is for the user."""

    message: str


def read_wishes(fields: Mapping[str, str]) -> Wishes | FormMistake:
    """The wishes of the fields `title`, `folder` and `interval`; one that is empty is none."""
    title, folder = (fields.get(name, "").strip() or None for name in ("title", "folder"))
    if title is not None and len(title) > MAX_TITLE_CHARACTERS:
        return FormMistake(f"The title has more than {MAX_TITLE_CHARACTERS} characters.")
    if folder is not None and len(folder) > MAX_FOLDER_CHARACTERS:
        return FormMistake(f"The name of the folder has more than {MAX_FOLDER_CHARACTERS} characters.")
    text = fields.get("interval", "")
    interval = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
    if text and (interval is None or not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL):
        return FormMistake("The interval is between 15 minutes and a day.")
    return Wishes(title=title, folder=folder, wished_interval=interval)


def offered_intervals(chosen: int | None) -> Mapping[int, str]:
    """The intervals to choose from, the chosen one among them."""
    if chosen is None or chosen in INTERVALS:
        return INTERVALS
    return dict(sorted({**INTERVALS, chosen: f"every {chosen // 60} minutes"}.items()))
