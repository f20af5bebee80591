"""Texts in Chinese, Japanese and Korean: pairs of characters, and the facts that they state."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import compress
from operator import add, eq

from rss_pipeline.features.stories.facts import Facts

_RUN = re.compile(
    "[\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0e7f]+"
)
_WORD = re.compile(r"[A-Za-z]+[A-Za-z0-9]*|[\u30a1-\u30fa\u30fc]{3,}")
_LATIN = re.compile(r"[A-Za-z]{2,}[A-Za-z0-9]*")
_HIRAGANA = re.compile("[\u3041-\u3096]")
_DIGIT = re.compile(r"\d")
_NOISE = re.compile(r"[\s、。，．・「」『』（）()“”\"'‘’！!？?：:;；…—–\-|]+")
_DIGITS = {each: number for number, each in enumerate("〇一二三四五六七八九十")}
_COUNT = r"(\d{1,4}|[一二三四五六七八九十])"
_PART = re.compile(
    rf"第\s?{_COUNT}\s?([四季半回期集轮輪節节話话章部版弾号號站戦届편회차화권])"
    rf"|{_COUNT}\s?(분기|라운드|차전|부작|회차)|(?<![\d.])(\d{{1,3}})(季度|連載|回目|日目)|([上中下])[篇編]"
    r"|[’'」』》〉>”\"]\s?(\d{1,4})\s?([季集話话章回편회화권])"
)
_TITLE_PART = re.compile(r"[(（]([一二三四五六七八九十]|\d{1,2})[)）]|[」』】]\s?([上中下])(?![\w])")
_CVE = re.compile(r"CVE-\d{4}-\d+", re.IGNORECASE)
_VERSION = re.compile(
    r"(?:[A-Za-z\u4e00-\u9fff\u30a1-\u30ff\uac00-\ud7a3]\s?|[vV]|版本\s?|バージョン\s?|버전\s?)"
    r"(\d{1,3}\.\d{1,3}(?:\.\d{1,3})*)(?!\d|\s?[%％万億亿억만元円원兆千公km度级級인倍치寸英])"
)
_BEFORE_MEASURE = re.compile(
    r"(?:マグニチュード|震级|規模|규모|M|约|約|是|は|も|を|が|增长|上涨|下降|跌|涨|达|至|到)\s?$"
)
_MODEL = re.compile(r"([A-Za-z]{1,6})[- ]?(\d{1,4})(?![\d.A-Za-z])")
_NAMED = re.compile(
    r"(?<![\u30a1-\u30ff\u4e00-\u9fff\uac00-\ud7a3])"
    r"([\u30a1-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{2,}) (\d{1,3})"
    r"(?![\d.,:比対대]|\s?[월月日일年년万만億억명人名%時시时歳岁세위회개대호선차여余多천백조건곳원분층점초살톤-])"
)
_DATE = re.compile(r"(?:(\d{1,2})\s?[月월]\s?)?(?<!\d)(\d{1,2})\s?[日일](?!间|間|목)")
_MONTH = re.compile(r"(?<!\d)(\d{1,2})\s?[月월](?!\s?\d{1,2}\s?[日일])(?!\s?以)")
_YEAR = re.compile(r"((?:19|20)\d\d)\s?[年년]")
_SCORE = re.compile(r"(?<![\d.])(\d{1,3})\s?(?:比|対|대|-|:|：|–|―|—|−)\s?(\d{1,3})(?![\d.])")
_AGE = re.compile(r"(\d{1,3})\s?[岁歳세](?!대)")
_MAGNITUDE = re.compile(r"(?:マグニチュード|規模|规模|규모|震级)[はを约約\s]*$")
_SCALES = {
    "百": 1e2, "백": 1e2, "千": 1e3, "천": 1e3, "万": 1e4, "萬": 1e4, "만": 1e4,
    "亿": 1e8, "億": 1e8, "억": 1e8, "兆": 1e12, "조": 1e12,
}  # fmt: skip
_SCALE = "".join(_SCALES)
_PLAIN = r"\d+(?:[.,]\d+)*"
_NUMBER = re.compile(
    rf"({_PLAIN}(?:\s?[{_SCALE}]+\s?{_PLAIN})*(?:\s?[{_SCALE}]+)?)\s?[余多여]?\s?"
    r"(美元|달러|ドル|小时|時間|시간|分钟|[^\W\d_a-zA-Z\u3041-\u309f은는이가을를의에로]|%|[a-zA-Z]{1,3})?"
)
"""A number, which may be composed of several (1억 4천만), and what it counts, but for a Korean particle."""
_GROUP = re.compile(rf"({_PLAIN})\s?([{_SCALE}]*)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_CLOCK = re.compile(r"[時时시点]\s?$")
_HOURS, _MINUTES = frozenset("時时시点"), frozenset("分분")
_SPELLED = re.compile(
    "(?<![第一二三四五六七八九十百千两数几多〇零月])([一二三四五六七八九十百千两〇零]{1,6})(?=[余多]?[万亿]?(?:[名人个個家台辆輛架户戶棟栋頭头只条件套枚张張艘元円岁歳年天日米公平公小分秒吨噸层層处處座所次位级級份箱瓶回票]))"
)
_PLACES = {"十": 10, "百": 100, "千": 1000}


def _spelled(found: re.Match[str]) -> str:
    """The number in digits; one is left as it is, for it counts nothing."""
    total = value = 0
    for each in found[1]:
        if each in _PLACES:
            total += (value or 1) * _PLACES[each]
            value = 0
        else:
            value = 2 if each == "两" else _DIGITS.get(each, 0)
    total += value
    return str(total) if total > 1 else found[1]


def _value(text: str) -> float | None:
    """The value of a number: 4億3000万, 1천900만, 1,200; None for such as 1.2.3."""
    total = below = 0.0
    for group in _GROUP.finditer(text):
        digits = group[1].replace(",", "") if _THOUSANDS.fullmatch(group[1]) else group[1].replace(",", ".")
        if digits.count(".") > 1:
            return None
        value = float(digits)
        for scale in map(_SCALES.__getitem__, group[2]):
            # A thousand is multiplied by the ten thousand behind it, a ten thousand is added.
            if scale < 1e4:
                value *= scale
            else:
                total += (below + value) * scale
                below = value = 0.0
        below += value
    return total + below


_TOLL = re.compile(
    "死|亡|伤|傷|遇难|失踪|失联|失聯|不明|けが|負傷|被困|숨|사망|실종|부상|다쳐|다친|피해|避難|避难|대피|逮捕|体捕|检测|感染|확진|搜救|救出|获救|구조"
)
_COUNTED = frozenset("人户")
"""Persons and homes, whose number may be a toll."""
_MONEY = {"元": "元", "块": "元", "円": "¥", "원": "₩", "달러": "$", "美元": "$", "ドル": "$"}
_UNITS = {
    **_MONEY, "名": "人", "명": "人", "棟": "户", "戶": "户", "戸": "户", "채": "户",
    "時間": "小时", "시간": "小时", "分": "分钟", "분": "分钟",
}  # fmt: skip
"""One name for what is counted alike."""
_TENTHS = frozenset("割成")
_PRICE_CUT = re.compile(
    "降价|降價|促销|促銷|打折|直降|优惠|特价|特價|値下げ|割引|セール|最安|特価"
    "|(?:가격|요금|출고가) ?인하|할인|특가|세일"
)
_RUMOUR = re.compile("传闻|傳聞|爆料|(?<!被)曝|据传|噂|リーク|うわさ|루머|소문")
WEEKDAY = re.compile("(?:周|星期|礼拜)([一二三四五六日天])|([月火水木金土日])曜|([월화수목금토일])요일")
_DAYS = {
    each: n
    for names in ("一二三四五六日", "月火水木金土日", "월화수목금토일")
    for n, each in enumerate(names)
}
_DAYS["天"] = 6


@dataclass(frozen=True, slots=True)
class Read:
    title: str
    text: str
    """Both in one form, without spaces and marks."""
    title_pairs: tuple[str, ...]
    text_pairs: tuple[str, ...]
    lead: frozenset[str]
    """Pairs of the title and of the beginning of the text."""
    words: frozenset[str]
    """Words in Latin letters: names, mostly."""
    facts: Callable[[], Facts]
    """Reads the facts."""


def _plain(normal: str) -> str:
    return _NOISE.sub("", normal).casefold()


def pairs(text: str) -> list[str]:
    """Overlapping pairs of characters of each run, and words in other letters."""
    found: list[str] = []
    for run in _RUN.findall(text):
        both: Iterable[str] = map(add, run, run[1:])
        if _HIRAGANA.search(run):
            # A pair with one hiragana is of an ending or a particle.
            is_ending = ["\u3041" <= each <= "\u3096" for each in run]
            both = compress(both, map(eq, is_ending, is_ending[1:]))
        found += both
    found += [word.casefold() for word in _WORD.findall(text)]
    return found


def read(title: str, text: str, lead: int = 0) -> Read:
    """Return pairs of a title and a text, whose beginning has so many characters, and how to read facts."""
    title, text = (_SPELLED.sub(_spelled, unicodedata.normalize("NFKC", each)) for each in (title, text))
    words = frozenset(word.casefold() for word in _LATIN.findall(f"{title} {text}"))
    of_title, of_lead = pairs(title), pairs(text[:lead])
    # The pair that stands at the end of the one and the beginning of the other is of the rest.
    of_text = of_lead + pairs(text[max(0, lead - 1) :])
    return Read(
        title=_plain(title),
        text=_plain(text),
        title_pairs=tuple(of_title),
        text_pairs=tuple(of_text),
        lead=frozenset(of_title).union(of_lead),
        words=words,
        facts=partial(_facts, title, text),
    )


def _facts(title: str, text: str) -> Facts:
    facts = Facts()
    _read(facts, title, is_title=True)
    _read(facts, text, is_title=False)
    return facts


def _found(pattern: re.Pattern[str], text: str, marks: Iterable[str]) -> Iterable[re.Match[str]]:
    """The matches of a pattern, each of which has one of these marks: to look for them first is faster."""
    return pattern.finditer(text) if any(mark in text for mark in marks) else ()


_MARKS_OF_PARTS = ("第", "篇", "編", "분기", "라운드", "차전", "부작", "회차", "季度", "連載", "回目", "日目")
_QUOTED, _DECIMAL, _NUMBERED = map(re.compile, (r"[’'」』》〉>”\"]\s?\d", r"\d\.\d", "[A-Za-z][- ]?\\d"))
"""Marks of the patterns above: a number behind a quotation, with a point, behind a letter."""


def _read(facts: Facts, text: str, *, is_title: bool) -> None:
    taken: list[tuple[int, int]] = []
    digits = text if _DIGIT.search(text) else ""

    def count(kind: str, value: str) -> None:
        value = str(_DIGITS.get(value, value)).lstrip("0")
        facts.counted.setdefault(kind, set()).add(value)
        if is_title:
            facts.title_counted.setdefault(kind, set()).add(value)

    for found in _found(_CVE, digits, "-"):
        facts.cves.add(found[0].lower())
        taken.append(found.span())
    parts = _PART.finditer(text) if _QUOTED.search(digits) else _found(_PART, text, _MARKS_OF_PARTS)
    for found in parts:
        if found[1]:
            count("quarter" if found[2] in "季四" else found[2], found[1])
        elif found[3]:
            count("quarter" if found[4] == "분기" else found[4], found[3])
        elif found[5]:
            count("quarter" if found[6] == "季度" else found[6], found[5])
        elif found[7]:
            count("篇", found[7])
        else:
            # A number behind the name of a work.
            count(found[9], found[8])
        taken.append(found.span())
    for found in _TITLE_PART.finditer(text) if is_title else ():
        count("篇", found[1] or found[2])
        taken.append(found.span())
    for found in _found(_SCORE, digits, "比対대-:：–―—−"):
        one, other = int(found[1]), int(found[2])
        facts.scores.add((max(one, other), min(one, other)))
        taken.append(found.span())
    for found in _VERSION.finditer(digits) if _DECIMAL.search(digits) else ():
        if not _BEFORE_MEASURE.search(text[max(0, found.start(1) - 8) : found.start(1)]):
            facts.versions.add(found[1])
            taken.append(found.span(1))
    for found in _MODEL.finditer(digits) if _NUMBERED.search(digits) else ():
        facts.named.setdefault(found[1].casefold(), set()).add(found[2])
        if is_title:
            facts.title_named.setdefault(found[1].casefold(), set()).add(found[2])
        taken.append(found.span())
    for found in _found(_NAMED, digits, " "):
        key = found[1][-4:]
        facts.named.setdefault(key, set()).add(found[2])
        if is_title:
            facts.title_named.setdefault(key, set()).add(found[2])
        taken.append(found.span())
    for found in _found(_YEAR, digits, "年년"):
        facts.years.add(int(found[1]))
        if is_title:
            facts.title_years.add(int(found[1]))
        taken.append(found.span())
    for found in _found(_DATE, digits, "日일"):
        date = (int(found[1] or 0), int(found[2]))
        if date[0] <= 12 and 1 <= date[1] <= 31:
            facts.dates.add(date)
            if is_title:
                facts.title_dates.add(date)
            taken.append(found.span())
    for found in _found(_MONTH, digits, "月월"):
        if 1 <= int(found[1]) <= 12:
            facts.months.add(int(found[1]))
            if is_title:
                facts.title_months.add(int(found[1]))
            taken.append(found.span())
    for found in _found(_AGE, digits, "岁歳세"):
        facts.ages.add(int(found[1]))
        taken.append(found.span())
    for found in _found(WEEKDAY, text, ("周", "星期", "礼拜", "曜", "요일")):
        day = _DAYS[found[1] or found[2] or found[3]]
        facts.weekdays.append(day)
        if is_title:
            facts.title_weekdays.add(day)
    if digits:
        _numbers(facts, text, taken, is_title)
    if is_title:
        if _PRICE_CUT.search(text):
            object.__setattr__(facts, "is_price_cut", True)
        if _RUMOUR.search(text):
            object.__setattr__(facts, "is_rumour", True)


def _numbers(facts: Facts, text: str, taken: list[tuple[int, int]], is_title: bool) -> None:
    for found in _NUMBER.finditer(text):
        start = found.start(1)
        if any(first <= start < last for first, last in taken):
            continue
        value = _value(found[1])
        if value is None:
            continue
        unit = (found[2] or "").casefold()
        if unit in _HOURS or (unit in _MINUTES and _CLOCK.search(text[max(0, start - 2) : start])):
            # A time of day: many events have it.
            continue
        if unit in _TENTHS:
            value, unit = 10 * value, "%"
        unit = _UNITS.get(unit, unit)
        around = text[max(0, start - 8) : found.end() + 6]
        if unit in _COUNTED and _TOLL.search(around):
            facts.tolls.add(value)
            continue
        if _MAGNITUDE.search(text[max(0, start - 9) : start]) or (
            unit == "级" and "震" in text[found.end() :][:4]
        ):
            unit = "magnitude"
        facts.numbers.setdefault(unit, set()).add(value)
        if is_title:
            facts.title_numbers.setdefault(unit, set()).add(value)
            if unit in _MONEY.values():
                facts.title_money.setdefault(unit, set()).add(value)
