"""Items are read for the index from SQLite and from D1 alike, and found by it."""

from contextlib import nullcontext
from pathlib import Path

from rss_pipeline.features.search import sql
from rss_pipeline.features.search.index_build import IndexWork, bring_up_to_date
from rss_pipeline.features.search.index_file import IndexFile, open_to_write
from rss_pipeline.features.search.search_query import parse
from rss_pipeline.features.search.service import Search
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline_tests.storage.subscriptions.readers import add_user, subscribe
from rss_pipeline_tests.storage.values import NOW, change, item, register, spec, visit


def found(database: Database, file: IndexFile, text: str) -> list[str | None]:
    def read(*statements: Statement) -> list[Result]:
        return database.batch(statements)

    page = Search(open_index=lambda: nullcontext(file), read=read, user_id="ann", query=parse(text)).results()
    return [each.item.title for each in page.found]


def test_an_index_follows_either_store(database: Database, tmp_path: Path) -> None:
    register(database, spec("a"), spec("b"))
    add_user(database, "ann")
    subscribe(database, "ann", "a")
    for guid in "123":
        visit(database, [item(guid, content_html=f"<p>word 東京 n{guid}</p>")], id="a")
    visit(database, [item("4", content_html="word")], id="b")
    with open_to_write(tmp_path / "search.sqlite") as file:
        assert bring_up_to_date(file, database, now=NOW) == IndexWork(added=4, rebuilt=True)
        assert found(database, file, "word") == ["Title 3", "Title 2", "Title 1"]
        assert found(database, file, "東京 -n2") == ["Title 3", "Title 1"]
        change(database, "DELETE FROM items WHERE guid = '3'")
        visit(database, [item("5", content_html="word")], id="a")
        assert bring_up_to_date(file, database, now=NOW) == IndexWork(added=1)
        assert found(database, file, "word") == ["Title 5", "Title 2", "Title 1"]
        ends = sql.ends(database)
        assert sql.counts_by_feed(database, up_to=ends.arrived) == {"a": 3, "b": 1}


def test_a_page_of_items_ends_with_its_bytes(database: Database) -> None:
    register(database, spec("a"))
    for guid, size in (("1", 900_000), ("2", 10), ("3", 900_000)):
        visit(database, [item(guid, content_html="x" * size)], id="a")
    documents_of = sql.behind(database, 0, up_to=2**52)
    assert [len(each.html) for each in documents_of] == [
        sql.MOST_CHARACTERS,
        10,
        sql.MOST_CHARACTERS,
    ]
    assert sql.behind(database, documents_of[-1].arrived, up_to=2**52) == []
