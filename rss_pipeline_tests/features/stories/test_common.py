"""Texts of one event in other words have a few rare things in common, in each language."""

import pytest

from rss_pipeline.features.stories import words
from rss_pipeline.features.stories.article import read
from rss_pipeline.features.stories.frequencies import Frequencies
from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.pair import Likeness, compare
from rss_pipeline.features.stories.words import stem


def likeness(language: str, one: tuple[str, str], other: tuple[str, str]) -> Likeness:
    frequencies = Frequencies()
    first, second = (
        read(Entry(id="1", feed="f", title=title, text=text, language=language))
        for title, text in (one, other)
    )
    return compare(
        first,
        second,
        0.1,
        frequencies.weights(language, first.weighed),
        frequencies.weights(language, second.weighed),
        lambda words: frequencies.weights(language, words),
    )


@pytest.mark.parametrize(
    ("language", "common", "rare"),
    [
        ("en", "police", "tarnby"),
        ("de", "feuerwehr", "emmersand"),
        ("fr", "pompier", "kervel"),
        ("ru", "пожар", "заречн"),
        ("zh", "消防", "翔鹤"),
        ("ja", "警察", "霧峰"),
        ("latin", "polizei", "emmersand"),
    ],
)
def test_the_first_text_of_a_language_has_common_words_and_rare_ones(
    language: str, common: str, rare: str
) -> None:
    weights = Frequencies().weights(language, [stem(common), stem(rare)])
    assert weights[stem(rare)] > 1.5 * weights[stem(common)]


def test_a_name_at_the_start_of_a_sentence_is_the_name_of_the_other_text() -> None:
    found = likeness(
        "de",
        ("Seilbahn abgelehnt", "Bürgermeisterin Vroni Ebner hatte für das Projekt geworben."),
        ("Keine Gondeln", "Das Vorhaben ist vom Tisch. Ebner will das respektieren."),
    )
    assert found.names == ("Ebner",)
    assert found.names_share > 0


def test_names_apart_are_worth_more_than_one_with_its_title() -> None:
    apart = likeness(
        "en",
        ("Almenar in the dark", "The substation of Torrealta failed, Lumisur said."),
        ("Lumisur will pay", "The company blames heat in Torrealta and regrets the evening in Almenar."),
    )
    beside = likeness(
        "en",
        ("Mayor Rosa Delgado opens a depot", "Sixty buses run from June."),
        ("Mayor Rosa Delgado rejects a recount", "Supporters may go to court."),
    )
    assert apart.named > 1.5 * beside.named


def test_compounds_that_begin_alike_are_common() -> None:
    one = ("Möbelfabrik brennt", "In der Futtermittelhalle brach nachts ein Feuer aus.")
    other = ("Möbelfabriken in Gefahr", "Löscharbeiten in den Futtermittelbergen dauern an.")
    assert likeness("de", one, other).told > 0
    assert likeness("de", one, ("Neues Gesetz", "Der Landtag stimmt heute ab.")).told == 0


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("zh", ("翔鹤首飞", "客机从滨海机场起飞。"), ("悉尼迎来翔鹤", "机场上的人们挥旗迎接。")),
        (
            "ja",
            ("霧峰高原で事故", "県道で観光バスが衝突した。"),
            ("運転手が語る", "霧峰高原の現場で話を聞いた。"),
        ),
    ],
)
def test_rare_pairs_of_characters_count(language: str, one: tuple[str, str], other: tuple[str, str]) -> None:
    found = likeness(language, one, other)
    assert found.named + found.titled >= 1.0


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("zh", ("事故发生", "警方调查。"), ("警方通报", "事故现场。")),
        ("ja", ("事故の原因", "警察が発表した。"), ("警察", "事故の原因を発表。")),
        ("ja", ("なぜ拒まれるためのものか", "今日。"), ("なぜためのものか", "昨日。")),
        ("ja", ("クラウンのライバル", "今日。"), ("オンラインとは", "昨日。")),
        ("zh", ("有230万辆", "全程。"), ("有110万辆", "计划。")),
    ],
)
def test_common_pairs_of_characters_say_nothing(
    language: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    found = likeness(language, one, other)
    assert found.named + found.titled < 0.5


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", ("Rewi resigns", "The minister went."), ("A week of trouble", "Rewi held shares.")),
        ("ko", ("모두페이 먹통", "결제가 멈췄다."), ("점심 장사 망쳤다", "모두페이가 멈춰 손님이 갔다.")),
        ("zh", ("云杉智能开源模型", "今天放出权重。"), ("算力股走低", "云杉智能的产品免费。")),
        ("zh", ("Spruce 开源", "今天放出权重。"), ("算力股走低", "新模型 Spruce 免费。")),
    ],
)
def test_a_name_in_a_title_is_one_in_each_script(
    language: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert likeness(language, one, other).titled >= 0.4
    assert likeness(language, ("", one[1]), ("", other[1])).titled == 0


def test_days_that_both_name_speak_for_one_event_or_against_it() -> None:
    one = ("Budget passed", "The vote was on Tuesday.")
    assert likeness("en", one, ("Vote in Tarnby", "It was on Tuesday night.")).days == 1
    assert likeness("en", one, ("Vote in Tarnby", "It was on Thursday night.")).days == -1
    assert likeness("en", one, ("Vote in Tarnby", "It was late.")).days == 0


def test_names_that_each_title_has_alone_are_unmet() -> None:
    one = ("Neuer Chef für die Stadtwerke Tarnau", "Er kommt.")
    other = ("Stadtwerke Lohfeld: Neue Chefin", "Ja.")
    assert likeness("de", one, other).unmet >= 0.5
    assert likeness("de", one, (other[0], f"{other[1]} {one[0]}")).unmet == 0


def test_a_place_of_one_text_is_in_the_other() -> None:
    one = ("Fire on a ferry", "Crews came ashore in Tarnby after noon.")
    assert likeness("en", one, ("Smoke at sea", "The people of Tarnby brought blankets.")).placed
    assert not likeness("en", one, ("Smoke at sea", "The people of Lohfeld brought blankets.")).placed


@pytest.mark.parametrize(
    ("language", "one", "other", "further"),
    [
        ("zh", ("蓝栎汽车的财报", "亏损。"), ("蓝栎汽车召回", "安全带。"), "财报"),
        ("zh", ("Spruce 的财报", "亏损。"), ("Spruce 召回", "安全带。"), "财报"),
        ("ja", ("画像「カクエノート」公開", "起動。"), ("画像「カクエノート」に穴", "更新。"), "起動"),
        ("ko", ("두레 라이온킹스, 재계약", "켈러."), ("두레 라이온킹스 감독 선임", "장민철."), "재계약을"),
    ],
)
def test_what_is_beyond_the_one_thing_of_both_counts_in_scripts_of_pairs(
    language: str, one: tuple[str, str], other: tuple[str, str], further: str
) -> None:
    alone = likeness(language, one, other)
    more = likeness(language, one, (other[0], f"{other[1]} {further}"))
    assert alone.named == 0
    assert alone.titled > 0
    assert more.named > 0.5


@pytest.mark.parametrize(
    ("language", "one", "other", "numbers"),
    [
        ("zh", "周二，31万名居民受益。", "共有310,000人。", 1),
        ("zh", "7时25分停运。", "7时25分起停运。", 0),
        ("ja", "9日午後4億3000万円を投じ", "4.3億円の財源", 1),
        ("ja", "第3版、全12章。", "3人が12回", 0),
        ("ko", "1억 4천만 원을 가로챈 30여 명", "140,000,000원, 30명", 2),
        ("ko", "1천900만 원을", "19,000,000원의", 1),
    ],
)
def test_equal_numbers_of_one_counter_speak_for_one_event_in_scripts_of_pairs(
    language: str, one: str, other: str, numbers: int
) -> None:
    assert likeness(language, ("", one), ("", other)).numbers == numbers


def test_each_counter_with_other_numbers_counts_in_scripts_of_pairs() -> None:
    one = ("", "12回、230店、5割。")
    assert likeness("ja", one, ("", "11回、120店、5割。")).units_differ == 2
    assert likeness("ja", one, ("", "12人、5階。")).units_differ == 0


@pytest.mark.parametrize(
    ("language", "one", "other", "same"),
    [
        ("zh", "周二", "周四", "星期二"),
        ("ja", "火曜日に", "木曜日に", "火曜の"),
        ("ko", "화요일에", "목요일에", "화요일"),
    ],
)
def test_another_weekday_is_another_event_likely_in_scripts_of_pairs(
    language: str, one: str, other: str, same: str
) -> None:
    assert likeness(language, ("", one), ("", other)).soft > 1
    assert likeness(language, ("", one), ("", same)).soft == 0


@pytest.mark.parametrize(("name", "characters"), words._CHARACTERS.items())
def test_a_script_is_known_by_each_of_its_characters(name: str, characters: str) -> None:
    for character in characters.replace("-", ""):
        assert words.script(f"A {character * 20}") == name
