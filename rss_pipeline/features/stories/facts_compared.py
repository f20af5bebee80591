"""The facts of two articles compared: numbers, dates, versions and scores of both, and those that differ."""

from rss_pipeline.features.stories.facts import Facts

_NEAR = 0.12
_MOST_APART = 0.21
"""Magnitudes of one quake: what is measured again differs by as much."""
_SERIES = 0.3
"""The share of common runs from which on titles of two days are of a series."""
_LIKE = 0.1
"""The share below which two texts of one event may name other days of it, and scores of other matches.

Texts in scripts of pairs are too short for it."""

Numbers = tuple[float, tuple[str, ...], int, int]
"""The worth of common numbers, their texts, the number of common units, and of those that agree."""


def common_counts(one: Facts, other: Facts) -> Numbers:
    """Numbers of one unit in scripts of pairs: there a counter follows each, and a number without one says
    little, as versions and numbers behind a name do, which all news of a product has."""
    found: list[float] = []
    comparable = agreeing = 0
    for unit in one.numbers.keys() & other.numbers.keys() - {""}:
        values, others = one.numbers[unit], other.numbers[unit]
        both = {each for each in values for that in others if _equal(unit, each, that)}
        comparable += 1
        agreeing += bool(both)
        found += both
    persons, others = (each.numbers.get("人", set()) for each in (one, other))
    found += (one.tolls | persons) & (other.tolls | others) - (persons & others)
    shown = [f"{value:,.15g}" for value in sorted(set(found))]
    return float(len(found)), tuple(shown), comparable, agreeing


def most_counts(facts: Facts) -> float:
    """The most that `common_counts` gives with any other text."""
    units = sum(len(values) for unit, values in facts.numbers.items() if unit)
    return float(units + len(facts.tolls))


def most_numbers(facts: Facts) -> float:
    """The most that `common_numbers` gives with any other text."""
    return common_numbers(facts, facts)[0]


def common_numbers(one: Facts, other: Facts) -> Numbers:
    """Numbers of one unit, those of which one text names another unit or none, and typed facts of both."""
    common, shown = 0.0, []
    comparable = agreeing = 0
    for unit, values in one.numbers.items():
        others = other.numbers.get(unit)
        if others is None:
            continue
        both = {each for each in values for that in others if _equal(unit, each, that)}
        comparable += 1
        agreeing += bool(both)
        for value in sorted(both):
            common += 1.0 if value >= 100 or value != int(value) else (0.5 if unit else 0.2)
            shown.append(f"{value:,.15g} {unit}".strip())
    for unit, values in one.numbers.items():
        if unit not in other.numbers:
            elsewhere = set().union(*(each for name, each in other.numbers.items() if name != unit))
            for value in sorted(values & elsewhere):
                common += 1.0 if value >= 100 else 0.2
                shown.append(f"{value:,.15g}")
    for value in sorted(one.tolls & other.tolls):
        common += 1.0 if value >= 100 else 0.5
        shown.append(f"{value:,.15g}")
    for name, of_both in (
        ("score", one.scores & other.scores),
        ("age", one.ages & other.ages),
        ("version", one.versions & other.versions),
        ("code", one.codes & other.codes),
        ("cve", one.cves & other.cves),
        ("date", one.dates & other.dates),
    ):
        common += {"cve": 3.0, "version": 1.0, "code": 0.3, "date": 0.3}.get(name, 0.5) * len(of_both)
        shown += [_written(name, each) for each in sorted(of_both, key=str)]
    for name, numbers in one.named.items():
        both_named = numbers & other.named.get(name, set())
        # "J2" is a league, as "A7" is a road: many events have it.
        common += (0.5 if len(name) > 1 else 0.2) * len(both_named)
        shown += sorted(f"{name} {each}" for each in both_named)
    return common, tuple(dict.fromkeys(shown)), comparable, agreeing


def _written(kind: str, value: object) -> str:
    match kind, value:
        case "score", (int(more), int(less)):
            return f"{more}:{less}"
        case "date", (int(month), int(day)):
            return f"{month:02}-{day:02}"
        case _:
            return str(value)


def _equal(unit: str, one: float, other: float) -> bool:
    return abs(one - other) < _MOST_APART if unit == "magnitude" else one == other


def conflicts(one: Facts, other: Facts, template: float, *, is_paired: bool = False) -> tuple[int, float]:
    """The number of facts that tell the two apart for certain, and of those that make it likely."""
    is_like = is_paired or template >= _LIKE
    hard = 0
    soft = 0.0
    if disjoint(one.cves, other.cves):
        hard += 2
    if disjoint(one.versions, other.versions):
        hard += 1
    for mine, theirs in ((one, other), (other, one)):
        for name, numbers in mine.title_named.items():
            others = theirs.named.get(name)
            if others and numbers.isdisjoint(others):
                hard += 1
        for kind, numbers in mine.title_counted.items():
            if disjoint(numbers, theirs.counted.get(kind, set())):
                if kind in theirs.title_counted:
                    hard += 1
                else:
                    # The seventh round of a fight that had a sixth.
                    soft += 1
    for kind, numbers in one.counted.items():
        if kind not in one.title_counted and kind not in other.title_counted:
            soft += disjoint(numbers, other.counted.get(kind, set()))
    if disjoint(one.title_months, other.title_months) or disjoint(one.title_dates, other.title_dates):
        # A title may be the day that the page was written on.
        if template >= _SERIES:
            hard += 1
        else:
            soft += 0.5
    elif disjoint(one.months, other.months):
        soft += 1
    elif disjoint(one.dates, other.dates) and is_like:
        soft += 0.5
    if disjoint(one.title_weekdays, other.title_weekdays) and template >= _SERIES:
        hard += 1
    elif one.weekdays and other.weekdays and one.weekdays[0] != other.weekdays[0] and template > 0.4:
        soft += 1
    for currency, values in one.title_money.items():
        others_money = other.title_money.get(currency)
        if others_money and not _any_near(values, others_money):
            hard += 1
    for mine, theirs in ((one, other), (other, one)):
        for currency, values in mine.title_money.items():
            in_text = theirs.numbers.get(currency)
            if currency not in theirs.title_money and in_text and not _any_near(values, in_text):
                soft += 0.5
    magnitudes = one.numbers.get("magnitude"), other.numbers.get("magnitude")
    if magnitudes[0] and magnitudes[1]:
        soft += 2 * (
            not any(_equal("magnitude", some, that) for some in magnitudes[0] for that in magnitudes[1])
        )
    soft += disjoint(one.ages, other.ages)
    if disjoint(one.scores, other.scores):
        soft += 2 if is_like else 1
    soft += disjoint(one.codes, other.codes)
    if disjoint(one.title_years, other.title_years):
        soft += 1
    if one.is_price_cut != other.is_price_cut:
        soft += 2
    if one.is_rumour != other.is_rumour:
        soft += 2
    return hard, soft


def common_days(one: Facts, other: Facts) -> float:
    """The kinds of days (weekdays, dates, years) of which both name the same, less those of which none is."""
    found = 0.0
    for some, others in (
        (frozenset(one.weekdays), frozenset(other.weekdays)),
        (one.dates, other.dates),
        (one.years, other.years),
    ):
        if some and others:
            found += -1.0 if some.isdisjoint(others) else 1.0
    return found


def disjoint(
    one: "set[str] | set[int] | set[tuple[int, int]]", other: "set[str] | set[int] | set[tuple[int, int]]"
) -> bool:
    """True if both name some, and none in common."""
    return bool(one) and bool(other) and one.isdisjoint(other)


def _any_near(some: set[float], others: set[float]) -> bool:
    return any(abs(one - other) <= _NEAR * max(one, other) for one in some for other in others)
