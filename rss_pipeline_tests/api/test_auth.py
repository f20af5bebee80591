"""The callers that are let in: by token, by cookie, and from which pages. Passwords and throttle are
pipeline/accounts'."""

import logging
from contextlib import closing
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from rss_pipeline.api.auth import COOKIE, HOST_COOKIE
from rss_pipeline.reader.accounts.login import LoggedIn, log_in_with_app_password
from rss_pipeline.storage.accounts import sessions
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.reader import HOST, SECRET, Reader, reader_settings
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

PASSWORD = "correct-horse-battery"
OWN_PAGE = {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
SESSIONS = "/api/user/sessions"
APP_PASSWORDS = "/api/user/app-passwords"
NEW_APP = {"name": "x", "password": PASSWORD}


def log_in(client: httpx.Client, name: str = "ada", password: str = PASSWORD, **more: Any) -> httpx.Response:
    return client.post("/api/auth/login", json={"name": name, "password": password, **more})


def with_token(reader: Reader, answer: httpx.Response) -> httpx.Client:
    return reader.client(authorization=f"Bearer {answer.json()['token']}")


def test_a_login_gives_a_token_that_opens_until_the_logout(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    answer = log_in(reader.client(user_agent="a program"), name=" Ada ")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in answer.headers
    client = with_token(reader, answer)
    mine = [each for each in client.get(SESSIONS).json()["sessions"] if each["is_current"]]
    assert [(each["client"], each["kind"]) for each in mine] == [("a program", "login")]
    assert client.post("/api/auth/logout").status_code == 204
    for method, path in (("GET", SESSIONS), ("POST", APP_PASSWORDS), ("DELETE", SESSIONS)):
        wanted = {"name": "x", "password": PASSWORD} if method == "POST" else None
        refused = client.request(method, path, json=wanted)
        assert refused.status_code == 401
        assert refused.json()["kind"] == "not_signed_in"
        assert refused.headers["www-authenticate"].startswith("Bearer")
    renewal = {"renewal": answer.json()["renewal"]}
    assert reader.client().post("/api/auth/renew", json=renewal).status_code == 401


def test_a_token_lives_for_half_an_hour_and_is_renewed_without_the_password(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    answer = log_in(reader.client())
    reader.clock.pass_(minutes=31)
    assert with_token(reader, answer).get(SESSIONS).status_code == 401
    renewed = reader.client().post("/api/auth/renew", json={"renewal": answer.json()["renewal"]})
    assert with_token(reader, renewed).get(SESSIONS).status_code == 200
    reader.clock.pass_(days=31)
    again = reader.client().post("/api/auth/renew", json={"renewal": renewed.json()["renewal"]})
    assert again.status_code == 401


def test_a_wrong_name_and_a_wrong_password_are_answered_alike(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    answers = [
        log_in(reader.client(), password="another-password"),
        log_in(reader.client(), name="nobody"),
        log_in(reader.client(), name="nobody\u2028"),
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert answers[0].json()["kind"] == "login_refused"


@pytest.mark.slow
def test_logins_that_go_on_failing_have_to_wait_and_are_in_the_log_without_words(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    reader.user("ada", password=PASSWORD)
    client = reader.client(address="203.0.113.5")
    statuses = [log_in(client, password="hunter2-hunter2").status_code for _ in range(8)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    refused = log_in(client, password="hunter2-hunter2")
    assert int(refused.headers["retry-after"]) == refused.json()["retry_after"] > 0
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert set(lines) == {"login refused: 203.0.113.5"}
    assert "hunter2" not in caplog.text
    assert "ada" not in caplog.text


@pytest.mark.slow
def test_the_address_of_a_client_is_believed_of_our_own_proxies_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = reader_settings(tmp_path, reader_proxies=(ip_network("192.0.2.0/24"),))
    with Reader.on(settings) as reader:
        for peer, forwarded in (
            ("192.0.2.7", "203.0.113.5"),
            ("192.0.2.7", "10.9.9.9, 203.0.113.6, 192.0.2.8"),
            ("192.0.2.7", "what is this"),
            ("198.51.100.9", "203.0.113.7"),
        ):
            log_in(reader.client(address=peer, x_forwarded_for=forwarded), name="nobody")
    assert [record.getMessage() for record in caplog.records if "login" in record.getMessage()] == [
        f"login refused: {address}" for address in ("203.0.113.5", "203.0.113.6", "unknown", "198.51.100.9")
    ]


def cookie_of(answer: httpx.Response) -> tuple[str, str, set[str]]:
    """Name, value and attributes of the session's cookie that was set."""
    [text] = [each for each in answer.headers.get_list("set-cookie") if "rss_session" in each]
    pair, *attributes = text.split("; ")
    name, value = pair.split("=", 1)
    return name, value, {attribute.lower() for attribute in attributes}


def test_a_browser_gets_a_cookie_that_no_script_reads_and_no_token(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    answer = log_in(reader.client(origin=OWN_PAGE["Origin"]), cookie=True)
    name, value, attributes = cookie_of(answer)
    assert name == COOKIE
    assert attributes == {"httponly", "samesite=lax", "path=/", "max-age=2592000"}
    assert answer.json() == {"token": None, "expires_at": None, "renewal": None}
    client = reader.client(cookie=f"{COOKIE}={value}", **{"sec-fetch-site": "same-origin"})
    assert client.get(SESSIONS).status_code == 200
    out = client.post("/api/auth/logout")
    assert out.status_code == 204
    name, value, attributes = cookie_of(out)
    assert (name, value) == (COOKIE, '""')
    assert "max-age=0" in attributes
    assert client.get(SESSIONS).status_code == 401
    assert client.post("/api/auth/logout").status_code == 204, "it may be said twice"


def test_on_https_the_cookie_is_secure_and_of_this_host_alone(tmp_path: Path) -> None:
    settings = reader_settings(tmp_path, reader_proxies=(ip_network("192.0.2.1/32"),))
    with Reader.on(settings) as reader:
        reader.user("ada", password=PASSWORD)
        proxied = {"address": "192.0.2.1", "x_forwarded_proto": "https", "origin": f"https://{HOST}"}
        name, value, attributes = cookie_of(log_in(reader.client(**proxied), cookie=True))
        assert name == HOST_COOKIE
        assert attributes == {"httponly", "samesite=lax", "path=/", "secure", "max-age=2592000"}
        proxied["cookie"] = f"{HOST_COOKIE}={value}"
        strict = "max-age=31536000"
        for path, status in ((SESSIONS, 200), ("/login", 200), ("/nothing", 404)):
            answer = reader.client(**proxied).get(path)
            assert (answer.status_code, answer.headers["strict-transport-security"]) == (status, strict)
        assert "strict-transport-security" not in reader.client().get("/login").headers
        assert reader.client(**proxied).delete(SESSIONS).status_code == 204
        # One that a page without TLS, or another host of the site, has set.
        planted = {**proxied, "cookie": f"{COOKIE}={value}"}
        assert reader.client(**planted).get(SESSIONS).status_code == 401
        downgraded = {**proxied, "origin": f"http://{HOST}"}
        assert reader.client(**downgraded).delete(SESSIONS).status_code == 403
        unproxied = {**proxied, "address": "192.0.2.2"}
        assert reader.client(**unproxied).get(SESSIONS).status_code == 401, "nobody's word for https"


FOREIGN = [
    {},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "cross-site"},
    {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-site"},
    {"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "same-site"},
    {"Origin": "http://127.0.0.1:3000"},
    {"Origin": "http://localhost:3001"},
    {"Origin": f"http://{HOST}.evil.example"},
    {"Sec-Fetch-Site": "none"},
    {"Referer": f"http://{HOST}/"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_with_a_cookie_no_page_of_another_site_changes_anything(
    reader: Reader, headers: dict[str, str]
) -> None:
    reader.user("ada", password=PASSWORD)
    _, value, _ = cookie_of(log_in(reader.client(), cookie=True))
    cookie = {"Cookie": f"{COOKIE}={value}"}
    client = reader.client()
    for method, path, body in (
        ("POST", APP_PASSWORDS, {"name": "evil", "password": PASSWORD}),
        ("DELETE", SESSIONS, None),
        ("POST", "/api/auth/logout", None),
    ):
        answer = client.request(method, path, json=body, headers={**cookie, **headers})
        assert (answer.status_code, answer.json()["kind"]) == (403, "foreign_origin")
    own = {**cookie, **OWN_PAGE}
    assert client.get(APP_PASSWORDS, headers=own).json() == {"app_passwords": []}
    assert client.post(APP_PASSWORDS, json=NEW_APP, headers=own).status_code == 201
    assert client.delete(SESSIONS, headers={**cookie, "Origin": OWN_PAGE["Origin"]}).status_code == 204
    assert client.delete(SESSIONS, headers={**cookie, "Sec-Fetch-Site": "same-origin"}).status_code == 204


def test_with_a_cookie_no_page_of_another_site_reads(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    _, value, _ = cookie_of(log_in(reader.client(), cookie=True))
    client = reader.client(cookie=f"{COOKIE}={value}")
    assert client.get(SESSIONS, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get(SESSIONS, headers={"Origin": "https://evil.example"}).status_code == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get(SESSIONS, headers=link).status_code == 200
    assert client.get(SESSIONS).status_code == 200


@pytest.mark.parametrize("headers", [each for each in FOREIGN if each.keys() & {"Origin", "Sec-Fetch-Site"}])
def test_no_page_of_another_site_logs_its_visitor_in(reader: Reader, headers: dict[str, str]) -> None:
    reader.user("ada", password=PASSWORD)
    for cookie in (True, False):
        answer = log_in(
            reader.client(**{name.lower(): value for name, value in headers.items()}), cookie=cookie
        )
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_a_token_needs_no_page(reader: Reader) -> None:
    client = reader.user("ada", password=PASSWORD).client
    headers = {"Origin": "https://client.example", "Sec-Fetch-Site": "cross-site"}
    assert client.post(APP_PASSWORDS, json=NEW_APP, headers=headers).status_code == 201


def forged(reader: Reader, session: dict[str, str], **changes: Any) -> str:
    """The token of a session, signed with the right key, with other claims."""
    now = int(reader.clock().timestamp())
    claims = {
        "iss": "rss-pipeline",
        "aud": "rss-pipeline-reader",
        "exp": now + 1800,
        "iat": now,
        **session,
        **changes,
    }
    return jwt.encode(
        {name: value for name, value in claims.items() if value is not None},
        SECRET,
        "HS256",
        headers={"typ": "rss-session+jwt"},
    )


def test_no_forged_expired_or_foreign_token_opens(reader: Reader) -> None:
    ada, eve = (reader.user(name, password=PASSWORD) for name in ("ada", "eve"))
    session = {"sub": ada.id, "jti": ada.key.session_id}
    assert reader.client(authorization=f"Bearer {forged(reader, session)}").get(SESSIONS).status_code == 200
    app = eve.client.post(APP_PASSWORDS, json={"name": "phone", "password": PASSWORD}).json()["password"]
    phone = log_in_with_app_password(
        reader.database, name="eve", password=app, address="", client="", clock=reader.clock
    )
    assert isinstance(phone, LoggedIn)
    claims = jwt.decode(ada.token, options={"verify_signature": False})
    head, body, signature = ada.token.split(".")
    bad = {
        "none": jwt.encode(claims, "", "none"),
        "unsigned": f"{head}.{body}.",
        "another key": jwt.encode(claims, "x" * 40, "HS256", headers={"typ": "rss-session+jwt"}),
        "another algorithm": jwt.encode(claims, SECRET * 2, "HS512", headers={"typ": "rss-session+jwt"}),
        "another type": jwt.encode(claims, SECRET, "HS256"),
        "expired": forged(reader, session, exp=int(reader.clock().timestamp()) - 1),
        "for ever": forged(reader, session, exp=int(reader.clock().timestamp()) + 10**9),
        "no end": forged(reader, session, exp=None),
        "another audience": forged(reader, session, aud="another"),
        "somebody else's session": forged(reader, {"sub": eve.id, "jti": ada.key.session_id}),
        "no session": forged(reader, session, jti="0" * 64),
        "an app's session": forged(reader, {"sub": eve.id, "jti": phone.session_id}),
        "an app's token": phone.token,
        "an app password": app,
        "cut": ada.token[:-2],
        "long": ada.token + "x" * 5_000,
        "nothing": "",
        "broken": "\xff\xfe",
    }
    statuses = {
        name: reader.client()
        .get(SESSIONS, headers=[(b"Authorization", b"Bearer " + token.encode("latin-1"))])
        .status_code
        for name, token in bad.items()
    }
    assert statuses == dict.fromkeys(bad, 401)
    for name, token in bad.items():
        if name != "broken":
            cookie = {"Cookie": f"{COOKIE}={token}"}
            assert reader.client().get(SESSIONS, headers=cookie).status_code == 401, name
    cookie = {"Cookie": f"{COOKIE}={ada.token}"}
    assert reader.client().get(SESSIONS, headers=cookie).status_code == 401, "a cookie holds no JWT"
    two = [("Authorization", f"Bearer {ada.token}"), ("Authorization", f"Bearer {eve.token}")]
    assert reader.client().get(SESSIONS, headers=two).status_code == 401
    assert signature
    assert reader.client().get(SESSIONS, params={"token": ada.token}).status_code == 401


def test_the_renewal_of_a_login_opens_nothing_as_a_bearer(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    renewal = log_in(reader.client()).json()["renewal"]
    assert reader.client(authorization=f"Bearer {renewal}").get(SESSIONS).status_code == 401


def test_the_password_of_a_proxy_in_front_hides_no_cookie(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    _, value, _ = cookie_of(log_in(reader.client(), cookie=True))
    client = reader.client(cookie=f"{COOKIE}={value}", authorization="Basic YTpi")
    assert client.get(SESSIONS).status_code == 200
    assert reader.client(authorization="Basic YTpi").get(SESSIONS).status_code == 401


def test_a_login_of_a_form_of_no_json_or_of_too_much_is_a_problem(reader: Reader) -> None:
    client = reader.client()
    form = client.post("/api/auth/login", data={"name": "ada", "password": PASSWORD})
    assert form.status_code == 422
    assert PASSWORD not in form.text
    for body in (
        {"name": "ada"},
        {"name": "ada", "password": "x" * 1_025},
        {"name": "a" * 201, "password": PASSWORD},
        {"name": "ada", "password": PASSWORD, "cookie": "yes"},
        {"name": "ada", "password": PASSWORD, "role": "admin"},
        {"name": ["ada"], "password": PASSWORD},
    ):
        answer = client.post("/api/auth/login", json=body)
        assert (answer.status_code, answer.json()["kind"]) == (422, "invalid_request")
        assert PASSWORD not in answer.text


def test_an_app_password_is_shown_once_and_revoked_at_once(reader: Reader) -> None:
    ada, eve = (reader.user(name, password=PASSWORD) for name in ("ada", "eve"))
    new = ada.client.post(APP_PASSWORDS, json={"name": "  Ada's   phone ", "password": PASSWORD}).json()
    assert new["name"] == "Ada's phone"
    [listed] = ada.client.get(APP_PASSWORDS).json()["app_passwords"]
    assert listed.keys() == {"id", "name", "created_at", "last_used_at"}
    assert new["password"] not in ada.client.get(APP_PASSWORDS).text
    again = ada.client.post(APP_PASSWORDS, json={"name": "Ada's phone", "password": PASSWORD})
    assert (again.status_code, again.json()["kind"]) == (409, "conflict")
    phone = log_in_with_app_password(
        reader.database, name="ada", password=new["password"], address="", client="App", clock=reader.clock
    )
    assert isinstance(phone, LoggedIn)
    assert [each["app_password"] for each in ada.client.get(SESSIONS).json()["sessions"]].count(
        "Ada's phone"
    ) == 1
    assert eve.client.get(APP_PASSWORDS).json() == {"app_passwords": []}
    for id in (new["id"], "0" * 16, "%", "x" * 64):
        assert eve.client.delete(f"{APP_PASSWORDS}/{id}").status_code in (404, 400)
    assert ada.client.delete(f"{APP_PASSWORDS}/{new['id']}").status_code == 204
    assert ada.client.delete(f"{APP_PASSWORDS}/{new['id']}").status_code == 404
    assert len(ada.client.get(SESSIONS).json()["sessions"]) == 1, "the phone's is over"


def test_a_user_ends_own_sessions_and_no_one_else_s(reader: Reader) -> None:
    ada, eve = (reader.user(name, password=PASSWORD) for name in ("ada", "eve"))
    others = [reader.signed_in(ada.id) for _ in range(3)]
    assert eve.client.delete(f"{SESSIONS}/{ada.key.session_id}").status_code == 404
    assert eve.client.delete(SESSIONS).status_code == 204
    assert ada.client.delete(f"{SESSIONS}/{others[0].key.session_id}").status_code == 204
    assert others[0].client.get(SESSIONS).status_code == 401
    assert others[1].client.get(SESSIONS).status_code == 200
    assert ada.client.delete(SESSIONS).status_code == 204
    assert [each.client.get(SESSIONS).status_code for each in others] == [401] * 3
    assert ada.client.get(SESSIONS).status_code == 200
    assert eve.client.get(SESSIONS).status_code == 200


def test_the_last_use_of_a_session_is_written_and_lets_it_live_on(reader: Reader) -> None:
    ada = reader.user("ada")
    for _ in range(3):
        reader.clock.pass_(days=20)
        fresh = reader.database.query("SELECT expires_at, last_used_at FROM sessions").rows
        token = forged(reader, {"sub": ada.id, "jti": ada.key.session_id})
        assert reader.client(authorization=f"Bearer {token}").get(SESSIONS).status_code == 200
        assert reader.database.query("SELECT expires_at, last_used_at FROM sessions").rows != fresh


@pytest.mark.slow
def test_no_secret_is_in_the_log(reader: Reader, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ada = reader.user("ada", password=PASSWORD)
    answer = log_in(reader.client())
    renewal = answer.json()["renewal"]
    with reader.served() as client:
        headers = {"Authorization": f"Bearer {ada.token}", "Cookie": f"{COOKIE}={renewal}"}
        client.get(SESSIONS, headers=headers, params={"T": ada.token})
        client.get("/api/%ff", headers=headers, params={"T": ada.token})
        client.post("/api/auth/login", json={"name": "ada", "password": PASSWORD})
        client.post("/api/auth/login", content=PASSWORD.encode())
        client.post("/api/auth/renew", json={"renewal": renewal})
    said = [
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    ]
    for secret in (PASSWORD, ada.token, renewal, SECRET):
        assert not [line for line in said if secret in line]


@pytest.mark.slow
def test_the_same_on_d1(tmp_path: Path, cloudflare: Cloudflare) -> None:
    d1 = D1Backend(url=cloudflare.url, token=cloudflare.token)
    settings = reader_settings(tmp_path, database_server=d1)
    with closing(connect(settings)) as database:
        migrate(database)
    with Reader.on(settings) as reader:
        reader.user("ada", password=PASSWORD)
        client = with_token(reader, log_in(reader.client()))
        assert len(client.get(SESSIONS).json()["sessions"]) == 2
        assert client.post(APP_PASSWORDS, json={"name": "phone", "password": PASSWORD}).status_code == 201
        assert client.post("/api/auth/logout").status_code == 204
        assert client.get(SESSIONS).status_code == 401


def test_a_page_behind_a_proxy_that_hides_where_it_is_from_is_one_of_ours_by_sec_fetch_site(
    reader: Reader,
) -> None:
    """`Referrer-Policy: no-referrer`, added by a proxy, makes a browser send `Origin: null`."""
    reader.user("ada", password=PASSWORD)
    for sites, status in (("same-origin", 200), ("cross-site", 403), ("same-site", 403), (None, 403)):
        site = {} if sites is None else {"sec_fetch_site": sites}
        assert log_in(reader.client(origin="null", **site), cookie=True).status_code == status, sites
        form = reader.client(origin="null", **site).post("/login", data={"name": "ada", "password": PASSWORD})
        assert form.status_code == (303 if status == 200 else 403), sites


@pytest.mark.parametrize(
    ("proto", "is_https"),
    [
        (["https, http"], True),
        (["https", "http"], True),
        (["https,https"], True),
        (["HTTPS , http"], True),
        (["http, https"], False),
        (["http", "https"], False),
        ([", https"], False),
        (["nonsense, https"], False),
        (["HTTPS"], True),
    ],
)
def test_the_leftmost_scheme_of_several_proxies_is_that_of_the_client(
    tmp_path: Path, proto: list[str], is_https: bool
) -> None:
    """One proxy appends its own to the list, another one adds a line."""
    settings = reader_settings(tmp_path, reader_proxies=(ip_network("192.0.2.1/32"),))
    with Reader.on(settings) as reader:
        reader.user("ada", password=PASSWORD)
        scheme = "https" if is_https else "http"
        for address, name in (("192.0.2.1", HOST_COOKIE if is_https else COOKIE), ("192.0.2.9", COOKIE)):
            headers = [("origin", f"{scheme}://{HOST}"), *(("x-forwarded-proto", each) for each in proto)]
            with reader.client(address=address) as client:
                answer = client.post(
                    "/api/auth/login",
                    json={"name": "ada", "password": PASSWORD, "cookie": True},
                    headers=headers,
                )
            assert cookie_of(answer)[0] == name


def test_a_flood_of_wrong_passwords_does_not_refuse_the_right_one_on_a_known_device(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither from many addresses, nor where the device has another address by now."""
    caplog.set_level("INFO", "rss_pipeline.api")
    ada = reader.user("ada", password=PASSWORD)
    browser = reader.client(address="203.0.113.1", **OWN_PAGE)
    assert log_in(browser, cookie=True).status_code == 200
    device = browser.cookies["rss_device"]
    assert f"login: {ada.id} from 203.0.113.1" in caplog.messages
    for n in range(5):
        assert log_in(reader.client(address=f"198.51.100.{n}"), password="wrong horse").status_code == 401
    assert "login refused: 198.51.100.4" in caplog.messages
    id, _, mark = device.partition(".")
    reader.user("bob", password=PASSWORD)
    of_bob = reader.client(address="203.0.113.2", **OWN_PAGE)
    assert log_in(of_bob, "bob", cookie=True).is_success
    cookies = (
        None,
        "another",
        id,
        f"{id}.{mark[:-2]}AA",
        f"x{device}",
        of_bob.cookies["rss_device"],
        "." * 99,
    )
    for cookie, status in (*((each, 429) for each in cookies), (device, 200)):
        elsewhere = reader.client(address="192.0.2.7", **OWN_PAGE)
        if cookie is not None:
            elsewhere.cookies.set("rss_device", cookie)
        assert log_in(elsewhere, cookie=True).status_code == status, cookie
    assert PASSWORD not in caplog.text
    # Bob logs in there, too, and a year later both are known there, whatever else is forgotten.
    shared = reader.client(address="192.0.2.7", **OWN_PAGE)
    shared.cookies.set("rss_device", device)
    both = log_in(shared, "bob", cookie=True).cookies["rss_device"]
    reader.database.query("DELETE FROM known_clients")
    reader.clock.pass_(days=365)
    for name in ("ada", "bob"):
        for n in range(5):
            log_in(reader.client(address=f"198.51.100.{n}"), name, password="wrong horse")
        later = reader.client(address="192.0.2.8", **OWN_PAGE)
        assert log_in(later, name, cookie=True).status_code == 429
        later.cookies.set("rss_device", both)
        assert log_in(later, name, cookie=True).status_code == 200
    assert not any(word in both for word in ("ada", "bob", ada.id))


def test_guesses_of_others_do_not_lock_who_is_signed_in(reader: Reader) -> None:
    """Neither a browser without the cookie of a device, nor a program at an address of its own."""
    reader.user("ada", password=PASSWORD)
    token = log_in(reader.client(address="203.0.113.1")).json()["token"]
    for n in range(6):
        log_in(reader.client(address=f"198.51.100.{n}"), password="wrong horse")
    program = reader.client(address="192.0.2.9", authorization=f"Bearer {token}")

    def make(password: str) -> int:
        return program.post(APP_PASSWORDS, json={"name": "phone", "password": password}).status_code

    assert make(PASSWORD) < 300
    # Guesses in the session itself are counted, and lock it alone.
    assert {make("wrong horse") for _ in range(9)} == {401, 429}
    assert make(PASSWORD) == 429


def test_a_session_ends_after_ninety_days_however_much_it_is_used(reader: Reader) -> None:
    ada = reader.user("ada")
    now = reader.clock()
    for _ in range(6):
        now += timedelta(days=14)
        assert reader.database.batch(sessions.touch(ada.key.session_id, now=now))[1].changes == 1
    [row] = reader.database.query("SELECT created_at, expires_at FROM sessions").rows
    began, ends = (datetime.fromisoformat(row[name]) for name in ("created_at", "expires_at"))
    assert ends - began == timedelta(days=90)
    [renewed] = reader.database.batch(
        [sessions.renew(ada.key.session_id, ada.id, "login", now=ends - timedelta(seconds=1))]
    )
    assert renewed.changes == 1
    [alive] = reader.database.batch([sessions.alive(ada.key.session_id, ada.id, "login", now=ends)])
    assert alive.rows == []
