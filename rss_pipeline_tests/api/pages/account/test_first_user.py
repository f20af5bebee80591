"""The first user, made on the page: from this machine only, while there is none, subscribed and logged in."""

from typing import Any

import httpx
import pytest

from rss_pipeline.api.auth import COOKIE
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.storage.subscriptions.readers import arrive
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.reader import HOST, URL, Reader

PASSWORD = "correct horse battery"
GIVEN = {"name": "Ada", "password": PASSWORD, "again": PASSWORD, "subscribe": "on"}
OWN_PAGE = {"origin": URL, "sec_fetch_site": "same-origin"}


def users(reader: Reader) -> list[str]:
    return [row["name"] for row in reader.database.query("SELECT name FROM users", name="look").rows]


@pytest.mark.slow
def test_who_opens_the_reader_for_the_first_time_makes_the_user_and_reads(reader: Reader) -> None:
    register(reader.database, spec("one"), spec("own", allow_private=True))
    arrive(reader.database, "one", "1")
    client = browser(reader)
    way = []
    answer = client.get("/")
    while answer.status_code == 303:
        way.append(answer.headers["location"])
        answer = client.get(way[-1])
    assert way[-1] == "/first-user"
    assert 'name="subscribe" checked' in answer.text
    assert "Left out: 1 with a password, headers or <code>allow_private</code>" in answer.text
    made = client.post("/first-user", data=GIVEN)
    assert (made.status_code, made.headers["location"]) == (303, "/")
    assert COOKIE in client.cookies
    assert "title of 1" in client.get("/unread").text or "/feeds/one" in client.get("/unread").text
    assert browser(reader).post("/login", data=GIVEN).headers["location"] == "/unread"


def test_the_box_that_is_not_ticked_subscribes_nothing(reader: Reader) -> None:
    register(reader.database, spec("one"))
    client = browser(reader)
    client.post("/first-user", data={name: GIVEN[name] for name in ("name", "password", "again")})
    assert users(reader) == ["ada"]
    assert "/feeds/one" not in client.get("/unread").text


def test_the_page_is_gone_once_there_is_a_user(reader: Reader) -> None:
    reader.user("ben")
    client = browser(reader)
    assert client.get("/login").status_code == 200
    assert client.get("/first-user").headers["location"] == "/login"
    refused = client.post("/first-user", data=GIVEN)
    assert (refused.status_code, refused.headers["location"]) == (303, "/login")
    assert "set-cookie" not in refused.headers
    assert users(reader) == ["ben"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "Ada Lovelace"}, "cannot be a user&#39;s name"),
        ({"name": ""}, "cannot be a user&#39;s name"),
        ({"password": "short", "again": "short"}, "A password has from 8 to 1,024 characters"),
        ({"again": "correct horse batteri"}, "The two passwords are not the same"),
    ],
)
def test_what_cannot_be_a_user_is_said_and_nothing_is_made(
    reader: Reader, changed: dict[str, str], words: str
) -> None:
    refused = browser(reader).post("/first-user", data={**GIVEN, **changed})
    assert refused.status_code == 422
    assert words in refused.text
    assert PASSWORD not in refused.text
    assert users(reader) == []


@pytest.mark.parametrize(
    "elsewhere",
    [
        pytest.param({"address": "192.0.2.7"}, id="another machine"),
        pytest.param({"address": "2001:db8::1"}, id="another machine by IPv6"),
        pytest.param({"x_forwarded_for": "192.0.2.7"}, id="X-Forwarded-For"),
        pytest.param({"x_forwarded_for": "127.0.0.1"}, id="a proxy on this machine"),
        pytest.param({"x_forwarded_proto": "http"}, id="X-Forwarded-Proto"),
        pytest.param({"x_forwarded_host": HOST}, id="X-Forwarded-Host"),
        pytest.param({"forwarded": "for=127.0.0.1"}, id="Forwarded"),
        pytest.param({"x_real_ip": "127.0.0.1"}, id="X-Real-IP"),
        pytest.param({"via": "1.1 proxy"}, id="Via"),
        pytest.param({"cf_connecting_ip": "127.0.0.1"}, id="Cloudflare"),
    ],
)
def test_from_elsewhere_the_page_names_the_command_and_makes_nobody(
    reader: Reader, elsewhere: dict[str, Any]
) -> None:
    client = reader.client(**elsewhere, **OWN_PAGE)
    for answer in (client.get("/first-user"), client.post("/first-user", data=GIVEN)):
        assert answer.status_code == 403
        assert "rss-pipeline user add NAME --subscribe" in answer.text
        assert "<form" not in answer.text
    assert users(reader) == []


def test_another_site_s_page_makes_nobody(reader: Reader) -> None:
    for headers in ({"origin": "https://evil.example", "sec_fetch_site": "cross-site"}, {}):
        assert reader.client(**headers).post("/first-user", data=GIVEN).status_code == 403
    assert users(reader) == []


def test_another_name_of_this_machine_is_refused(reader: Reader) -> None:
    """DNS rebinding: a stranger's name that points to 127.0.0.1."""
    rebound = reader.client(host="evil.example:3001", origin="http://evil.example:3001")
    assert rebound.post("/first-user", data=GIVEN).status_code == 421
    assert users(reader) == []


@pytest.mark.slow
def test_nginx_as_it_comes_speaks_http_1_0_and_makes_nobody(reader: Reader) -> None:
    """Its defaults send no header that shows a proxy, and our own address as Host."""
    body = httpx.QueryParams(GIVEN).__str__().encode()
    sent = (
        b"POST /first-user HTTP/1.0\r\nHost: " + HOST.encode() + b"\r\nOrigin: " + URL.encode() + b"\r\n"
        b"Connection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    assert raw(reader, sent).split(b"\r\n")[0].endswith(b"403 Forbidden")
    assert users(reader) == []
    raw(reader, sent.replace(b"HTTP/1.0", b"HTTP/1.1"))
    assert users(reader) == ["ada"]


def raw(reader: Reader, sent: bytes) -> bytes:
    import socket

    with reader.served() as client, socket.create_connection(("127.0.0.1", client.base_url.port)) as link:
        link.sendall(sent)
        return b"".join(iter(lambda: link.recv(65_536), b""))
