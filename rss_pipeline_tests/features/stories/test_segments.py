"""Items are found by their terms as a plain look at all of them would, however they are kept."""

import random

import pytest

from rss_pipeline.features.stories.segments import Items

MOST, COUNT = 12, 5


class Plain:
    """All items, with their terms."""

    def __init__(self) -> None:
        self.terms: list[set[int]] = []
        self.first = 0

    def latest(self, term: int, most: int) -> list[int]:
        known = range(self.first, len(self.terms))
        return [number for number in known if term in self.terms[number]][-most:]

    def likest(self, sought: list[tuple[float, int]], count: int, most: int) -> list[int]:
        sums: dict[int, float] = {}
        for weight, term in sought:
            for number in self.latest(term, most):
                sums[number] = sums.get(number, 0) + weight
        return sorted(sums, key=lambda number: (sums[number], number), reverse=True)[:count]


@pytest.mark.parametrize(("seed", "grows"), [(0, False), (1, False), (2, True), (3, True)])
def test_the_likest_items_are_those_of_a_plain_look(
    seed: int, grows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.segments.NEWEST", 4)
    # In a window that grows, segments that were as large as they might be are merged later.
    monkeypatch.setattr("rss_pipeline.features.stories.segments._SMALLEST", 8 if grows else 24)
    dice = random.Random(seed)
    terms = [dice.getrandbits(28) for _ in range(30)]
    items, plain = Items(), Plain()
    for number in range(150):
        some = set(dice.choices(terms, k=6))
        record = f"item {number}".encode()
        assert items.add(number % 7, float(number), number, record, some) == number
        plain.terms.append(some)
        if dice.random() < 0.1:
            items.seal()
        if not grows and dice.random() < 0.1:
            plain.first = items.forget(number - 40)
            assert plain.first == max(0, number - 40)
        # Sums of these weights are whole numbers, equal or not.
        sought = [(float(dice.randint(1, 9)), term) for term in dice.sample(terms, 8)]
        assert items.likest(sought, COUNT, MOST) == plain.likest(sought, COUNT, MOST)
        assert items.latest(terms[0], MOST) == plain.latest(terms[0], MOST)
        seen = dice.randint(plain.first, number)
        assert items.record(seen) == f"item {seen}".encode()
        assert (items.feed(seen), items.time(seen)) == (seen % 7, float(seen))
    assert len(items) == 150 - plain.first
    assert 1 < len(items.segments) < 12
