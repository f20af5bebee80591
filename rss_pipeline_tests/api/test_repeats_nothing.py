"""No error, at whatever door, repeats what was sent: it may hold a password, or be another site's."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from rss_pipeline.api.google_reader.routes import CALLS
from rss_pipeline_tests.api.google_reader.phone import API, Phone
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.support.reader import Reader

pytestmark = pytest.mark.slow

SENT = "hunter2Zq"
VALUES = (SENT, f"user/-/state/com.google/{SENT}", f"ftp://me:{SENT}@{SENT}/", f"{SENT * 70}<script>\x01")
FIELDS = (
    "s",
    "i",
    "a",
    "r",
    "ac",
    "t",
    "dest",
    "quickadd",
    "ts",
    "ot",
    "nt",
    "n",
    "c",
    "xt",
    "it",
    "output",
    "T",
)
OPML = (
    f'<opml><body><outline text="{SENT}" type="rss"/></body></opml>',
    f'<opml><body><outline text="{SENT}" type="{SENT}+XPath" xmlUrl="https://{SENT}.example/"/></body></opml>',
    f'<opml><body><outline text="{SENT}" xmlUrl="ftp://{SENT}/"/></body></opml>',
    f'<opml><body><outline text="x" xmlUrl="http://127.0.0.1/{SENT}"/></body></opml>',
    f'<opml><body><outline text="x" xmlUrl="https://me:{SENT}@x.example/"/></body></opml>',
    f'<opml><body><outline text="x" xmlUrl="https://{SENT}_{SENT}-.example/"/></body></opml>',
    f"<{SENT}/>",
    f"<opml {SENT}",
    f"{SENT} &{SENT};",
)


def without_controls(text: str) -> str:
    """A page without the values of its controls: a form shows what was typed into it."""
    text = re.sub(r'value="[^"]*"', "", text)
    return re.sub(r"<(textarea|option)\b.*?</\1>", "", text, flags=re.DOTALL)


def check(answer: httpx.Response, request: object) -> bool:
    """Fail if an error repeats what was sent; True for an error."""
    if answer.status_code < 400:
        return False
    said = without_controls(answer.text).lower()
    assert SENT.lower() not in said, (request, answer.status_code, answer.text[:500])
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    assert SENT.lower() not in str(headers).lower(), request
    return True


def test_no_call_of_the_google_reader_api_does(reader: Reader) -> None:
    client = Phone.of_new_user(reader, "ann").client
    errors = 0
    for call, methods in CALLS.items():
        for method in methods:
            for value in (*VALUES[:2], f"feed/{SENT}", f"user/-/label/{SENT}"):
                for field in FIELDS:
                    fields = {"a": "user/-/state/com.google/read", "i": "1", "ac": "edit", field: value}
                    given: dict[str, Any] = {"params": fields} if method == "GET" else {"data": fields}
                    answer = client.request(method, f"/greader/{call}", **given)
                    errors += check(answer, (method, call, field, value))
    for path in (f"{API}{SENT}", f"{API}stream/contents/{SENT}", f"/greader/{SENT}", f"{API}token/{SENT}"):
        errors += check(client.get(path), path)
    for text in OPML:
        errors += check(client.post(f"{API}subscription/import", content=text), text)
    assert errors > 200


def test_no_operation_of_the_json_api_does(reader: Reader) -> None:
    client = ann(reader, a=1).client
    paths = reader.app.openapi()["paths"]
    errors = 0
    for path, methods in paths.items():
        for method, operation in methods.items():
            if path in ("/api/auth/logout", "/api/user/sessions"):
                continue
            for request in _requests(path, operation.get("parameters", [])):
                errors += check(client.request(method, request[0], **request[1]), (method, request))
    for text in OPML:
        headers = {"Content-Type": "text/x-opml"}
        errors += check(client.post("/api/import/opml", content=text, headers=headers), text)
    for host in (SENT, f"{SENT}.example", f"127.0.0.1:{SENT}"):
        errors += check(client.get("/api/feeds", headers={"Host": host}), host)
    errors += check(reader.client(authorization=f"Bearer {SENT}").get("/api/feeds"), "a token")
    errors += check(reader.client(cookie=f"rss_session={SENT}").get("/api/feeds"), "a cookie")
    errors += check(
        reader.client(cookie="rss_session=x", origin=f"https://{SENT}").post("/api/feeds"), "origin"
    )
    assert errors > 100


def _requests(path: str, parameters: list[dict[str, str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests of an operation, each with something that it does not take."""
    for value in VALUES:
        there = re.sub(r"\{\w+\}", quote(value, safe=""), path)
        yield there, {}
        for each in parameters:
            if each["in"] == "query":
                yield there, {"params": {each["name"]: value}}
        yield there, {"json": {value: value}}
        yield there, {"json": dict.fromkeys(("url", "name", "password", "up_to", "ids", "theme"), value)}
        yield there, {"json": {"url": value, "folder": value, "title": value}}
        yield there, {"content": f"{{{SENT}", "headers": {"Content-Type": "application/json"}}
        yield there, {"content": SENT, "headers": {"Content-Type": f"text/{SENT}"}}


@pytest.mark.parametrize("signed_in", [True, False])
def test_no_page_and_no_form_does(reader: Reader, signed_in: bool) -> None:
    user = ann(reader, a=1)
    client = browser(reader, user if signed_in else None)
    forms: tuple[str, ...] = (
        "/mark-read",
        "/mark-read/undo",
        "/feeds/add",
        "/settings",
        "/settings/folders/add",
        "/login",
    )
    forms += (
        "/settings/folders/rename",
        "/settings/apps",
        "/settings/password",
        "/feeds/a/edit",
        "/first-user",
    )
    errors = 0
    for value in VALUES:
        path = quote(value, safe="")
        for page in ("/feeds/", "/items/", "/folders/", "/tasks/", "/", "/static/", "/feeds/a/backups/"):
            errors += check(client.get(f"{page}{path}"), (page, value))
        for query in ("after", "order", "show"):
            errors += check(client.get("/all", params={query: value}), (query, value))
        for form in forms:
            names = ("up_to", "feed", "id", "back", "url", "title", "folder", "name", "new", "interval")
            more = ("password", "current", "again", "theme", "entries_per_page")
            if form.startswith(("/settings/folders", "/settings/apps")) and "\x01" not in value:
                # A folder and an app may have this name.
                continue
            answer = client.post(form, data=dict.fromkeys((*names, *more), value))
            errors += check(answer, (form, value))
        errors += check(client.get("/all", headers={"Host": f"{SENT}.example"}), "host")
    for text in OPML:
        answer = client.post("/settings/opml", files={"file": (f"{SENT}.opml", text.encode(), "text/x-opml")})
        errors += check(answer, text)
    assert errors > (40 if signed_in else 8)
