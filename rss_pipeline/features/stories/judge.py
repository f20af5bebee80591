"""The decision whether an item joins a story, from its likeness with the nearest members.

Two lines are drawn. Texts that share a template, and short ones, are told apart by what differs in them; long
texts without one, by how much they have in common. The weights come from logistic regressions on pairs of
labelled news; some were then set by hand, where a wrong merge costs a reader more than a missed one.
"""

from collections.abc import Sequence
from math import log1p

from rss_pipeline.features.stories.pair import Likeness

VERSION = 2
"""The method's version: it grows with each change of what is decided."""

SHORT = {
    "title_names": 2.17,
    "title_words": 0.9,
    "names": 1.79,
    "numbers": 1.31,
    "differ": -2.64,
    "template": -0.37,
    "name_slots": -5.06,
    "number_slots": -2.03,
    "title_slots": -5.2,
    "title_name_slots": -0.4,
    "soft": -0.4,
    "hard": -5.16,
    "cosine": 8.73,
    "cosine_to_0.3": 6.7,
    "cosine_template": -9.24,
    "nearest": 7.29,
    "near": -7.03,
    "one": -5.54,
}
LONG = {
    "title_names": 1.04,
    "title_words": 0.47,
    "names": 6.63,
    "numbers": 4.01,
    "differ": -0.4,
    "template": 12.67,
    "name_slots": -3.39,
    "hard": -0.47,
    "cosine": 8.99,
    "cosine_to_0.3": -8.65,
    "cosine_template": 10.0,
    "nearest": 6.22,
    "near": -4.17,
    "one": -3.06,
}
_SHORT_CHARACTERS, _LONG_CHARACTERS = 300, 450
"""Up to the first a text is short, from the second on it is long; between them both lines count in part."""


def margin(likenesses: Sequence[Likeness], cosine: float, characters: int) -> float:
    """The distance of an item above the line of a story: it joins from 0 on.

    `likenesses` are those with the nearest members, the nearest first, `cosine` is that with the story's
    mean, `characters` the length of the item.
    """
    if 2 * sum(each.hard > 0 for each in likenesses) > len(likenesses):
        return -10.0
    features = _features(likenesses, cosine)
    length = min(characters, max(each.characters for each in likenesses))
    is_long = min(1.0, max(0.0, (length - _SHORT_CHARACTERS) / (_LONG_CHARACTERS - _SHORT_CHARACTERS)))
    is_long *= max(0.0, 1.0 - 2.0 * features["template"])
    over = 0.0
    if is_long < 1.0:
        over += (1.0 - is_long) * sum(weight * features[name] for name, weight in SHORT.items())
    if is_long > 0.0:
        over += is_long * sum(weight * features[name] for name, weight in LONG.items())
    return over


def _features(likenesses: Sequence[Likeness], cosine: float) -> dict[str, float]:
    count = len(likenesses)
    template = sum(each.template for each in likenesses) / count
    return {
        "title_names": sum(each.title_names for each in likenesses) / count,
        "title_words": sum(each.title_words for each in likenesses) / count,
        "names": sum(each.names_share for each in likenesses) / count,
        "numbers": sum(log1p(each.numbers) for each in likenesses) / count,
        "differ": sum(each.all_numbers_differ for each in likenesses) / count,
        "template": template,
        "name_slots": sum(min(4, each.name_slots) for each in likenesses) / count / 4,
        "number_slots": sum(min(4, each.number_slots) for each in likenesses) / count / 4,
        "title_slots": sum(min(2, each.title_word_slots) for each in likenesses) / count,
        "title_name_slots": sum(min(2, each.title_name_slots) for each in likenesses) / count,
        "soft": sum(min(2.0, each.soft) for each in likenesses) / count,
        "hard": sum(min(2, each.hard) for each in likenesses) / count,
        "cosine": cosine,
        "cosine_to_0.3": min(cosine, 0.3),
        "cosine_template": cosine * template,
        "nearest": max(each.cosine for each in likenesses),
        "near": sum(each.cosine for each in likenesses) / count,
        "one": 1.0,
    }
