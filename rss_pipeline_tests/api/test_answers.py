"""Every answer: headers for safety, gzip, HEAD, 304, and problems with what to do."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from rss_pipeline.api.answers import takes_gzip
from rss_pipeline.api.conditional import bytes_answer, json_answer
from rss_pipeline.api.problems import KINDS, ApiError
from rss_pipeline.api.request_values import Line
from rss_pipeline.errors import DatabaseUnavailable, StorageRejected
from rss_pipeline.web.authority import Authority
from rss_pipeline_tests.support.reader import Reader, reader_settings

LARGE = {"text": "many words " * 500}


class Sent(BaseModel):
    name: Line
    count: int


@pytest.fixture
def client(reader: Reader) -> httpx.Client:
    """A client of an application with some routes more."""

    async def large(request: Request) -> Response:
        return json_answer(request, LARGE)

    async def picture(request: Request) -> Response:
        return bytes_answer(request, b"x" * 5_000, "image/png")

    async def fails() -> None:
        raise ZeroDivisionError("hunter2")

    async def refuses() -> None:
        raise StorageRejected("parameter 3: hunter2")

    async def is_away() -> None:
        raise DatabaseUnavailable("/home/ada/rss.sqlite: hunter2")

    async def waits() -> None:
        raise ApiError("too_many_requests", "60 in an hour.", retry_after=90)

    async def takes(sent: Sent) -> Sent:
        return sent

    for route in (large, picture, fails, refuses, is_away, waits):
        reader.app.get(f"/api/{route.__name__}")(route)
    reader.app.post("/api/takes")(takes)
    return reader.client()


def problem(answer: httpx.Response) -> dict[str, Any]:
    """The problem of an answer, which has all that a problem has."""
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert found["status"] == answer.status_code == KINDS[found["kind"]].status
    assert found["type"] == f"/api/docs#{found['kind']}"
    assert found["title"]
    assert found["detail"]
    assert found["what_to_do"]
    return found


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("GET", "/api", "not_found"),
        ("GET", "/api/nothing", "not_found"),
        ("GET", "/api/about/", "not_found"),
        ("GET", "//api/about", "not_found"),
        ("GET", "/api/%2e%2e/api/about", "not_found"),
        ("GET", "/api/..%2f..%2fetc%2fpasswd", "not_found"),
        ("GET", "/API/about", "not_found"),
        ("GET", "/api/about%00", "malformed_request"),
        ("GET", "/api/about%0d%0aSet-Cookie:%20a=b", "malformed_request"),
        ("GET", "/api/%ff", "malformed_request"),
        ("GET", "/api/about?q=%c3%28", "malformed_request"),
        ("GET", "/api/about?q=" + "x" * 10_000, "address_too_long"),
        ("DELETE", "/api/about", "method_not_allowed"),
        ("OPTIONS", "/api/about", "method_not_allowed"),
        ("GET", "/api/fails", "internal_error"),
        ("GET", "/api/refuses", "value_refused"),
        ("GET", "/api/is_away", "store_unavailable"),
        ("GET", "/api/waits", "too_many_requests"),
    ],
)
def test_every_error_is_a_problem_with_what_to_do_and_no_secret(
    client: httpx.Client, method: str, path: str, kind: str
) -> None:
    url = httpx.URL("http://127.0.0.1:3001").copy_with(raw_path=path.encode())
    answer = client.request(method, url)
    assert problem(answer)["kind"] == kind
    assert "hunter2" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_problem_says_when_to_come_again_and_which_methods_are_taken(client: httpx.Client) -> None:
    waits = client.get("/api/waits")
    assert (waits.headers["retry-after"], waits.json()["retry_after"]) == ("90", 90)
    assert client.get("/api/is_away").headers["retry-after"]
    assert client.delete("/api/about").headers["allow"] == "GET, HEAD"
    # Not those of feeds/{id}.
    assert client.put("/api/feeds/updated").headers["allow"] == "GET, HEAD"


def test_a_failure_is_in_the_log_without_the_query(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    client.get("/api/fails", params={"token": "correct-horse"})
    client.get("/api/is_away", params={"token": "correct-horse"})
    assert "GET /api/fails failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "GET /api/is_away: /home/ada/rss.sqlite" in caplog.text
    assert "correct-horse" not in caplog.text


@pytest.mark.parametrize(
    ("body", "kind", "where"),
    [
        (b'{"name": "hunter2"}', "invalid_request", ["body.count"]),
        (b'{"name": 7, "count": "hunter2"}', "invalid_request", ["body.name", "body.count"]),
        (b'{"name": "\\ud800", "count": 1}', "invalid_request", ["body.name"]),
        (b'["hunter2"]', "invalid_request", ["body"]),
        (b"{hunter2", "malformed_request", None),
        (b"\xff\xfe{", "malformed_request", None),
        (b"[" * 60_000, "malformed_request", None),
        (b'{"name": "x", "count": ' + b"9" * 5_000 + b"}", "malformed_request", None),
        (b"", "invalid_request", ["body"]),
    ],
)
def test_a_body_that_cannot_be_used_is_answered_with_each_mistake_and_no_value(
    client: httpx.Client, body: bytes, kind: str, where: list[str] | None
) -> None:
    answer = client.post("/api/takes", content=body, headers={"Content-Type": "application/json"})
    found = problem(answer)
    assert found["kind"] == kind
    assert "hunter2" not in answer.text
    if where is not None:
        assert [error["where"] for error in found["errors"]] == where


def test_json_of_another_type_is_not_read(client: httpx.Client) -> None:
    """A form of another site can send any text, but no Content-Type of JSON."""
    body = b'{"name": "x", "count": 1}'
    assert client.post("/api/takes", content=body, headers={"Content-Type": "text/plain"}).status_code == 422
    assert client.post("/api/takes", content=body).status_code == 422
    assert client.post("/api/takes", json={"name": "x", "count": 1}).status_code == 200


def test_an_answer_that_the_client_has_is_not_sent_again(client: httpx.Client) -> None:
    plain = client.get("/api/large", headers={"Accept-Encoding": "identity"})
    packed = client.get("/api/large", headers={"Accept-Encoding": "gzip"})
    assert plain.json() == packed.json() == LARGE
    assert plain.headers["cache-control"] == "private, no-cache"
    assert plain.headers["vary"] == "Authorization, Cookie, Accept-Encoding"
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 10
    tags = (plain.headers["etag"], packed.headers["etag"])
    assert tags[0] != tags[1], "other bytes, another strong tag"
    for tag in (*tags, f"W/{tags[0]}", f'"other", {tags[1]}', "*"):
        same = client.get("/api/large", headers={"If-None-Match": tag})
        assert (same.status_code, same.content) == (304, b"")
        assert same.headers["etag"] in tags
        assert same.headers["cache-control"] == "private, no-cache"
        assert "content-type" not in same.headers
    for tag in ('"other"', tags[0].strip('"'), "", 'W/"'):
        assert client.get("/api/large", headers={"If-None-Match": tag}).status_code == 200


def test_head_has_the_headers_of_get_and_no_body(client: httpx.Client) -> None:
    got, headed = client.get("/api/large"), client.head("/api/large")
    assert headed.headers == got.headers
    assert headed.content == b""
    assert client.head("/api/nothing").status_code == 404


@pytest.mark.parametrize(
    ("path", "accepts", "is_packed"),
    [
        ("/api/large", "gzip, deflate, br", True),
        ("/api/large", "br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("/api/large", "GZIP", True),
        ("/api/large", "gzip;q=0", False),
        ("/api/large", "gzip; q=0.000", False),
        ("/api/large", "notgzip, br", False),
        ("/api/large", "", False),
        ("/api/about", "gzip", False),
        ("/api/picture", "gzip", False),
    ],
)
def test_text_of_a_kilobyte_is_packed_for_a_client_that_takes_it(
    client: httpx.Client, path: str, accepts: str, is_packed: bool
) -> None:
    answer = client.get(path, headers={"Accept-Encoding": accepts})
    assert (answer.headers.get("content-encoding") == "gzip") is is_packed
    assert answer.status_code == 200


def test_every_answer_is_closed_to_frames_scripts_and_guesses(client: httpx.Client) -> None:
    for path in ("/api/about", "/api/docs", "/api/large", "/api/nothing", "/api/fails"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["content-security-policy"].startswith("default-src 'none'; frame-ancestors 'none'")
        assert "script" not in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:3001", 200),
        ("localhost:3001", 200),
        ("[::1]:3001", 200),
        ("rss.example.org", 200),
        ("RSS.example.org:443", 200),
        ("evil.example", 421),
        ("evil.example:3001", 421),
        ("127.0.0.1", 421),
        ("127.0.0.1:3001@evil.example", 421),
        ("rss.example.org.evil.example", 421),
        ("rss.example.org:3001", 421),
        ("", 421),
    ],
)
def test_a_request_for_another_server_s_name_is_refused(tmp_path: Path, host: str, status: int) -> None:
    settings = reader_settings(tmp_path, reader_hosts=(Authority("rss.example.org", None),))
    with Reader.on(settings) as reader:
        answer = reader.client().get("/api/about", headers={"Host": host})
    assert answer.status_code == status
    if status == 421:
        assert problem(answer)["what_to_do"].startswith("If the name is yours")


def test_the_address_that_it_listens_on_is_a_name_of_the_reader(tmp_path: Path) -> None:
    with Reader.on(reader_settings(tmp_path, reader_address="192.0.2.5")) as reader:
        assert reader.client().get("/api/about", headers={"Host": "192.0.2.5:3001"}).status_code == 200
    with Reader.on(replace(reader.settings, reader_address="0.0.0.0")) as reader:
        assert reader.client().get("/api/about", headers={"Host": "0.0.0.0:3001"}).status_code == 421


def test_the_document_has_every_address_with_its_problems(reader: Reader) -> None:
    client = reader.client()
    document = client.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert document["components"]["schemas"]["Problem"]["properties"]["kind"]["enum"] == list(KINDS)
    assert set(document["components"]["securitySchemes"]) == {"token", "cookie"}
    assert document["paths"]["/api/about"]["get"]["security"] == []
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["summary"]
            assert operation["description"]
            for status, answer in operation["responses"].items():
                if not status.startswith(("2", "3")):
                    assert list(answer["content"]) == ["application/problem+json"]
    assert "HTTPValidationError" not in json.dumps(document)


def test_the_page_lists_every_address_and_every_kind_of_problem(reader: Reader) -> None:
    page = reader.client().get("/api/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for path in reader.app.openapi()["paths"]:
        assert path in page.text
    for kind in KINDS:
        assert f'<tr id="{kind}">' in page.text
    assert "<script" not in page.text
    assert "http" not in page.text.replace("HTTP", "")


def test_several_headers_of_one_name_are_one_list() -> None:
    assert takes_gzip({"headers": [(b"accept-encoding", b"br"), (b"accept-encoding", b"x-gzip")]})
    assert not takes_gzip({"headers": []})
