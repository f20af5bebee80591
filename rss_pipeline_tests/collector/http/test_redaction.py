"""The parts of a feed's access that count as secret, and where it is found again."""

import pytest

from rss_pipeline.collector.http.redaction import Secrets, repeats_a_secret, scrubbed
from rss_pipeline.collector.models.feed import Access

ACCESS = Access(
    username="me",
    password="p@ss/word 1",
    headers={
        "Authorization": "Bearer abcdef123456",
        "Cookie": "session=0123456789; theme=dark",
        "X-Key": "short",
        "User-Agent": "a reader of ours",
        "Accept": "application/xml",
    },
)


@pytest.mark.parametrize(
    "text",
    [
        "https://x.example/?key=p@ss/word 1",
        "https://x.example/?key=p%40ss%2Fword%201",
        "https://x.example/?key=p%40ss/word%201",
        "https://x.example/P@SS/WORD 1",
        "https://x.example/bWU6cEBzcy93b3JkIDE=",
        "https://x.example/bWU6cEBzcy93b3JkIDE%3D",
        "https://abcdef123456.example/",
        "session 0123456789!",
        "<b>p&#64;ss&#x2F;word 1</b>",
        "p&amp;#64;ss/word%25201",
        r"{'id': 'p\u0040ss\/word 1'}",
        "https://x.example/p@ss/word+1",
        "cEBzcy93b3JkIDE",
    ],
)
def test_a_secret_is_found_in_every_form_and_taken_out(text: str) -> None:
    assert repeats_a_secret(text, ACCESS)
    assert "***" in scrubbed(text, ACCESS)
    assert not repeats_a_secret(scrubbed(text, ACCESS), ACCESS)


@pytest.mark.parametrize(
    "text",
    [
        "https://x.example/short/dark/theme=light",
        "https://x.example/?type=application/xml&by=a reader of ours",
        "https://x.example/bearer/session",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert scrubbed(text, ACCESS) == text
    assert not repeats_a_secret(text, ACCESS)
    assert scrubbed(text, Access()) == text
    assert not repeats_a_secret(text, Access())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the reader", "the ***"),
        ("?key=reader&x", "?key=***&x"),
        ("a%20reader", "a%20***"),
        ("readers", "readers"),
        ("proofreader", "proofreader"),
        ("bWU6cmVhZGVy", "***"),
    ],
)
def test_a_short_password_is_removed_where_it_is_a_whole_word(text: str, expected: str) -> None:
    """Others would shred texts: one of five characters is not looked for at all."""
    assert scrubbed(text, Access(username="me", password="reader")) == expected
    assert scrubbed("to read", Access(username="me", password="read")) == "to read"
    assert scrubbed("bWU6cmVhZA==", Access(username="me", password="read")) == "***=="


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-16-be", "utf-32", "latin-1"])
def test_the_places_of_secrets_in_a_document_give_them_back(codec: str) -> None:
    """So that a replay needs no feeds.yaml."""
    known = Access(username="me", password="m\u00f6re/sec&ret", headers={"X-Key": "key-0123456789"})
    text = "<a>m\u00f6re/sec&amp;ret</a> and KEY-0123456789 and key-0123456789"
    body = text.encode(codec)
    marks = Secrets.of(known).marks(body)
    assert len(marks) == 2
    assert Secrets.marked(body, marks).removed(text) == "<a>***</a> and *** and ***"
    assert Secrets.of(Access()).marks(body) == ()
    assert Secrets.of(known).marks(b"nothing") == ()
