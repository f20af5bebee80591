"""Each piece of evidence counts where it should: for an event, against it, or not at all."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rss_pipeline.features.stories.article import read
from rss_pipeline.features.stories.judge import margin
from rss_pipeline.features.stories.pair import Likeness, compare, compare_words
from rss_pipeline_tests.features.stories.kit import in_order

LIKENESS = Likeness(
    cosine=0.2,
    title_names=0.5,
    title_words=0.3,
    names=(),
    names_share=0.2,
    numbers=0.0,
    shown_numbers=(),
    all_numbers_differ=False,
    units_differ=0,
    template=0.0,
    name_slots=0,
    number_slots=0,
    title_name_slots=0,
    title_word_slots=0,
    hard=0,
    soft=0.0,
    characters=1_000,
    common=0.2,
    tolls=0,
    elsewhere=False,
    unlike=0,
    days=0.0,
    named=1.0,
    told=1.0,
    titled=0.5,
    happened=1.0,
    happening=float,
    unmet=0.5,
    placed=False,
    soon=0.0,
)
LENGTHS = {"short": 200, "long": 600, "paired": 300}


def over(kind: str, *members: dict[str, Any], cosine: float = 0.2, length: int | None = None) -> float:
    likenesses = [replace(LIKENESS, **each) for each in members or [{}]]
    characters = length or LENGTHS[kind]
    return margin(
        likenesses, cosine, characters, is_paired=kind == "paired", members=len(likenesses), texts=1_000
    )


FOR = {
    "short": ["numbers", "tolls", "title_words", "common", "told", "titled", "days", "soon", "placed"],
    "long": ["title_names", "title_words", "names_share", "numbers", "named", "days", "placed", "tolls"],
    "paired": ["numbers", "soon", "named", "titled"],
}
AGAINST = {
    "short": ["units_differ", "unlike", "title_word_slots", "soft", "unmet", "elsewhere"],
    "long": ["all_numbers_differ", "name_slots", "soft", "unmet", "unlike"],
    "paired": ["units_differ", "name_slots", "number_slots", "soft"],
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FOR for name in FOR[kind]])
def test_what_speaks_for_an_event_counts(kind: str, name: str) -> None:
    assert over(kind, {name: 1.5}) > over(kind) + 0.1


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in AGAINST for name in AGAINST[kind]])
def test_what_speaks_against_it_counts(kind: str, name: str) -> None:
    assert over(kind, {name: 2}) < over(kind) - 0.1


@pytest.mark.parametrize(
    ("kind", "said", "where"),
    [
        # Beside a single common run there is no template.
        ("short", {"name_slots": 4}, {}),
        ("short", {"common": 1.0}, {"template": 0.34}),
        ("short", {"told": 9.0}, {"title_names": 0.0}),
        ("short", {"soon": 1.0}, {"named": 0.0, "told": 0.0}),
        ("paired", {"soon": 1.0}, {"named": 0.0}),
    ],
    ids=str,
)
def test_what_says_nothing_there_does_not_count(
    kind: str, said: dict[str, Any], where: dict[str, Any]
) -> None:
    assert over(kind, where | said) == pytest.approx(over(kind, where))


def test_names_that_differ_count_where_there_is_a_template() -> None:
    a_template = {"template": 0.25}
    assert over("short", {**a_template, "name_slots": 4}) < over("short", a_template) - 1


def test_a_template_counts_less_where_the_names_of_the_titles_are_met() -> None:
    for kind in ("short", "paired"):
        apart, met = ({"template": 0.3, "title_names": share} for share in (0.7, 1.0))
        assert over(kind, met) > over(kind, apart) + 0.5
    assert over("paired", {"template": 0.5}) < over("paired") - 1
    assert over("paired", {"title_names": 0.0}) < over("paired") - 1


@pytest.mark.parametrize("kind", LENGTHS)
def test_names_alone_say_little(kind: str) -> None:
    assert over(kind, {"happened": 0.0}) < over(kind) - 3
    # The same number of dead says it as well, and one member of a story is enough.
    assert over(kind, {"happened": 0.0, "numbers": 1.0}) >= over(kind)
    assert over(kind, {"happened": 0.0}, {}) == over(kind, {}, {})


def test_two_that_are_hardly_alike_are_far() -> None:
    assert over("short", {"cosine": 0.03}) < over("short", {"cosine": 0.13}) - 0.3


def test_the_mean_of_several_says_what_their_event_is_and_one_alone_does_not() -> None:
    assert over("short", {}, {}, cosine=0.4) > over("short", {}, {}) + 1
    assert over("short", cosine=0.4) == over("short")


def test_long_texts_are_alike_by_their_cosines() -> None:
    steps = [over("long", cosine=cosine) for cosine in (0.2, 0.3, 0.4)]
    assert steps[0] < steps[1] < steps[2]
    assert steps[2] - steps[1] > steps[1] - steps[0] + 0.1, "above a third it says more"
    assert over("long", {"cosine": 0.5}) > over("long")
    # A fifth of such a text is judged as a short one is.
    few = {"template": 0.1}
    more = over("long", few, cosine=0.4) - over("long", few, cosine=0.3)
    assert more > 0.8 * (steps[2] - steps[1]) + 0.03, "beside common runs as well"
    # One that is near, and others that are not, say more than several that are half near.
    assert over("long", {"cosine": 0.5}, {"cosine": 0.2}) > over("long", {"cosine": 0.5}, {"cosine": 0.5})


def test_a_conflict_with_most_members_decides_and_with_one_of_them_counts() -> None:
    assert over("long", {"hard": 1}) == over("short", {"hard": 1}, {"hard": 1}, {}) == -10
    assert -10 < over("long", {"hard": 1}, {}, {}) < over("long", {}, {}, {}) - 0.05


def test_a_text_of_an_agency_joins_where_nothing_differs() -> None:
    assert over("short", {"template": 0.85, "title_names": 0.0}) == 1
    for name in ("name_slots", "number_slots", "title_name_slots", "title_word_slots", "soft"):
        assert over("short", {"template": 0.85, "title_names": 0.0, name: 1}) != 1


def test_the_length_of_a_text_moves_the_line() -> None:
    assert over("paired", length=800) < over("paired", length=400) - 1
    assert over("short", length=70) < over("short", length=90) - 0.5
    # Those that share a template are judged as short ones.
    a_template = {"template": 0.5}
    assert over("long", a_template) == pytest.approx(over("short", a_template))


def test_the_members_that_speak_most_for_it_are_heard() -> None:
    like = {"title_words": 1.0, "common": 0.6}
    assert over("short", {}, {}, {}, like) == pytest.approx(over("short", like, {}, {}, {}))


def test_no_facts_speak_more_for_one_event_than_words_alone() -> None:
    """So of the other one, no facts are needed where the words of both are below the line."""

    def weights(words: Iterable[str]) -> dict[str, float]:
        return dict.fromkeys(words, 4.0)

    entries = in_order()
    entries += [replace(each, text=each.title) for each in entries]
    articles = sorted(map(read, entries), key=lambda each: (each.language, each.title_stems))
    lower = 0
    for one, other in pairwise(articles):
        if one.is_paired != other.is_paired:
            continue
        both = one, other, 0.2, weights(one.weighed), weights(other.weighed), weights
        likenesses = compare_words(*both), compare(*both)
        words, facts = (
            margin([each], 0.2, one.characters, is_paired=one.is_paired, members=1, texts=1_000)
            for each in likenesses
        )
        assert words >= facts
        lower += words > facts
    assert lower > 50
