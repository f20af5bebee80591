"""The identity of an entry: its link, without what changes from visit to visit."""

import pytest

from rss_pipeline.features.pages.known import Known
from rss_pipeline.features.pages.links import identities, identity, shape, without_dropped


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/a", "https://EXAMPLE.org:443/a"),
        ("https://example.org/a#top", "https://example.org/a"),
        ("https://example.org/a?utm_source=x&id=7&fbclid=1", "https://example.org/a?id=7"),
        ("https://example.org/a;jsessionid=77?PHPSESSID=1", "https://example.org/a"),
        ("https://user:pass@example.org", "https://example.org/"),
        ("https://example.org/t?sid=0a1b2c3d4e5f60718293&t=1", "https://example.org/t?t=1"),
    ],
)
def test_links_to_one_entry_have_one_identity(one: str, other: str) -> None:
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.org/A", "https://example.org/a"),
        ("https://example.org/a/", "https://example.org/a"),
        ("https://example.org/?id=1&page=2", "https://example.org/?id=1&page=3"),
        ("https://example.org:8080/a", "https://example.org/a"),
        ("https://example.org/a?sid=26/05/17/1", "https://example.org/a?sid=26/05/18/2"),
    ],
)
def test_links_to_two_entries_have_two(one: str, other: str) -> None:
    assert identity(one) != identity(other)


def test_a_fragment_counts_where_links_differ_by_it_alone() -> None:
    versions = [f"https://example.org/changelog#v{n}" for n in (3, 2, 1)]
    assert len(set(identities(versions))) == 3
    assert len(set(identities([*versions, "https://example.org/other"]))) == 2


def test_a_bad_url_is_its_own_identity() -> None:
    assert without_dropped("http://[") == "http://["
    assert shape("http://[") == ()


@pytest.mark.parametrize(
    ("known", "found", "same"),
    [
        ("abcdef", "abcdef", True),
        ("abcdef", "xyabc", True),
        ("abcdef", "ab", False),
        ("abcdef", "xyzuvwabc", False),
        ("abcdef", "ghijkl", False),
    ],
)
def test_three_known_links_and_half_of_the_top_make_a_list_the_same(
    known: str, found: str, same: bool
) -> None:
    def urls(letters: str) -> list[str]:
        return [f"https://example.org/{letter}" for letter in letters]

    assert Known.of_list([identity(url) for url in urls(known)]).is_same_list(urls(found)) is same
