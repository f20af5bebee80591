"""Lists of feeds by the Google Reader API."""

import pytest

from rss_pipeline_tests.api.google_reader.conftest import Two, two
from rss_pipeline_tests.api.google_reader.test_subscriptions import edit, listed

__all__ = ["two"]

OPML = """<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0"><head><title>x</title></head><body>
<outline text="Folder"><outline type="rss" text="One" xmlUrl="https://one.example/feed"/></outline>
<outline type="rss" text="Two &amp; a half" xmlUrl="https://two.example/feed?a=1&amp;b=2"/>
</body></opml>
"""


@pytest.mark.parametrize(
    "kind", ["text/xml", "text/xml; charset=utf-8", "application/x-www-form-urlencoded", "x"]
)
def test_a_list_of_feeds_is_imported_whatever_its_content_type(two: Two, kind: str) -> None:
    """NetNewsWire sends text/xml, RSS Guard that of a form; neither sends T."""
    for _ in range(2):
        answer = two.ann.client.post(
            "/greader/reader/api/0/subscription/import", content=OPML, headers={"Content-Type": kind}
        )
        assert (answer.status_code, answer.content) == (200, b"OK"), answer.text
    found = {each["url"]: each for each in listed(two.ann).values()}
    assert found["https://one.example/feed"]["categories"][0]["label"] == "Folder"
    assert found["https://two.example/feed?a=1&b=2"]["title"] == "Two & a half"


def test_a_list_in_a_form_is_imported(two: Two) -> None:
    files = {"opml": ("feeds.opml", OPML.encode(), "text/xml")}
    assert two.ann.client.post("/greader/reader/api/0/subscription/import", files=files).content == b"OK"
    assert len(listed(two.ann)) == 4


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"not xml", id="no XML"),
        pytest.param(b'<!DOCTYPE x [<!ENTITY a "b">]><opml/>', id="a document type"),
        pytest.param(
            OPML.replace("https://one.example", "http://127.0.0.1").encode(), id="a private address"
        ),
    ],
)
def test_a_list_with_a_mistake_imports_nothing_and_says_which(two: Two, body: bytes) -> None:
    answer = two.ann.client.post("/greader/reader/api/0/subscription/import", content=body)
    assert answer.status_code == 400
    assert "othing was imported" in answer.text or "no file" in answer.text
    assert len(listed(two.ann)) == 2


def test_a_list_of_more_than_a_megabyte_is_refused(two: Two) -> None:
    answer = two.ann.client.post("/greader/reader/api/0/subscription/import", content=b"x" * 2_000_000)
    assert answer.status_code == 413


def test_subscriptions_are_exported_and_come_back_equal(two: Two) -> None:
    answer = two.ann.get("subscription/export")
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    before = listed(two.ann)
    edit(two.ann, "unsubscribe", list(before))
    assert (
        two.ann.client.post("/greader/reader/api/0/subscription/import", content=answer.content).text == "OK"
    )
    assert listed(two.ann) == before


def test_a_list_is_sent_by_post(two: Two) -> None:
    assert two.ann.get("subscription/import").status_code == 405
