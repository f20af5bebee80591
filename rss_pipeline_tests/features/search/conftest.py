"""A database with feeds, the users Ann and Bob, and an index of it."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.features.search.index_build import IndexWork, bring_up_to_date
from rss_pipeline.features.search.index_file import IndexFile, open_to_write
from rss_pipeline.features.search.search_query import parse
from rss_pipeline.features.search.service import Order, Results, Search
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline_tests.storage.subscriptions.readers import add_user, subscribe
from rss_pipeline_tests.storage.values import NOW, item, register, spec, visit
from rss_pipeline_tests.support.databases import migrated


@dataclass
class Library:
    """Items that come in, and searches of them."""

    database: Database
    file: IndexFile

    def arrive(self, feed: str, guid: str, content: str = "", **fields: Any) -> None:
        """A new item of a feed; nothing is indexed yet."""
        fields = {"title": f"Title of {guid}", **fields}
        visit(self.database, [item(guid, content_html=content, **fields)], id=feed)

    def index(self) -> IndexWork:
        return bring_up_to_date(self.file, self.database, now=NOW)

    def search(self, text: str, *, user: str = "ann", **fields: Any) -> Results:
        return Search(
            open_index=lambda: nullcontext(self.file),
            read=self.read,
            user_id=user,
            query=parse(text, today=NOW.date()),
            **fields,
        ).results()

    def read(self, *statements: Statement) -> list[Result]:
        return self.database.batch(statements)

    def found(self, text: str, *, user: str = "ann", order: Order = "date", limit: int = 50) -> list[str]:
        """The guids of all pages of a search."""
        guids: list[str] = []
        key = None
        while True:
            page = self.search(text, user=user, order=order, limit=limit, key=key)
            guids += self._guids([each.item.id for each in page.found])
            key = page.next_key
            if key is None:
                return guids

    def _guids(self, ids: Sequence[str]) -> list[str]:
        known = {row["id"]: row["guid"] for row in self.database.query("SELECT id, guid FROM items").rows}
        return [known[id] for id in ids]


def new_library(database: Database, file: IndexFile) -> Library:
    """Ann subscribes to the feeds `news` and `blog`, Bob `news` and `secret`."""
    register(database, *map(spec, ("news", "blog", "secret")))
    for user, feeds in (("ann", ("news", "blog")), ("bob", ("news", "secret"))):
        add_user(database, user)
        subscribe(database, user, *feeds)
    return Library(database, file)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    database = migrated(tmp_path / "rss.sqlite")
    with open_to_write(tmp_path / "search.sqlite") as file:
        yield new_library(database, file)
    database.close()
