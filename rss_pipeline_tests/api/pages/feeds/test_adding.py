"""The pages to add a feed, to refresh now, and to follow both. The runs are tested in pipeline."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import httpx
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import change, register, spec
from rss_pipeline_tests.support.installed import there
from rss_pipeline_tests.support.reader import Reader, User

REFRESH = '<meta http-equiv="refresh"'


def add(client: httpx.Client, url: str, **fields: str) -> httpx.Response:
    return client.post("/feeds/add", data={"url": url, "folder": "", "title": "", "interval": "", **fields})


def claimed(reader: Reader) -> list[str]:
    """Let a run take all that is requested."""
    found = open_requests.claim_requests(
        reader.database, run_id="run", token="t", lease_seconds=60, limit=99, now=reader.clock()
    )
    return [each.id for each in found]


def answer(reader: Reader, id: str, **result: Any) -> None:
    """End a task as a run does."""
    given = {"items_new": 0, "milliseconds": 2_840, **result}
    answers = [open_requests.RequestResult(id=id, result=given)]
    open_requests.answer_requests(reader.database, "t", answers, now=reader.clock())


def words(page: httpx.Response) -> str:
    """The text of the page's main part, without tags."""
    assert page.headers["content-type"].startswith("text/html")
    [main] = re.findall(r"<main.*?</main>", page.text, re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())


def of(user: User) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = user.client.get("/api/feeds").json()["feeds"]
    return found


def test_a_known_feed_is_subscribed_at_once_and_the_page_says_so(reader: Reader) -> None:
    ann(reader, a=2)
    bob = reader.user("bob")
    client = browser(reader, bob)
    sent = add(client, "https://a.example/a", folder=" News ", title="Mine", interval="900")
    assert (sent.status_code, sent.headers["location"]) == (303, "/feeds/a/edit?subscribed=yes")
    shown = client.get(sent.headers["location"])
    assert "You are subscribed to this feed. Read it (2 unread)." in words(shown)
    [feed] = of(bob)
    assert [feed[name] for name in ("title", "folder", "interval")] == ["Mine", "News", 900]
    reader.clock.pass_(minutes=5)
    again = client.get(add(client, "https://a.example/a", folder="Other").headers["location"])
    assert "You were subscribed to this feed already" in words(again)
    assert of(bob)[0]["folder"] == "News"


def test_a_new_address_leads_to_its_task_which_is_shown_until_it_is_done(reader: Reader) -> None:
    client = browser(reader, ann(reader))
    wishes = {"folder": "News & more", "title": "Mine", "interval": "3600"}
    place = add(client, "new.example/blog", **wishes).headers["location"]
    assert add(client, "new.example/blog").headers["location"] == place
    waiting = client.get(place)
    assert REFRESH in waiting.text
    assert "https://new.example/blog" in words(waiting)
    [id] = claimed(reader)
    assert place == f"/tasks/{id}"
    assert "is being looked at" in words(client.get(place))
    assert "<title>Visiting - rss_pipeline</title>" in client.get(place).text
    answer(reader, id, outcome="failed", error_kind="html", error="The page names no feed.")
    done = client.get(place)
    assert REFRESH not in done.text
    assert "The page names no feed. What to do: Look for the feed's address" in words(done)
    [again] = re.findall(r'href="(/feeds/add\?url=https%3A%2F%2Fnew.example%2Fblog[^"]*)"', done.text)
    form = client.get(unescape(again)).text
    assert 'name="folder" value="News &amp; more"' in form
    assert 'name="title" value="Mine"' in form
    assert '<option value="3600" selected>' in form
    assert "<details" not in form.partition("<main")[2].partition("</main")[0], "each field is seen at once"


def test_a_found_feed_is_shown_with_its_items_and_a_link_to_it(reader: Reader) -> None:
    user = ann(reader)
    client = browser(reader, user)
    place = add(client, "new.example/blog").headers["location"]
    [id] = claimed(reader)
    register(reader.database, spec("blog"))
    subscribe(reader.database, user.id, "blog")
    answer(reader, id, outcome="subscribed", feed_id="blog", items_new=12)
    done = client.get(place)
    assert "has brought 12 items. It took 2.8 seconds." in words(done)
    assert 'href="/feeds/blog"' in done.text


def test_a_visit_that_no_one_makes_is_said_to_wait(reader: Reader) -> None:
    client = browser(reader, ann(reader))
    place = add(client, "new.example/blog").headers["location"]
    assert "may not be running" not in words(client.get(place))
    reader.clock.pass_(minutes=2)
    assert "makes visits may not be running" in words(client.get(place))


@pytest.mark.parametrize(
    ("url", "fields", "sentence"),
    [
        ("", {}, "Type the address"),
        ("http://127.0.0.1/feed", {}, "private network"),
        ("http://ada:secret@new.example/", {}, "a name or a password"),
        ("ftp://new.example/feed", {}, "no address of a feed"),
        ("https://new.example/" + "x" * 9_000, {}, "longer than"),
        ("https://new.example/", {"folder": "x" * 501}, "name of the folder"),
        ("https://new.example/", {"title": "x" * 501}, "The title has more"),
        ("https://new.example/", {"interval": "5"}, "The interval is between"),
        ("https://new.example/", {"interval": "٩٠٠"}, "The interval is between"),
    ],
)
def test_what_cannot_be_added_is_refused_with_the_form_filled_in(
    reader: Reader, url: str, fields: dict[str, str], sentence: str
) -> None:
    client = browser(reader, ann(reader))
    refused = add(client, url, **fields)
    assert refused.status_code == 422
    assert sentence in words(refused)
    assert f'name="url" value="{url[:2000]}' in refused.text
    assert claimed(reader) == []


def test_a_refused_address_is_shown_as_text_and_not_as_markup(reader: Reader) -> None:
    client = browser(reader, ann(reader))
    refused = add(client, '"><script>alert(1)</script>')
    assert refused.status_code == 422
    assert "<script>alert" not in refused.text


@pytest.mark.slow
def test_the_sixty_first_address_of_an_hour_has_to_wait(reader: Reader) -> None:
    ann(reader)
    reader.clock.pass_(seconds=1)
    client = browser(reader, reader.user("bob"))
    answers = [add(client, f"new.example/{n}") for n in range(62)]
    shown = words(client.get(answers[-1].headers["location"]))
    assert "The turn of this one is at" in shown
    assert "2 of yours wait, the last one until" in shown
    for path in there("/settings/opml"):
        assert "2 new feeds wait" in words(client.get(path))
    reader.clock.pass_(hours=1)
    assert "The turn" not in words(client.get(answers[-1].headers["location"]))
    for path in there("/settings/opml"):
        assert "wait:" not in words(client.get(path))


def test_a_first_visit_that_the_server_does_not_want_yet_says_until_when(reader: Reader) -> None:
    register(reader.database, spec("a"))
    change(reader.database, "UPDATE feeds SET listed = 0, registered = 0")
    hold(reader)
    user = reader.user("ann")
    held = add(browser(reader, user), "https://a.example/a")
    assert "its first visit waits" in words(held)
    until = reader.clock() + timedelta(minutes=10)
    assert f"Nothing is requested before {until:%-d %B %Y, %H:%M} UTC" in words(held)
    assert [each["id"] for each in of(user)] == ["a"]


def hold(reader: Reader) -> None:
    until = instant(reader.clock() + timedelta(minutes=10))
    change(
        reader.database, "INSERT INTO hosts (host, hold_until, reason) VALUES ('a.example', ?, '429')", until
    )


def test_refresh_now_leads_to_the_task_and_says_what_came(reader: Reader) -> None:
    client = browser(reader, ann(reader, a=1))
    sent = client.post("/feeds/a/refresh", data={})
    [id] = claimed(reader)
    assert (sent.status_code, sent.headers["location"]) == (303, f"/tasks/{id}")
    assert "is being visited" in words(client.get(sent.headers["location"]))
    answer(reader, id, outcome="stored", items_new=1)
    assert "1 new item They are in" in words(client.get(sent.headers["location"]))


def test_a_feed_on_hold_that_is_off_or_not_subscribed_is_not_refreshed(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    client = browser(reader, user)
    hold(reader)
    held = client.post("/feeds/a/refresh", data={})
    assert held.status_code == 409
    assert "a.example wants no requests: 429" in words(held)
    change(reader.database, "UPDATE feeds SET enabled = 0 WHERE id = 'b'")
    assert client.post("/feeds/b/refresh", data={}).status_code == 409
    assert client.post("/feeds/x/refresh", data={}).status_code == 404
    stranger = browser(reader, reader.user("bob"))
    assert stranger.post("/feeds/b/refresh", data={}).status_code == 404
    assert claimed(reader) == []


def test_a_folder_is_refreshed_and_the_page_counts_until_all_are_done(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    change(reader.database, "UPDATE subscriptions SET folder = 'News' WHERE feed_id <> 'c'")
    client = browser(reader, user)
    assert (
        'action="/refresh"><input type="hidden" name="folder" value="News">'
        in client.get("/folders/News").text
    )
    assert 'action="/refresh"><button' in client.get("/unread").text
    place = client.post("/refresh", data={"folder": "News"}).headers["location"]
    assert REFRESH in client.get(place).text
    assert "0 of 2 visits are done" in words(client.get(place))
    one, two = claimed(reader)
    answer(reader, one, outcome="stored", items_new=3)
    assert "1 of 2 visits are done: 3 new items." in words(client.get(place))
    answer(reader, two, outcome="failed", error_kind="timeout", error="no answer")
    done = client.get(place)
    assert "2 of 2 visits are done: 3 new items, 1 feed has failed." in words(done)
    assert REFRESH not in done.text
    assert "/failing" in done.text


def test_all_feeds_are_refreshed_and_what_was_left_out_is_said(reader: Reader) -> None:
    client = browser(reader, ann(reader, a=1, b=1, c=1))
    hold(reader)
    change(reader.database, "UPDATE feeds SET enabled = 0 WHERE id = 'b'")
    place = client.post("/refresh", data={}).headers["location"]
    shown = words(client.get(place))
    assert len(claimed(reader)) == 1
    assert "1 feed is not visited now, because their servers want fewer requests" in shown
    assert "1 feed is switched off" in shown


def test_another_s_task_is_not_found(reader: Reader) -> None:
    client = browser(reader, ann(reader, a=1))
    place = client.post("/feeds/a/refresh", data={}).headers["location"]
    stranger = browser(reader, reader.user("bob"))
    assert stranger.get(place).status_code == 404
    assert "No visit" in words(stranger.get("/tasks"))
    assert "a.example" not in stranger.get("/tasks?since=0").text


@pytest.mark.parametrize("query", ["since=x", "since=-1", "held=-5", "since=99999999999999999", "off=1e9"])
def test_odd_values_of_the_page_of_visits_are_no_error_of_ours(reader: Reader, query: str) -> None:
    assert browser(reader, ann(reader)).get(f"/tasks?{query}").status_code in (200, 422)
