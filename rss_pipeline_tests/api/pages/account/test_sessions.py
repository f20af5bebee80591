"""The page of sessions: where one is logged in, an end to each, and another password."""

import re

import httpx
import pytest

from rss_pipeline.api.auth import COOKIE
from rss_pipeline.api.pages.account.sessions import device
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.support.reader import Reader

PASSWORD, ANOTHER = "correct horse battery", "another horse battery"
PATH = "/settings/sessions"


def logged_in(reader: Reader, password: str = PASSWORD) -> httpx.Client:
    client = browser(reader)
    assert client.post("/login", data={"name": "ada", "password": password}).status_code == 303
    return client


def is_in(client: httpx.Client) -> bool:
    return client.get(PATH).status_code == 200


def ends(client: httpx.Client) -> list[str]:
    return re.findall(r'action="(/settings/sessions/[0-9a-f]{64}/end)"', client.get(PATH).text)


@pytest.mark.slow
def test_one_session_is_ended_then_all_others(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    reader.database.query("DELETE FROM sessions", name="log out")
    clients = []
    for _ in range(4):
        clients.append(logged_in(reader))
        reader.clock.pass_(minutes=1)
    here = clients[3]
    assert len(ends(here)) == 4
    ended = here.post(ends(here)[3])
    assert (ended.status_code, ended.headers["location"]) == (303, f"{PATH}?done=ended")
    assert "The session has ended." in here.get(ended.headers["location"]).text
    assert [is_in(client) for client in clients] == [False, True, True, True]
    here.post(f"{PATH}/end-others")
    assert [is_in(client) for client in clients] == [False, False, False, True]
    assert here.post(ends(here)[0]).headers["location"] == "/login"
    assert not is_in(here)


def test_logging_out_ends_the_session_and_takes_the_cookie_back(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    client = logged_in(reader)
    cookie = client.cookies[COOKIE]
    for _ in range(2):
        out = client.post("/logout")
        assert (out.status_code, out.headers["location"]) == (303, "/login")
        assert COOKIE not in client.cookies
    client.cookies.set(COOKIE, cookie)
    assert not is_in(client)
    out = client.post("/logout")
    assert out.headers["set-cookie"].startswith(f'{COOKIE}="";')


def test_another_password_ends_the_other_sessions_and_keeps_this_one(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    here, elsewhere = logged_in(reader), logged_in(reader)
    given = {"current": PASSWORD, "new": ANOTHER, "again": ANOTHER}
    changed = here.post("/settings/password", data=given)
    assert (changed.status_code, changed.headers["location"]) == (303, f"{PATH}?done=password")
    assert is_in(here)
    assert not is_in(elsewhere)
    assert browser(reader).post("/login", data={"name": "ada", "password": PASSWORD}).status_code == 401
    logged_in(reader, ANOTHER)


@pytest.mark.slow
def test_a_password_that_cannot_be_changed_is_said_why_and_shown_nowhere(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    here = logged_in(reader)
    for changed, words in (
        ({"again": "another horse batteri"}, "The two new passwords are not the same"),
        ({"new": "short", "again": "short"}, "A password has from 8 to 1,024 characters"),
        ({"current": "wrong horse battery"}, "The current password is wrong"),
    ):
        refused = here.post(
            "/settings/password", data={"current": PASSWORD, "new": ANOTHER, "again": ANOTHER, **changed}
        )
        assert refused.status_code == 422
        assert words in refused.text
        assert not any(word in refused.text for word in (PASSWORD, ANOTHER, "wrong horse"))
    for _ in range(4):
        here.post("/settings/password", data={"current": "wrong", "new": ANOTHER, "again": ANOTHER})
    late = here.post("/settings/password", data={"current": PASSWORD, "new": ANOTHER, "again": ANOTHER})
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) > 0
    reader.clock.pass_(minutes=20)
    logged_in(reader)


@pytest.mark.parametrize(
    ("client", "shown"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
            " Version/18.0 Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0",
            "Edge on Windows",
        ),
        ("newsboat/2.21.0 (Linux x86_64) libcurl/7.88.1", "newsboat/2.21.0"),
        ("", "an unknown program"),
    ],
)
def test_a_device_is_named_by_its_user_agent(client: str, shown: str) -> None:
    assert device(client) == shown


def test_the_button_that_logs_out_has_its_label_as_its_name(reader: Reader) -> None:
    """A user who steers by voice says the words on the button (WCAG 2.5.3)."""
    page = browser(reader, reader.user("ann")).get(PATH).text
    named = re.findall(r'aria-label="([^"]*)">([^<]*)</button>', page)
    assert "Log out" in {label for _, label in named}
    assert [pair for pair in named if not pair[0].startswith(pair[1])] == []
