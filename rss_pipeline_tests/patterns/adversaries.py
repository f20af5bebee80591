"""Texts that cost a pattern most, derived from its parts: each a head, a piece that is repeated, and a tail.

A pattern costs more than its text is long where it begins at many places and gets far from each in vain: at
openings without their end, at runs that two parts may share. So what is repeated is each character that the
pattern names, and what matches some of its parts, one behind the other; before it is what leads there, and
behind it what does not fit.
"""

import itertools
import random
import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_USUAL = "a0 \n<"
_UNUSUAL = ("", "\x00")
_MOST_PARTS = 12


class Shape(NamedTuple):
    """A text of any length: `head`, `piece` again and again, `tail`."""

    head: str
    piece: str
    tail: str

    def text(self, length: int) -> str:
        times = max(1, (length - len(self.head) - len(self.tail)) // len(self.piece))
        return self.head + self.piece * times + self.tail


def shapes(pattern: str, flags: int) -> list[Shape]:
    """The shapes for a pattern: its parts in their places, and where nothing leads there; then its characters
    behind all that leads anywhere. Both in an order of chance, which the pattern decides."""
    tree = parser.parse(pattern, flags)
    parts = _Parts(_alphabet(tree))
    parts.visit(tree, "")
    tails = (*_UNUSUAL, parts.sample(tree))
    of_parts = [(before, piece) for head, piece in parts.found if piece for before in ("", head)]
    of_characters = itertools.product((head for head, _ in parts.found), parts.alphabet)
    chance = random.Random(ascii(pattern))
    found: list[Shape] = []
    for pairs in (of_parts, of_characters):
        some = [Shape(*pair, tail) for pair in dict.fromkeys(pairs) for tail in tails]
        found += chance.sample(some, len(some))
    return list(dict.fromkeys(found))


def _alphabet(tree: Any) -> str:
    """The characters that a pattern names, and some that classes of most patterns have."""
    named = dict.fromkeys(_named(tree))
    return "".join(dict.fromkeys([*itertools.islice(named, 40), *_USUAL]))


def _named(tree: Any) -> Iterator[str]:
    for code, value in tree:
        if code in (op.LITERAL, op.NOT_LITERAL):
            yield chr(value)
        elif code is op.RANGE:
            yield chr(value[0])
        elif code is op.IN:
            yield from _named(value)
        else:
            for inner in _inner(value):
                yield from _named(inner)


def _inner(value: Any) -> Iterator[Any]:
    """The parts within a part."""
    if isinstance(value, parser.SubPattern):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _inner(each)


class _Parts:
    """Texts that match the parts of a pattern, each with what leads there."""

    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet
        self.found: dict[tuple[str, str], None] = {}
        self._groups: dict[int, str] = {}

    def visit(self, tree: Any, head: str) -> None:
        samples = [self._sample(code, value) for code, value in tree]
        places = range(len(samples))
        if len(samples) <= _MOST_PARTS:
            spans = list(itertools.combinations(range(len(samples) + 1), 2))
        else:
            spans = [
                *((n, n + 1) for n in places),
                *((0, n + 1) for n in places),
                *((n, len(samples)) for n in places),
            ]
        for first, last in spans:
            self.found.setdefault((head + "".join(samples[:first]), "".join(samples[first:last])))
        for place, (code, value) in enumerate(tree):
            before = head + "".join(samples[:place])
            for inner in _inner(value):
                self.visit(inner, before)
            if code in (op.IN, op.ANY, op.NOT_LITERAL):
                for character in self._fitting(code, value):
                    self.found.setdefault((before, character))

    def sample(self, tree: Any) -> str:
        return "".join(self._sample(code, value) for code, value in tree)

    def _sample(self, code: Any, value: Any) -> str:
        """A short text that the part matches, or the nearest to it."""
        if code is op.LITERAL:
            return chr(value)
        if code in (op.IN, op.ANY, op.NOT_LITERAL):
            return next(self._fitting(code, value), "")
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            least, most, inner = value
            return self.sample(inner) * min(max(least, 1), most, 20)
        if code is op.BRANCH:
            return self.sample(value[1][0])
        if code is op.SUBPATTERN:
            group, _, _, inner = value
            text = self.sample(inner)
            if group is not None:
                self._groups[group] = text
            return text
        if code is op.ATOMIC_GROUP:
            return self.sample(value)
        if code is op.GROUPREF:
            return self._groups.get(value, "")
        if code is op.GROUPREF_EXISTS:
            return self.sample(value[1])
        return ""  # A place, or what is before or behind it.

    def _fitting(self, code: Any, value: Any) -> Iterator[str]:
        """The characters of the alphabet that the class has, and one of its own if there are none."""
        found = [each for each in self.alphabet if _is_in(code, value, each)]
        yield from found or [each for each in map(chr, _own(code, value)) if _is_in(code, value, each)]


def _own(code: Any, value: Any) -> Sequence[int]:
    if code is op.IN:
        return [
            each[0] if kind is op.RANGE else each for kind, each in value if kind in (op.RANGE, op.LITERAL)
        ]
    return range(33, 127)


def _is_in(code: Any, value: Any, character: str) -> bool:
    if code is op.ANY:
        return True
    if code is op.NOT_LITERAL:
        return ord(character) != value
    negated = bool(value) and value[0][0] is op.NEGATE
    return any(_has(kind, each, character) for kind, each in value if kind is not op.NEGATE) != negated


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def _has(kind: Any, value: Any, character: str) -> bool:
    if kind is op.LITERAL:
        return ord(character) == value
    if kind is op.RANGE:
        return value[0] <= ord(character) <= value[1]
    return re.match(_CATEGORIES[value], character) is not None
