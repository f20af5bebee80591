"""The promises of every `ObjectStore` (storage/objects.py). Nothing here knows which implementation it is."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rss_pipeline.errors import ObjectStoreUnavailable, StorageRejected
from rss_pipeline.storage.objects import MAX_METADATA_BYTES, ObjectStore

TEXT = "text/plain"


def put(objects: ObjectStore, key: str, body: bytes | Path = b"body", **metadata: str) -> bool:
    return objects.put(key, body, content_type=TEXT, metadata=metadata)


def keys(objects: ObjectStore, prefix: str) -> list[str]:
    return [info.key for info in objects.list(prefix)]


ODD_KEYS = [
    "plain.xml",
    "backups/host-feed-0123456789/2026-02-18T08:30:00Z.xml",
    "with space/ and more .txt",
    "100%/%2e%2e/%41",
    "what?/a#b/c&d=e+f",
    "日本語/中文/👩‍👩‍👧.jpg",
    ".hidden/.metadata/.incoming",
    "..almost/...",
    "quote\"'`/back\\slash/<angle>/{brace}|pipe",
    "tilde~/colon:/semi;/star*/bang!/at@/comma,",
    "-/--help",
    "e\u0301/é",
]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_any_key_keeps_its_own_body(objects: ObjectStore, key: str) -> None:
    put(objects, key, key.encode())
    put(objects, key + "x", b"neighbour")
    found = objects.get(key)
    assert found is not None
    assert (found[0], found[1].key) == (key.encode(), key)
    assert keys(objects, key) == [key, key + "x"]
    objects.copy(key, key + "y")
    assert objects.delete_many([key]) == {}
    assert objects.head(key) is None
    assert keys(objects, "") == [key + "x", key + "y"]
    copied = objects.get(key + "y")
    assert copied is not None
    assert copied[0] == key.encode()


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "..",
        "../a",
        "a/../b",
        "a/..",
        ".",
        "./a",
        "a/./b",
        "a\0b",
        "a\nb",
        "a\tb",
        "a\x1fb",
        "a\x85b",
        "a\u2028b",
        "a\uffffb",
        "\ud800",
        "x/" * 512 + "y",
    ],
)
def test_a_key_that_another_store_would_read_otherwise_is_refused(objects: ObjectStore, key: str) -> None:
    for attempt in (
        lambda: put(objects, key),
        lambda: objects.head(key),
        lambda: objects.get(key),
        lambda: objects.copy(key, "b"),
        lambda: objects.url(key),
    ):
        with pytest.raises(StorageRejected):
            attempt()
    assert keys(objects, "") == []


def test_a_key_has_at_most_1024_bytes(objects: ObjectStore) -> None:
    longest = "/".join(["x" * 127] * 8) + "y"
    assert len(longest) == 1024
    put(objects, longest)
    assert objects.head(longest) is not None
    with pytest.raises(StorageRejected, match="1,025 bytes"):
        put(objects, longest + "z")
    wide = "語" * 42 + "/"
    with pytest.raises(StorageRejected, match="1 to 1,024 fit"):
        put(objects, wide * 9 + "x")


def test_metadata_and_content_type_come_back(objects: ObjectStore) -> None:
    value = '{"etag":"\\"abc\\"","url":"https://example.org/?a=1&b=%20"} ~'
    objects.put("a", b"12345", content_type="application/xml; charset=x", metadata={"rss-pipeline": value})
    head = objects.head("a")
    got = objects.get("a")
    assert head is not None
    assert got is not None
    assert got == (b"12345", head)
    assert (head.key, head.size, head.content_type) == ("a", 5, "application/xml; charset=x")
    assert head.metadata == {"rss-pipeline": value}
    assert abs((datetime.now(UTC) - head.modified).total_seconds()) < 60


@pytest.mark.parametrize("name", ["", "Name", "a b", "a_b", "-a", "ä", "a\nb"])
def test_a_metadata_name_that_would_come_back_otherwise_is_refused(objects: ObjectStore, name: str) -> None:
    with pytest.raises(StorageRejected, match="a metadata name is of a-z, 0-9 and -"):
        objects.put("a", b"", content_type=TEXT, metadata={name: "1"})
    assert objects.head("a") is None


@pytest.mark.parametrize("value", ["", "a  b", "a,b", "'\"\\%41=;", "~" * 1_900])
def test_an_odd_value_of_metadata_comes_back(objects: ObjectStore, value: str) -> None:
    objects.put("a", b"", content_type=TEXT, metadata={"rss-pipeline-2": value})
    head = objects.head("a") or pytest.fail("gone")
    assert head.metadata == {"rss-pipeline-2": value}


@pytest.mark.parametrize("value", [" a", "a ", " "])
def test_blanks_that_a_header_would_lose_are_refused(objects: ObjectStore, value: str) -> None:
    with pytest.raises(StorageRejected, match="loses the blanks"):
        put(objects, "a", name=value)
    with pytest.raises(StorageRejected, match="loses the blanks"):
        objects.put("a", b"", content_type=value)
    with pytest.raises(StorageRejected, match="has a content type"):
        objects.put("a", b"", content_type="")
    assert objects.head("a") is None


def test_without_metadata_there_is_none(objects: ObjectStore) -> None:
    objects.put("a", b"", content_type=TEXT)
    head = objects.head("a")
    assert head is not None
    assert (head.size, dict(head.metadata)) == (0, {})


@pytest.mark.parametrize("value", ["ü", "日本", "line\nbreak", "\x7f", "\0"])
def test_metadata_that_no_header_can_carry_is_refused(objects: ObjectStore, value: str) -> None:
    with pytest.raises(StorageRejected, match="printable ASCII only"):
        put(objects, "a", name=value)
    with pytest.raises(StorageRejected, match="printable ASCII only"):
        objects.put("a", b"", content_type=value)
    assert objects.head("a") is None


def test_more_than_four_kilobytes_of_metadata_are_refused(objects: ObjectStore) -> None:
    """R2 takes 8,192 bytes and a folder any; Miniflare alone ends at 2,048, with a 500."""
    room = MAX_METADATA_BYTES - len(TEXT) - len("name")
    with pytest.raises(StorageRejected, match="4,097 bytes of metadata; at most 4,096 fit"):
        put(objects, "b", name="x" * (room + 1))
    assert objects.head("b") is None


@pytest.mark.parametrize("body", [b"", b"\0\xff\r\n", bytes(range(256)) * 8192])
def test_a_body_comes_from_bytes_or_from_a_file(objects: ObjectStore, tmp_path: Path, body: bytes) -> None:
    file = tmp_path / "spooled"
    file.write_bytes(body)
    assert put(objects, "bytes", body) is True
    assert put(objects, "file", file) is True
    assert [objects.get(key)[0] for key in ("bytes", "file")] == [body, body]  # type: ignore[index]
    assert file.read_bytes() == body


def test_a_file_that_is_not_there_is_our_error_and_stores_nothing(
    objects: ObjectStore, tmp_path: Path
) -> None:
    with pytest.raises(ObjectStoreUnavailable, match="gone"):
        put(objects, "a", tmp_path / "gone")
    assert objects.head("a") is None


def test_a_second_put_replaces_body_type_and_metadata(objects: ObjectStore) -> None:
    put(objects, "a", b"first", one="1")
    assert objects.put("a", b"second", content_type="image/png", metadata={"two": "2"}) is True
    body, info = objects.get("a") or pytest.fail("gone")
    assert (body, info.size, info.content_type, info.metadata) == (b"second", 6, "image/png", {"two": "2"})


def test_a_key_that_was_to_be_absent_is_left_as_it_is(objects: ObjectStore) -> None:
    first = objects.put("a", b"first", content_type=TEXT, metadata={"n": "1"}, only_if_absent=True)
    second = objects.put("a", b"second", content_type=TEXT, metadata={"n": "2"}, only_if_absent=True)
    body, info = objects.get("a") or pytest.fail("gone")
    assert (first, second, body, info.metadata) == (True, False, b"first", {"n": "1"})


def test_of_twenty_at_once_one_wins_with_its_own_body_and_metadata(objects: ObjectStore) -> None:
    def race(n: int) -> bool:
        return objects.put("a/b", b"%d" % n, content_type=TEXT, metadata={"n": str(n)}, only_if_absent=True)

    with ThreadPoolExecutor(20) as threads:
        won = list(threads.map(race, range(20)))
    body, info = objects.get("a/b") or pytest.fail("gone")
    assert [n for n, winner in enumerate(won) if winner] == [int(body)]
    assert info.metadata == {"n": body.decode()}


def test_overwriting_at_once_never_mixes_two(objects: ObjectStore) -> None:
    def write(n: int) -> None:
        objects.put("a", b"%d" % n, content_type=TEXT, metadata={"n": str(n)})

    def read(_: int) -> tuple[str, str]:
        body, info = objects.get("a") or pytest.fail("gone")
        return body.decode(), info.metadata["n"]

    write(0)
    with ThreadPoolExecutor(8) as threads:
        writing = [threads.submit(write, n) for n in range(40)]
        seen = list(threads.map(read, range(40)))
        for future in writing:
            future.result()
    assert all(body == n for body, n in seen)


def test_what_is_absent_is_none(objects: ObjectStore) -> None:
    put(objects, "a/b/c")
    for key in ("x", "a/x", "a/b/c/d", "a", "a/b"):
        assert objects.head(key) is None
        assert objects.get(key) is None


def test_the_key_of_a_folder_is_absent_to_put_and_delete_too(objects: ObjectStore) -> None:
    put(objects, "a/b", b"kept")
    assert objects.delete_many(["a"]) == {}
    assert keys(objects, "") == ["a/b"]


def test_a_copy_keeps_body_type_and_metadata(objects: ObjectStore) -> None:
    objects.put("a", b"body", content_type="image/gif", metadata={"n": "1"})
    put(objects, "b/c", b"other")
    objects.copy("a", "b/c")
    body, info = objects.get("b/c") or pytest.fail("gone")
    assert (body, info.content_type, info.metadata) == (b"body", "image/gif", {"n": "1"})
    assert objects.get("a") is not None


def test_a_copy_onto_itself_makes_it_new_again(objects: ObjectStore) -> None:
    objects.put("a", b"body", content_type="image/gif", metadata={"n": "1"})
    before = objects.head("a") or pytest.fail("gone")
    objects.copy("a", "a")
    body, after = objects.get("a") or pytest.fail("gone")
    assert after.modified >= before.modified
    assert (body, after.content_type, after.metadata) == (b"body", "image/gif", {"n": "1"})


def test_a_copy_of_nothing_is_a_key_error(objects: ObjectStore) -> None:
    with pytest.raises(KeyError, match="absent"):
        objects.copy("absent", "b")
    assert objects.head("b") is None


def test_a_prefix_lists_its_own_in_key_order_and_no_neighbours(objects: ObjectStore) -> None:
    mine = ["backups/a/1", "backups/a/10", "backups/a/2", "backups/a/2/x", "backups/a/é"]
    others = ["backups/ab/1", "backups/a.b", "backups/a-b/1", "backup", "images/a/1"]
    for key in reversed(mine[:3] + mine[4:] + others):
        put(objects, key, b"12")
    put(objects, "backups/a/3/x", b"12")
    assert keys(objects, "backups/a/") == sorted(
        ["backups/a/1", "backups/a/10", "backups/a/2", "backups/a/3/x", "backups/a/é"]
    )
    assert {info.size for info in objects.list("backups/a/")} == {2}
    assert keys(objects, "backups/a") == sorted(keys(objects, "backups/a"))
    assert set(keys(objects, "backups/a")) - set(keys(objects, "backups/a/")) == {
        "backups/a-b/1",
        "backups/a.b",
        "backups/ab/1",
    }
    assert keys(objects, "backups/a/1") == ["backups/a/1", "backups/a/10"]
    for absent in ("backups/x/", "backups/a/1/", "backups/a/1/y", "x", "/", "//", "backups//"):
        assert keys(objects, absent) == []
    for impossible in ("backups/a/1\n", "\0", "\ud800"):
        assert keys(objects, impossible) == []


def test_everything_is_listed_in_the_order_of_whole_keys(objects: ObjectStore) -> None:
    some = ["a/b", "a-b/c", "a.b", "a0", "a/b-c", "A", "é", "z/.a", "z/-"]
    for key in some:
        put(objects, key)
    assert keys(objects, "") == sorted(some)
    for place in (*some, "a/", "a/b-", "a/b0", "b", "~"):
        behind = [info.key for info in objects.list("", after=place)]
        assert behind == [key for key in sorted(some) if key > place], place
    assert [info.key for info in objects.list("a", after="a-b/c")] == ["a.b", "a/b", "a/b-c", "a0"]


@pytest.mark.slow
def test_more_objects_than_a_page_holds_are_listed_and_deleted(objects: ObjectStore) -> None:
    wanted = sorted(f"many/{n % 7}/{n}" for n in range(1_001))  # S3 lists 1,000 a page.
    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(lambda key: objects.put(key, b"", content_type=TEXT), wanted))
    put(objects, "many-more")
    assert keys(objects, "many/") == wanted
    assert objects.delete_many(iter(wanted)) == {}
    assert keys(objects, "") == ["many-more"]


def test_listing_while_deleting_misses_none(objects: ObjectStore) -> None:
    for n in range(30):
        put(objects, f"a/{n % 3}/{n}")
    for info in objects.list("a/"):
        assert objects.delete_many([info.key]) == {}
    assert keys(objects, "") == []


def test_to_delete_what_is_absent_is_no_error(objects: ObjectStore) -> None:
    put(objects, "a")
    assert objects.delete_many(["absent", "a", "a/b", "a"]) == {}
    assert objects.delete_many([]) == {}
    assert objects.head("a") is None


def test_a_key_that_cannot_be_deleted_is_reported_and_the_others_go(objects: ObjectStore) -> None:
    put(objects, "a")
    put(objects, "b")
    refused = objects.delete_many(["a", "../b", "b"])
    assert list(refused) == ["../b"]
    assert "`..`" in refused["../b"]
    assert keys(objects, "") == []


def test_a_probe_leaves_nothing_behind(objects: ObjectStore) -> None:
    objects.probe()
    assert keys(objects, "") == []
