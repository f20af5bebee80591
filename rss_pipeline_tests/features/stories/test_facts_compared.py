"""Each kind of fact counts, for an event or against it, as much as it says. How facts are read is in
test_facts.py."""

from typing import Any

import pytest

from rss_pipeline.features.stories.facts import Facts
from rss_pipeline.features.stories.facts_compared import common_numbers, conflicts


def told(one: dict[str, Any], other: dict[str, Any], template: float = 0.0) -> tuple[int, float]:
    return conflicts(Facts(**one), Facts(**other), template)


@pytest.mark.parametrize(
    ("one", "other", "soft"),
    [
        ({"counted": {"part": {"1"}}}, {"counted": {"part": {"2"}}}, 1),
        ({"months": {3}}, {"months": {4}}, 1),
        ({"title_months": {3}}, {"title_months": {4}}, 0.5),
        ({"ages": {33}}, {"ages": {34}}, 1),
        ({"codes": {"a38"}}, {"codes": {"a39"}}, 1),
        ({"title_years": {2025}}, {"title_years": {2026}}, 1),
        ({"is_price_cut": True}, {}, 2),
        ({}, {"is_rumour": True}, 2),
        ({"title_money": {"€": {50.0}}}, {"numbers": {"€": {70.0}}}, 0.5),
        ({"numbers": {"magnitude": {5.1}}}, {"numbers": {"magnitude": {5.4}}}, 2),
    ],
    ids=str,
)
def test_a_fact_that_differs_makes_another_event_likely(
    one: dict[str, Any], other: dict[str, Any], soft: float
) -> None:
    assert told(one, other) == told(other, one) == (0, soft)
    assert told(one, one) == (0, 0)


@pytest.mark.parametrize(
    ("one", "other", "apart", "alike"),
    [
        # Texts of one event may name other days of it; those of a series do not.
        ({"dates": {(3, 1)}}, {"dates": {(3, 2)}}, (0, 0), (0, 0.5)),
        ({"scores": {(2, 1)}}, {"scores": {(3, 1)}}, (0, 1), (0, 2)),
        ({"weekdays": [1]}, {"weekdays": [2]}, (0, 0), (0, 1)),
        ({"title_weekdays": {1}}, {"title_weekdays": {2}}, (0, 0), (1, 0)),
        ({"title_dates": {(3, 1)}}, {"title_dates": {(3, 2)}}, (0, 0.5), (1, 0)),
    ],
    ids=str,
)
def test_days_and_scores_that_differ_say_more_where_the_texts_are_alike(
    one: dict[str, Any], other: dict[str, Any], apart: tuple[int, float], alike: tuple[int, float]
) -> None:
    assert (told(one, other, 0.0), told(one, other, 0.5)) == (apart, alike)


def test_a_price_may_be_rounded() -> None:
    first = {"title_money": {"€": {1_000.0}}, "numbers": {"€": {1_000.0}}}
    near = {"title_money": {"€": {950.0}}, "numbers": {"€": {950.0}}}
    other = {"title_money": {"€": {800.0}}, "numbers": {"€": {1_000.0}}}
    assert told(first, near) == (0, 0)
    assert told(first, {"numbers": near["numbers"]}) == (0, 0)
    # Where both titles have one, that of the other text says nothing.
    assert told(first, other) == (1, 0)


@pytest.mark.parametrize(
    ("facts", "worth"),
    [
        ({"numbers": {"": {7.0}}}, 0.2),
        ({"numbers": {"km": {7.0}}}, 0.5),
        ({"numbers": {"km": {7.5}}}, 1.0),
        ({"numbers": {"": {700.0}}}, 1.0),
        ({"tolls": {7.0}}, 0.5),
        ({"tolls": {700.0}}, 1.0),
        ({"scores": {(2, 1)}}, 0.5),
        ({"ages": {34}}, 0.5),
        ({"versions": {"3.2"}}, 1.0),
        ({"codes": {"a38"}}, 0.3),
        ({"cves": {"2026-1"}}, 3.0),
        ({"dates": {(3, 1)}}, 0.3),
        ({"named": {"halo": {"3"}}}, 0.5),
        ({"named": {"j": {"2"}}}, 0.2),
    ],
    ids=str,
)
def test_a_fact_of_both_counts_as_much_as_it_says(facts: dict[str, Any], worth: float) -> None:
    found, shown, *_ = common_numbers(Facts(**facts), Facts(**facts))
    assert found == pytest.approx(worth)
    assert len(shown) == 1
    assert common_numbers(Facts(**facts), Facts())[0] == 0


def test_a_number_with_a_unit_is_that_of_another_text_without_one() -> None:
    for value, worth in ((7.0, 0.2), (700.0, 1.0)):
        one, other = Facts(numbers={"km": {value}}), Facts(numbers={"": {value}})
        assert common_numbers(one, other)[0] == pytest.approx(worth)


def test_of_each_unit_of_both_the_numbers_agree_or_not() -> None:
    one = Facts(numbers={"km": {7.0}, "kg": {3.0}, "": {1.0}})
    other = Facts(numbers={"km": {8.0}, "kg": {3.0, 4.0}})
    assert common_numbers(one, other)[2:] == (2, 1)
