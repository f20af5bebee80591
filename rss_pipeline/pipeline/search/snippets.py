"""A snippet of an item around what was found in it, as HTML: escaped, with the hits in <mark>."""

import re
from collections.abc import Sequence
from html import escape

from rss_pipeline.pipeline.search.plain import plain_text
from rss_pipeline.pipeline.search.words import folded, normal, pattern

CHARACTERS = 240
_BEFORE = 60
"""Characters before the first hit."""
_LOOKED_AT = 20_000
"""Characters of a text."""
_MOST_HITS = 100
_SPACES = re.compile(r"\s+")


class Marker:
    """Marks the hits of some texts of a query."""

    def __init__(self, texts: Sequence[str]) -> None:
        patterns = [found for text in texts if (found := pattern(text)) is not None]
        # The longest first: a hit of a phrase is not one of its first word.
        longest = sorted(set(patterns), key=len, reverse=True)
        self._hit = re.compile("|".join(f"({each})" for each in longest)) if longest else None

    def marked(self, text: str, *, limit: int = 500) -> str:
        """The start of a text on one line, all of its hits marked."""
        text = _one_line(text)[:limit]
        return _with_marks(text, self._hits(text), 0, len(text))

    def snippet(self, html: str) -> str:
        """The part of an item's HTML that shows most of the hits; its start where there is none."""
        text = _one_line(plain_text(html[: 4 * _LOOKED_AT]))[:_LOOKED_AT]
        hits = self._hits(text)
        begin = _best_start(hits)
        begin = _word_start(text, begin - _BEFORE) if begin > _BEFORE else 0
        end = _word_end(text, begin + CHARACTERS)
        shown = _with_marks(text, hits, begin, end)
        return f"{'… ' if begin else ''}{shown}{' …' if end < len(text) else ''}"

    def _hits(self, text: str) -> list[tuple[int, int, int]]:
        """Start, end and pattern of the first hits."""
        found: list[tuple[int, int, int]] = []
        if self._hit is None:
            return found
        for hit in self._hit.finditer(folded(text)):
            if hit.end() > hit.start():
                found.append((hit.start(), hit.end(), hit.lastindex or 0))
            if len(found) >= _MOST_HITS:
                break
        return found


def _best_start(hits: Sequence[tuple[int, int, int]]) -> int:
    """The start of the first hit from which the most different ones are near."""
    best, most = 0, 0
    for place, (start, _, _) in enumerate(hits):
        near = {which for at, _, which in hits[place : place + 20] if at < start + CHARACTERS - _BEFORE}
        if len(near) > most:
            best, most = start, len(near)
    return best


def _with_marks(text: str, hits: Sequence[tuple[int, int, int]], begin: int, end: int) -> str:
    parts, at = [], begin
    for start, stop, _ in hits:
        if start < at or stop > end:
            continue
        parts += [escape(text[at:start]), "<mark>", escape(text[start:stop]), "</mark>"]
        at = stop
    return "".join([*parts, escape(text[at:end])])


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", normal(text)).strip()


def _word_start(text: str, place: int) -> int:
    space = text.find(" ", place, place + 20)
    return place if space < 0 else space + 1


def _word_end(text: str, place: int) -> int:
    if place >= len(text):
        return len(text)
    space = text.rfind(" ", place - 20, place)
    return place if space < 0 else space
