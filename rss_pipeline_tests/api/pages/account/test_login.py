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


def test_a_wrong_password_gives_the_form_again_without_the_password(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    refused = browser(reader).post("/login", data={"name": "ada", "password": "wrong-horse"})
    assert refused.status_code == 401
    assert "The name or the password is wrong." in refused.text
    assert "wrong-horse" not in refused.text


def test_a_page_of_another_site_logs_nobody_in(reader: Reader) -> None:
    reader.user("ada", password=PASSWORD)
    client = reader.client(origin="https://evil.example", sec_fetch_site="cross-site")
    refused = client.post("/login", data={"name": "ada", "password": PASSWORD})
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
