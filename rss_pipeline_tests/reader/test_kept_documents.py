"""Backups of a feed as its operator looks at them."""

from datetime import timedelta
from pathlib import Path

import pytest

from rss_pipeline.reader.kept_documents import KeptDocument, kept_document, kept_documents
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backups.backups import put_backup
from rss_pipeline_tests.storage.values import NOW, document
from rss_pipeline_tests.support.feeds import make_feed

FEED = make_feed("a", "https://a.example/a", "a.example")


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    """Five backups of a, a minute apart; one of another feed, with an id that begins alike."""
    store = FolderStore(tmp_path / "objects")
    path = tmp_path / "spooled"
    for number in range(5):
        path.write_bytes(b"<rss/>" + b" " * number)
        put_backup(
            store, FEED, document(path, at=NOW + timedelta(minutes=number), url="https://cdn.example/")
        )
    put_backup(store, make_feed("a-b", "https://b.example/", "b.example"), document(path, at=NOW))
    return store


def test_backups_are_listed_newest_first_in_parts_and_say_what_they_are(store: FolderStore) -> None:
    found: list[KeptDocument] = []
    name: str | None = None
    for size in (2, 2, 1):
        part = kept_documents(store, "a", before=name, limit=2)
        assert len(part.documents) == size
        found += part.documents
        name = part.next_name
    assert name is None
    assert [each.taken_at for each in found] == [NOW + timedelta(minutes=n) for n in (4, 3, 2, 1, 0)]
    assert [each.size for each in found] == [10, 9, 8, 7, 6]
    assert {each.about and each.about.url for each in found} == {"https://cdn.example/"}


def test_a_document_comes_back_as_it_was_served(store: FolderStore) -> None:
    [newest, *_] = kept_documents(store, "a", limit=9).documents
    assert kept_document(store, "a", newest.name) == b"<rss/>    "


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a-b/2026-02-18T08:30:00Z.xml", "2026-02-18T08:31:30Z.xml", "x.xml", "\0"]
)
def test_what_is_no_backup_of_the_feed_is_not_found(store: FolderStore, name: str) -> None:
    assert kept_document(store, "a", name) is None


def test_a_backup_with_metadata_that_cannot_be_read_is_listed_all_the_same(store: FolderStore) -> None:
    store.put("backups/a/2026-02-18T09:00:00Z.xml", b"<rss/>", content_type="application/xml")
    store.put("backups/a/other.txt", b"", content_type="text/plain")
    newest, *rest = kept_documents(store, "a", limit=9).documents
    assert (newest.name, newest.about) == ("2026-02-18T09:00:00Z.xml", None)
    assert len(rest) == 5
