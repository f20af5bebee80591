"""Marks of whole lists by the page, without scripts: the notice after one, and that undone."""

import re

import httpx

from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.pages.reading.test_lists import titles
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import arrive, mark
from rss_pipeline_tests.support.reader import Reader


def form(answer: httpx.Response, id: str) -> dict[str, str]:
    """The fields of a form by its id."""
    found = re.search(rf'<form[^>]* id="{id}"[^>]*>(.*?)</form>', answer.text, re.DOTALL)
    assert found is not None, id
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', found[1]))


def send(client: httpx.Client, path: str, fields: dict[str, str]) -> httpx.Response:
    """The page that a form leads back to."""
    done = client.post(path, data=fields)
    assert done.status_code == 303
    return client.get(done.headers["location"])


def test_mark_all_read_says_how_many_it_marked_and_is_undone_by_a_form(reader: Reader) -> None:
    user = ann(reader, a=3, b=2)
    mark(reader.database, user.id, "a", ["2"], is_read=True)
    client = browser(reader, user)
    page = client.get("/unread")
    assert 'id="undo"' not in page.text
    marked = send(client, "/mark-read", form(page, "mark-all"))
    assert titles(marked) == []
    assert "4 items were marked read." in marked.text
    back = send(client, "/mark-read/undo", form(marked, "undo"))
    assert sorted(titles(back)) == ["Title 1", "Title 1", "Title 2", "Title 3"]
    assert 'id="undo"' not in back.text


def test_the_notice_is_on_every_list_until_the_hour_is_over(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    client = browser(reader, user)
    send(client, "/mark-read", form(client.get("/feeds/a"), "mark-all"))
    for path in ("/unread", "/all", "/starred", "/feeds/a", "/feeds/b"):
        assert "1 item was marked read." in client.get(path).text
    reader.clock.pass_(seconds=3_601)
    assert 'id="undo"' not in client.get("/unread").text


def test_an_item_that_was_opened_since_stays_read_and_what_came_since_is_unread(reader: Reader) -> None:
    user = ann(reader, a=3)
    client = browser(reader, user)
    marked = send(client, "/mark-read", form(client.get("/feeds/a"), "mark-all"))
    [opened] = reader.database.query("SELECT id FROM items WHERE guid = '2'").rows
    assert client.get(f"/items/{opened['id']}").status_code == 200
    arrive(reader.database, "a", "4")
    back = send(client, "/mark-read/undo", form(marked, "undo"))
    assert sorted(titles(back)) == ["Title 1", "Title 3", "Title 4"]


def test_what_cannot_be_undone_any_more_is_said_on_a_page(reader: Reader) -> None:
    user = ann(reader, a=1)
    client = browser(reader, user)
    marked = send(client, "/mark-read", form(client.get("/feeds/a"), "mark-all"))
    send(client, "/mark-read/undo", form(marked, "undo"))
    twice = client.post("/mark-read/undo", data=form(marked, "undo"))
    assert (twice.status_code, "It is undone already" in twice.text) == (200, True)
    assert 'href="/feeds/a"' in twice.text
    assert titles(client.get("/feeds/a")) == ["Title 1"]
    reader.clock.pass_(seconds=3_601)
    for fields in (form(marked, "undo"), {"id": "<script>"}, {}):
        again = client.post("/mark-read/undo", data=fields)
        assert again.status_code == 404
        assert "There is nothing to undo." in again.text
        assert "<script>" not in again.text


def test_a_mark_by_an_app_or_a_program_is_undone_on_the_page(reader: Reader) -> None:
    user = ann(reader, a=2)
    user.client.post("/api/mark-read", json={"up_to": 2**53 - 1})
    client = browser(reader, user)
    back = send(client, "/mark-read/undo", form(client.get("/unread"), "undo"))
    assert len(titles(back)) == 2
