"""Facts by which two events differ are read as what they are, in the languages of news."""

import pytest

from rss_pipeline.features.stories.article import read
from rss_pipeline.features.stories.facts import Facts, number
from rss_pipeline.features.stories.facts_compared import conflicts
from rss_pipeline.features.stories.model import Entry


def facts(title: str, text: str = "", language: str = "en") -> Facts:
    return read(Entry(id="1", feed="f", title=title, text=text, language=language)).facts


@pytest.mark.parametrize(
    ("written", "value"),
    [("4,300", 4300), ("4.300", 4300), ("4.3", 4.3), ("4,3", 4.3), ("1.234.567", 1234567), ("2:1", None)],
)
def test_a_number_is_read_in_each_language_s_writing(written: str, value: float | None) -> None:
    assert number(written) == value


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("Tessel 2.14 is out", "Tessel 2.15 is out", "en"),
        ("Tessel 3.9 is out", "Tessel 3.10 is out", "en"),
        ("Flaw CVE-2026-1111 in Gate", "Flaw CVE-2026-1112 in Gate", "en"),
        ("The new Vela 8 phone", "Rumour: the Vela 9 phone", "en"),
        ("Trial of Harker, day 3", "Trial of Harker, day 4", "en"),
        ("Weekly notes #12", "Weekly notes #13", "en"),
        ("Prices rose in April", "Prices rose in May", "en"),
        ("Unfall am Montagabend", "Unfall am Dienstagnachmittag", "de"),
        ("Umsatz steigt im ersten Quartal", "Umsatz steigt im zweiten Quartal", "de"),
        ("Lenoir remporte la 4e étape", "Lenoir remporte la 5e étape", "fr"),
        ("Lottery results, 30 June", "Lottery results, 2 July", "en"),
        ("Vela 8 for $799", "Vela 8 for $649", "en"),
        ("8月居民消费价格上涨", "9月居民消费价格上涨", "zh"),
        ("青鸟浏览器 12.1 发布", "青鸟浏览器 12.2 发布", "zh"),
        ("電子工作 第3回 抵抗", "電子工作 第4回 電池", "ja"),
        ("4월 물가 상승", "5월 물가 상승", "ko"),
        ("The drowned valley, part one", "The drowned valley, part two", "en"),
        ("Serie „Verlorene Orte“ (1): Altenau", "Serie „Verlorene Orte“ (2): Krausen", "de"),
        ("연속극 ‘강가의 집’ 9회 시청률 8%", "‘강가의 집’ 10회, 시청률 최고", "ko"),
        ("連載「消える渡し船」上", "連載「消える渡し船」下", "ja"),
        ("乡村医生口述(一):雪夜", "乡村医生口述(二):空屋", "zh"),
    ],
)
def test_a_fact_of_both_titles_that_differs_is_a_conflict(one: str, other: str, language: str) -> None:
    assert conflicts(facts(one, language=language), facts(other, language=language), 0.5)[0] > 0


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("Ferry sinks, at least 12 dead", "Ferry disaster: 31 dead", "en"),
        ("Fire near Sorn: 120 hectares burnt", "Fire near Sorn: 450 hectares burnt", "en"),
        ("Bus stürzt ab: vier Tote", "Bus stürzt ab: sieben Tote", "de"),
        ("隧道塌方 已致3人遇难", "隧道塌方 已致7人遇难", "zh"),
        ("He may march on Sunday", "She may go in March", "en"),
        ("A 90-day stay", "A day in court", "en"),
        ("Vela 8 for $799", "Vela 8 for £699", "en"),
    ],
)
def test_a_toll_that_rises_and_a_word_with_two_meanings_are_no_conflict(
    one: str, other: str, language: str
) -> None:
    assert conflicts(facts(one, language=language), facts(other, language=language), 0.2)[0] == 0


def test_numbers_have_units_and_tolls_are_apart() -> None:
    found = facts("Storm with 140 km/h", "Gusts of 60 mph, 40,000 homes without power and 12 people hurt.")
    assert found.numbers["mph"] == {60.0}
    assert found.tolls == {40_000.0, 12.0}


def test_money_before_a_scale_is_read_as_it_is_written() -> None:
    found = facts("Robbers take $137-million of gems", "Worth R80 million, the police on the A80 says.")
    assert found.title_money == {"$": {137e6}}
    assert found.numbers["r"] == {80e6}
    assert found.codes == {"a80"}


@pytest.mark.parametrize(
    ("one", "other", "language", "is_one"),
    [
        ("Ein Beben der Stärke 3,1 in Hechen", "Stärke 3,0: Hechen bebt", "de", True),
        ("Ein Beben der Stärke 3,1 in Hechen", "Stärke 2,8: Hechen bebt", "de", False),
        ("Rovers win 3-2 in Milton", "Rovers 3-2 Milton", "en", True),
        ("Rovers win 3-2 in Milton", "Albion win 4-0 in Harlow", "en", False),
    ],
)
def test_another_magnitude_or_score_is_another_event_likely(
    one: str, other: str, language: str, *, is_one: bool
) -> None:
    soft = conflicts(facts(one, language=language), facts(other, language=language), 0.1)[1]
    assert (soft == 0) == is_one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("23 July 2013, last updated at 13:42", "22 July 2013, last updated at 17:50"),
        ("Orlov stopped in the seventh round", "Orlov loses. He was down in the sixth round."),
    ],
)
def test_the_day_of_a_page_and_a_part_that_only_a_text_has_are_no_certain_conflict(
    one: str, other: str
) -> None:
    title, _, text = other.partition(". ")
    hard, soft = conflicts(facts(one), facts(title, text), 0.1)
    assert hard == 0
    assert soft > 0


def test_long_texts_of_one_event_name_other_days_and_matches() -> None:
    mine, theirs = facts("Rovers", "Won 3-2 on 4 May."), facts("Rovers", "Lost 4-1 on 9 May.")
    assert conflicts(mine, theirs, 0.2)[1] > conflicts(mine, theirs, 0.05)[1]


def test_ages_scores_and_roads_are_facts() -> None:
    found = facts("Man, 34, dies on A38", "Rovers won 2-1. A 29-year-old watched.")
    assert found.ages == {34, 29}
    assert found.scores == {(2, 1)}
    assert found.codes == {"a38"}


@pytest.mark.parametrize(
    ("written", "digits"),
    [
        ("镇政府转移三百名村民", "镇政府转移300名村民"),
        ("经过十一小时抵达", "经过11小时抵达"),
        ("全国两千多家门店", "全国2000多家门店"),
        ("奖金五十万元", "奖金50万元"),
    ],
)
def test_numbers_in_characters_are_numbers(written: str, digits: str) -> None:
    one, other = facts(written, language="zh"), facts(digits, language="zh")
    assert one.numbers or one.tolls
    assert (one.numbers, one.tolls) == (other.numbers, other.tolls)


def test_a_first_one_and_a_part_are_no_spelled_numbers() -> None:
    assert facts("第三季开播", language="zh").counted == facts("第3季开播", language="zh").counted
    assert not facts("一名男子", language="zh").tolls


def test_to_be_exposed_is_no_rumour() -> None:
    assert not facts("多家门店被曝使用过期原料", language="zh").is_rumour
    assert facts("新机外观曝光", language="zh").is_rumour


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "2026年，5月12日，37岁的林海在会上说话"),
        ("ja", "2026年、5月12日に37歳の山田さんが話した"),
        ("ko", "2026년 5월 12일 37세 김하늘 씨가 말했다"),
    ],
)
def test_years_dates_and_ages_are_read_in_scripts_of_pairs(language: str, text: str) -> None:
    found = facts("", text, language)
    assert (found.years, found.dates, found.ages) == ({2026}, {(5, 12)}, {37})
