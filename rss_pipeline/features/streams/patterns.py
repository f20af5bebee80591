"""Patterns of a selector by field, and values in the form in which they are compared.

A pattern is a whole value, without regard to case, width and white space; `*` matches any text. There are
no regular expressions: every comparison takes time in proportion to the value.
"""

import unicodedata
from collections.abc import Iterable, Sequence

_INVISIBLE = ("\u200b", "\u2060", "\ufeff")
"""Spaces without width. Unicode does not count them as white space, and they show in no name."""


def normal(text: str) -> str:
    """The form in which values are compared: NFKC, without case and without white space."""
    if text.isascii():
        return "".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", text).casefold()
    for space in _INVISIBLE:
        folded = folded.replace(space, "")
    # Folding may decompose a letter, and without a space an accent may join the letter before it.
    return unicodedata.normalize("NFKC", "".join(folded.split()))


class PatternSet:
    """The patterns of many selectors for one field.

    A set of selectors is a whole number: bit n is selector n.
    """

    def __init__(self, patterns: Iterable[tuple[str, int]]) -> None:
        self._exact: dict[str, int] = {}
        self._anything = 0
        self._inside: dict[str, int] = {}
        """Patterns of the form `*text*`, the most frequent ones with a `*`."""
        self._beginning: dict[int, dict[str, int]] = {}
        """Patterns of the form `text*`, by the length of the text."""
        self._ending: dict[int, dict[str, int]] = {}
        self._parts: list[tuple[str, tuple[str, ...], str, int]] = []
        """The others: beginning, texts in between, end, and the selector."""
        for pattern, selector in patterns:
            self._add(normal(pattern), 1 << selector)

    def _add(self, pattern: str, selector: int) -> None:
        first, *rest = pattern.split("*")
        if not rest:
            _put(self._exact, first, selector)
            return
        *between, last = rest
        match (first, tuple(text for text in between if text), last):
            case "", (), "":
                self._anything |= selector
            case "", (text,), "":
                _put(self._inside, text, selector)
            case _, (), "":
                _put(self._beginning.setdefault(len(first), {}), first, selector)
            case "", (), _:
                _put(self._ending.setdefault(len(last), {}), last, selector)
            case _, middle, _:
                self._parts.append((first, middle, last, selector))

    def matching(self, value: str) -> int:
        """The selectors with a pattern that this value matches. Nothing matches an empty one."""
        value = normal(value)
        if not value:
            return 0
        found = self._exact.get(value, 0) | self._anything
        for length, texts in self._beginning.items():
            found |= texts.get(value[:length], 0)
        for length, texts in self._ending.items():
            found |= texts.get(value[-length:], 0)
        for text, selectors in self._inside.items():
            if text in value:
                found |= selectors
        for first, middle, last, selector in self._parts:
            if value.startswith(first) and value.endswith(last) and _in_order(value, first, middle, last):
                found |= selector
        return found


def _put(table: dict[str, int], text: str, selector: int) -> None:
    table[text] = table.get(text, 0) | selector


def _in_order(value: str, first: str, middle: Sequence[str], last: str) -> bool:
    """The texts of `middle` come one after the other between beginning and end: the leftmost place of each
    leaves the most room, so one pass decides."""
    place, end = len(first), len(value) - len(last)
    for text in middle:
        found = value.find(text, place, end)
        if found < 0:
            return False
        place = found + len(text)
    return place <= end
