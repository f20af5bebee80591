"""The memory of a page: marks of the entries that its last documents had, by which the next list is judged.

Short enough to be kept with each backup, so that a replay reads a document as the visit did.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Self

from rss_pipeline.features.pages.links import identity, shape

MOST_MARKS = 150
_MARK_CHARACTERS = 6
_MOST_SHAPES = 5
_LEAST_KNOWN = 3
_TOP = 10


def mark(text: str) -> str:
    """Six characters for a text: 36 bits of its SHA-256."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode("utf-8", "replace")).digest())[
        :_MARK_CHARACTERS
    ].decode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The entries that a page had."""

    marks: tuple[str, ...] = ()
    """Marks of guids: those of the last list in the order of the page, then earlier ones."""
    count: int = 0
    """Marks of the last list."""
    shapes: frozenset[str] = frozenset()
    """Marks of the usual forms of its links."""
    structure: str = ""
    """The mark of the elements around its entries; empty where that was no list of a page."""
    redesigned_on: date | None = None
    """The day on which it was last found by known links in another structure."""
    settings: str = ""
    """The mark of the feed's key in feeds.yaml."""

    @classmethod
    def of_list(cls, guids: Sequence[str], links: Sequence[str | None], *, structure: str = "") -> Self:
        """The memory of this list alone."""
        shapes = Counter(mark("/".join(shape(link)[:-1])) for link in links if link is not None)
        marks = tuple(dict.fromkeys(map(mark, guids)))[:MOST_MARKS]
        return cls(
            marks=marks,
            count=len(marks),
            shapes=frozenset(each for each, _ in shapes.most_common(_MOST_SHAPES)),
            structure=structure,
        )

    def after(self, earlier: "Known | None") -> "Known":
        """The same with the marks of earlier lists behind its own, as far as there is room."""
        if earlier is None:
            return self
        return replace(
            self,
            marks=tuple(dict.fromkeys((*self.marks, *earlier.marks)))[:MOST_MARKS],
            redesigned_on=self.redesigned_on or earlier.redesigned_on,
        )

    def has(self, guid: str) -> bool:
        """True if a list had the entry with this guid."""
        return mark(guid) in self.marks

    def has_shape(self, link: str) -> bool:
        """True if this is one of the usual forms of its links."""
        return mark("/".join(shape(link)[:-1])) in self.shapes

    def is_same_list(self, links: Sequence[str]) -> bool:
        """True if a list on a changed page is the known one: at least three known entries are in it, and half
        of what is on its top is known."""
        guids = list(dict.fromkeys(map(identity, links)))
        known = set(self.marks)
        if sum(mark(each) in known for each in guids) < _LEAST_KNOWN:
            return False
        top = guids[:_TOP]
        return sum(mark(each) in known for each in top) * 2 >= len(top)

    def to_text(self) -> str:
        """The memory as a text of ASCII, at most some 1,200 characters."""
        keys = {
            "marks": "".join(self.marks),
            "count": self.count,
            "shapes": sorted(self.shapes),
            "structure": self.structure,
            "redesigned": self.redesigned_on and self.redesigned_on.isoformat(),
            "settings": self.settings,
        }
        return json.dumps({name: value for name, value in keys.items() if value}, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str | None) -> Self | None:
        """The inverse of `to_text`."""
        if text is None:
            return None
        keys = json.loads(text)
        marks, day = keys.get("marks", ""), keys.get("redesigned")
        return cls(
            marks=tuple(marks[at : at + _MARK_CHARACTERS] for at in range(0, len(marks), _MARK_CHARACTERS)),
            count=keys.get("count", 0),
            shapes=frozenset(keys.get("shapes", ())),
            structure=keys.get("structure", ""),
            redesigned_on=None if day is None else date.fromisoformat(day),
            settings=keys.get("settings", ""),
        )
