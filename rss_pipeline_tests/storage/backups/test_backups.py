"""Backups: the document as served, and with it what a replay needs."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.errors import BackupUnreadable, StorageRejected
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backups import backups
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.storage.values import NOW, document
from rss_pipeline_tests.support.feeds import make_feed

FEED = make_feed("a", "https://a.example/a", "a.example", charset="cp932")
BODY = b"\xef\xbb\xbf<?xml version='1.0'?>\r\n<rss>\0\xff</rss>"
SECOND = timedelta(seconds=1)


@pytest.fixture
def spooled(tmp_path: Path) -> Path:
    path = tmp_path / "spooled"
    path.write_bytes(BODY)
    return path


def test_a_backup_is_the_document_byte_for_byte_under_its_second(objects: ObjectStore, spooled: Path) -> None:
    key = backups.put_backup(objects, FEED, document(spooled, at=NOW + 0.9 * SECOND))
    assert key == "backups/a/2026-02-18T08:30:00Z.xml"
    body, info = objects.get(key) or pytest.fail("gone")
    assert (body, info.content_type) == (BODY, "application/xml")


def test_what_a_replay_needs_comes_back(objects: ObjectStore, spooled: Path) -> None:
    taken = document(
        spooled,
        at=NOW,
        content_hash="abc",
        etag='W/"日本-gzip"',
        last_modified="Tue, 17 Feb 2026 10:00:00 GMT",
        requested_url="https://a.example/a?x=1&y=é",
        url="https://cdn.example/a",
        content_type='text/xml; charset="x\\y"',
    )
    key = backups.put_backup(objects, FEED, taken)
    info = objects.head(key) or pytest.fail("gone")
    assert backups.describe_backup(info) == backups.Backup(
        key=key,
        content_type='text/xml; charset="x\\y"',
        status=200,
        etag='W/"日本-gzip"',
        last_modified="Tue, 17 Feb 2026 10:00:00 GMT",
        requested_url="https://a.example/a?x=1&y=é",
        url="https://cdn.example/a",
        fetched_at=NOW,
        hint="cp932",
        content_hash="abc",
        item_key="guid",
        are_links_shared=True,
        are_abouts_shared=True,
        is_keep_known=True,
    )


def test_a_document_without_headers_has_a_description_too(objects: ObjectStore, spooled: Path) -> None:
    bare = make_feed("a", "https://a.example/a", "a.example")
    key = backups.put_backup(objects, bare, document(spooled, content_type=None))
    known = backups.describe_backup(objects.head(key) or pytest.fail("gone"))
    assert (known.content_type, known.etag, known.last_modified, known.hint) == (None, None, None, None)


def test_where_a_second_is_taken_the_next_one_serves(objects: ObjectStore, spooled: Path) -> None:
    taken = [backups.put_backup(objects, FEED, document(spooled, content_hash=f"{n}")) for n in range(3)]
    assert [key[-11:] for key in taken] == [":30:00Z.xml", ":30:01Z.xml", ":30:02Z.xml"]
    described = [backups.describe_backup(objects.head(key) or pytest.fail("gone")) for key in taken]
    assert [known.content_hash for known in described] == ["0", "1", "2"]
    assert {known.fetched_at for known in described} == {NOW}


LONG = ("etag", "last_modified", "url", "content_type")


def test_a_standing_clock_is_reported_after_sixty_backups(objects: ObjectStore, spooled: Path) -> None:
    for n in range(60):
        objects.put(backups.backup_key("a", NOW + timedelta(seconds=n)), b"", content_type="text/xml")
    with pytest.raises(StorageRejected, match="has the clock stopped"):
        backups.put_backup(objects, FEED, document(spooled))


@pytest.mark.parametrize(
    ("long", "left"),
    [
        ({"etag": 5_000}, {"last_modified", "url", "content_type"}),
        ({"etag": 2_000, "last_modified": 1_000, "url": 3_000}, {"url", "content_type"}),
        ({"etag": 9, "last_modified": 9, "url": 9_000, "content_type": 1_000}, {"content_type"}),
        ({"etag": 9, "last_modified": 9, "url": 9, "content_type": 90_000}, set()),
        ({"etag": 9, "last_modified": 9, "url": 900, "content_type": 900}, set(LONG)),
    ],
)
def test_of_headers_too_long_to_travel_the_etag_is_left_out_first(
    long: dict[str, int], left: set[str], tmp_path: Path, spooled: Path
) -> None:
    """In a folder only: R2 takes 8 KB of metadata, its simulator 2 KB."""
    objects = FolderStore(tmp_path / "objects")
    values: dict[str, Any] = {name: "http://x.example/".ljust(long.get(name, 0), "x") for name in LONG}
    taken = document(spooled, **values)
    info = objects.head(backups.put_backup(objects, FEED, taken))
    assert info is not None
    known = backups.describe_backup(info)
    kept = {name for name in LONG if getattr(known, name) == getattr(taken.response, name)}
    assert kept == left
    assert known.requested_url == taken.response.requested_url
    if "url" not in left:
        assert known.url == known.requested_url, "links are resolved against it"


def test_a_feed_s_backups_are_listed_oldest_first_and_no_other_feed_s(
    objects: ObjectStore, spooled: Path
) -> None:
    for hours in (30, 0, 5, -1):
        backups.put_backup(objects, FEED, document(spooled, at=NOW + hours * timedelta(hours=1)))
    other = make_feed("ab", "https://b.example/", "b.example")
    backups.put_backup(objects, other, document(spooled))
    keys = [info.key for info in backups.list_backups(objects, "a")]
    assert [key.split("/")[2] for key in keys] == [
        "2026-02-18T07:30:00Z.xml",
        "2026-02-18T08:30:00Z.xml",
        "2026-02-18T13:30:00Z.xml",
        "2026-02-19T14:30:00Z.xml",
    ]


def test_after_a_crash_the_newest_backup_serves_where_it_is_of_the_same_bytes(
    objects: ObjectStore, spooled: Path
) -> None:
    assert backups.newest_same_backup(objects, "a", "new") is None
    backups.put_backup(objects, FEED, document(spooled, content_hash="old"))
    key = backups.put_backup(objects, FEED, document(spooled, at=NOW + SECOND, content_hash="new"))
    found = backups.newest_same_backup(objects, "a", "new")
    assert found is not None
    assert (found.key, found.fetched_at) == (key, NOW + SECOND)
    assert backups.newest_same_backup(objects, "a", "old") is None
    assert backups.newest_same_backup(objects, "ab", "new") is None


def test_a_backup_that_someone_put_there_by_hand_is_not_taken_for_ours(objects: ObjectStore) -> None:
    objects.put("backups/a/2026-02-18T08:30:00Z.xml", BODY, content_type="text/xml")
    assert backups.newest_same_backup(objects, "a", "hash") is None


KNOWN = {
    "content_type": None,
    "status": 200,
    "etag": None,
    "last_modified": None,
    "requested_url": "https://a.example/a",
    "url": "https://a.example/a",
    "fetched_at": "2026-02-18T08:30:00Z",
    "hint": None,
    "content_hash": "abc",
}
"""The metadata of backups before they recorded the item key."""


def _described(objects: ObjectStore, metadata: dict[str, str]) -> backups.Backup:
    objects.put("backups/a/1.xml", BODY, content_type="text/xml", metadata=metadata)
    return backups.describe_backup(objects.head("backups/a/1.xml") or pytest.fail("gone"))


def test_the_item_key_in_force_travels_with_a_backup(objects: ObjectStore, spooled: Path) -> None:
    key = backups.put_backup(objects, replace(FEED, key="title+date"), document(spooled))
    known = backups.describe_backup(objects.head(key) or pytest.fail("gone"))
    assert known.item_key == "title+date"


@pytest.mark.parametrize("keep_days", [None, 30, 36_500])
def test_how_long_items_are_kept_travels_with_a_backup(
    objects: ObjectStore, spooled: Path, keep_days: int | None
) -> None:
    key = backups.put_backup(objects, replace(FEED, keep_days=keep_days), document(spooled))
    known = backups.describe_backup(objects.head(key) or pytest.fail("gone"))
    assert (known.keep_days, known.is_keep_known) == (keep_days, True)


@pytest.mark.parametrize("keep", ["forever", True, -1, 10**9, 1.5, []])
def test_a_keep_that_no_version_of_ours_wrote_is_not_known(objects: ObjectStore, keep: object) -> None:
    known = _described(objects, {backups.METADATA_NAME: json.dumps({**KNOWN, "keep": keep})})
    assert (known.keep_days, known.is_keep_known) == (None, False)


def test_a_backup_of_before_is_read_and_so_is_one_of_a_later_version(objects: ObjectStore) -> None:
    before = _described(objects, {backups.METADATA_NAME: json.dumps(KNOWN)})
    assert (before.item_key, before.fetched_at, before.content_hash) == (None, NOW, "abc")
    assert not before.are_links_shared
    assert not before.is_keep_known
    later = {**KNOWN, "key": "a key of the future", "sky": "blue"}
    assert _described(objects, {backups.METADATA_NAME: json.dumps(later)}) == before


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, "has no metadata `rss-pipeline`"),
        ({"task-id": "1"}, "has no metadata `rss-pipeline`"),
        ({backups.METADATA_NAME: "not JSON"}, "metadata cannot be read"),
        ({backups.METADATA_NAME: "[]"}, "metadata cannot be read"),
        ({backups.METADATA_NAME: "{}"}, "metadata cannot be read"),
        ({backups.METADATA_NAME: json.dumps({**KNOWN, "fetched_at": "noon"})}, "noon"),
        ({backups.METADATA_NAME: json.dumps({**KNOWN, "fetched_at": "2026-02-18T08:30:00"})}, "no zone"),
        ({backups.METADATA_NAME: json.dumps({**KNOWN, "hint": 7})}, "`hint` is 7"),
    ],
)
def test_foreign_metadata_is_an_error_in_words(
    objects: ObjectStore, metadata: dict[str, str], said: str
) -> None:
    with pytest.raises(BackupUnreadable, match=said) as told:
        _described(objects, metadata)
    assert "backups/a/1.xml" in str(told.value)
