"""Sections of a text, from an opening to the next of its ends: comments, CDATA, tags.

As a regular expression, `<!--.*?-->` takes time by the square of a text of openings without an end: from each
of them it looks through all of the rest.
"""

import re
from collections.abc import Callable, Iterator


class Sections:
    """The sections of some kinds, each with the pattern of its opening, without groups, and its end."""

    def __init__(self, *kinds: tuple[str, str]) -> None:
        self._opening = re.compile("|".join(f"({opening})" for opening, _ in kinds))
        self._ends = [end for _, end in kinds]

    def sub(self, replaced: Callable[[str], str], text: str) -> str:
        """The text with `replaced` of each section in its place, from left to right, none within another."""
        pieces: list[str] = []
        done = 0
        for start, end in self._places(text):
            pieces += (text[done:start], replaced(text[start:end]))
            done = end
        return "".join((*pieces, text[done:]))

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        endless: set[str] = set()
        place = 0
        while (found := self._opening.search(text, place)) is not None:
            assert found.lastindex is not None
            end = self._ends[found.lastindex - 1]
            at = -1 if end in endless else text.find(end, found.end())
            if at < 0:
                endless.add(end)
                place = found.start() + 1
            else:
                place = at + len(end)
                yield found.start(), place
