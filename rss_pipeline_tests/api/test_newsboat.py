"""Newsboat, as Debian has it, against the reader: it lists, reads, marks, stars and marks all, and sees
what is new. It is driven by its commands and by keys in a terminal."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rss_pipeline.web.authority import Authority
from rss_pipeline_tests.api.google_reader.phone import Phone, arrive
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.clients import newsboat
from rss_pipeline_tests.support.clients.newsboat import STAR, Newsboat
from rss_pipeline_tests.support.reader import Reader, reader_settings, served
from rss_pipeline_tests.support.up import free_port
from rss_pipeline_tests.support.waiting import soon

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(newsboat.MISSING), reason=f"not installed: {', '.join(newsboat.MISSING)}"),
]
STARRED = "user/-/state/com.google/starred"


@dataclass(frozen=True, slots=True)
class Desk:
    """Newsboat, and the phone of the same user, by which a test sees what the server has."""

    newsboat: Newsboat
    phone: Phone
    numbers: list[int]

    def read(self) -> list[str]:
        """The titles of what newsboat holds for read."""
        return [article.title for article in self.newsboat.articles() if not article.is_unread]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    port = free_port()
    settings = reader_settings(tmp_path / "home", reader_hosts=(Authority("127.0.0.1", port),))
    with Reader.on(settings) as reader, served(reader.app, port=port):
        register(reader.database, spec("a"), spec("b"))
        phone = Phone.of_new_user(reader, "ann")
        phone.subscribe("a", folder="News")
        phone.subscribe("b")
        numbers = arrive(reader.database, "a", "1", "2", "3", link="https://a.example/x")
        arrive(reader.database, "b", "4")
        url = f"http://127.0.0.1:{port}/greader"
        boat = Newsboat(tmp_path / "newsboat", url=url, name="ann", password=phone.password)
        yield Desk(boat, phone, numbers)


def test_newsboat_lists_the_items_of_all_feeds(desk: Desk) -> None:
    assert desk.newsboat.reload() == "4 unread articles"
    articles = desk.newsboat.articles()
    assert [article.title for article in articles] == ["Title 1", "Title 2", "Title 3", "Title 4"]
    assert articles[0].link == "https://a.example/x"
    assert articles[0].content == "<p>1</p>"


def test_newsboat_sees_what_is_new_and_what_was_read_and_kept_elsewhere(desk: Desk) -> None:
    desk.newsboat.reload()
    desk.phone.mark(desk.numbers[:2], a="read")
    arrive(desk.phone.reader.database, "a", "5")
    assert desk.newsboat.reload() == "3 unread articles"
    assert desk.read() == ["Title 1", "Title 2"]
    desk.phone.mark(desk.numbers[:1], r="read")
    assert desk.newsboat.reload() == "4 unread articles"


def test_newsboat_reads_an_item(desk: Desk) -> None:
    with desk.newsboat.at_terminal() as terminal:
        _open_feed_a(terminal)
        terminal.keys("Enter")
        terminal.shows("Link: https://a.example/x")
        terminal.keys("q")
        soon(lambda: len(desk.phone.unread("feed/a")) == 2)


def test_newsboat_marks_an_item_read_and_unread(desk: Desk) -> None:
    with desk.newsboat.at_terminal() as terminal:
        _open_feed_a(terminal)
        terminal.keys("N")
        soon(lambda: len(desk.phone.unread("feed/a")) == 2)
        terminal.keys("Up", "N")
        soon(lambda: len(desk.phone.unread("feed/a")) == 3)


def test_newsboat_stars_an_item_and_takes_the_star_back(desk: Desk) -> None:
    with desk.newsboat.at_terminal() as terminal:
        _open_feed_a(terminal)
        terminal.keys("C-e")
        terminal.shows("Flags:")
        terminal.keys(STAR, "Enter")
        soon(lambda: len(desk.phone.ids(STARRED)) == 1)
        terminal.keys("C-e")
        terminal.shows(f"Flags: {STAR}")
        terminal.keys("C-u", "Enter")
        soon(lambda: desk.phone.ids(STARRED) == [])


def test_newsboat_marks_a_feed_read_but_not_what_came_since(desk: Desk) -> None:
    with desk.newsboat.at_terminal() as terminal:
        _open_feed_a(terminal)
        (late,) = arrive(desk.phone.reader.database, "a", "late")
        terminal.keys("A")
        soon(lambda: desk.phone.unread("feed/a") == {late})
        assert len(desk.phone.unread("feed/b")) == 1


def _open_feed_a(terminal: newsboat.Terminal) -> None:
    """The list of feeds is loaded, then the first feed's list of items is opened."""
    terminal.shows("A feed")
    # No lists of feedhq.org, which newsboat requests with the reader's token unless its configuration says
    # no.
    terminal.shows("2 total")
    terminal.keys("R")
    terminal.shows("(3/3)")
    terminal.keys("Enter")
    terminal.shows("Title 1")
