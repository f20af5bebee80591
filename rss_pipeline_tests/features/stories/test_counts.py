"""Terms and sentences are counted as in a plain table, however their counts are kept."""

import random
from array import array
from collections import Counter

import pytest

from rss_pipeline.features.stories import boilerplate, frequencies
from rss_pipeline.features.stories.boilerplate import Boilerplate
from rss_pipeline.features.stories.frequencies import Frequencies, rarity
from rss_pipeline.features.stories.words import hashed


def test_terms_are_counted_beyond_a_byte_and_all_counts_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frequencies, "MOST_TEXTS", 700)
    monkeypatch.setattr(frequencies, "_MOST_CHANGES", 300)
    words = [f"word{number}" for number in range(20)]
    dice = random.Random(1)
    counts, plain, total = Frequencies(), Counter[str](), 0
    for number in range(1_500):
        some = {words[0], *dice.choices(words, k=4)}
        counts.add("xx", map(hashed, some))
        plain.update(some)
        total += 1
        if total >= 700:
            total //= 2
            plain = Counter({word: count // 2 for word, count in plain.items()})
        if number % 40 == 0:
            if counts.changes is None:
                written = bytearray(counts.seen), array("I", [*counts.many, *counts.many.values()])
            totals, changes = counts.totals, counts.changes or array("I")
            counts = Frequencies()
            counts.load(bytearray(written[0]), written[1], totals, changes)
    assert plain[words[0]] > 255 > plain[words[1]] > 0
    assert counts.weights("xx", words) == {word: rarity(total, plain[word]) for word in words}


def test_sentences_are_counted_by_feed_and_all_counts_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boilerplate, "_MOST_SENTENCES", 400)
    monkeypatch.setattr(boilerplate, "_FEWEST_NEW", 8)
    sentences = [f"This is sentence number {number}. " for number in range(40)]
    dice = random.Random(2)
    counts, plain, added = Boilerplate(), Counter[tuple[str, str]](), 0
    for number in range(900):
        feed, some = f"{number % 2}", dice.choices(sentences[: 1 + number % 40], k=3)
        wanted = tuple(at for at, each in enumerate(some) if plain[feed, each] >= 3)
        assert counts.repeated(feed, "".join(some)) == wanted
        plain.update({(feed, each) for each in some})
        added += len({*some})
        if added >= 400:
            plain = Counter({each: count // 2 for each, count in plain.items()})
            added //= 2
        if number % 7 == 0:
            known, changes = counts.known, counts.changes
            counts = Boilerplate()
            counts.load(known, changes, added)
