"""The decision whether an item joins a story, from its likeness with the nearest members.

Three lines are drawn. Short texts, and those that share a template, join by their words in common, weighed by
rarity, where no template explains them, and by the mean of a story of several; a name alone never joins. Long
texts join by how much they have in common; scripts without spaces have a line of their own. The weights come
from logistic regressions on pairs of labelled news and real days, in which no evidence for an event may count
against it; those of long texts were then set by hand. A wrong merge costs a reader more than a missed one.
"""

from collections.abc import Callable, Sequence
from math import log, log1p
from operator import attrgetter

from rss_pipeline.features.stories.pair import Likeness

VERSION = 9
"""The method's version: it grows with each change of what is decided."""

PAIRED = {
    "numbers": 2.23,
    "units": -1.35,
    "template": -7.88,
    "name_slots": -5.22,
    "number_slots": -4.71,
    "soft": -2.49,
    "full": 7.72,
    "lack": -30.47,
    "timely": 2.76,
    "entities": 1.08,
    "titled": 2.16,
    "only_named": -4.0,
    "one": -3.72,
}
SHORT = {
    "numbers": 0.71,
    "units": -1.15,
    "unlike": -1.9,
    "tolls": 4.82,
    "full": 2.7,
    "slots_of_template": -5.64,
    "title_slots": -1.87,
    "soft": -0.51,
    "far": -5.0,
    "gathered": 16.0,
    "title_words": 6.2,
    "common": 7.16,
    "told": 1.03,
    "titled": 0.73,
    "only_named": -5.0,
    "days": 0.94,
    "soon": 3.05,
    "unmet": -0.53,
    "placed": 0.82,
    "elsewhere": -1.07,
    "one": -7.31,
}
LONG = {
    "title_names": 1.17,
    "title_words": 0.47,
    "names": 6.63,
    "numbers": 4.31,
    "differ": -0.4,
    "template": 9.67,
    "name_slots": -4.2,
    "soft": -0.65,
    "hard": -0.47,
    "cosine": 8.99,
    "cosine_to_0.3": -6.4,
    "cosine_template": 9.0,
    "nearest": 6.22,
    "near": -4.17,
    "entities": 0.6,
    "days": 0.7,
    "unmet": -0.82,
    "placed": 0.5,
    "unlike": -0.95,
    "tolls": 1.5,
    "only_named": -5.0,
    "one": -3.4,
}
_SHORT_CHARACTERS, _LONG_CHARACTERS = 300, 450
"""Up to the first a text is short, from the second on it is long; between them both lines count in part."""

_MUCH, _BY_CHANCE = 400, 6.2
"""Two texts of more characters in pairs have rare ones in common by chance: by so much the line is higher."""

_BARE, _OF_BARE = 80, 1.0
"""A text of fewer characters is a title, which says little: by so much the line is higher."""

_OF_MEMBERS, _MEMBERS = 0.5, 8
"""The line of long texts rises with the logarithm of a story's members, up to so many: of many, some are like
a text by chance."""

_OF_FEW, _FEW = 0.9, 100
"""While few texts of a language are known, all words are as rare as names: at the first text the line of long
ones is by so much higher, and by half of it when so many are known."""

_OF_KNOWN, _KNOWN = 1.0, 500
"""The line of short texts rises, by so much in the end, where more texts of a language are known than those
that their weights are of: what two have in common is rarer then."""

_HEARD = 3
"""Members of a story that are heard, of those that are compared."""

_AGENCY = 0.8
"""The share of common runs from which on a text without a difference in a slot is an agency's."""


def margin(
    likenesses: Sequence[Likeness],
    cosine: float,
    characters: int,
    *,
    is_paired: bool,
    members: int,
    texts: int,
) -> float:
    """The distance of an item above the line of a story: it joins from 0 on.

    `likenesses` are those with the nearest members, the nearest first, `cosine` is that with the story's
    mean, `characters` the length of the item, `members` the number of all that the story has, `texts` that
    of those known in the language.
    """
    if 2 * sum(each.hard > 0 for each in likenesses) > len(likenesses):
        return -10.0
    if all(each.template >= _AGENCY and each.is_clean and not each.soft for each in likenesses):
        return 1.0
    length = min(characters, max(each.characters for each in likenesses))
    if is_paired:
        by_chance = min(1.0, max(0.0, (length - _MUCH) / _MUCH))
        return _with_best(PAIRED, likenesses, cosine) - _BY_CHANCE * by_chance
    bare = _OF_BARE if length < _BARE else 0.0
    is_long = min(1.0, max(0.0, (length - _SHORT_CHARACTERS) / (_LONG_CHARACTERS - _SHORT_CHARACTERS)))
    is_long *= max(0.0, 1.0 - 2.0 * sum(each.template for each in likenesses) / len(likenesses))
    over = 0.0
    if is_long < 1.0:
        over += (1.0 - is_long) * _with_best(SHORT, likenesses, cosine)
        over -= (1.0 - is_long) * _OF_KNOWN * max(0.0, 1.0 - _KNOWN / max(1, texts))
    if is_long > 0.0:
        over += is_long * _with_best(LONG, likenesses, cosine)
        over -= is_long * (_OF_MEMBERS * log(min(_MEMBERS, members)) + _OF_FEW * _FEW / (_FEW + texts))
    return over - bare


def margin_alone(likeness: Likeness, characters: int, *, is_paired: bool, texts: int) -> float:
    """The same for a story of one member."""
    return margin([likeness], likeness.cosine, characters, is_paired=is_paired, members=1, texts=texts)


def _with_best(weights: dict[str, float], likenesses: Sequence[Likeness], cosine: float) -> float:
    """Half of what the members say that speak most for it, half of what the first of these says.

    Texts of one event tell different parts of it.
    """
    said = [_over(weights, [each], cosine) for each in likenesses]
    if len(said) == 1:
        return said[0]
    heard = sorted(range(len(said)), key=lambda at: -said[at])[:_HEARD]
    return (_over(weights, [likenesses[at] for at in heard], cosine) + said[heard[0]]) / 2


def _over(weights: dict[str, float], likenesses: Sequence[Likeness], cosine: float) -> float:
    return sum([weight * _FEATURES[name](likenesses, cosine) for name, weight in weights.items()])


_NAMED, _UNNAMED = 0.4, 0.15
"""The shares of the titles' names in the other text below which common words count less, and below which
scripts of pairs have no event in common."""
_TEMPLATE = 0.25
"""The share of common runs from which on what stands between them are slots of a template."""
_LITTLE, _MUCH_ALIKE = 0.13, 0.5
"""Cosines below which little is alike, and above which more says nothing further."""


_ENOUGH = 0.5
"""Things in common that say what happened, of which fewer say less."""


def _only_names(likeness: Likeness) -> float:
    """1 for two texts that have names in common and nothing that happened: a firm in the news, a minister, a
    club do many things in one place and on one day."""
    return max(0.0, 1.0 - (likeness.happened + likeness.numbers + likeness.tolls) / _ENOUGH)


_Feature = Callable[[Sequence[Likeness], float], float]


def _mean(each: Callable[[Likeness], float]) -> _Feature:
    def feature(likenesses: Sequence[Likeness], _: float) -> float:
        return sum(map(each, likenesses)) / len(likenesses)

    return feature


_title_names, _template = _mean(attrgetter("title_names")), _mean(attrgetter("template"))
_told = _mean(lambda each: log1p(each.told))


def _nearest(likenesses: Sequence[Likeness], _: float) -> float:
    return max([each.cosine for each in likenesses])


def _gathered(likenesses: Sequence[Likeness], cosine: float) -> float:
    """The mean of several says what their event is; one text alone may be of its kind only."""
    if len(likenesses) == 1:
        return 0.0
    return min(cosine, _MUCH_ALIKE) * max(0.0, 1.0 - 3.0 * _template(likenesses, cosine))


_FEATURES: dict[str, _Feature] = {
    "title_names": _title_names,
    "title_words": _mean(attrgetter("title_words")),
    "names": _mean(attrgetter("names_share")),
    "numbers": _mean(lambda each: log1p(each.numbers)),
    "differ": _mean(attrgetter("all_numbers_differ")),
    "units": _mean(lambda each: log1p(each.units_differ)),
    "unlike": _mean(lambda each: log1p(each.unlike)),
    "tolls": _mean(lambda each: log1p(each.tolls)),
    "template": _template,
    "full": lambda some, _: _template(some, _) * max(0.0, (_title_names(some, _) - 0.7) / 0.3),
    "name_slots": lambda some, _: sum([min(4, each.name_slots) for each in some]) / len(some) / 4,
    # Two short texts of little in common have other names beside any run of three words.
    "slots_of_template": lambda some, _: (
        sum([min(4, each.name_slots) * min(1.0, each.template / _TEMPLATE) for each in some]) / len(some) / 4
    ),
    "number_slots": lambda some, _: sum([min(4, each.number_slots) for each in some]) / len(some) / 4,
    "title_slots": _mean(lambda each: min(2, each.title_word_slots)),
    "soft": _mean(lambda each: min(2.0, each.soft)),
    "hard": _mean(lambda each: min(2, each.hard)),
    "cosine": lambda _, cosine: cosine,
    "cosine_to_0.3": lambda _, cosine: min(cosine, 0.3),
    "cosine_template": lambda some, cosine: cosine * _template(some, cosine),
    "near": _mean(attrgetter("cosine")),
    "nearest": _nearest,
    "far": lambda some, _: max(0.0, _LITTLE - _nearest(some, _)),
    "gathered": _gathered,
    "common": _mean(lambda each: each.common * max(0.0, 1.0 - 3.0 * each.template)),
    "entities": _mean(lambda each: log1p(each.named)),
    "told": lambda some, _: _told(some, _) * min(1.0, _title_names(some, _) / _NAMED),
    "titled": _mean(lambda each: log1p(each.titled)),
    # One of them is enough.
    "only_named": lambda some, _: min([_only_names(each) for each in some]),
    "days": _mean(attrgetter("days")),
    # To be near in time says something of two texts that share a name, or in scripts of pairs a number.
    "soon": _mean(lambda each: each.soon * min(1.0, each.named)),
    "timely": _mean(lambda each: each.soon * min(1.0, each.named + each.numbers)),
    "lack": lambda some, _: max(0.0, _UNNAMED - _title_names(some, _)),
    "unmet": _mean(attrgetter("unmet")),
    "placed": _mean(attrgetter("placed")),
    "elsewhere": _mean(attrgetter("elsewhere")),
    "one": lambda _, __: 1.0,
}
"""By the likenesses with some members and the cosine with the story's mean."""
