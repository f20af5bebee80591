"""The decision whether an item joins a story, from its likeness with the nearest members.

Two lines are drawn. Texts that share a template, and short ones, are told apart by what differs in them; long
texts without one, by how much they have in common. The weights come from logistic regressions on pairs of
labelled news; some were then set by hand, where a wrong merge costs a reader more than a missed one.
"""

from collections.abc import Sequence
from math import log1p

from rss_pipeline.features.stories.pair import Likeness

VERSION = 1
"""The method's version: it grows with each change of what is decided."""

SHORT = {
    "title_names": 0.05,
    "title_names_best": 1.76,
    "names": 3.65,
    "numbers": 2.83,
    "differ": -1.2,
    "template": -3.17,
    "name_slots": -4.12,
    "number_slots": -3.58,
    "title_slots": -4.0,
    "title_name_slots": -1.0,
    "soft": -0.6,
    "hard": -2.5,
    "cosine": 3.43,
    "cosine_to_0.3": 3.9,
    "cosine_template": -3.43,
    "nearest": 3.92,
    "near": 1.15,
    "one": -4.99,
}
LONG = {
    "title_names": 0.75,
    "names": 5.35,
    "numbers": 2.99,
    "differ": -1.03,
    "template": 5.56,
    "name_slots": -2.12,
    "number_slots": -0.19,
    "hard": -0.91,
    "cosine": 4.69,
    "cosine_to_0.3": -2.5,
    "nearest": 6.93,
    "one": -2.88,
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
        "title_names_best": max(each.title_names for each in likenesses),
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
