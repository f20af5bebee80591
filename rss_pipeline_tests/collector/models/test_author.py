"""The names in authors as publishers write them."""

import pytest

from rss_pipeline.collector.models.author import author_name


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ("noreply@blogger.com (Ann Lee)", "Ann Lee"),
        (" ann@a.example(Ann Lee) ", "Ann Lee"),
        ("mailto:ann@a.example (Ann Lee)", "Ann Lee"),
        ("ann@a.example (Ann (Dr.) Lee)", "Ann (Dr.) Lee"),
        ("Ann Lee <ann@a.example>", "Ann Lee"),
        ('"Ann Lee" <ann@a.example>', "Ann Lee"),
        ("Ann Lee (ann@a.example)", "Ann Lee"),
        ("ann@a.example (Ann Lee), bob@a.example (Bob)", "Ann Lee, Bob"),
        ("ann@a.example", "ann@a.example"),
        ("ann@a.example ( )", "ann@a.example ( )"),
        ("<ann@a.example>", "<ann@a.example>"),
        ("Ann @ Lee (Paris)", "Ann @ Lee (Paris)"),
        ("Ann Lee (Paris)", "Ann Lee (Paris)"),
    ],
)
def test_an_author_with_an_address_is_read_by_name(author: str, name: str) -> None:
    assert author_name(author) == name
