"""The names that the text of an author counts for."""

import pytest

from rss_pipeline.features.streams.model import names_of
from rss_pipeline_tests.support.cost import costs_less_than


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ("mail@e.example (Ada Lovelace)", "Ada Lovelace"),
        ("noreply@blogger.com (小嶋 陽菜)", "小嶋 陽菜"),
        (" a.b+c@e.example\n( Ada (Analyst) )\n", "Ada (Analyst)"),
        ("a@localhost(Ada)", "Ada"),
    ],
)
def test_an_address_with_a_name_counts_as_the_name_too(author: str, name: str) -> None:
    assert names_of(author) == (author, name)


@pytest.mark.parametrize(
    "author",
    [
        "Ada",
        "Ada (Analyst)",
        "mail@e.example",
        "mail@e.example ()",
        "mail@e.example ( )",
        "mail@e.example (Ada) and others",
        "Ada <mail@e.example>",
        "see mail@e.example (Ada)",
        "@ (x)",
        "",
    ],
)
def test_any_other_text_counts_for_itself_alone(author: str) -> None:
    assert names_of(author) == (author,)


def test_long_texts_take_no_more_than_their_length() -> None:
    with costs_less_than(2):
        for part in ("a", "a@", "a@b (", "(", " ", "a@b )"):
            names_of(part * (1_000_000 // len(part)))
