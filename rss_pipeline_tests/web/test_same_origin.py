"""Requests that pages of other sites can make a browser send are refused before the application sees them.

The layer alone, by ASGI messages. That Dagster's UI works behind it, in a browser, is tested in
cli/up/up_in_chromium.py, and that the doors of a running `up` are shut in cli/up/up_doors.py.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.web.authority import Authority, own_authorities, read_authority, read_origin
from rss_pipeline.web.same_origin import Message, Receive, SameOrigin, Scope, Send

PORT = 3000
PROXIED = (Authority("rss.example.org", None), Authority("localhost", 8080))
JSON = ("content-type", "application/json")
OWN = ("host", "127.0.0.1:3000")


def ask(
    path: str,
    *headers: tuple[str, str],
    method: str = "GET",
    kind: str = "http",
    extensions: Sequence[str] = ("websocket.http.response",),
    host: tuple[str, str] | None = OWN,
) -> list[Message]:
    """The messages that come back; an application that is reached answers 204, or accepts the websocket."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if kind == "websocket":
            await send({"type": "websocket.accept"})
        else:
            await send({"type": "http.response.start", "status": 204, "headers": []})

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read of what is refused")

    given = [*headers] if host is None else [host, *headers]
    scope: dict[str, Any] = {
        "type": kind,
        "path": path,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given],
        "extensions": {each: {} for each in extensions},
    }
    if kind == "http":
        scope["method"] = method
    guarded = SameOrigin(
        app, own=own_authorities(PORT, PROXIED), setting="RSS_UI_HOSTS", json_paths=("/graphql",)
    )
    asyncio.run(guarded(scope, receive, send))
    return sent


def status(path: str, *headers: tuple[str, str], **options: Any) -> int:
    return int(ask(path, *headers, **options)[0]["status"])


OWN_HOSTS = ["127.0.0.1:3000", "localhost:3000", "LOCALHOST:3000", "[::1]:3000", "[0:0::1]:3000"]
PROXY_HOSTS = ["rss.example.org", "rss.example.org:443", "RSS.example.org:80", "localhost:8080"]
STRANGE_HOSTS = [
    "evil.example",
    "evil.example:3000",
    "127.0.0.1",
    "127.0.0.1:3001",
    "localhost",
    "localhost.:3000",
    "127.0.0.1.nip.io:3000",
    "rss.example.org:8443",
    "x.rss.example.org",
    "rss.example.org.evil.example",
    "user@127.0.0.1:3000",
    "127.0.0.1:3000@evil.example",
    "127.0.0.1:3000/",
    "127.0.0.1:3000, evil.example",
    "[::2]:3000",
    "[::1%lo]:3000",
    "0.0.0.0:3000",
    "2130706433:3000",
    "127.0.0.1:99999",
    "127.0.0.1:",
    "",
]


@pytest.mark.parametrize("host", [*OWN_HOSTS, *PROXY_HOSTS])
def test_a_request_by_a_name_of_this_server_is_served(host: str) -> None:
    assert status("/", host=("host", host)) == 204
    assert status("/graphql", JSON, method="POST", host=("host", host)) == 204
    assert ask("/graphql", kind="websocket", host=("host", host)) == [{"type": "websocket.accept"}]


@pytest.mark.parametrize("host", STRANGE_HOSTS)
def test_a_request_by_another_name_is_refused_so_that_dns_rebinding_gains_nothing(host: str) -> None:
    for path, method in (("/", "GET"), ("/graphql", "POST"), ("/report_asset_materialization/a", "POST")):
        assert status(path, JSON, method=method, host=("host", host)) == 421
    assert status("/graphql", kind="websocket", host=("host", host)) == 421


def test_no_host_and_two_hosts_are_refused() -> None:
    assert status("/", host=None) == 421
    assert status("/", ("host", "127.0.0.1:3000")) == 421


STRANGE_ORIGINS = [
    "https://evil.example",
    "http://evil.example:3000",
    "null",
    "file://",
    "http://127.0.0.1",
    "http://127.0.0.1:3001",
    "http://localhost:5173",
    "http://127.0.0.1:3000.evil.example",
    "chrome-extension://abc",
    "ftp://127.0.0.1:3000",
    "127.0.0.1:3000",
    "http://127.0.0.1:3000/",
    "",
]


@pytest.mark.parametrize("origin", STRANGE_ORIGINS)
def test_a_page_of_another_site_reaches_nothing(origin: str) -> None:
    header = ("origin", origin)
    for method, path in (
        ("GET", "/"),
        ("POST", "/graphql"),
        ("POST", "/report_asset_materialization/feed_items"),
        ("POST", "/report_asset_check/feed_items"),
        ("POST", "/upload"),
        ("PUT", "/anything"),
        ("OPTIONS", "/graphql"),
    ):
        assert status(path, JSON, header, method=method) == 403
    assert status("/graphql", header, kind="websocket") == 403
    # A header of its own does not hide it.
    assert status("/graphql", JSON, ("origin", "http://127.0.0.1:3000"), header, method="POST") == 403


@pytest.mark.parametrize(
    "origin",
    ["http://127.0.0.1:3000", "http://localhost:3000", "http://[::1]:3000", "https://rss.example.org"],
)
def test_a_page_of_this_server_reaches_everything(origin: str) -> None:
    headers = (("origin", origin), ("sec-fetch-site", "same-origin"))
    assert status("/graphql", JSON, *headers, method="POST") == 204
    assert status("/report_asset_materialization/feed_items", *headers, method="POST") == 204
    assert ask("/graphql", *headers, kind="websocket") == [{"type": "websocket.accept"}]


@pytest.mark.parametrize("site", ["cross-site", "same-site", "other"])
def test_what_the_browser_calls_another_site_is_refused_also_without_an_origin(site: str) -> None:
    header = ("sec-fetch-site", site)
    assert status("/graphql", JSON, header, method="POST") == 403
    assert status("/report_asset_materialization/feed_items", header, method="POST") == 403
    assert status("/graphql", header, kind="websocket") == 403
    for dest in ("image", "iframe", "script", "empty"):
        mode = "navigate" if dest == "iframe" else "no-cors"
        assert status("/", header, ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)) == 403


def test_a_link_on_another_page_opens_the_ui_and_does_nothing_else() -> None:
    clicked = (
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    )
    assert status("/runs/1234", *clicked) == 204
    assert status("/graphql", *clicked) == 405
    assert status("/report_asset_materialization/feed_items", *clicked, method="POST") == 403


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "get"])
def test_graphql_takes_no_method_but_post(method: str) -> None:
    [start, body] = ask("/graphql", JSON, method=method)
    assert start["status"] == 405
    assert (b"allow", b"POST") in start["headers"]
    assert b"POST only" in body["body"]


@pytest.mark.parametrize(
    "types",
    [
        [],
        ["text/plain"],
        ["application/x-www-form-urlencoded"],
        ["multipart/form-data; boundary=x"],
        ["application/graphql"],
        ["text/plain; application/json"],
        ["application/jsonp"],
        ["text/plain", "application/json"],
    ],
)
def test_graphql_takes_no_body_but_json(types: list[str]) -> None:
    assert status("/graphql", *(("content-type", each) for each in types), method="POST") == 415


@pytest.mark.parametrize(
    "written", ["application/json", "Application/JSON", "application/json; charset=utf-8"]
)
def test_graphql_takes_json_however_it_is_written(written: str) -> None:
    assert status("/graphql", ("content-type", written), method="POST") == 204


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ([("origin", "https://evil.example")], ["https://evil.example", "RSS_UI_HOSTS"]),
        ([("sec-fetch-site", "cross-site")], ["cross-site", "one of its names"]),
        ([("content-type", "text/plain")], ["application/json only", "text/plain"]),
        ([("origin", "\x1b[2J\u00e9" + "x" * 500)], ["?[2J?xxx", "RSS_UI_HOSTS"]),
    ],
)
def test_a_refusal_is_one_plain_sentence_that_says_what_to_do(
    headers: list[tuple[str, str]], says: list[str]
) -> None:
    [start, body] = ask("/graphql", *headers, method="POST")
    assert dict(start["headers"])[b"content-type"] == b"text/plain; charset=utf-8"
    assert int(dict(start["headers"])[b"content-length"]) == len(body["body"])
    text = body["body"].decode()
    assert text.endswith(".\n")
    assert len(text) < 400
    assert text.rstrip("\n").isprintable()
    for each in says:
        assert each in text


def test_a_websocket_is_closed_where_the_server_cannot_answer_it() -> None:
    [message] = ask("/graphql", ("origin", "null"), kind="websocket", extensions=())
    assert (message["type"], message["code"]) == ("websocket.close", 1008)


def test_pages_are_not_shown_in_frames_of_other_sites() -> None:
    [start] = ask("/runs")
    assert (b"x-frame-options", b"SAMEORIGIN") in start["headers"]


def test_what_is_no_request_passes() -> None:
    [start] = ask("/", kind="lifespan", host=None)
    assert start["status"] == 204


@given(st.from_regex(r"[a-z0-9.:\[\]@/ -]{0,20}(:[0-9]{0,6})?", fullmatch=True))
def test_an_authority_is_read_back_as_it_was_written(text: str) -> None:
    found = read_authority(text)
    if found is not None:
        assert read_authority(str(found)) == read_origin(f"https://{found}") == found


@pytest.mark.parametrize("port", [80, 443])
def test_on_a_default_port_a_host_without_port_is_ours(port: int) -> None:
    own = own_authorities(port, ())
    assert read_authority("127.0.0.1") in own
    assert read_origin("http://localhost") in own
    assert read_authority("127.0.0.1:3000") not in own


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_an_origin_that_a_proxy_s_policy_hides_is_decided_by_sec_fetch_site(kind: str) -> None:
    """`Referrer-Policy: no-referrer`, which some proxies add, makes a browser send `Origin: null`."""
    null = ("origin", "null")
    for sites, is_own in (
        (["same-origin"], True),
        (["none"], False),
        (["cross-site"], False),
        (["same-site"], False),
        (["same-origin", "cross-site"], False),
        ([], False),
    ):
        headers = [null, *(("sec-fetch-site", site) for site in sites)]
        [first, *_] = ask("/", *headers, kind=kind, method="POST")
        is_refused = first.get("status") == 403
        assert is_refused is not is_own, sites
