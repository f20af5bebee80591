"""Items as stories take them, and what is decided about them. Pure values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item. Two entries with the same id are the same item."""

    id: str
    feed: str
    title: str
    text: str
    """Plain text, without markup."""
    link: str | None = None
    time: float | None = None
    """Seconds since 1970 as `moment` gives them; None where nothing is known."""
    published: float | None = None
    """The publisher's own date, if there is one: copies of an article have it in common."""
    language: str | None = None
    """As the feed declares it."""
    arrived: int = 0
    """The arrival number."""
    seen: float = 0.0
    """The arrival, in seconds since 1970."""
    is_closed: bool = False
    """Its feed has a password, headers or private hosts: it may join others, and leaves no trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The reasons for which an item stands in a story."""

    kind: str
    """`link`, `text`, `retitled`: a copy. `event`: the same event. `reissue`: it replaces one of its feed."""
    nearest: str
    """The id of the member that it was compared with and that is most like it."""
    names: tuple[str, ...] = ()
    """Names of both texts."""
    numbers: tuple[str, ...] = ()
    """Numbers of both texts."""
    terms: tuple[str, ...] = ()
    """Rare words of both texts, rarest first."""
    cosine: float = 0.0


COPIES = ("link", "text", "retitled")
"""Kinds of copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A reason for which an item stands with earlier ones, for whoever has these in their feeds."""

    kind: str
    """As that of the evidence."""
    items: tuple[str, ...]
    """The id of one item: the two would be a story by themselves. Of several: only all of these together
    make one of it."""


MOST_JOINS = 8
"""Joins of an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The story of an item, and why. A story is named by the item that began it."""

    item: str
    story: str
    score: float = 0.0
    """The distance of the judgement above the line; 0 for an item that begins a story."""
    evidence: Evidence | None = None
    joins: tuple[Join, ...] = ()
    """Members of the story, each of another feed, or all that were judged where it joins by none alone:
    copies first, then by margin."""

    @property
    def kind(self) -> str | None:
        """`copy`, `event` or `reissue`; None for an item that begins a story."""
        if self.evidence is None:
            return None
        return "copy" if self.evidence.kind in COPIES else self.evidence.kind


OLDEST_DATE = 631_152_000.0
"""1990: earlier dates of feeds are mistakes."""
WINDOW = 7 * 86_400.0


def moment(published: float | None, arrived: float) -> float:
    """The time of an item, for stories: its publication, but never after its arrival.

    A date in the future or before there were feeds is no date.
    """
    if published is None or published < OLDEST_DATE:
        return arrived
    return min(published, arrived)
