"""A page without a feed is added: shown first, and taken by a person's word alone."""

import json
import os
import re
import time
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.features.pages.sql import pages_to_confirm
from rss_pipeline.storage.feeds.subscribed import NewFeed, add_feeds
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline.storage.subscriptions.listing import feed_rows, list_feeds
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.api.test_subscribing import FEEDS, claimed, task
from rss_pipeline_tests.features.pages.site import TITLES, WORDS, entries, link, page
from rss_pipeline_tests.reader.test_searches import searched
from rss_pipeline_tests.storage.values import NOW, change, claim_one, failed
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.reader import Reader
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"
UNSURE = page(
    f"<p>{WORDS * 20}</p><div>"
    + "".join(f'<div><a href="{link(n)}">{title}</a></div>' for n, title in enumerate(TITLES))
    + "</div>"
)


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("RSS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RSS_HOST_DELAY_SECONDS", "0")
    monkeypatch.setenv("RSS_PARSE_WORKERS", "1")
    monkeypatch.setenv("COLUMNS", "400")
    return lambda *arguments: CliRunner().invoke(main, arguments)


def serve(server: FeedServer, html: str) -> str:
    return server.route(HOST, "/news/", Answer(body=html.encode(), headers={"Content-Type": "text/html"}))


@pytest.mark.slow
def test_the_command_shows_the_entries_and_writes_nothing_until_it_is_confirmed(
    tmp_path: Path, server: FeedServer, invoke: Callable[..., Result]
) -> None:
    url = serve(server, page(entries()))
    said = invoke("add", "--allow-private", url)
    assert said.exit_code == 1
    assert "The page lists 6 entries:" in said.stdout
    assert f"2026-01-11  {TITLES[0]}" in said.stdout
    assert "--page adds these entries" in said.stderr
    assert not (tmp_path / "feeds.yaml").exists()
    [offered] = json.loads(invoke("add", "--allow-private", "--json", url).stdout)
    assert (offered["state"], offered["page"]["count"], offered["page"]["is_sure"]) == ("offered", 6, True)
    assert [entry["title"] for entry in offered["page"]["entries"]] == list(TITLES[:5])

    assert "added." in invoke("add", "--allow-private", "--page", url).stdout
    assert "page: auto" in (tmp_path / "feeds.yaml").read_text("utf-8")
    [feed] = json.loads(invoke("status", "--json").stdout)["feeds"]
    items = json.loads(invoke("items", feed["id"], "--json").stdout)
    assert sorted(item["title"] for item in items) == sorted(TITLES)
    # Each look has requested the page once; its robots.txt was requested once in all.
    assert [request.target for request in server.asked(HOST)].count("/robots.txt") == 1


@pytest.mark.slow
def test_a_list_that_is_not_certain_is_written_as_confirmed_and_a_lost_one_is_confirmed_again(
    tmp_path: Path, server: FeedServer, invoke: Callable[..., Result]
) -> None:
    url = serve(server, UNSURE)
    assert "This may be something else." in invoke("add", "--allow-private", url).stdout
    assert invoke("add", "--allow-private", "--page", url).exit_code == 0
    assert "page: confirmed" in (tmp_path / "feeds.yaml").read_text("utf-8")
    others = entries(titles=[f"{title} again" for title in TITLES])
    serve(server, page(others.replace("/news/", "/items/")))
    # A feed that was visited in the same second is not visited again.
    deadline = time.monotonic() + 60
    while "list_lost" not in invoke("status", "--json").stdout:
        assert time.monotonic() < deadline
        invoke("poll", "--all")
    assert invoke("add", url).exit_code == 1
    assert "added." in invoke("add", "--page", url).stdout
    # A visit by hand waits for a minute after the last answer, but it is due.
    invoke("poll")
    assert "list_lost" not in invoke("status", "--json").stdout


def test_a_page_that_robots_txt_keeps_from_programs_is_not_offered(
    server: FeedServer, invoke: Callable[..., Result]
) -> None:
    server.route(HOST, "/robots.txt", Answer(body=b"User-agent: *\nDisallow: /\n"))
    said = invoke("add", "--allow-private", "--page", serve(server, page(entries())))
    assert "not added (html)" in said.stderr
    assert "robots.txt of 127.0.0.2 keeps this page from programs" in said.stderr


def test_a_page_without_a_list_says_what_was_seen(server: FeedServer, invoke: Callable[..., Result]) -> None:
    url = serve(server, '<html><body><div id="app"></div><script src="/app.js"></script></body></html>')
    assert "made by scripts and needs a browser" in invoke("add", "--allow-private", url).stderr


def test_a_user_is_shown_the_entries_and_subscribes_by_a_second_request(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = serve(server, page(entries()))
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    subscribe(pipeline.database, "ann")
    first = searched(pipeline, url).result
    assert first is not None
    assert first.outcome == "offered"
    assert first.offer is not None
    assert (first.offer["count"], first.offer["entries"][0]["title"]) == (6, TITLES[0])
    assert pipeline.rows("SELECT id FROM feeds") == []
    taken = searched(pipeline, url, wishes=Wishes(takes_offer=True))
    assert taken.result is not None
    assert (taken.result.outcome, taken.result.items_new) == ("subscribed", 6)
    assert taken.feed_id is not None
    assert pipeline.feed(taken.feed_id)["page"] == "auto"


COURT = "".join(
    f'<tr><td><a href="/cases/{n}">{title} v. Town</a></td><td>1{n} May 2026</td>'
    f'<td><a href="/pdf/22-028{n}.pdf">22-028{n}/AR (PDF)</a></td></tr>'
    for n, title in enumerate(TITLES)
)
NEWS = f"<h2>News</h2>{entries(titles=[f'{title} now' for title in TITLES[:4]])}"


@pytest.mark.parametrize("kind", ["link", "list"])
def test_another_list_of_a_page_or_another_link_of_its_entries_is_chosen_and_stays(
    pipeline: Pipeline, server: FeedServer, kind: str
) -> None:
    beside = NEWS if kind == "list" else ""
    url = serve(server, page(f"<table>{COURT}</table>{beside}"))
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    subscribe(pipeline.database, "ann")
    offered = searched(pipeline, url).result
    assert offered is not None
    assert offered.offer is not None
    links = {entry["link"] for entry in offered.offer["entries"]}
    chosen = next(each for each in offered.offer["choices"] if each["kind"] == kind)
    shown = [entry["link"] for entry in chosen["entries"]]
    assert links.isdisjoint(shown)
    gone = searched(pipeline, url, wishes=Wishes(takes_offer=True, choice="gone")).result
    assert gone is not None
    assert gone.outcome == "offered"
    taken = searched(pipeline, url, wishes=Wishes(takes_offer=True, choice=chosen["name"]))
    assert taken.result is not None
    assert (taken.result.outcome, taken.result.items_new) == ("subscribed", chosen["count"])
    id = taken.feed_id
    assert id is not None
    assert pipeline.feed(id)["page"] == "confirmed"
    assert {row["link"] for row in pipeline.items(id)}.issuperset(shown)
    # At the next visit it is that list again, with what is new in it, and nothing of the other.
    row = COURT[: COURT.index("</tr>") + 5].replace("/cases/0", "/cases/9").replace("-0280", "-0289")
    serve(server, page(f"<table>{row}{COURT}</table>{beside}"))
    pipeline.clock.turn(hours=25)
    pipeline.poll(all_feeds=True)
    assert pipeline.feed(id)["last_error"] is None
    assert len(pipeline.items(id)) == chosen["count"] + 1
    assert links.isdisjoint(row["link"] for row in pipeline.items(id))


def test_a_lost_list_is_shown_as_it_would_be_now_and_taken_by_one_of_its_readers(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = serve(server, page(entries()))
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    subscribe(pipeline.database, "ann")
    id = searched(pipeline, url, wishes=Wishes(takes_offer=True)).feed_id
    assert id is not None
    new = entries(titles=[f"{title} again" for title in TITLES], kind="item").replace("/news/", "/2027/")
    serve(server, page(new))
    pipeline.clock.turn(hours=25)
    pipeline.poll(all_feeds=True)
    [row] = feed_rows(pipeline.database.batch([list_feeds("ann")])[0])
    assert (row.error_kind, row.may_accept, row.is_rebuilt) == ("list_lost", 1, 0)
    assert [page["feed"] for page in pages_to_confirm(pipeline.database) or []] == [id]

    pipeline.clock.turn(hours=1)
    shown = searched(pipeline, url).result
    assert shown is not None
    assert shown.offer is not None
    assert (shown.outcome, shown.offer["count"]) == ("offered", 6)
    assert len(pipeline.items(id)) == 6, "nothing is stored without a person's word"
    pipeline.clock.turn(hours=1)
    taken = searched(pipeline, url, wishes=Wishes(takes_offer=True))
    assert taken.result is not None
    assert (taken.result.outcome, taken.feed_id, taken.result.items_new) == ("subscribed", id, 6)
    assert pages_to_confirm(pipeline.database) == []

    # Without dates, and with quite other addresses, the titles alone are the same: a person says so.
    renamed = entries(titles=["Quite new", *(f"{title} again" for title in TITLES[:5])], kind="row", date="")
    serve(server, page(re.sub(r"/news/(\d)-entry", r"/20270\1", renamed)))
    pipeline.clock.turn(hours=25)
    pipeline.poll(all_feeds=True)
    assert pipeline.feed(id)["last_error_kind"] == "list_lost"
    pipeline.clock.turn(hours=1)
    taken = searched(pipeline, url, wishes=Wishes(takes_offer=True))
    assert taken.result is not None
    assert (taken.result.outcome, taken.result.items_new) == ("subscribed", 1)
    pipeline.clock.turn(hours=25)
    pipeline.poll(all_feeds=True)
    assert (pipeline.feed(id)["last_error"], len(pipeline.items(id))) == (None, 13)


def test_an_address_that_turns_out_to_be_a_page_becomes_one_by_its_reader_s_word(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = serve(server, page(entries()))
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    subscribe(pipeline.database, "ann")
    new = NewFeed(id="town", url=url, host=HOST)
    pipeline.database.batch(add_feeds([new], now=pipeline.clock()))
    pipeline.rows("UPDATE feeds SET registered = 1")
    subscribe(pipeline.database, "ann", "town")
    pipeline.poll()
    assert pipeline.feed("town")["last_error_kind"] == "html"
    pipeline.clock.turn(hours=1)
    taken = searched(pipeline, url, wishes=Wishes(takes_offer=True)).result
    assert taken is not None
    assert (taken.outcome, taken.items_new, pipeline.feed("town")["page"]) == ("subscribed", 6, "auto")


def test_the_pages_of_a_reader_and_json_lead_to_what_would_be_collected_now(reader: Reader) -> None:
    user = ann(reader, a=1)
    client = browser(reader, user)
    change(
        reader.database,
        "UPDATE feeds SET page = 'auto', warning = 'x', warning_kinds = '[\"redesigned\"]' WHERE id = 'a'",
    )
    assert "The page was rebuilt; its entries were found again." in client.get("/feeds/a").text
    [known] = user.client.get("/api/feeds").json()["feeds"]
    assert known["health"]["summary"] == "The page was rebuilt; its entries were found again."
    assert "See what would be collected now" not in client.get("/feeds/a/edit").text
    failed(reader.database, *claim_one(reader.database, "a"), now=NOW)
    change(reader.database, "UPDATE feeds SET last_error_kind = 'list_lost' WHERE id = 'a'")
    [known] = user.client.get("/api/feeds").json()["feeds"]
    assert known["health"]["may_accept"] is True
    shown = client.get("/feeds/a").text
    assert 'href="/feeds/a/edit#collected">What would be collected now?' in shown
    assert "its entries were found again" not in shown
    assert 'id="collected"' in client.get("/feeds/a/edit").text
    assert "Of a web page without a feed" in client.get("/feeds/add").text
    shown = client.get("/feeds/a/edit").text
    assert "See what would be collected now" in shown
    looked = client.post("/feeds/add", data={"url": known["url"]})
    assert "/tasks/" in looked.headers["location"]
    assert user.client.post(FEEDS, json={"url": known["url"], "page": True}).json()["status"] in (
        "queued",
        "already_running",
    )
    # Selectors of feeds.yaml are the operator's.
    change(reader.database, "UPDATE feeds SET page = '{}', listed = 1 WHERE id = 'a'")
    assert "See what would be collected now" not in client.get("/feeds/a/edit").text
    assert user.client.post(FEEDS, json={"url": known["url"]}).json()["status"] == "known"


def test_json_and_the_page_of_a_task_show_the_offer(reader: Reader) -> None:
    user = reader.user("ann")
    given = {"url": "new.example/", "page": False, "full_text": True}
    id = user.client.post(FEEDS, json=given).json()["task_id"]
    assert claimed(reader) == [id]
    offer = {
        "url": "https://new.example/",
        "title": "News",
        "is_sure": False,
        "count": 9,
        "entries": [{"title": "<b>First</b>", "link": "https://new.example/1", "date": "2026-01-11"}],
        "evidence": ["9 links", "They are few."],
        "choices": [
            {
                "name": "a-b_c1",
                "kind": "link",
                "count": 9,
                "entries": [{"title": "22-0282/AR (PDF)", "link": "https://new.example/1.pdf", "date": None}],
            }
        ],
    }
    result = {"outcome": "offered", "offer": offer, "milliseconds": 5}
    open_requests.answer_requests(
        reader.database, "t", [open_requests.RequestResult(id=id, result=result)], now=reader.clock()
    )
    assert task(user.client, id)["result"]["page"] == offer
    shown = user.client.get(f"/tasks/{id}").text
    assert "&lt;b&gt;First&lt;/b&gt;" in shown
    assert "and 8 more" in shown
    assert "They are few." in shown
    assert '<input type="radio" name="choice" value="a-b_c1">' in shown
    assert "https://new.example/1.pdf" in shown
    for name in ("page", "full_text"):
        assert f'<input type="hidden" name="{name}" value="yes">' in shown
