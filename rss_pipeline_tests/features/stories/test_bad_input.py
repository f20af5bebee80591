"""A window with what feeds should not send, and with more than it keeps."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.window import Window
from rss_pipeline.features.stories.window_file import load, save
from rss_pipeline_tests.features.stories import kit

HOUR = 3_600.0
NOW = 1_788_000_000.0


def report(number: int, *, feed: str | None = None, at: float = NOW, text: str | None = None) -> Entry:
    """A text of one event, as each of many feeds words it."""
    return Entry(
        id=f"report {number}",
        feed=feed or f"feed {number}",
        title=f"Dam at Lake Ormund breaks above Tarnby, report {number % 3}",
        text=text
        or "The dam at Lake Ormund broke on Monday and water from it reached Tarnby within 40 minutes. "
        f"Mayor Lise Harnow called for help. Reporter {number} saw boats in the streets of Tarnby.",
        time=at,
        published=at,
        seen=at,
        arrived=number + 1,
    )


def unrelated(number: int, at: float = NOW) -> Entry:
    word = "".join(chr(97 + number // 26**place % 26) for place in range(4))
    return Entry(
        id=f"other {number}",
        feed=f"other {number}",
        title=f"The {word}ik of {word}on wins {word}al",
        text=f"A {word}er was seen with {word}ings and {word}ments of {word}ard.",
        time=at,
        seen=at,
        arrived=number + 1,
    )


ANY = st.text(max_size=60)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(ANY, st.text(max_size=300), st.none() | ANY, st.sampled_from(["en", "zh", "", "x-?", None]))
    ),
    st.booleans(),
)
def test_any_text_is_decided_and_kept(
    rows: list[tuple[str, str, str | None, str | None]], again: bool
) -> None:
    window = Window()
    for number, (title, text, link, language) in enumerate(rows * (1 + again)):
        entry = Entry(
            id=f"{number}",
            feed=f"{number % 3}",
            title=title,
            text=text,
            link=link,
            language=language,
            time=NOW,
        )
        decision = window.decide(entry)
        assert decision.story == entry.id or decision.evidence
    assert len(window) == len(rows) * (1 + again)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
def test_items_of_one_template_are_apart_however_many_there_are(count: int) -> None:
    window = Window()
    stories = set()
    for number in range(count):
        town = "".join(chr(97 + number // 26**place % 26) for place in range(4)).capitalize()
        entry = Entry(
            id=f"{number}",
            feed=f"{number}",
            title=f"Council of {town}by approves budget for {number + 10} schools",
            text=f"The council of {town}by has approved its budget on Tuesday with {number + 10} votes.",
            time=NOW,
        )
        stories.add(window.decide(entry).story)
    assert len(stories) >= 0.98 * count


def chapter(number: int, at: float) -> Entry:
    """One more report, with something new."""
    news = ("The army sends pumps.", "Schools stay closed.", "A bridge is gone.", "Boats are in the streets.")
    told = f"The dam at Lake Ormund broke on Monday, and Tarnby is under water. {news[number % len(news)]}"
    return replace(report(number, at=at, text=told), title="Dam at Lake Ormund breaks above Tarnby")


def test_a_story_that_never_ends_keeps_its_id_when_its_first_items_left(tmp_path: Path) -> None:
    window = Window()
    for number in range(120):
        at = NOW + number * 4 * HOUR
        decision = window.decide(chapter(number, at))
        assert decision.story == "report 0", number
        window.forget(at - 48 * HOUR)
        assert len(window) <= 13
    save(window, tmp_path / "window", database="here")
    again = load(tmp_path / "window", database="here")
    assert again is not None
    assert again.decide(chapter(120, NOW + 120 * 4 * HOUR)).story == "report 0"


def test_a_feed_that_repeats_what_others_say_is_in_a_story_once() -> None:
    window = Window()
    window.decide(report(0))
    found = [
        window.decide(report(number, feed="flood", text=f"{report(number).text} And {number} more.")).story
        for number in range(1, 40)
    ]
    assert found.count("report 0") <= 1


def test_a_feed_cannot_join_what_others_keep_apart() -> None:
    """An item that has both texts joins one story at most, and what comes then is where it was."""
    first, second = (kit.entry(row) for row in kit.ROWS if row["set"] == "a01")
    window = Window()
    apart = [window.decide(each).story for each in (first, second)]
    window.decide(
        Entry(
            id="both",
            feed="flood",
            title=f"{first.title}; {second.title}",
            text=first.text + second.text,
            time=first.time,
        )
    )
    assert window.decide(first).story == apart[0]
    assert window.decide(second).story == apart[1]


def test_an_item_that_is_edited_into_another_story_stays_where_it_is() -> None:
    window = Window()
    window.decide(report(0))
    window.decide(unrelated(0))
    edited = Entry(id="other 0", feed="other 0", title=report(1).title, text=report(1).text, time=NOW)
    assert window.decide(edited).story == "other 0"
    assert len(window) == 2


def test_items_that_left_the_window_are_joined_by_nothing() -> None:
    window = Window()
    window.decide(report(0))
    window.forget(NOW + 1)
    assert len(window) == 0
    assert window.decide(report(1)).story == "report 1"
    assert window.arrived == 2


def test_the_text_of_an_item_that_left_the_window_is_kept_no_longer_than_another_one(tmp_path: Path) -> None:
    window = Window()
    for number in range(260):
        window.decide(unrelated(number, at=NOW + number * HOUR))
        window.forget(NOW + (number - 40) * HOUR)
        kept = b"".join(sample for _, sample in window.samples)
        assert unrelated(number - 120).text.encode() not in kept
        assert kept or number < 32
    save(window, tmp_path / "window", database="here")
    again = load(tmp_path / "window", database="here")
    assert again is not None
    assert again.samples == window.samples
    assert [again.entry(number).title for number in range(220, 260)] == [
        unrelated(number).title for number in range(220, 260)
    ]


def test_a_window_of_more_items_than_it_keeps_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.window.MOST_ITEMS", 60)
    monkeypatch.setattr("rss_pipeline.features.stories.window._SPARE_ITEMS", 20)
    window = Window()
    window.decide(report(0))
    for number in range(200):
        window.decide(unrelated(number))
        assert len(window) <= 80
    window.decide(report(1))
    assert window.decide(report(2)).story == "report 1"


def test_an_operator_moves_an_item_out_of_a_story_and_into_one(tmp_path: Path) -> None:
    window = Window()
    for number in range(3):
        window.decide(report(number))
    window.decide(unrelated(0))
    window.move("report 0", None)
    window.move("other 0", "report 0")
    window.move("nothing", "report 0")
    assert window.decide(report(1)).story == window.decide(report(2)).story == "report 0"
    assert window.decide(unrelated(0)).story == "report 0"
    alone = window.decide(report(0)).story
    assert alone != "report 0"
    save(window, tmp_path / "window", database="here")
    again = load(tmp_path / "window", database="here")
    assert again is not None
    assert [again.decide(report(number)).story for number in range(3)] == [alone, "report 0", "report 0"]


def test_an_item_of_a_story_that_left_the_window_is_restored_into_it() -> None:
    window = Window()
    window.restore(report(1), "report 0")
    window.restore(report(2), "report 0")
    assert window.decide(report(3)).story == "report 0"
