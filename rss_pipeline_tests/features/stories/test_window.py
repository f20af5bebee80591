"""Items of several feeds on one event are one story, and look-alikes are not."""

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from itertools import permutations

from rss_pipeline.features.stories.article import read
from rss_pipeline.features.stories.judge import margin
from rss_pipeline.features.stories.model import Entry, moment
from rss_pipeline.features.stories.pair import Likeness, compare
from rss_pipeline.features.stories.window import CLOSED_AFTER, Window, why
from rss_pipeline_tests.features.stories import kit

DAY = 86_400.0
NOW = 1_788_000_000.0


def stories(entries: Iterable[Entry]) -> dict[str, str]:
    window = Window()
    return {entry.id: window.decide(entry).story for entry in entries}


def pair(name: str) -> tuple[Entry, Entry]:
    one, other = (kit.entry(row) for row in kit.ROWS if row["set"] == name)
    return one, other


def changed(entry: Entry, **fields: object) -> Entry:
    known = {name: getattr(entry, name) for name in Entry.__slots__}
    return Entry(**{**known, **fields})


def test_no_look_alike_is_merged_and_few_that_belong_together_are_apart() -> None:
    merged, apart = kit.wrong(stories(kit.in_order()))
    assert merged == []
    assert len(apart) <= 3, apart


def test_in_any_order_no_look_alike_is_merged() -> None:
    for seed in range(3):
        entries = kit.in_order()
        random.Random(seed).shuffle(entries)
        merged, apart = kit.wrong(stories(entries))
        assert merged == []
        assert len(apart) <= 4, apart


def test_the_same_order_gives_the_same_stories_scores_and_reasons() -> None:
    one, other = Window(), Window()
    assert [one.decide(each) for each in kit.in_order()] == [other.decide(each) for each in kit.in_order()]


LONG_TEXTS = """
from dataclasses import replace
from rss_pipeline.features.stories.window import Window
from rss_pipeline_tests.features.stories import kit
entries = [each for each in kit.in_order() if each.language == "en"]
window = Window()
for first in range(0, len(entries) - 4, 3):
    text = " ".join(each.text for each in entries[first : first + 10])
    print(window.decide(replace(entries[first], text=text)))
"""


def test_processes_come_to_the_same_scores() -> None:
    """Sets have another order in each."""
    command = [sys.executable, "-c", LONG_TEXTS]
    said = [
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True)
        for seed in "012"
    ]
    assert len({each.stdout for each in said}) == 1


def test_a_story_says_why() -> None:
    first, second = pair("t02")
    window = Window()
    window.decide(first)
    decision = window.decide(second)
    assert decision.story == first.id
    assert decision.score > 0
    assert decision.evidence is not None
    assert decision.evidence.nearest == first.id
    assert decision.evidence.names == ("Kestrel", "Venus")
    assert "38 minute" in decision.evidence.numbers
    assert decision.evidence.terms
    assert why(second, first).names == decision.evidence.names


def test_items_of_one_feed_join_only_as_copies() -> None:
    first, second = pair("t02")
    found = stories([first, changed(second, feed=first.feed), changed(first, id="again")])
    assert found[second.id] == second.id
    assert found["again"] == first.id


def test_a_link_makes_no_copies_of_items_that_are_unlike() -> None:
    """A section has one link for all its items, and a feed may give the link of another one's article."""
    section = "https://town.example/news/"
    jam, snow, museum, flood = (
        Entry(id=title, feed=feed, title=title, text=f"{title}. {text}", link=section, time=NOW)
        for feed, title, text in (
            ("a", "A recipe for damson jam", "Wash the fruit, and boil it with as much sugar."),
            ("a", "Snow closes the pass", "The road over the hill is shut until the plough has been there."),
            ("b", "Museum opens again", "The museum of glass has free entry for all of its first week."),
            ("c", "Flood at the mill", "Water stood two feet high at the old mill, and is falling."),
        )
    )
    for some in permutations([jam, snow, museum, flood]):
        assert len(set(stories(some).values())) == 4
    # Under other words of its own title, and with less of its text, it is that article.
    copy = changed(snow, id="copy", feed="d", title="Pass closed by snow", text="The hill road is shut.")
    assert stories([jam, snow, copy])["copy"] == snow.id


def test_a_country_that_both_name_joins_nothing() -> None:
    one, other = (
        Entry(id=title, feed=title, title=title, text=text, time=1_780_000_000.0, language="en")
        for title, text in (
            (
                "Chad bids to host the Games",
                "The prime minister signed the bid on Friday, hoping for stadiums.",
            ),
            (
                "Doubts about the ruler of Chad stay",
                "His leave came with assurances of loyalty, yet tension goes through the army.",
            ),
        )
    )
    assert stories([one, other])[other.id] == other.id


def test_what_a_feed_says_three_times_counts_once() -> None:
    one, other = pair("t01")

    def score(copies: int) -> float:
        window = Window()
        for each in (one, *(changed(one, id=f"copy {n}") for n in range(copies))):
            window.decide(each)
        return window.decide(other).score

    assert 0 < score(2) <= score(0)


def test_the_same_text_a_week_later_is_another_item() -> None:
    later = changed(BREACH, id="later", feed="two")
    assert stories([BREACH, changed(later, time=NOW + 6 * DAY)])["later"] == "breach"
    assert stories([BREACH, changed(later, time=NOW + 8 * DAY)])["later"] == "later"


def test_items_of_two_languages_do_not_join() -> None:
    first, second = pair("t02")
    assert stories([first, changed(second, language="fr")])[second.id] == second.id


def test_a_language_that_is_declared_of_another_script_is_ignored() -> None:
    first, second = pair("t15")
    assert stories([first, changed(second, language="en-US")])[second.id] == first.id


BREACH = Entry(
    id="breach",
    feed="one",
    title="Extortion group lists Halloway Stores",
    text="The group calling itself Gilt Heron has put the retailer Halloway on its leak site. "
    "It came in through a helpdesk platform in Tarnby.",
    time=NOW,
    language="en",
)
SORRY = Entry(
    id="sorry",
    feed="two",
    title="Is your Halloway card safe?",
    text="Millions of bargain hunters woke up to a nightmare: Gilt Heron raided the points club in Tarnby. "
    "Here is how to check whether you are a victim.",
    time=NOW + 4 * 3600,
    language="en",
)


FURTHER = Entry(
    id="further",
    feed="one",
    title="Halloway: Gilt Heron came in by the helpdesk",
    text="Gilt Heron raided Halloway's points club in Tarnby through a helpdesk platform, it says. "
    "The group put millions of bargain hunters on its leak site.",
    time=NOW + 4 * 3600,
    language="en",
)


def test_a_feeds_further_item_joins_by_what_others_say() -> None:
    assert stories([BREACH, FURTHER])["further"] == "further"
    assert stories([BREACH, SORRY, FURTHER])["further"] == "breach"


def test_an_update_joins_like_that_and_the_next_of_a_series_does_not() -> None:
    update = changed(FURTHER, id="update", title=FURTHER.title.replace("came", "walked"))
    series = changed(FURTHER, id="series", text=FURTHER.text.replace("Tarnby", "Ottery"))
    assert stories([BREACH, SORRY, FURTHER, update])["update"] == "breach"
    assert stories([BREACH, SORRY, FURTHER, series])["series"] == "series"


def test_texts_that_have_little_but_names_in_common_join() -> None:
    assert stories([BREACH, SORRY])["sorry"] == "breach"


def rare(words: Iterable[str]) -> dict[str, float]:
    return dict.fromkeys(words, 3.0)


def test_members_that_say_less_are_not_heard() -> None:
    mine = read(FURTHER)
    like, unlike = (
        compare(mine, other, 0.1, rare(mine.weighed), rare(other.weighed), rare)
        for other in (read(SORRY), read(changed(SORRY, title="A bad day", text="The shares fell on Monday.")))
    )

    def over(*likenesses: Likeness) -> float:
        return margin(likenesses, 0.2, mine.characters, is_paired=False, members=5, texts=100)

    three = over(like, like, like)
    assert over(like, like, like, unlike, unlike) == three
    assert over(like, like, unlike, unlike) < three


def test_the_line_rises_with_members_and_with_texts_that_are_known() -> None:
    def over(length: int, **counts: int) -> float:
        mine, other = (
            read(changed(each, text=each.text + filling * (length // 10)))
            for each, filling in ((FURTHER, " so it was"), (SORRY, " as one did"))
        )
        likeness = compare(mine, other, 0.1, rare(mine.weighed), rare(other.weighed), rare)
        return margin([likeness], 0.2, mine.characters, is_paired=False, **counts)

    long = over(800, members=1, texts=1_000)
    assert over(800, members=4, texts=1_000) < long
    assert over(800, members=1, texts=10) < long
    assert over(0, members=4, texts=10) == over(0, members=1, texts=500)
    assert over(0, members=1, texts=5_000) < over(0, members=1, texts=500)


def test_a_name_of_both_is_worth_more_while_they_are_near_in_time() -> None:
    one = changed(
        BREACH,
        title="文具大手カクエにサイバー攻撃、出荷停止",
        text="カクエは攻撃を受けて物流センターからの出荷を止めている。",
        language="ja",
    )
    other = changed(
        SORRY,
        title="カクエのノートが届かない 文具店は困惑",
        text="棚が空になり、店は手書きの伝票でしのぐ。出荷の再開は未定。",
        language="ja",
    )
    assert stories([one, other])["sorry"] == "breach"
    assert stories([one, changed(other, time=NOW + 60 * 3600.0)])["sorry"] == "sorry"


def test_a_korean_name_of_both_is_evidence() -> None:
    one = changed(BREACH, title="모두페이 4시간 먹통", text="결제가 멈췄다.", language="ko")
    other = changed(SORRY, title="점심 장사 망쳤다", text="모두페이가 멈춰 손님이 갔다.", language="ko")
    assert why(one, other).terms == ("모두페",)


def test_a_long_text_is_found_by_its_names() -> None:
    crowd = " ".join(
        f"{each}ing {each}ment {each}ful {each}ness" for each in ("bral", "crin", "dosp", "felt", "grum")
    )
    title = "Extortion group lists a retailer"
    long = changed(BREACH, title=title, text=f"{BREACH.text} {crowd}")
    sorry = changed(SORRY, title="Gilt Heron: is your Halloway card safe?")
    assert stories([long, sorry])["sorry"] == "breach"


def test_a_story_closes_after_72_hours_without_news() -> None:
    first, second = pair("t02")
    late = changed(second, time=first.time and first.time + CLOSED_AFTER + 1)
    assert stories([first, late])[late.id] == late.id
    between = changed(
        second, id="between", title=f"{second.title} at last", time=first.time and first.time + 2 * DAY
    )
    late = changed(second, feed="third", time=first.time and first.time + 4 * DAY)
    assert stories([first, between, late])[late.id] == first.id


def test_empty_texts_and_titles_of_one_word_join_nothing() -> None:
    entries = [
        Entry(id=f"{number}", feed=f"{number}", title=title, text=text)
        for number, (title, text) in enumerate(
            [("", ""), ("", ""), ("News", ""), ("News", ""), ("News", "Photo.")]
        )
    ]
    assert len(set(stories(entries).values())) == len(entries)


def test_a_sentence_that_a_feed_repeats_joins_nothing() -> None:
    below = " Subscribe to the Penholm Courier for stories from Penholm, Dunlow and the whole of Carrowshire."
    texts = (
        "A cat was found.",
        "The library opens.",
        "Roses won a prize.",
        "The choir sings.",
        "A bench was painted.",
    )
    entries = [
        Entry(id=f"{number}", feed=f"{number % 2}", title=text.rstrip("."), text=text + below)
        for number, text in enumerate(texts * 2)
    ]
    found = stories(
        [changed(each, id=f"{at}", title=f"{each.title} {at}") for at, each in enumerate(entries[:5])]
    )
    assert len(set(found.values())) == 5


def test_ten_thousand_items_of_one_template_cost_no_more_each() -> None:
    """A tenth of a tenth here: what is compared is bounded."""
    window = Window()
    for number in range(100):
        town = f"Ab{chr(97 + number % 26)}{chr(97 + number // 26)}on"
        window.decide(
            Entry(
                id=f"{number}",
                feed=f"{number}",
                title=f"Council of {town} approves budget",
                text=f"The council of {town} has approved its budget on Tuesday with {number + 10} votes.",
            )
        )
    assert len(window) == 100


def test_dates_that_cannot_be_are_those_of_arrival() -> None:
    assert moment(0.0, NOW) == NOW
    assert moment(None, NOW) == NOW
    assert moment(NOW + 365 * DAY, NOW) == NOW
    assert moment(NOW - DAY, NOW) == NOW - DAY
