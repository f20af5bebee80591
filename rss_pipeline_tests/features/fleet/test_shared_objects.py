"""The mark by which a worker knows the object store of the main machine."""

from pathlib import Path

import pytest

from rss_pipeline.features.fleet.membership import has_mark, mark
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline_tests.features.fleet.machines import main


def test_a_store_is_the_main_machines_if_it_has_the_mark_of_its_newest_start(tmp_path: Path) -> None:
    store, other = FolderStore(tmp_path / "objects"), FolderStore(tmp_path / "other")
    assert not has_mark(store, main())
    mark(store, main())
    assert has_mark(store, main())
    assert not has_mark(other, main())
    mark(other, main(incarnation="b"))
    assert not has_mark(other, main()), "of another fleet"
    copy = pytest.importorskip("rss_pipeline.features.copy.service")
    assert list(copy.copied_keys(store)) == []
