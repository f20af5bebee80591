"""The page of app passwords: shown once, listed, revoked; and what to type into which app."""

import re
from dataclasses import replace
from pathlib import Path

from rss_pipeline.api.pages.account.apps import CLIENTS
from rss_pipeline.web.authority import Authority
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.support.reader import SECRET, URL, Reader, reader_settings

PATH = "/settings/apps"
PASSWORD = "correct-horse-battery"
MANUAL = Path(__file__).parents[4] / "docs" / "reader.md"


def secret(html: str) -> str:
    found = re.search(r"<code class=\"whole\">((?:[a-z2-7]{4}-){7}[a-z2-7]{4})</code>", html)
    assert found is not None
    return found[1]


def logs_in(reader: Reader, password: str) -> bool:
    given = {"Email": "ada", "Passwd": password}
    return reader.client().post("/accounts/ClientLogin", data=given).status_code == 200


def test_an_app_password_is_shown_once_opens_the_app_and_is_revoked(reader: Reader) -> None:
    client = browser(reader, reader.user("ada", password=PASSWORD))
    made = client.post(PATH, data={"name": "  phone  of Ada ", "password": PASSWORD})
    assert (made.status_code, made.headers["cache-control"]) == (200, "no-store")
    password = secret(made.text)
    assert f'freshrss-password "{password}"'.replace('"', "&#34;") in made.text
    later = client.get(PATH).text
    assert password not in later
    assert "phone of Ada" in later
    assert "never" in later
    assert logs_in(reader, password)
    assert "never" not in client.get(PATH).text
    [end] = re.findall(rf'action="({PATH}/[0-9a-f]+/revoke)"', later)
    revoked = client.post(end)
    assert (revoked.status_code, revoked.headers["location"]) == (303, f"{PATH}?done=revoked")
    assert not logs_in(reader, password)
    assert "phone of Ada" not in client.get(PATH).text


def test_the_password_of_the_account_is_needed_again_and_is_not_to_be_guessed(reader: Reader) -> None:
    ada = reader.user("ada", password=PASSWORD)
    client = browser(reader, ada)
    for given in ({}, {"password": ""}, *[{"password": "wrong-horse-battery"}] * 3):
        refused = client.post(PATH, data={"name": "phone", **given})
        assert (refused.status_code, "The password of your account is wrong." in refused.text) == (422, True)
    api = "/api/user/app-passwords"
    assert ada.client.post(api, json={"name": "phone"}).status_code == 422
    # Guesses in another session count apart.
    for status in (401, 401, 401, 401, 401, 429):
        wrong = {"name": "phone", "password": "wrong-horse-battery"}
        assert ada.client.post(api, json=wrong).status_code == status
    locked = client.post(PATH, data={"name": "x", "password": PASSWORD})
    assert "Too many wrong passwords" in locked.text
    assert (locked.status_code, locked.headers["retry-after"].isdecimal()) == (429, True)
    assert ada.client.get(api).json() == {"app_passwords": []}


def test_a_name_that_is_taken_or_none_makes_no_password(reader: Reader) -> None:
    client = browser(reader, reader.user("ada", password=PASSWORD))
    client.post(PATH, data={"name": "phone", "password": PASSWORD})
    for name, words in (("phone", "There is an app password phone already"), (" ", "has 1 to 64 characters")):
        refused = client.post(PATH, data={"name": name, "password": PASSWORD})
        assert refused.status_code == 422
        assert words in refused.text
        assert "shown this once" not in refused.text


def test_the_address_is_the_one_at_which_the_page_was_opened_and_it_says_pass(reader: Reader) -> None:
    client = browser(reader, reader.user("ada"))
    page = client.get(PATH).text
    assert f'<code class="whole">{URL}/greader</code>' in page
    assert "PASS" in client.get(f"{URL}/greader").text
    assert "only in apps on this machine" in page


def test_behind_a_proxy_the_address_is_the_proxys_with_https(tmp_path: Path) -> None:
    settings = replace(reader_settings(tmp_path / "home"), reader_hosts=(Authority("rss.example.org", None),))
    with Reader.on(replace(settings, reader_secret=SECRET)) as reader:
        ada = reader.user("ada")
        here = browser(reader, ada)
        assert f"{URL}/greader" in here.get(PATH).text
        assert "http://rss.example.org/greader" in here.get(PATH).text
        named = here.get(PATH, headers={"Host": "rss.example.org"}).text
        assert URL not in named
        assert "http://rss.example.org/greader" in named
        assert "on this machine only" not in named


def test_the_apps_of_the_page_are_those_of_the_manual() -> None:
    table = MANUAL.read_text("utf-8").partition("| app | kind of account |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert [(each.name, each.account, each.address, each.is_tried) for each in CLIENTS] == [
        (name, account, address, checked != "no") for name, account, address, checked in rows
    ]
