"""Liferea 1.14 against the reader: it lists, reads, marks, stars and marks all, and sees what is new.

It runs on a display of its own. Its menu's actions are called, and what it has is read from its database.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rss_pipeline.web.authority import Authority
from rss_pipeline_tests.api.google_reader.phone import Phone, arrive
from rss_pipeline_tests.storage.values import change, register, spec
from rss_pipeline_tests.support.clients import liferea
from rss_pipeline_tests.support.clients.liferea import Liferea
from rss_pipeline_tests.support.reader import Reader, reader_settings, served
from rss_pipeline_tests.support.up import free_port
from rss_pipeline_tests.support.waiting import soon

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(liferea.MISSING), reason=f"not installed: {', '.join(liferea.MISSING)}"),
]
STARRED = "user/-/state/com.google/starred"


@dataclass(frozen=True, slots=True)
class Desk:
    """Liferea, and the phone of the same user, by which a test sees what the server has."""

    liferea: Liferea
    phone: Phone
    numbers: list[int]

    def titles(self) -> list[str]:
        return [headline.title for headline in self.liferea.headlines()]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    port = free_port()
    settings = reader_settings(tmp_path / "home", reader_hosts=(Authority("127.0.0.1", port),))
    with Reader.on(settings) as reader, served(reader.app, port=port):
        database = reader.database
        register(database, spec("a"), spec("b"))
        phone = Phone.of_new_user(reader, "ann")
        phone.subscribe("a", folder="News")
        phone.subscribe("b")
        numbers = arrive(database, "a", "1", "2", "3", link="https://a.example/x")
        arrive(database, "b", "4")
        # Liferea looks for a feed's icon at its page, and no test requests anything beyond this machine.
        change(database, "UPDATE feeds SET link = ?", f"http://127.0.0.1:{port}/")
        url = f"http://127.0.0.1:{port}/greader"
        yield Desk(
            Liferea(tmp_path / "liferea", url=url, name="ann", password=phone.password), phone, numbers
        )


def test_liferea_lists_and_reads_the_items_of_all_feeds_and_those_that_come(desk: Desk) -> None:
    with desk.liferea.running() as running:
        soon(lambda: desk.titles() == ["Title 1", "Title 2", "Title 3", "Title 4"])
        first, *_ = running.headlines()
        assert first.link == "https://a.example/x"
        assert "<p>1</p>" in first.text
        arrive(desk.phone.reader.database, "a", "5")
        running.activate("update-all")
        soon(lambda: "Title 5" in desk.titles())


def test_liferea_marks_and_stars_an_item_and_marks_a_feed_read(desk: Desk) -> None:
    phone = desk.phone
    with desk.liferea.running() as running:
        soon(lambda: len(desk.titles()) == 4)
        before = phone.unread()
        running.activate("next-unread-item")
        soon(lambda: len(phone.unread()) == 3)
        running.activate("toggle-selected-item-flag")
        soon(lambda: len(phone.ids(STARRED)) == 1)
        assert set(phone.ids(STARRED)) == before - phone.unread()
        running.activate("toggle-selected-item-read-status")
        soon(lambda: phone.unread() == before)
        running.activate("toggle-selected-item-flag")
        soon(lambda: phone.ids(STARRED) == [])
        (late,) = arrive(phone.reader.database, "a", "late")
        running.activate("mark-all-feeds-read")
        soon(lambda: phone.unread() == {late})
