"""Errors of pages are pages, with what to do and a way back; those of the APIs stay as they are."""

import logging

import pytest

from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.support.reader import URL, Reader


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "words"),
    [
        ("GET", "/nothing", {}, 404, "Back to your feeds"),
        ("GET", "/static/0/none.css", {}, 404, "Back to your feeds"),
        ("GET", "/unread?after=x", {}, 422, "A value cannot be used"),
        ("DELETE", "/login", {}, 405, "This page does not support this request method"),
        ("POST", "/settings", {"Origin": "https://evil.example"}, 403, "A page of another site sent this"),
        ("POST", "/settings", {"Content-Type": "application/json"}, 415, "The form cannot be read"),
        ("POST", "/settings", {"Content-Length": "100000"}, 413, "That is too large"),
        ("GET", "/unread?q=" + "x" * 9_000, {}, 414, "The address is too long"),
        ("GET", "/%ff", {}, 400, "The request cannot be read"),
        ("GET", "/unread", {"Host": "evil.example"}, 421, "those of the reader"),
        ("GET", "/unread", {"Host": "["}, 421, "those of the reader"),
        ("GET", "/unread", {"Host": "a]b:x/?#"}, 421, "those of the reader"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, (str, int)) else "",
)
def test_an_error_of_a_page_is_a_page(
    reader: Reader, method: str, path: str, headers: dict[str, str], status: int, words: str
) -> None:
    client = browser(reader, reader.user("ada"))
    answer = client.request(method, path, headers=headers, content=b"x" if method == "POST" else None)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert words in answer.text
    assert "/api/docs" not in answer.text


def test_a_failure_of_ours_is_a_page_and_in_the_log(reader: Reader, caplog: pytest.LogCaptureFixture) -> None:
    client = browser(reader, reader.user("ada"))
    caplog.set_level(logging.ERROR)

    @reader.app.get("/fails")
    async def fails() -> None:
        raise RuntimeError("a secret")

    answer = client.get("/fails")
    assert answer.status_code == 500
    assert "The reader failed" in answer.text
    assert "a secret" not in answer.text
    assert "GET /fails failed" in caplog.text
    gzipped = client.get("/fails", headers={"Accept-Encoding": "gzip"})
    assert "The reader failed" in gzipped.text


def test_an_error_of_a_form_leads_back_to_the_page_of_the_form_and_to_no_other_server(reader: Reader) -> None:
    client = browser(reader, reader.user("ada"))
    for referer, back in (
        (f"{URL}/settings/sessions?done=ended", "/settings/sessions?done=ended"),
        (f"{URL}//evil.example/", "/unread"),
        ("https://evil.example/settings", "/unread"),
        ("javascript:alert(1)", "/unread"),
        ("http://[", "/unread"),
    ):
        answer = client.post(f"/settings/sessions/{'0' * 64}/end", headers={"Referer": referer})
        assert answer.status_code == 404
        assert f'href="{back}"' in answer.text


@pytest.mark.parametrize("path", ["/api/nothing", "/api", "/reader/api/0/nothing"])
def test_an_error_of_an_api_is_no_page(reader: Reader, path: str) -> None:
    answer = browser(reader, reader.user("ada")).get(path)
    assert answer.status_code in (401, 404, 501)
    assert "html" not in answer.headers["content-type"]
