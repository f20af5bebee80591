"""The embedded object store's own errors, and what a kill leaves behind."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rss_pipeline.errors import ObjectStoreUnavailable, StorageRejected
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.objects import MAX_METADATA_BYTES
from rss_pipeline_tests.storage.conftest import nobody


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def store(root: Path) -> FolderStore:
    return FolderStore(root)


def put(store: FolderStore, key: str = "a/b.xml", body: bytes | Path = b"body") -> bool:
    return store.put(key, body, content_type="text/xml", metadata={"n": "1"})


def leftovers(root: Path) -> list[Path]:
    return list((root / ".incoming").iterdir())


@contextmanager
def a_disk_with_room_for(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes: a write fails as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_person_finds_a_body_under_its_key(store: FolderStore, root: Path) -> None:
    put(store, "backups/a-feed/2026-02-18T08:30:00Z.xml")
    path = root / "backups/a-feed/2026-02-18T08:30:00Z.xml"
    assert path.read_bytes() == b"body"
    assert store.url("backups/a-feed/2026-02-18T08:30:00Z.xml") == path.as_uri()


def test_no_key_reaches_the_store_s_own_files(store: FolderStore, root: Path) -> None:
    for key in (".lock", ".metadata/a.json", ".incoming/x"):
        put(store, key)
    assert (root / ".lock").read_bytes() == b""
    assert leftovers(root) == []
    assert [info.key for info in store.list("")] == [".incoming/x", ".lock", ".metadata/a.json"]


def test_a_name_longer_than_a_file_s_is_refused(store: FolderStore) -> None:
    for key in ("x" * 251, "語" * 30):
        with pytest.raises(StorageRejected, match="longer than a file name may be"):
            put(store, key)


def test_a_key_below_another_object_is_refused_and_harms_neither(store: FolderStore, root: Path) -> None:
    put(store, "a")
    put(store, "b/c")
    for key in ("a/b", "b"):
        with pytest.raises(StorageRejected):
            put(store, key)
    assert [info.key for info in store.list("")] == ["a", "b/c"]
    assert leftovers(root) == []


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("not a folder")
    with pytest.raises(ObjectStoreUnavailable, match="is writable and the disk has room") as caught:
        FolderStore(tmp_path / "var" / "objects")
    assert str(tmp_path / "var") in str(caught.value)


def test_a_folder_that_vanished_is_named_and_not_made_anew(store: FolderStore, root: Path) -> None:
    root.rename(root.with_name("unmounted"))
    for attempt in (lambda: put(store), store.probe):
        with pytest.raises(ObjectStoreUnavailable) as caught:
            attempt()
        assert str(root) in str(caught.value)
    assert not root.exists()


def test_a_folder_one_may_not_write_is_named_by_put_and_probe(public_folder: Path) -> None:
    root = public_folder / "objects"
    store = FolderStore(root)
    put(store)
    (root / ".lock").chmod(0o644)
    for folder in (root, root / "a", root / ".incoming"):
        folder.chmod(0o555)
    with nobody():
        for attempt in (lambda: put(store), lambda: put(store, "new/b"), store.probe):
            with pytest.raises(ObjectStoreUnavailable, match="Permission denied") as caught:
                attempt()
            assert str(root) in str(caught.value)
            assert "check that" in str(caught.value)
        assert list(store.delete_many(["a/b.xml"])) == ["a/b.xml"]
    for folder in (root, root / "a", root / ".incoming"):
        folder.chmod(0o755)


def test_the_probe_sees_that_bodies_cannot_be_written(public_folder: Path) -> None:
    store = FolderStore(public_folder / "objects")
    (public_folder / "objects").chmod(0o555)
    (public_folder / "objects" / ".incoming").chmod(0o777)
    with nobody(), pytest.raises(ObjectStoreUnavailable, match="not writable"):
        store.probe()
    (public_folder / "objects").chmod(0o755)


def test_a_full_disk_leaves_nothing_of_the_object(store: FolderStore, root: Path, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * 100_000)
    with a_disk_with_room_for(10_000):
        for body in (b"x" * 100_000, large):
            with pytest.raises(ObjectStoreUnavailable, match="the disk has room"):
                put(store, body=body)
        with pytest.raises(ObjectStoreUnavailable):
            store.probe()
        assert put(store, "small") is True
    assert [info.key for info in store.list("")] == ["small"]
    assert leftovers(root) == []


def test_a_full_disk_leaves_what_was_there_before(store: FolderStore, root: Path) -> None:
    put(store, body=b"before")
    with a_disk_with_room_for(10_000), pytest.raises(ObjectStoreUnavailable):
        put(store, body=b"x" * 100_000)
    body, info = store.get("a/b.xml") or pytest.fail("gone")
    assert (body, info.metadata) == (b"before", {"n": "1"})


def test_a_body_with_a_file_that_is_gone_is_an_outage_and_leaves_nothing(
    store: FolderStore, root: Path, tmp_path: Path
) -> None:
    with pytest.raises(ObjectStoreUnavailable, match="spooled"):
        put(store, body=tmp_path / "spooled")
    assert leftovers(root) == []
    assert list(store.list("")) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from rss_pipeline.storage.backends.folder.backend import FolderStore

replaced = []
replace = Path.replace

def replace_once(self, target):
    if len(replaced) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    replaced.append(target)
    return replace(self, target)

store = FolderStore(Path(sys.argv[1]))
(store._bodies / "a").mkdir()
(store._metadata / "a").mkdir()
Path.replace = replace_once
store.put("a/b.xml", b"killed", content_type="text/xml", metadata={"n": "killed"}, only_if_absent=True)
"""


@pytest.mark.parametrize("renames", [0, 1])
def test_a_kill_before_the_body_s_rename_leaves_the_object_absent(root: Path, renames: int) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(root), str(renames)], check=False)
    assert killed.returncode == -signal.SIGKILL
    store = FolderStore(root)
    assert store.head("a/b.xml") is None
    assert list(store.list("")) == []
    assert store.put(
        "a/b.xml", b"again", content_type="text/xml", metadata={"n": "again"}, only_if_absent=True
    )
    body, info = store.get("a/b.xml") or pytest.fail("gone")
    assert (body, info.metadata) == (b"again", {"n": "again"})


def test_a_copy_onto_itself_renews_an_old_object(store: FolderStore, root: Path) -> None:
    put(store)
    long_ago = datetime.now(UTC) - timedelta(days=100)
    os.utime(root / "a" / "b.xml", (long_ago.timestamp(), long_ago.timestamp()))
    store.copy("a/b.xml", "a/b.xml")
    info = store.head("a/b.xml") or pytest.fail("gone")
    assert datetime.now(UTC) - info.modified < timedelta(minutes=1)
    assert info.metadata == {"n": "1"}


def test_four_kilobytes_of_metadata_fit(store: FolderStore) -> None:
    room = MAX_METADATA_BYTES - len("text/plain") - len("name")
    store.put("a", b"", content_type="text/plain", metadata={"name": "x" * room})
    info = store.head("a") or pytest.fail("gone")
    assert len(info.metadata["name"]) == room


def test_a_folder_copied_without_its_metadata_still_gives_its_bodies(store: FolderStore, root: Path) -> None:
    put(store)
    (root / ".metadata" / "a" / "b.xml.json").unlink()
    body, info = store.get("a/b.xml") or pytest.fail("gone")
    assert (body, dict(info.metadata)) == (b"body", {})


def folders(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}


def test_deleted_bodies_leave_no_empty_folders(store: FolderStore, root: Path) -> None:
    bare = folders(root)
    keys = [f"images/{feed}/{item}/{n}.png" for feed in "ab" for item in "xy" for n in range(2)]
    for key in keys:
        put(store, key)
    assert store.delete_many(keys[:3]) == {}
    assert folders(root) - bare == {
        f"{above}images{below}"
        for above in ("", ".metadata/")
        for below in ("", "/a", "/a/y", "/b", "/b/x", "/b/y")
    }
    store.delete_many(keys)
    assert folders(root) == bare
    put(store, keys[0])
    assert store.head(keys[0]) is not None


def test_what_a_killed_delete_left_goes_with_the_next_one(store: FolderStore, root: Path) -> None:
    bare = folders(root)
    put(store, "images/a/x/0.png")
    (root / "images/a/x/0.png").unlink()
    store.delete_many(["images/a/x/0.png"])
    assert folders(root) == bare
    assert list((root / ".metadata").iterdir()) == []


def test_puts_and_deletes_in_one_folder_do_not_disturb_each_other(store: FolderStore) -> None:
    def puts(name: str) -> None:
        for _ in range(60):
            assert store.put(f"f/g/{name}", b"x", content_type="text/plain")
            assert store.delete_many([f"f/g/{name}"]) == {}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(puts, "abcdefgh"))
    assert list(store.list("")) == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_killed_processes_left_half_written_is_swept_when_it_is_old(
    store: FolderStore, root: Path, dry_run: bool
) -> None:
    old, young = root / ".incoming" / "old", root / ".incoming" / "young"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    before = datetime.now(UTC) - timedelta(hours=1)
    assert store.sweep(before=before, dry_run=dry_run) == 1
    assert (old.exists(), young.exists()) == (dry_run, True)
