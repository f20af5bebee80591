"""The first user, made on the page while there is none, subscribed and logged in: from this machine, or by
whoever knows the code."""

import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from rss_pipeline.api.app import create_app
from rss_pipeline.api.auth import COOKIE
from rss_pipeline.environment import user_agent
from rss_pipeline.pipeline.session.fetch_policy import with_contact
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.reader.accounts.users import remove_user
from rss_pipeline.reader.first_user import code_of_first_user
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.storage.subscriptions.readers import arrive
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.reader import HOST, URL, Reader, reader_settings, served

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
        ({"contact": "Ada (home)"}, "This contact cannot be sent to publishers"),
        ({"contact": "ada@example.org\r\nX: y"}, "line breaks or control characters"),
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


def test_the_contact_from_the_page_goes_to_publishers_from_the_next_run_on(reader: Reader) -> None:
    def next_run() -> Session:
        return Session(
            RunContext(
                settings=reader.settings,
                database=reader.database,
                objects=open_objects(reader.settings),
                run_id="run",
                clock=reader.clock,
            )
        )

    client = browser(reader)
    assert 'name="contact"' in client.get("/first-user").text
    assert next_run().policy.user_agent == user_agent(None)
    health = pytest.importorskip("rss_pipeline.features.health.checks")
    assert health.contact_named(reader.settings, reader.database).state == "warning"
    assert client.post("/first-user", data={**GIVEN, "contact": " ada@example.org "}).status_code == 303
    run = next_run()
    assert run.policy.user_agent.endswith(" (+ada@example.org)")
    assert run.run.settings.user_agent == run.policy.user_agent, "that of images"
    assert health.contact_named(reader.settings, reader.database).state == "ok"
    named = replace(reader.settings, user_agent=user_agent("https://ops.example/"))
    assert with_contact(named, reader.database) is named, "the setting wins"


def test_where_the_settings_name_a_contact_the_page_has_no_field_for_one(tmp_path: Path) -> None:
    with Reader.on(reader_settings(tmp_path / "home", user_agent=user_agent("ops@example.org"))) as reader:
        assert 'name="contact"' not in browser(reader).get("/first-user").text


ELSEWHERE: tuple[dict[str, Any], ...] = (
    {"address": "192.0.2.7"},
    {"address": "2001:db8::1"},
    # A proxy on this machine: it has a loopback address too.
    {"x_forwarded_for": "192.0.2.7"},
    {"x_forwarded_for": "127.0.0.1"},
    {"x_forwarded_proto": "http"},
    {"x_forwarded_host": HOST},
    {"forwarded": "for=127.0.0.1"},
    {"x_real_ip": "127.0.0.1"},
    {"via": "1.1 proxy"},
    {"cf_connecting_ip": "127.0.0.1"},
    {"x_amzn_trace_id": "Root=1-2"},
    {"fastly_client_ip": "127.0.0.1"},
)


def test_from_elsewhere_the_code_makes_the_user_and_nothing_else_does(reader: Reader) -> None:
    register(reader.database, spec("own", allow_private=True))
    for elsewhere in ELSEWHERE:
        client = reader.client(**elsewhere, **OWN_PAGE)
        form = client.get("/first-user").text
        assert 'name="code"' in form, elsewhere
        assert "rss-pipeline user code" in form
        assert "Left out" not in form
        assert client.post("/first-user", data=GIVEN).status_code == 403
    for wrong in ("", "WRONG-23"):
        refused = client.post("/first-user", data={**GIVEN, "code": wrong})
        assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
    assert users(reader) == []
    code = code_of_first_user(reader.database)
    assert code is not None
    assert client.post("/first-user", data={**GIVEN, "code": f" {code.lower()}"}).status_code == 303
    assert users(reader) == ["ada"]


def test_ten_wrong_codes_an_hour_are_looked_at_and_the_code_stays(reader: Reader) -> None:
    code = code_of_first_user(reader.database)
    client = reader.client(address="192.0.2.7", **OWN_PAGE)
    assert client.post("/first-user", data={**GIVEN, "code": code, "again": "another"}).status_code == 422
    for _ in range(10):
        assert client.post("/first-user", data={**GIVEN, "code": "WRONG-23"}).status_code == 403
    reader.clock.pass_(minutes=18)
    # From any address: a stranger has many.
    late = reader.client(address="192.0.2.8", **OWN_PAGE).post("/first-user", data={**GIVEN, "code": code})
    assert (late.status_code, late.headers["retry-after"]) == (429, str(42 * 60))
    assert users(reader) == []
    # Another process, after a restart, has the same one, and whoever sits here needs none.
    with open_database(reader.settings) as database:
        assert code_of_first_user(database) == code
    assert 'name="code"' not in browser(reader).get("/first-user").text
    reader.clock.pass_(minutes=42)
    assert client.post("/first-user", data={**GIVEN, "code": "WRONG-23"}).status_code == 403
    assert client.post("/first-user", data={**GIVEN, "code": code}).status_code == 303
    assert code_of_first_user(reader.database) is None
    remove_user(reader.database, reader.stores.objects, name="ada", clock=reader.clock)
    assert code_of_first_user(reader.database) not in (None, code)


RELAY = """
import socket, sys, threading
def pipe(one, other):
    while data := one.recv(65_536):
        other.sendall(data)
if len(sys.argv) > 2:
    door = socket.socket(socket.AF_UNIX)
    door.bind(sys.argv[2])
    door.listen()
else:
    door = socket.create_server(("127.0.0.1", 0))
with door:
    print(0 if len(sys.argv) > 2 else door.getsockname()[1], flush=True)
    while True:
        client, server = door.accept()[0], socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        for ends in ((client, server), (server, client)):
            threading.Thread(target=pipe, args=ends, daemon=True).start()
"""
"""A proxy that adds nothing: our own address as Host, HTTP/1.1, no header more. With a file, it listens there
alone, behind another one."""

TUNNEL = """
import socket, sys, threading
def pipe(one, other):
    while data := one.recv(65_536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)
with socket.socket(type=socket.SOCK_DGRAM) as quic:
    quic.bind(("0.0.0.0", 0))
    server, reader = (socket.create_connection(("127.0.0.1", int(port))) for port in sys.argv[1:])
    threading.Thread(target=pipe, args=(reader, server), daemon=True).start()
    pipe(server, reader)
"""
"""A tunnel such as `ssh -R` or frp: it listens nowhere, and has called a server, the visitors of which it
brings."""


@pytest.mark.slow
def test_a_tunnel_that_listens_nowhere_makes_no_user(reader: Reader) -> None:
    with served(create_app(reader.stores)) as found, socket.create_server(("127.0.0.1", 0)) as out_there:
        ports = [str(out_there.getsockname()[1]), str(found.port)]
        with subprocess.Popen([sys.executable, "-c", TUNNEL, *ports]) as tunnel:
            try:
                with out_there.accept()[0] as visitor:
                    visitor.settimeout(30)
                    visitor.sendall(posted("HTTP/1.1"))
                    answer = b"".join(iter(lambda: visitor.recv(65_536), b""))
            finally:
                tunnel.kill()
    assert answer.split(b"\r\n")[0].endswith(b"403 Forbidden")
    assert users(reader) == []


@pytest.mark.slow
@pytest.mark.parametrize("file", [[], ["door"]])
def test_a_proxy_that_adds_nothing_makes_no_user_and_who_sits_here_needs_no_code(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        served(create_app(reader.stores)) as found,
        subprocess.Popen(
            [sys.executable, "-c", RELAY, str(found.port), *file], stdout=subprocess.PIPE
        ) as relay,
    ):
        assert relay.stdout is not None
        headers = {"Host": HOST, "Origin": URL}
        try:
            door = f"http://127.0.0.1:{int(relay.stdout.readline()) or 80}/first-user"
            way = httpx.HTTPTransport(uds=file[0]) if file else None
            with httpx.Client(headers=headers, transport=way) as stranger:
                assert 'name="code"' in stranger.get(door).text
                assert stranger.post(door, data=GIVEN).status_code == 403
        finally:
            relay.kill()
        assert users(reader) == []
        with httpx.Client(headers=headers) as own:
            page = f"http://127.0.0.1:{found.port}/first-user"
            assert 'name="code"' not in own.get(page).text
            assert own.post(page, data=GIVEN).status_code == 303
    assert users(reader) == ["ada"]


def test_another_site_s_page_makes_no_user(reader: Reader) -> None:
    for headers in ({"origin": "https://evil.example", "sec_fetch_site": "cross-site"}, {}):
        assert reader.client(**headers).post("/first-user", data=GIVEN).status_code == 403
    assert users(reader) == []


def test_another_name_of_this_machine_is_refused(reader: Reader) -> None:
    """DNS rebinding: a stranger's name that points to 127.0.0.1."""
    rebound = reader.client(host="evil.example:3001", origin="http://evil.example:3001")
    assert rebound.post("/first-user", data=GIVEN).status_code == 421
    assert users(reader) == []


@pytest.mark.slow
def test_nginx_as_it_comes_speaks_http_1_0_and_makes_no_user(reader: Reader) -> None:
    """Its defaults send no header that shows a proxy, and our own address as Host."""
    assert raw(reader, posted("HTTP/1.0")).split(b"\r\n")[0].endswith(b"403 Forbidden")
    assert users(reader) == []
    raw(reader, posted("HTTP/1.1"))
    assert users(reader) == ["ada"]


def posted(version: str) -> bytes:
    body = httpx.QueryParams(GIVEN).__str__().encode()
    return (
        f"POST /first-user {version}\r\nHost: {HOST}\r\nOrigin: {URL}\r\nConnection: close\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def raw(reader: Reader, sent: bytes) -> bytes:
    with reader.served() as client, socket.create_connection(("127.0.0.1", client.base_url.port)) as link:
        link.sendall(sent)
        return b"".join(iter(lambda: link.recv(65_536), b""))
