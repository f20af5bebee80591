"""Lists of feeds in and out on the page: a file without a script, and every mistake by its line."""

import re

import pytest

from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.features.opml.test_api import opml, outline
from rss_pipeline_tests.support.reader import Reader

PATH = "/settings/opml"


def file(body: bytes) -> dict[str, tuple[str, bytes, str]]:
    return {"file": ("feeds.opml", body, "text/x-opml")}


def test_a_file_goes_in_and_comes_out(reader: Reader) -> None:
    client = browser(reader, reader.user("ada"))
    body = opml(outline("https://a.example/1", "A &amp; B"), outline("https://b.example/2"))
    for words in ("2 feeds added, 0 already subscribed to.", "0 feeds added, 2 already subscribed to."):
        sent = client.post(PATH, files=file(body))
        assert sent.status_code == 303
        page = client.get(sent.headers["location"]).text
        assert words in page
        assert "Your 2 feeds" in page
    written = client.get("/api/export/opml")
    assert 'title="A &amp; B"' in written.text
    assert browser(reader, reader.user("ben")).post(PATH, files=file(written.content)).status_code == 303


def test_each_page_without_a_feed_has_a_button_for_a_look_at_its_list(reader: Reader) -> None:
    client = browser(reader, reader.user("ada"))
    pages = [f'<outline text="P {n}" htmlUrl="https://p.example/{n}"/>' for n in range(201)]
    sent = client.post(PATH, files=file(opml('<outline text="Blogs">', *pages, "</outline>")))
    assert (sent.status_code, "201 web pages have no feed in the list" in sent.text) == (200, True)
    assert "The first 200:" in sent.text
    forms = re.findall('<form method="post" action="/feeds/add".*?</form>', sent.text, re.DOTALL)
    assert len(forms) == 200
    fields = dict(re.findall('name="(\\w+)" value="([^"]*)"', forms[0]))
    assert fields == {"url": "https://p.example/0", "title": "P 0", "folder": "Blogs"}
    looked = client.post("/feeds/add", data=fields)
    assert "/tasks/" in looked.headers["location"]


def test_every_mistake_is_shown_with_its_line_and_nothing_is_imported(reader: Reader) -> None:
    ada = reader.user("ada")
    client = browser(reader, ada)
    body = opml(outline("https://a.example/1"), outline("gopher://<b>.example/"), outline("http://10.0.0.1/"))
    refused = client.post(PATH, files=file(body.replace(b"<b>", b"&lt;b&gt;")))
    assert refused.status_code == 422
    assert "the list has 2 mistakes" in refused.text
    assert "<td>3</td>" in refused.text
    assert "<td>4</td>" in refused.text
    assert "gopher://<b>" not in refused.text
    assert ada.client.get("/api/feeds").json()["feeds"] == []


def test_of_many_mistakes_the_first_hundred_are_shown(reader: Reader) -> None:
    body = opml(*(outline(f"ftp://{number}.example/") for number in range(300)))
    refused = browser(reader, reader.user("ada")).post(PATH, files=file(body))
    assert "the list has 300 mistakes" in refused.text
    assert "The first 100:" in refused.text
    assert refused.text.count("<tr><td>") == 100


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        ({}, 415, "The form cannot be read"),
        ({"data": {"file": "x"}}, 415, "The form cannot be read"),
        ({"files": {"file": ("", b"", "text/xml")}}, 422, "Choose a file first"),
        ({"files": {"other": ("a", b"x", "text/xml")}}, 422, "Choose a file first"),
        ({"files": {"file": ("a.png", b"\x89PNG\r\n\x1a\n", "image/png")}}, 422, "Nothing was imported"),
        ({"files": [("file", ("a", b"x")), ("file", ("b", b"y"))]}, 400, "The request cannot be read"),
        ({"files": {"file": ("a", b"x" * 1_000_001)}}, 422, "Nothing was imported"),
        ({"files": {"file": ("a", b"x" * 3_000_000)}}, 413, "That is too large"),
        (
            {"content": b"--x\r\nbroken", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
            422,
            "Choose a file first",
        ),
        (
            {"content": b"x", "headers": {"Content-Type": "multipart/form-data"}},
            400,
            "The request cannot be read",
        ),
    ],
    ids=["nothing", "form", "no file", "field", "picture", "two", "large", "too large", "broken", "no parts"],
)
def test_what_is_no_file_is_answered_with_what_to_do(
    reader: Reader, sent: dict[str, object], status: int, words: str
) -> None:
    answer = browser(reader, reader.user("ada")).post(PATH, **sent)  # type: ignore[arg-type]
    assert answer.status_code == status
    assert words in answer.text
    assert answer.headers["content-type"].startswith("text/html")
