"""Stories in apps: one entry of every stream, that names the others and is read with them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.web.authority import Authority
from rss_pipeline_tests.api.google_reader.phone import API, Phone, arrive
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.features.stories.stored import one_story
from rss_pipeline_tests.storage.values import change, register, spec
from rss_pipeline_tests.support.clients import liferea, newsboat
from rss_pipeline_tests.support.clients.liferea import Liferea
from rss_pipeline_tests.support.clients.newsboat import Newsboat
from rss_pipeline_tests.support.counted import as_on_d1
from rss_pipeline_tests.support.reader import Reader, reader_settings, served
from rss_pipeline_tests.support.up import free_port
from rss_pipeline_tests.support.waiting import soon

ALL = "user/-/state/com.google/reading-list"
STARRED = "user/-/state/com.google/starred"
FOLDER = "user/-/label/News"


@dataclass(frozen=True, slots=True)
class Desk:
    """A user's phone, and the numbers of a story's items, in the feeds a, b and c, and of another item."""

    phone: Phone
    lead: int
    second: int
    third: int
    other: int

    def counts(self) -> dict[str, int]:
        found = self.phone.get("unread-count").json()["unreadcounts"]
        return {each["id"]: each["count"] for each in found}

    def entries(self, stream: str = ALL, **params: Any) -> dict[int, str]:
        """By number, the contents of a stream."""
        found = self.phone.get("stream/contents", s=stream, **params).json()["items"]
        return {int(each["timestampUsec"]): each["summary"]["content"] for each in found}

    def named(self, *numbers: int) -> dict[int, str]:
        """By number, the contents of items by their ids."""
        found = self.phone.post("stream/items/contents", {"i": [*map(str, numbers)]}).json()["items"]
        return {int(each["timestampUsec"]): each["summary"]["content"] for each in found}


def wanting(reader: Reader, *, in_apps: str = "true") -> Desk:
    database = reader.database
    register(database, spec("a"), spec("b"), spec("c"))
    phone = Phone.of_new_user(reader, "ann")
    phone.subscribe("a", folder="News")
    phone.subscribe("b", folder="News")
    phone.subscribe("c")
    change(database, "UPDATE users SET preferences = ?", f'{{"stories":true,"stories_in_apps":{in_apps}}}')
    [lead] = arrive(database, "a", "1", title="Fire at a harbour", link="https://a.example/fire")
    [second, other] = arrive(database, "b", "2", "other", link="https://b.example/harbour")
    [third] = arrive(database, "c", "3", title="Harbour <b>burns</b> & burns", link="javascript:alert(1)")
    one_story(database, "a1", "b2", "c3")
    return Desk(phone, lead, second, third, other)


def test_each_stream_has_a_story_once_and_counts_agree(reader: Reader) -> None:
    desk = wanting(reader)
    assert set(desk.phone.ids()) == desk.phone.unread() == {desk.lead, desk.other}
    assert desk.phone.unread(FOLDER) == {desk.lead, desk.other}
    assert desk.phone.unread("feed/b") == {desk.other}
    assert set(desk.phone.ids("feed/c")) == set()
    assert desk.counts() == {ALL: 2, FOLDER: 2, "feed/a": 1, "feed/b": 1, "feed/c": 0}
    assert set(desk.phone.ids(n=1)) == {desk.lead, desk.other}
    assert desk.phone.ids(ot=desk.lead // 1_000_000 + 100) == []
    for content in (desk.entries()[desk.lead], desk.named(desk.lead)[desk.lead]):
        assert "Title 2</a> (A feed)" in content
        assert 'href="https://b.example/harbour"' in content
        assert "<li>Harbour burns &amp; burns (A feed)</li>" in content
    document = desk.phone.client.get("/greader/reader/atom/feed/a").text
    assert "Harbour burns &amp;amp; burns (A feed)" in document


def test_an_entry_is_read_with_what_was_named_then_and_nothing_else(reader: Reader) -> None:
    desk = wanting(reader)
    desk.entries()
    [late] = arrive(reader.database, "c", "late")
    change(
        reader.database,
        """INSERT INTO story_members (item_id, story_id, feed_id, arrived, article, lead, decided_at, version)
        SELECT i.id, m.story_id, i.feed_id, i.arrived, i.id, i.arrived, m.decided_at, 1
        FROM items AS i, story_members AS m WHERE i.guid = 'late' AND m.story_id = m.item_id""",
    )
    assert desk.phone.unread() == {desk.lead, desk.other}
    desk.phone.mark([desk.lead], a="read")
    assert desk.phone.unread() == {late, desk.other}
    assert desk.counts()["feed/c"] == 1
    # An app that never had the entry names nothing else.
    desk.phone.mark([desk.lead], r="read")
    desk.phone.another().mark([desk.lead], a="read")
    assert desk.phone.unread() == {late, desk.other}
    # A star is the item's alone.
    desk.phone.mark([desk.lead], a="starred")
    assert desk.phone.ids(STARRED) == [desk.lead]


def test_an_entry_is_read_with_what_was_named_by_a_server_that_has_ended(reader: Reader) -> None:
    desk = wanting(reader)
    desk.entries()
    reader.app.state.google_reader.keep()
    client = Reader(reader.stores, reader.loop).client(authorization=f"GoogleLogin auth={desk.phone.auth}")
    client.post(f"{API}edit-tag", data={"i": str(desk.lead), "a": "user/-/state/com.google/read"})
    assert desk.phone.unread() == {desk.other}


def test_a_feed_that_is_marked_in_an_app_is_read_with_what_its_entries_name(reader: Reader) -> None:
    desk = wanting(reader)
    program = reader.client(authorization=f"Bearer {desk.phone.jwt()}")
    for stream, left in (("feed/a", {desk.other}), (FOLDER, set())):
        desk.entries(stream)
        desk.phone.post("mark-all-as-read", {"s": stream})
        assert desk.phone.unread() == left
        # To take it back is to take all of it back.
        [mark] = program.get("/api/mark-read").json()["marks"]
        assert mark["items"] == 4 - len(left)
        assert program.post(f"/api/mark-read/{mark['id']}/undo").status_code == 200
        feeds = program.get("/api/feeds").json()["feeds"]
        assert {each["id"]: each["unread"] for each in feeds} == {"a": 1, "b": 2, "c": 1}


def test_a_later_copy_that_leads_is_the_one_entry_read_and_unread_with_the_first(reader: Reader) -> None:
    desk = wanting(reader)
    # The last one leads, as one with a full text does, and is a copy of the first, which is the news.
    change(reader.database, "UPDATE story_members SET article = story_id, lead = -lead")
    both = {desk.third, desk.other}
    assert set(desk.entries()) == set(desk.phone.ids()) == desk.phone.unread() == both
    desk.phone.mark([desk.third], a="read")
    assert desk.phone.unread() == {desk.other}
    desk.phone.mark([desk.third], r="read")
    assert (desk.phone.unread(), desk.counts()[ALL]) == (both, 2)
    # The first alone is read, as on the page of its feed: what is a copy of that is read.
    phone = desk.phone.another()
    phone.mark([desk.lead], a="read")
    assert (phone.unread(), desk.counts()[ALL]) == ({desk.other}, 1)
    [item] = [
        each
        for each in phone.get("stream/contents", s=ALL).json()["items"]
        if int(each["timestampUsec"]) == desk.third
    ]
    assert "user/-/state/com.google/read" in item["categories"]


def test_who_does_not_want_it_has_each_item_and_marks_it_alone(reader: Reader) -> None:
    desk = wanting(reader)
    desk.entries()
    assert "Also:" in desk.named(desk.lead)[desk.lead]
    change(reader.database, "UPDATE users SET preferences = '{\"stories\":true}'")
    every = {desk.lead, desk.second, desk.third, desk.other}
    assert desk.phone.unread() == every
    assert desk.counts()[ALL] == 4
    assert "Also:" not in desk.entries()[desk.lead]
    # What is kept of an item's contents is not what another entry of it has.
    assert "Also:" not in desk.named(desk.lead)[desk.lead]
    desk.phone.mark([desk.lead], a="read")
    assert desk.phone.unread() == every - {desk.lead}


def test_a_list_with_stories_is_one_request_to_the_store(reader: Reader) -> None:
    desk = wanting(reader)
    remote, counted = as_on_d1(reader)
    client = remote.client(authorization=f"GoogleLogin auth={desk.phone.auth}")
    sizes = iter(range(10, 100))

    def asked() -> int:
        before = counted.requests
        for call in ("stream/items/ids", "stream/contents"):
            assert client.get(f"{API}{call}", params={"s": ALL, "n": next(sizes)}).status_code == 200
        assert client.get(f"{API}unread-count").status_code == 200
        return counted.requests - before

    asked()
    with_stories = asked()
    change(reader.database, "UPDATE users SET preferences = '{}', state_version = state_version + 1")
    changed, without = asked(), asked()
    # What entries name is one request more. After a change the first list is read twice, and another text.
    assert (with_stories, changed) == (without + 1, without + 2)


def test_an_entry_of_500_items_names_and_reads_them_all(reader: Reader) -> None:
    register(reader.database, *map(spec, "abcde"))
    phone = Phone.of_new_user(reader, "ann")
    phone.subscribe(*"abcde")
    change(reader.database, "UPDATE users SET preferences = ?", '{"stories":true,"stories_in_apps":true}')
    guids = [*map(str, range(100))]
    numbers = [number for feed in "abcde" for number in arrive(reader.database, feed, *guids)]
    one_story(reader.database, *(f"{feed}{guid}" for feed in "abcde" for guid in guids))
    assert phone.ids() == [numbers[0]]
    desk = Desk(phone, *numbers[:4])
    assert desk.entries()[numbers[0]].count("<li>") == 499
    assert desk.counts()[ALL] == 1
    phone.mark([numbers[0]], a="read")
    assert phone.unread() == set()


@pytest.fixture
def on_wire(tmp_path: Path) -> Iterator[tuple[Desk, str]]:
    """The same, served to programs at this address."""
    port = free_port()
    settings = reader_settings(tmp_path / "home", reader_hosts=(Authority("127.0.0.1", port),))
    with Reader.on(settings) as reader, served(reader.app, port=port):
        desk = wanting(reader)
        change(reader.database, "UPDATE feeds SET link = ?", f"http://127.0.0.1:{port}/")
        yield desk, f"http://127.0.0.1:{port}/greader"


def read_first(boat: Newsboat, desk: Desk) -> None:
    """Open the first entry in newsboat, and wait until the server has the story as read."""
    with boat.at_terminal() as terminal:
        terminal.shows("3 total")
        terminal.keys("R")
        terminal.shows("(1/1)")
        terminal.keys("Enter")
        terminal.shows("Fire at a harbour")
        terminal.keys("Enter")
        terminal.shows("Link: https://a.example/fire")
        terminal.keys("q")
        soon(lambda: desk.phone.unread() == {desk.other})


@pytest.mark.slow
@pytest.mark.skipif(bool(newsboat.MISSING), reason=f"not installed: {', '.join(newsboat.MISSING)}")
def test_newsboat_has_one_entry_and_reads_the_story(tmp_path: Path, on_wire: tuple[Desk, str]) -> None:
    desk, url = on_wire
    boat = Newsboat(tmp_path / "newsboat", url=url, name="ann", password=desk.phone.password)
    assert boat.reload() == "2 unread articles"
    first, other = boat.articles()
    assert (first.title, other.title) == ("Fire at a harbour", "Title other")
    assert "Harbour burns &amp; burns" in first.content
    read_first(boat, desk)
    assert boat.reload() == "1 unread articles"


@pytest.mark.slow
@pytest.mark.skipif(bool(liferea.MISSING), reason=f"not installed: {', '.join(liferea.MISSING)}")
def test_liferea_has_one_entry_and_reads_the_story(tmp_path: Path, on_wire: tuple[Desk, str]) -> None:
    desk, url = on_wire
    reader = Liferea(tmp_path / "liferea", url=url, name="ann", password=desk.phone.password)
    with reader.running() as running:
        soon(lambda: [each.title for each in running.headlines()] == ["Fire at a harbour", "Title other"])
        assert "Harbour burns" in running.headlines()[0].text
        running.activate("next-unread-item")
        soon(lambda: len(desk.phone.unread()) == 1)
        running.activate("next-unread-item")
        soon(lambda: desk.phone.unread() == set())


@pytest.mark.soak
@pytest.mark.skipif(
    bool(newsboat.MISSING or liferea.MISSING),
    reason=f"not installed: {', '.join((*newsboat.MISSING, *liferea.MISSING))}",
)
def test_newsboat_and_liferea_and_the_page_are_of_one_account(
    tmp_path: Path, on_wire: tuple[Desk, str]
) -> None:
    desk, url = on_wire
    reader, password = desk.phone.reader, desk.phone.password
    boat = Newsboat(tmp_path / "newsboat", url=url, name="ann", password=password)
    table = Liferea(tmp_path / "liferea", url=url, name="ann", password=password)
    page = browser(reader, reader.signed_in(desk.phone.user_id))

    def of_table() -> list[str]:
        return [each.title for each in running.headlines()]

    with table.running() as running:
        assert boat.reload() == "2 unread articles"
        soon(lambda: of_table() == ["Fire at a harbour", "Title other"])
        for each in (boat.articles()[0].content, running.headlines()[0].text):
            assert "Title 2" in each
            assert "Harbour" in each
        # Read in newsboat.
        read_first(boat, desk)
        assert "Fire at a harbour" not in page.get("/unread").text
        # Read in Liferea, which shows as unread what was read elsewhere, with any server.
        running.activate("next-unread-item")
        running.activate("next-unread-item")
        soon(lambda: desk.phone.unread() == set())
        assert '<li class="entry' not in page.get("/unread").text
        assert boat.reload() == "0 unread articles"
        # Another story, read on the page.
        arrive(reader.database, "a", "4", title="A flood")
        arrive(reader.database, "b", "5", title="The river rises")
        one_story(reader.database, "a4", "b5")
        assert boat.reload() == "1 unread articles"
        running.activate("update-all")
        soon(lambda: "A flood" in of_table())
        [listed] = re.findall(r'data-with="([^"]*)"', page.get("/unread").text)
        page.post(f"/items/{listed.split(',')[0]}/read", data={"with": listed, "back": "/unread"})
        assert boat.reload() == "0 unread articles"
        assert of_table() == ["A flood", "Fire at a harbour", "Title other"]
