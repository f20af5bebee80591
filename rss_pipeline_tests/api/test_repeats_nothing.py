"""No error, at whatever door, repeats what was sent: it may hold a password, or be another site's. And no
answer at all names what is internal: files, tables, settings, classes, stores; a stranger gets no version."""

import re
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from rss_pipeline.api.google_reader.routes import CALLS
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.headers import Head
from rss_pipeline.collector.http.network_errors import request_error
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.http.status_errors import (
    FEED_MESSAGES,
    FEED_WITH_ACCESS_MESSAGES,
    status_error,
)
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import FAILURE_KINDS
from rss_pipeline.collector.schedule.next_visit import next_after_unreadable_registry, registered_interval
from rss_pipeline.httpx_without_cli import httpx as requests
from rss_pipeline_tests.api.google_reader.phone import API, Phone
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.pages.test_strangers import PAGES
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.api.test_strangers import OPERATIONS
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import NOW, change, register, spec
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

INTERNAL = re.compile(
    r"\b(?:RSS|R2|S3|D1|POSTGRES|ALLOW)_[A-Z]+|feeds\.yaml|rss-pipeline \w|rss_pipeline[./]\w"
    r"|\.py\b|docs/|/work/|/tmp/|/dev/|site-packages|Traceback|SELECT |INSERT |\w+Error\b|\w+Exception\b"
    r"|(?i:sqlite|postgres|dagster|uvicorn|fastapi|pydantic|d1_error|redis|lxml|xmlsyntax)"
)
VERSION = version("rss_pipeline")


def without_controls(text: str) -> str:
    """A page without the values of its controls: a form shows what was typed into it."""
    text = re.sub(r'value="[^"]*"', "", text)
    return re.sub(r"<(textarea|option)\b.*?</\1>", "", text, flags=re.DOTALL)


def names_nothing_internal(answer: httpx.Response, request: object) -> None:
    said = f"{dict(answer.headers)} {answer.text}"
    assert INTERNAL.findall(said) == [], (request, answer.status_code)
    if not answer.request.headers.keys() & {"authorization", "cookie"}:
        assert VERSION not in said, request
    assert "server" not in answer.headers
    assert "x-powered-by" not in answer.headers


def check(answer: httpx.Response, request: object) -> bool:
    """Fail if an error repeats what was sent; True for an error."""
    names_nothing_internal(answer, request)
    if answer.status_code < 400:
        return False
    said = without_controls(answer.text).lower()
    assert SENT.lower() not in said, (request, answer.status_code, answer.text[:500])
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    assert SENT.lower() not in str(headers).lower(), request
    return True


@pytest.fixture
def reader(reader: Reader) -> Reader:
    """One that has an owner: the users of the tests are others."""
    reader.user("owner")
    reader.clock.pass_(seconds=1)
    return reader


def messages() -> Iterator[tuple[str, str]]:
    """Kinds of failures with messages of them, all that the operator alone is to read among them."""
    for status in range(300, 600):
        for words in (FEED_MESSAGES, FEED_WITH_ACCESS_MESSAGES):
            error = status_error(status, Head([]), retry_after=None, messages=words)
            yield error.kind, error.advised
    of_requests: tuple[Exception, ...] = (
        requests.ProxyError("x"),
        requests.LocalProtocolError("x"),
        RuntimeError("x"),
    )
    for cause in of_requests:
        error = request_error(cause, "a.example", connect_timeout=10)
        yield error.kind, error.advised
    with pytest.raises(FetchError) as refused:
        request_url("x")
    yield refused.value.kind, refused.value.advised
    yield "our_network", "Our own network was down. The first one said: No connection to his.example."
    for kind in ("blocked_address", "crashed", "storage_rejected", "too_large", "tls"):
        yield (
            kind,
            "XMLSyntaxError: D1_ERROR: no such table: items; set RSS_CA_FILE in feeds.yaml: his.example",
        )


def test_no_answer_to_a_stranger_or_a_user_names_what_is_internal(reader: Reader) -> None:
    register(reader.database, *map(spec, ("a", "his")))
    phone = Phone.of_new_user(reader, "ann")
    subscribe(reader.database, phone.user_id, "a")
    user = reader.signed_in(phone.user_id)
    clients = [user.client, browser(reader, user), phone.client, reader.client(), browser(reader)]
    versions = [client.get("/api/about").json()["version"] for client in clients]
    assert versions == [VERSION, VERSION, None, None, None]
    for client in clients:
        for operation in OPERATIONS:
            names_nothing_internal(operation.send(client, "a"), operation)
        for page in PAGES:
            names_nothing_internal(page.send(client, "a"), page)
        for path in (
            "/",
            "/login",
            "/api/docs",
            "/api/openapi.json",
            "/greader",
            "/greader/nothing",
            "/nothing",
        ):
            names_nothing_internal(client.get(path), path)
        for call, methods in CALLS.items():
            for method in methods:
                names_nothing_internal(client.request(method, f"/greader/{call}"), call)
        names_nothing_internal(client.get("/unread", headers={"Host": "evil.example"}), "host")


def test_no_reason_of_a_failure_or_of_the_next_visit_does(reader: Reader) -> None:
    user = ann(reader, a=1)
    client, owner = browser(reader, user), browser(reader, reader.signed_in(first_user(reader)))
    subscribe(reader.database, first_user(reader), "a")
    shown = set()
    sql = "UPDATE feeds SET consecutive_failures = 1, last_error_kind = ?, last_error = ?, failing_since = ?"
    for kind, message in {message: (kind, message) for kind, message in messages()}.values():
        change(reader.database, sql, kind, message, instant(NOW))
        answer = user.client.get("/api/feeds")
        check(answer, message)
        assert "his.example" not in answer.text
        shown.add(kind)
    assert shown < FAILURE_KINDS | {"our_network"}
    names_nothing_internal(client.get("/failing"), "failing")
    assert "RSS_CA_FILE" in owner.get("/failing").text, "the owner reads all of it"
    for reason in (registered_interval(timedelta(hours=1)), next_after_unreadable_registry(NOW).reason):
        change(reader.database, "UPDATE feeds SET schedule_reason = ?", reason)
        names_nothing_internal(client.get("/feeds/a/edit"), reason)


def first_user(reader: Reader) -> str:
    [first, *_] = reader.database.query("SELECT id FROM users ORDER BY created_at, id").rows
    return str(first["id"])


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
    assert errors > (40 if signed_in else 8)
