"""The page to log in, and the way to it and back."""

import pytest

from rss_pipeline.api.auth import COOKIE
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.support.reader import Reader

PASSWORD = "correct-horse-battery"


def test_who_is_not_signed_in_logs_in_and_is_back_at_the_page_that_was_wanted(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    client = browser(reader)
    sent = client.get("/unread?after=5")
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=/unread%3Fafter%3D5")
    form = client.get(sent.headers["location"])
    assert 'name="next" value="/unread?after=5"' in form.text
    done = client.post("/login", data={"name": "ada", "password": PASSWORD, "next": "/unread?after=5"})
    assert (done.status_code, done.headers["location"]) == (303, "/unread?after=5")
    assert COOKIE in client.cookies
    assert client.get("/unread").status_code == 200


@pytest.mark.slow
def test_a_login_leads_to_no_other_server(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    for elsewhere in ("//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"):
        given = {"name": "ada", "password": PASSWORD, "next": elsewhere}
        assert browser(reader).post("/login", data=given).headers["location"] == "/unread"


def test_a_page_with_a_name_in_any_script_is_come_back_to_and_a_made_up_one_is_refused(
    reader: Reader,
) -> None:
    user = reader.user("ada", password=PASSWORD)
    client = browser(reader)
    sent = client.get("/folders/%E6%97%A5%E6%9C%AC?show=all")
    assert sent.headers["location"] == "/login?next=/folders/%25E6%2597%25A5%25E6%259C%25AC%3Fshow%3Dall"
    form = client.get(sent.headers["location"]).text
    assert 'name="next" value="/folders/%E6%97%A5%E6%9C%AC?show=all"' in form
    given = {"name": "ada", "password": PASSWORD}
    done = client.post("/login", data={**given, "next": "/folders/%E6%97%A5%E6%9C%AC?show=all"})
    assert done.headers["location"] == "/folders/%E6%97%A5%E6%9C%AC?show=all"
    stranger = browser(reader)
    for next in ("/\u65e5\u672c", "/\N{GREEK SMALL LETTER ALPHA}?a=\U0001f600", "/\u20ac"):
        assert stranger.get("/login", params={"next": next}).status_code == 200
        refused = stranger.post("/login", data={**given, "next": next})
        assert (refused.status_code, "set-cookie" in refused.headers) == (422, False)
        # What is written by a form has been written: it leads back all the same.
        back = browser(reader, user).post("/mark-read", data={"up_to": "1", "back": next})
        assert (back.status_code, back.headers["location"].isascii()) == (303, True)


def test_a_wrong_password_gives_the_form_again_without_the_password(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    refused = browser(reader).post("/login", data={"name": "ada", "password": "wrong-horse"})
    assert refused.status_code == 401
    assert "The name or the password is wrong." in refused.text
    assert "wrong-horse" not in refused.text


def test_a_page_of_another_site_logs_no_one_in(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    client = reader.client(origin="https://evil.example", sec_fetch_site="cross-site")
    refused = client.post("/login", data={"name": "ada", "password": PASSWORD})
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
