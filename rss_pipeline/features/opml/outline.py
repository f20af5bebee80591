"""A feed of an OPML list, read or to be written, and the names of its folders. Values only.

A folder is the names of the outlines around a feed, joined by `/`. A slash within a name, as in "AC/DC",
would be another folder: it is kept as U+2215, which looks the same.
"""

from dataclasses import dataclass

_SLASH = "\u2215"


def as_folder(name: str) -> str:
    """The name of one outline as a part of a folder."""
    return name.replace("/", _SLASH)


def as_name(part: str) -> str:
    """The inverse of `as_folder`."""
    return part.replace(_SLASH, "/")


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
