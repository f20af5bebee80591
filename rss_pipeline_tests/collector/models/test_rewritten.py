"""The thresholds of rewritten guids, exactly; and which two items are one."""

from datetime import UTC, datetime

import pytest

from rss_pipeline.collector.models.identity import Known
from rss_pipeline.pipeline.visits.identify import rewritten, same_links

SITE = "https://e.example"


def known(n: int, *, link: str | None = "", title: str | None = "", day: int | None = 0) -> Known:
    """The item of this number, with its own link, title and date."""
    day = n if day == 0 else day
    return Known(
        link=f"{SITE}/{n}" if link == "" else link,
        title=f"Title {n}" if title == "" else title,
        pub_date=None if day is None else datetime(2026, 1, day, tzinfo=UTC),
    )


STORED = {f"old{n}": known(n) for n in range(1, 21)}


def document(*, new: int = 0, unstored: int = 0, old: int = 0) -> tuple[dict[str, Known], set[str]]:
    """A document with stored items under new guids, with items that are new, and with stored ones as ever."""
    listed = {f"new{n}": known(n) for n in range(1, new + 1)}
    listed |= {f"fresh{n}": known(n + 20, day=1) for n in range(1, unstored + 1)}
    kept = {f"old{n}": known(n) for n in range(20, 20 - old, -1)}
    return listed | kept, set(kept)


@pytest.mark.parametrize(
    ("new", "unstored", "old", "found"),
    [
        (3, 0, 0, 3),
        (2, 0, 0, 0),
        (2, 1, 0, 0),
        (3, 3, 0, 3),
        (3, 4, 0, 0),
        (4, 4, 0, 4),
        (5, 6, 0, 0),
        (4, 0, 1, 4),
        (8, 0, 2, 8),
        (7, 0, 2, 0),
        (3, 0, 1, 0),
        (5, 3, 2, 5),
        (4, 4, 2, 0),
        (0, 5, 0, 0),
        (0, 0, 5, 0),
    ],
)
def test_at_least_80_percent_are_new_and_three_and_half_are_stored(
    new: int, unstored: int, old: int, found: int
) -> None:
    listed, kept = document(new=new, unstored=unstored, old=old)
    assert rewritten(listed, kept, STORED) == {f"new{n}": f"old{n}" for n in range(1, found + 1)}


BESIDE = {f"new{n}": known(n) for n in (11, 12, 13)}
"""Rewritten items, that there are enough of them."""


def is_one(new: Known, old: Known, *, listed: dict[str, Known] | None = None, **stored: Known) -> bool:
    """Return True if the two are one item, beside others that were rewritten."""
    found = rewritten({"new": new, **BESIDE, **(listed or {})}, set(), {**STORED, "old": old, **stored})
    assert len(found) >= 3
    return found.get("new") == "old"


def test_two_items_are_one_by_their_link_alone() -> None:
    assert is_one(known(1, link="x", title="other", day=9), known(2, link="x", title=None, day=None))
    assert is_one(known(1, link="http://x.example/1"), known(2, link="https://x.example/1"))
    assert not is_one(known(1, link="x/1"), known(1, link="x/2"))
    assert not is_one(known(1, link="mailto:a"), known(2, link="x:a"))


def test_title_and_date_count_where_one_has_no_link() -> None:
    other = known(30, title="t", day=3, link=None)
    assert is_one(known(1, title="t", day=3, link=None), other)
    assert is_one(known(31, title="t", day=3), other)
    assert is_one(known(1, title="t", day=3, link=None), known(30, title="t", day=3))
    assert not is_one(known(1, title="t", day=3), known(30, title="t", day=3))
    assert not is_one(known(1, title="t", day=4, link=None), other)
    assert not is_one(known(1, title=None, day=3, link=None), known(30, title=None, day=3, link=None))
    for undated in (known(1, title="t", day=None, link=None), known(1, title="t", day=3, link=None)):
        assert not is_one(undated, known(30, title="t", day=None, link=None)), "a title alone never suffices"


def test_a_page_that_moved_to_another_host_has_its_title_and_date() -> None:
    old = known(30, link="https://old.example/a?b=c", title="t", day=3)
    assert is_one(known(1, link="https://new.example/a?b=c", title="t", day=3), old)
    assert not is_one(known(1, link="https://new.example/a?b=d", title="t", day=3), old)
    assert not is_one(known(1, link="https://new.example/a?b=c", title="t", day=4), old)
    assert not is_one(known(1, link="https://new.example/a?b=c", title="u", day=3), old)
    home = known(30, link="https://old.example/", title="t", day=3)
    assert not is_one(known(1, link="https://new.example/", title="t", day=3), home)


def test_what_is_ambiguous_is_new() -> None:
    one, two = known(1, link="x", title="t", day=3), known(2, link="x", title="u", day=4)
    assert not is_one(one, one, other=two), "two stored items with the link"
    assert not is_one(one, one, other=one), "even if they are copies"
    assert not is_one(one, one, listed={"other": two}), "two listed items with the link"
    plain, twin = known(1, link=None, title="t", day=3), known(2, link=None, title="t", day=3)
    assert not is_one(plain, plain, other=twin)
    assert not is_one(plain, plain, listed={"other": twin})
    assert not is_one(one, one, listed={"old": one}), "listed under its own guid as well"


def test_a_link_is_looked_for_over_http_and_https() -> None:
    assert same_links("https://e.example/") == ("http://e.example/", "https://e.example/")
    assert same_links("HTTP://e.example/") == ("http://e.example/", "https://e.example/")
    assert same_links("ftp:x") == ("ftp:x",)
    assert same_links("page.html") == ("page.html",)
