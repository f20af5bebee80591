"""What of a feed's access counts as secret, and where it is found again."""

import pytest

from rss_pipeline.collector.http.redaction import repeats_a_secret, scrubbed
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
