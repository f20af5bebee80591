"""The same item again in its feed: with a new guid, another title, a typing error mended, more dead.

The items of a ticker are as like each other. They have one title, in which a name or a figure is another one;
an item that comes again under such a title differs in spelling or in what is counted alone.
"""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from rss_pipeline.features.stories import vocabulary
from rss_pipeline.features.stories.copies import content_words, has_half, letters, link_key
from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.words import TOKEN, bare, stem, without_spaces

WITHIN = 86_400.0
"""Seconds after which one item replaces no other."""
_EQUAL = 0.9
"""The share of the text that is equal in both."""
_LEAST_TEXT = 80
"""Characters of a text that tells two items apart, without spaces; of a shorter one the title must say it."""
_ONE_TITLE = 0.6
"""The share of words of two titles from which on they are one, with slots that differ."""
_EQUAL_TITLE, _LEAST_TITLE = 0.6, 24
"""The same for items of a title alone, and its characters at least."""
_OWN = 0.2
"""The share of words in which two titles differ that their text has, where each is a headline of it."""
_SPELLED_ALIKE, _LEAST_SPELLED, _LEAST_INFLECTED = 0.8, 4, 3
_MOST_ADDED = 24
"""Characters that a title may have more, such as "corrected"."""
_BEHIND = 3
"""Tokens behind a number among which is what it counts."""

_REWORDED = 0.6
"""The share of the words of a title that another one has in another order."""
_LAST_LETTER, _OF_A_CHARACTER = "\u10ff", 3
"""The last one in scripts of letters, and the letters that say as much as a character of another script."""
_COUNTERS = frozenset("人名户戸戶棟艘辆輛具位명채")
"""Characters behind a number of persons, homes, ships, cars."""
_OPPOSED = frozenset("东东西南北東上下前后後左右内外男女大小高低早晚春夏秋冬升降涨跌晴阴雨雪甲乙丙丁ABCD")
_ONE = frozenset(
    [
        "un",
        "una",
        "bir",
        "einer",
        "uno",
        "une",
        "ein",
        "eine",
        "einen",
        "um",
        "uma",
        "een",
        "one",
        "один",
        "одна",
        "одного",
    ]
)
_NUMERALS = frozenset("零〇一二三四五六七八九十百千万两")
"""Characters that make another thing of a word."""
_PARTS = re.compile(r"\d[\d.,:]*|\D+")

Span = tuple[str, Sequence[str], Sequence[str], Sequence[str]]
"""The token before, the tokens of both that are not equal, and some that follow."""


def is_reissue(older: Entry, newer: Entry) -> bool:
    """True if the newer item of a feed, of the same day, is the older one again."""
    titles = _tokens(older.title), _tokens(newer.title)
    texts = _tokens(_without(older)), _tokens(_without(newer))
    sizes = [sum(map(_size, text)) for text in texts]
    if not any(sizes):
        return _is_one_alone(*titles)
    if min(sizes) < _LEAST_TEXT or _most_equal(*texts) < _EQUAL:
        return False
    equal, spans = _compared(*texts)
    if equal < _EQUAL:
        return False
    equal_title, title_spans = _compared(*titles)
    if equal_title >= _ONE_TITLE:
        is_one_title = all(map(_is_mended_title, title_spans))
        return is_one_title and (any(map(_is_toll, title_spans)) or all(map(_is_mended, spans)))
    return _are_headlines(older, newer, equal_title)


def is_at_one_address(older: Entry, newer: Entry) -> bool:
    """True if the newer item of a feed has the link of the older one, and one of them says half of what the
    other does: an article that was rewritten.

    The next item of a series at one address has another figure in its title.
    """
    link = link_key(older.link)
    if link is None or link != link_key(newer.link):
        return False
    equal, spans = _compared(_tokens(older.title), _tokens(newer.title))
    if equal >= _ONE_TITLE and not all(map(_is_mended_title, spans)):
        return False
    shorter, longer = sorted((content_words(f"{each.title} {each.text}") for each in (older, newer)), key=len)
    return has_half(longer, shorter)


def is_changed(older: Entry, newer: Entry) -> bool:
    """True if a copy of an item, in its feed, says something else."""
    return any(
        letters(one) != letters(other)
        for one, other in ((older.title, newer.title), (_without(older), _without(newer)))
    )


def _is_one_alone(title: Sequence[str], other: Sequence[str]) -> bool:
    if min(sum(map(_size, each)) for each in (title, other)) < _LEAST_TITLE or title == other:
        return False
    equal, spans = _compared(title, other)
    return equal >= _EQUAL_TITLE and all(map(_is_mended_title, spans))


def _are_headlines(older: Entry, newer: Entry, equal_title: float) -> bool:
    """True if the text has some of the words in which its two titles differ, or these have one's words in
    another order: else it is what a feed says below all of its items."""
    titles = [content_words(each.title).keys() for each in (older, newer)]
    own, both = titles[0] ^ titles[1], titles[0] & titles[1]
    if len(both) >= max(_REWORDED, 2 * equal_title) * min(map(len, titles)):
        return True
    text = content_words(older.text).keys() & content_words(newer.text).keys()
    return len(own & text) >= _OWN * len(own) or all(2 * len(each & text) >= len(each) for each in titles)


def _without(entry: Entry) -> str:
    title, text = " ".join(entry.title.split()), " ".join(entry.text.split())
    return text[len(title) :] if title and text.startswith(title) else text


def _tokens(text: str) -> list[str]:
    """Words, numbers and marks; characters in scripts without spaces."""
    found: list[str] = []
    for token in TOKEN.findall(text):
        for part in _PARTS.findall(token):
            found += part if without_spaces(part) else [part]
    return found


def _size(token: str) -> int:
    return len(token) * (_OF_A_CHARACTER if token[0] > _LAST_LETTER else 1)


def _most_equal(one: Sequence[str], other: Sequence[str]) -> float:
    """The most that may be equal, whatever the order is."""
    both = Counter(one) & Counter(other)
    return 2 * sum(len(token) * count for token, count in both.items()) / sum(map(len, [*one, *other]))


def _compared(one: Sequence[str], other: Sequence[str]) -> tuple[float, list[Span]]:
    """The share of characters in equal tokens, and what differs."""
    equal = 0
    spans: list[Span] = []
    for kind, start, end, other_start, other_end in SequenceMatcher(
        None, one, other, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            equal += sum(map(len, one[start:end]))
        else:
            before = one[start - 1] if start else ""
            spans.append((before, one[start:end], other[other_start:other_end], one[end : end + _BEHIND]))
    return 2 * equal / (sum(map(len, [*one, *other])) or 1), spans


def _is_mended_title(span: Span) -> bool:
    before, one, other, behind = span
    if one and other:
        return _is_mended(span)
    if before and any(map(str.isalnum, behind)):
        # In its midst, a word makes another thing of it.
        return False
    words = [each for each in (*one, *other) if each.isalpha()]
    return sum(map(_size, words)) <= _MOST_ADDED and not _figures([*one, *other])


def _is_mended(span: Span) -> bool:
    """True for what a correction changes: spelling, words left out or added, and how many there are of what
    is counted."""
    before, one, other, behind = span
    if not one or not other:
        return not _figures([*one, *other])
    if len(one) != len(other) or (len(one) > 1 and all(map(without_spaces, [*one, *other]))):
        one, other = ["".join(one)], ["".join(other)]
    return all(
        _is_spelled_alike(mine, theirs)
        or (
            _is_count(mine)
            and _is_count(theirs)
            and _is_counted(one[at - 1] if at else before, mine, [*one[at + 1 :], *behind])
        )
        for at, (mine, theirs) in enumerate(zip(one, other, strict=True))
    )


def _is_toll(span: Span) -> bool:
    before, one, other, behind = span
    return (
        any(map(_is_count, one))
        and any(map(_is_count, other))
        and any(stem(token) in vocabulary.TOLLS for token in (before, *one, *other, *behind))
    )


def _is_spelled_alike(one: str, other: str) -> bool:
    if bare(one) == bare(other):
        return True
    if _figures([one, other]) or bare(one) in _TOLD or bare(other) in _TOLD:
        return False
    if without_spaces(one) or without_spaces(other):
        return len(one) == len(other) == 1 and {one, other}.isdisjoint(_OPPOSED | _NUMERALS)
    shorter, longer = sorted((bare(one), bare(other)), key=len)
    if len(shorter) >= _LEAST_INFLECTED and longer.startswith(shorter) and len(longer) - len(shorter) < 3:
        return True
    is_long = min(len(one), len(other)) >= _LEAST_SPELLED
    return is_long and SequenceMatcher(None, bare(one), bare(other)).ratio() >= _SPELLED_ALIKE


_TOLD = frozenset([*vocabulary.MONTHS, *vocabulary.WEEKDAYS, *vocabulary.ORDINALS])


def _is_count(token: str) -> bool:
    return (
        token.isdecimal()
        or bare(token) in vocabulary.SPELLED
        or bare(token) in _ONE
        or _is_thousands(token)
        or _NUMERALS.issuperset(token)
    )


def _is_thousands(token: str) -> bool:
    first, *groups = token.replace(",", ".").split(".")
    return first.isdecimal() and bool(groups) and all(len(each) == 3 and each.isdecimal() for each in groups)


def _is_counted(before: str, count: str, behind: Sequence[str]) -> bool:
    """True for a toll, and if what follows a number is what it counts: no unit, currency or scale, and not
    for the number of a road or a model."""
    if stem(before) in vocabulary.TOLLS or any(stem(token) in vocabulary.TOLLS for token in behind):
        return True
    if before[:1].isupper() and count[0].isdigit():
        return False
    for token in behind:
        if token[0].isdigit():
            continue
        if without_spaces(token) or token[0] in _COUNTERS:
            return token[0] in _COUNTERS
        word = bare(token)
        if word not in vocabulary.FUNCTION_WORDS:
            return word not in _NOT_COUNTED and (word.isalpha() or not count[0].isdigit())
        if count[0].isdigit():
            # Road 14 near a town.
            return False
    return not count[0].isdigit() and bare(before) not in vocabulary.COUNTED


_NOT_COUNTED = frozenset(
    [*_TOLD, *vocabulary.UNIT_WORDS, *vocabulary.CURRENCIES, *vocabulary.SCALES, *vocabulary.CLOCKS]
)


def _figures(tokens: Sequence[str]) -> bool:
    return any(any(map(str.isdigit, token)) for token in tokens)
