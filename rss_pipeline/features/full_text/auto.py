"""The decision whether a feed is truncated, by some of its items and the pages behind them. Pure."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

COMPARED = 5
"""Items that are compared."""
_LEAST = 3
"""The pages with an article among them without which nothing is decided."""
_TIMES, _MORE = 1.5, 300
"""A page has more than its item where its text is so many times as long, and so many characters longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """An item and its page: characters of both texts; None for a page without an article."""

    own: int
    page: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision and its figures."""

    is_truncated: bool
    compared: int
    """Items with an article on their page."""
    longer: int
    """The ones among them with more text on the page."""
    own_characters: int
    """The median."""
    page_characters: int

    @property
    def sentence(self) -> str:
        """The decision for people."""
        what = "is truncated: articles are fetched" if self.is_truncated else "has whole texts"
        return (
            f"the feed {what} ({self.longer} of {self.compared} pages have more; {self.own_characters:,}"
            f" characters in the feed, {self.page_characters:,} on the page)"
        )

    def as_text(self) -> str:
        """The decision as JSON."""
        return json.dumps(asdict(self))


def read_decision(text: str | None) -> Decision | None:
    """The decision that is stored."""
    return None if text is None else Decision(**json.loads(text))


def is_longer(own: int, page: int) -> bool:
    """True if a page with so many characters has more to read than an item with so many."""
    return page >= own * _TIMES and page >= own + _MORE


def decide(items: Sequence[Compared]) -> Decision | None:
    """The decision by five items; None while there are too few, or too few pages with an article."""
    known = [(each.own, each.page) for each in items[:COMPARED] if each.page is not None]
    if len(items) < COMPARED or len(known) < _LEAST:
        return None
    longer = sum(is_longer(own, page) for own, page in known)
    return Decision(
        is_truncated=longer * 2 > len(known),
        compared=len(known),
        longer=longer,
        own_characters=sorted(own for own, _ in known)[len(known) // 2],
        page_characters=sorted(page for _, page in known)[len(known) // 2],
    )
