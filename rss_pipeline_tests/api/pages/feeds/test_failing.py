"""The page of feeds that fail, and what the owner alone sees: Dagster's page of a feed, and its backups."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.reader.failures import PRIVATE
from rss_pipeline.storage.backups.backups import put_backup
from rss_pipeline.web.authority import Authority
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.pages.feeds.test_adding import words
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import NOW, change, claim_one, document, failed, register, spec
from rss_pipeline_tests.support.feeds import make_feed
from rss_pipeline_tests.support.reader import Reader, User, reader_settings

PARTITION = "/assets/feed_items?view=events&amp;partitions%5B0%5D=a"


def test_a_feed_that_fails_has_reason_since_when_what_to_do_and_next_visit(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    client = browser(reader, user)
    assert "None of your feeds fails." in words(client.get("/failing"))
    failed(reader.database, *claim_one(reader.database, "a"), now=NOW)
    at = instant(reader.clock())
    change(reader.database, "UPDATE feeds SET failing_since = ?, next_fetch_at = ? WHERE id = 'a'", at, at)
    shown = words(client.get("/failing"))
    assert "Reason no answer within 30 s" in shown
    assert "What to do Nothing: it is tried again by itself." in shown
    assert f"Failing since {reader.clock():%-d %B %Y, %H:%M} UTC" in shown
    assert "Next visit is due now" in shown
    assert "b.example" not in shown
    assert "Reason no answer within 30 s" in words(client.get("/feeds/a/edit"))


def test_every_page_leads_to_the_feeds_that_fail_and_counts_them(reader: Reader) -> None:
    client = browser(reader, ann(reader, a=1, b=1))
    assert "Feeds that fail" not in client.get("/unread").text
    failed(reader.database, *claim_one(reader.database, "a"), now=NOW)
    [link] = re.findall('<a href="/failing">.*?</li>', client.get("/unread").text.partition("</header>")[2])
    assert "Feeds that fail" in link
    assert ">1<" in link


def test_of_very_many_feeds_that_fail_the_page_says_how_many_it_leaves_out(reader: Reader) -> None:
    client = browser(reader, ann(reader, **{f"f{n}": 0 for n in range(202)}))
    change(reader.database, "UPDATE feeds SET consecutive_failures = 1, last_error_kind = 'timeout'")
    shown = client.get("/failing")
    assert shown.text.count("Failing since") == 200
    assert "2 more feeds fail" in words(shown)


def test_a_feed_that_is_switched_off_is_listed_as_not_visited(reader: Reader) -> None:
    client = browser(reader, ann(reader, a=1))
    change(reader.database, "UPDATE feeds SET enabled = 0")
    assert "Not visited at all" in words(client.get("/failing"))


def test_a_page_that_is_not_watched_is_a_feed_of_lists_and_no_failure(reader: Reader) -> None:
    user = reader.user("ann")
    register(reader.database, spec("a", title="A blog", watched=False, enabled=False))
    subscribe(reader.database, user.id, "a")
    client = browser(reader, user)
    assert "Not visited at all" not in words(client.get("/failing"))
    assert "Feeds that fail" not in client.get("/unread").text
    assert "a web page for people, of which nothing is collected" in words(client.get("/feeds/a/edit"))
    [found] = user.client.get("/api/feeds").json()["feeds"]
    assert (found["title"], found["site_url"], found["next_visit"]) == ("A blog", "https://a.example/a", None)
    assert found["health"]["status"] == "unwatched"
    answer = user.client.post("/api/feeds/a/refresh")
    assert answer.status_code == 409
    assert "Next visit None" in words(client.get("/feeds/a/edit"))


def test_of_a_private_network_no_one_learns_what_is_there(reader: Reader) -> None:
    client = browser(reader, ann(reader, a=1))
    failed(reader.database, *claim_one(reader.database, "a"), now=NOW)
    error = "intranet.example resolves to 10.1.2.3, a private address."
    change(reader.database, "UPDATE feeds SET last_error_kind = 'blocked_address', last_error = ?", error)
    for path in ("/failing", "/feeds/a/edit"):
        page = client.get(path)
        assert PRIVATE in words(page)
        assert "10.1.2.3" not in page.text


def two(reader: Reader) -> tuple[User, User]:
    """Ann, who was made first and so is the owner, and bob; both read a, which fails."""
    user = ann(reader, a=1)
    reader.clock.pass_(seconds=2)
    bob = reader.user("bob")
    subscribe(reader.database, bob.id, "a")
    failed(reader.database, *claim_one(reader.database, "a"), now=NOW)
    return user, bob


def test_the_owner_alone_sees_the_way_to_dagster_and_to_backups(reader: Reader) -> None:
    user, bob = two(reader)
    for path in ("/failing", "/feeds/a/edit"):
        owned, others = browser(reader, user).get(path).text, browser(reader, bob).get(path).text
        assert f'href="http://127.0.0.1:3000{PARTITION}"' in owned
        assert 'href="/feeds/a/backups"' in owned
        assert PARTITION not in others
        assert "backups" not in others


@pytest.mark.parametrize(
    ("hosts", "address", "host", "shown"),
    [
        ((), "127.0.0.1", "localhost:3001", "http://localhost:3000/"),
        ((), "127.0.0.1", "rss.example.org", None),
        ((), "0.0.0.0", "rss.example.org", None),
        ((), "192.168.1.5", "rss.example.org", "http://192.168.1.5:3000/"),
        ((Authority("ui.example.org", None),), "0.0.0.0", "rss.example.org", "http://ui.example.org/"),
        ((Authority("ui.example.org", None),), "0.0.0.0", "127.0.0.1:3001", "http://127.0.0.1:3000/"),
    ],
)
def test_the_way_to_dagster_is_the_one_that_this_browser_can_go(
    tmp_path: Path, hosts: tuple[Authority, ...], address: str, host: str, shown: str | None
) -> None:
    own = reader_settings(tmp_path / "home", reader_hosts=(Authority("rss.example.org", None),))
    with Reader.on(replace(own, ui_hosts=hosts, ui_address=address)) as reader:
        client = browser(reader, ann(reader, a=1))
        page = client.get("/feeds/a/edit", headers={"host": host, "origin": f"http://{host}"})
        if shown is None:
            assert "partition=" not in page.text
            assert "/feeds/a/backups" in page.text
        else:
            assert f'href="{shown}assets/' in page.text


def test_backups_are_listed_in_parts_and_saved_as_they_were_served(reader: Reader, tmp_path: Path) -> None:
    user, bob = two(reader)
    path = tmp_path / "spooled"
    body = b"<rss><script>alert(1)</script></rss>\xff"
    path.write_bytes(body)
    feed = make_feed("a", "https://a.example/a", "a.example")
    for _ in range(30):
        put_backup(reader.stores.objects, feed, document(path, at=NOW, content_type="text/html"))
    client = browser(reader, user)
    first = client.get("/feeds/a/backups")
    assert "37 bytes" in words(first)
    assert "text/html, status 200" in words(first)
    assert first.text.count(" download>") == 25
    _, rest = first.text.split('href="?before=')
    older = client.get("/feeds/a/backups?before=" + rest.partition('"')[0])
    assert older.text.count(" download>") == 5
    name = "2026-02-18T08:30:00Z.xml"
    assert f"/feeds/a/backups/{name.replace(':', '%3A')}" in older.text
    saved = client.get(f"/feeds/a/backups/{name}")
    assert saved.content == body
    assert saved.headers["content-type"] == "application/octet-stream"
    assert saved.headers["content-disposition"] == 'attachment; filename="a-2026-02-18T083000Z.xml"'
    assert saved.headers["x-content-type-options"] == "nosniff"
    assert client.get("/feeds/a/backups/2026-02-18T08:31:30Z.xml").status_code == 404
    stranger = browser(reader, bob)
    for there in ("/feeds/a/backups", f"/feeds/a/backups/{name}"):
        refused = stranger.get(there)
        assert refused.status_code == 404
        assert b"alert(1)" not in refused.content


def test_the_owner_sees_no_backups_of_feeds_that_others_read(reader: Reader, tmp_path: Path) -> None:
    user, _ = two(reader)
    user.client.delete("/api/feeds/a")
    path = tmp_path / "spooled"
    path.write_bytes(b"<rss/>")
    put_backup(
        reader.stores.objects, make_feed("a", "https://a.example/a", "a.example"), document(path, at=NOW)
    )
    client = browser(reader, user)
    assert client.get("/feeds/a/backups").status_code == 404
    assert client.get("/feeds/a/backups/2026-02-18T08:30:00Z.xml").status_code == 404
