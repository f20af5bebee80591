"""A feed of an OPML list, read or to be written. Values only."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OpmlFeed:
    """One outline with an `xmlUrl`."""

    url: str
    same_as: str = ""
    """The same for two forms of one URL, as in feeds.yaml; set where it was read."""
    title: str | None = None
    folder: str | None = None
    """The texts of the outlines around it, joined by `/`."""
    html_url: str | None = None
    line: int = 0
    """In the file that it was read from, from 1."""
