"""The memory of a page: marks of the entries that its last documents had, by which the next list is judged.

Short enough to be kept with each backup, so that a replay reads a document as the visit did.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Self

from rss_pipeline.collector.models.identity import same_title
from rss_pipeline.collector.models.item import Moved
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.collector.parse.links import last_part
from rss_pipeline.features.pages.links import guids_of, identity, shape
from rss_pipeline.features.pages.model import Entry

MOST_MARKS = 120
_MARK_CHARACTERS = 6
_MOST_NAMED = 15
"""Entries of the last list that are known by their names, too."""
_NAME_CHARACTERS = 4
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
    names: tuple[frozenset[str], ...] = ()
    """Marks of the names of each of its first entries, by which it is known at another address."""
    is_confirmed: bool = False
    """A person has confirmed the list, and no document was read since."""
    settings: str = ""
    """The mark of the feed's key in feeds.yaml."""
    home: str = ""
    """The host of the page at its first list: a site that moves keeps the identities of its entries."""
    here: str = ""
    """The host of the page now; it is not kept."""

    @classmethod
    def of_list(
        cls, guids: Sequence[str], *, structure: str = "", home: str = "", entries: Sequence[Entry] = ()
    ) -> Self:
        """The memory of this list alone."""
        shapes = Counter(_shape(guid) for guid in guids if guid.startswith("//"))
        marks = tuple(dict.fromkeys(map(mark, guids)))[:MOST_MARKS]
        return cls(
            marks=marks,
            count=len(marks),
            shapes=frozenset(each for each, _ in shapes.most_common(_MOST_SHAPES)),
            structure=structure,
            names=tuple(_names(entries[:_MOST_NAMED], is_rebuilt=True)),
            home=home,
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

    def at_home(self, guid: str) -> str:
        """The guid of an entry of the page's own host as it was at the first list."""
        own = f"//{self.here}/"
        return f"//{self.home}/{guid.removeprefix(own)}" if self.home and guid.startswith(own) else guid

    def has(self, guid: str) -> bool:
        """True if a list had the entry with this guid."""
        return mark(self.at_home(guid)) in self.marks

    def among(self, guids: Iterable[str]) -> frozenset[str]:
        """The ones that a list had."""
        marks = set(self.marks)
        return frozenset(guid for guid in guids if mark(self.at_home(guid)) in marks)

    def has_last_list(self, guids: Iterable[str]) -> bool:
        """True if these are all entries of the last list, as far as it is known."""
        return {mark(self.at_home(guid)) for guid in guids}.issuperset(self.marks[: self.count])

    def has_shape(self, link: str) -> bool:
        """True if this is one of the usual forms of its links."""
        return _shape(self.at_home(identity(link))) in self.shapes

    def is_same_list(self, links: Sequence[str]) -> bool:
        """True if a list on a changed page is the known one: at least three known entries are in it, and half
        of what is on its top is known."""
        guids = list(dict.fromkeys(self.at_home(identity(link)) for link in links))
        known = set(self.marks)
        if sum(mark(each) in known for each in guids) < _LEAST_KNOWN:
            return False
        top = guids[: self._top]
        return sum(mark(each) in known for each in top) * 2 >= len(top)

    def moved_among(self, entries: Sequence[Entry], structure: str) -> Moved | None:
        """The known entries at other addresses in a list. None unless these are at least three, and half of
        what is on its top is known.

        They have the order that they had. In a list by time, which begins with its newest, an entry of the
        same title is no other one then: that would be on top, and the known one still in the list.
        """
        known = set(self.marks)
        guids = [self.at_home(guid) for guid in guids_of(entries)]
        are_known = [mark(guid) in known for guid in guids]
        if are_known.count(False) < _LEAST_KNOWN:
            return None
        places: dict[int, int] = {}
        names = _names(entries, is_rebuilt=structure not in ("", self.structure))
        for number, (is_known, each) in enumerate(zip(are_known, names, strict=True)):
            same = [place for place, name in enumerate(self.names) if not name.isdisjoint(each)]
            if len(same) == 1 and not is_known:
                places[number] = same[0]
        moved = _in_order(places)
        top = [is_known or number in moved for number, is_known in enumerate(are_known)][: self._top]
        if len(moved) < _LEAST_KNOWN or sum(top) * 2 < len(top):
            return None
        return Moved(
            guids=frozenset(guids[number] for number in moved), older=frozenset(guids[moved[-1] + 1 :])
        )

    @property
    def _top(self) -> int:
        """The number of entries on the top of a list: a list may be longer than it was."""
        return max(_LEAST_KNOWN, min(_TOP, self.count))

    def to_text(self) -> str:
        """The memory as a text of ASCII, at most some 1,200 characters."""
        keys = {
            "marks": "".join(self.marks),
            "count": self.count,
            "shapes": sorted(self.shapes),
            "structure": self.structure,
            "redesigned": self.redesigned_on and self.redesigned_on.isoformat(),
            "names": ".".join("".join(sorted(name)) for name in self.names),
            "confirmed": self.is_confirmed,
            "settings": self.settings,
            "home": self.home,
        }
        return json.dumps({name: value for name, value in keys.items() if value}, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str | None) -> Self | None:
        """The inverse of `to_text`."""
        if text is None:
            return None
        keys = json.loads(text)
        day, names = keys.get("redesigned"), keys.get("names")
        return cls(
            marks=_cut(keys.get("marks", ""), _MARK_CHARACTERS),
            count=keys.get("count", 0),
            shapes=frozenset(keys.get("shapes", ())),
            structure=keys.get("structure", ""),
            redesigned_on=None if day is None else date.fromisoformat(day),
            names=tuple(frozenset(_cut(each, _NAME_CHARACTERS)) for each in names.split("."))
            if names
            else (),
            is_confirmed=keys.get("confirmed", False),
            settings=keys.get("settings", ""),
            home=keys.get("home", ""),
        )


def home_of(url: str) -> str:
    """The host of a URL as identities have it."""
    return identity(url).split("/")[2]


def _cut(text: str, length: int) -> tuple[str, ...]:
    return tuple(text[at : at + length] for at in range(0, len(text), length))


def _in_order(places: Mapping[int, int]) -> list[int]:
    """The most keys of which the values rise as they do."""
    found: dict[int, list[int]] = {}
    for number, place in places.items():
        before = max((each for last, each in found.items() if last < place), key=len, default=[])
        if len(before) >= len(found.get(place, ())):
            found[place] = [*before, number]
    return max(found.values(), key=len, default=[])


def _names(entries: Sequence[Entry], *, is_rebuilt: bool) -> Iterator[frozenset[str]]:
    """Marks of what each entry is called, besides its address: none where another one has its title.

    Columns of a magazine have the titles and the last parts of their addresses in each issue. So an entry of
    a page that was not rebuilt is known by its text alone.
    """
    titles = [same_title(each.title or "") for each in entries]
    times = Counter(titles)
    for title, each in zip(titles, entries, strict=True):
        names: list[tuple[object, ...]] = []
        if title and times[title] == 1:
            name = last_part(identity(each.link)) if each.link else None
            if name and each.text:
                names.append((name, each.text))
            if name and is_rebuilt:
                names.append((name,))
            if each.date and is_rebuilt:
                names.append((each.date,))
        yield frozenset(mark(f"{title}\n{name}")[:_NAME_CHARACTERS] for name in names)


def _shape(guid: str) -> str:
    return mark("/".join(shape(f"http:{guid}")[:-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfDocument:
    """The memory of a page after a document, and what a person should know of it."""

    known: Known
    settings: str
    """The feed's key `page` as the document was read."""
    warnings: tuple[FeedWarning, ...] = ()

    def renamed(self, _ids: Mapping[str, str]) -> "PageOfDocument":
        """The same: it names no items."""
        return self


def page_in(parsed: Parsed) -> PageOfDocument | None:
    """The findings of the parser process; None of a document that is no page's."""
    found = parsed.parts.get("page")
    return found if isinstance(found, PageOfDocument) else None
