"""The values of a page that is read as a list: its entries, and how sure it is that they are one."""

import datetime as dt
from dataclasses import dataclass
from typing import Literal


def is_selectors(settings: str) -> bool:
    """True if the text of the key `page` is that of selectors."""
    return settings.startswith("{")


Verdict = Literal["certain", "ask", "none"]
"""`certain`: this is the page's list. `ask`: a candidate, for a person to confirm. `none`: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a page's list; what the page does not show is None."""

    link: str | None
    """Absolute, as the page has it. Only one that selectors find may have none."""
    title: str | None = None
    date: dt.date | None = None
    text: str | None = None
    image: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Another list of a page, or another link of the entries of its best list."""

    name: str
    """The mark of the list: the same when the page is requested again."""
    is_link: bool
    """True for another link of the same entries."""
    entries: tuple[Entry, ...]
    structure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """The list that a page has, if it has one."""

    verdict: Verdict
    entries: tuple[Entry, ...] = ()
    """In the order of the page; those of the candidate if the verdict is `ask`, none if it is `none`."""
    score: float = 0.0
    """The higher, the more it looks like entries."""
    evidence: tuple[str, ...] = ()
    """Sentences on what was seen, for people."""
    structure: str = ""
    """The mark of the elements around its entries."""
    item: str = ""
    """CSS that selects the entries' elements."""
    title: str = ""
    """The page's own."""
    feeds: tuple[str, ...] = ()
    """The feeds that the page names: each is better than what is read of the page."""
