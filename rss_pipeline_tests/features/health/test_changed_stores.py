"""`doctor` after a change of stores, and for feeds that users brought: advice that fits."""

from pathlib import Path

import pytest

from rss_pipeline.features.health import sql as diagnostics
from rss_pipeline.features.health.checks import CHECKS
from rss_pipeline.features.health.doctor import examine
from rss_pipeline.features.health.model import Look
from rss_pipeline.features.health.store_checks import (
    backups_there,
    check_stores,
    copy_of_home,
    copy_of_objects,
    missing_images,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backups.expiry import Orphans, Unmatched
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.healthy_home import KEY, fill, healthy_home
from rss_pipeline_tests.support.pipeline import NOON

BUCKET = {
    "S3_ENDPOINT_URL": "https://s3.example",
    "S3_BUCKET": "b",
    "S3_ACCESS_KEY_ID": "k",
    "S3_SECRET_ACCESS_KEY": "s",
}
DATABASE = {"DATABASE_URL": "postgresql://u@h/d"}


def of(home: Path, **environ: str) -> Settings:
    return Settings.from_environ({"RSS_PIPELINE_HOME": str(home), **environ}, cwd=home.parent)


def test_a_store_of_objects_that_was_changed_is_filled_by_a_copy_and_no_rule_is_suspected(
    tmp_path: Path,
) -> None:
    home = healthy_home(tmp_path)
    database = migrated(tmp_path / "filled.sqlite")
    fill(database)
    empty = FolderStore(tmp_path / "empty")
    loss = diagnostics.backup_loss(database, empty, limit=5)
    copy = copy_of_objects(of(home, **BUCKET), loss.lost_keys)
    assert copy == "rss-pipeline copy --from embedded --to sqlite+s3"
    missing = Orphans(missing=Unmatched(count=3, feeds=["news"]))
    for check in (backups_there(loss, copy=copy), backups_there(loss), missing_images(missing, "a")):
        assert check is not None
        assert check.state != "ok"
        assert "rule" not in check.sentences
        assert "`rss-pipeline copy" in check.fix
    assert backups_there(loss).found.startswith("The object store is empty, and ")
    # After the first new documents it is not empty, and the folder still has the others.
    empty.put("backups/other/2026-03-02T08:00:00Z.xml", b"<rss/>", content_type="application/xml")
    loss = diagnostics.backup_loss(database, empty, limit=5)
    assert "lacks what the folder in the home has" in backups_there(loss, copy=copy).found
    # One backup that is gone from where it was: there a rule may be too short.
    FolderStore(home / "objects").delete_many([KEY])
    assert copy_of_objects(of(home, **BUCKET), loss.lost_keys) is None
    assert "a lifecycle rule that is too short?" in backups_there(loss).fix
    database.close()


def test_a_database_that_was_changed_is_filled_by_a_copy(tmp_path: Path) -> None:
    home = healthy_home(tmp_path)
    assert copy_of_home(of(home)) is None
    to_postgres = copy_of_home(of(home, **DATABASE))
    assert to_postgres == "rss-pipeline copy --from embedded --to postgres+folder"
    both = copy_of_home(of(home, **DATABASE, **BUCKET))
    assert both == "rss-pipeline copy --from embedded --to postgres+s3"
    assert copy_of_home(of(tmp_path / "another", **DATABASE)) is None
    check = check_stores(has_items=False, has_objects=False, copy=both)
    assert check is not None
    assert (check.state, check.found) == ("warning", "they are empty")
    assert f"`{both}` brings" in check.fix
    lost = check_stores(has_items=False, has_objects=True, copy=None)
    assert lost is not None
    assert lost.state == "failure"
    assert "`rss-pipeline restore`" in lost.fix
    assert check_stores(has_items=True, has_objects=True, copy=both) is None
    assert check_stores(has_items=False, has_objects=False, copy=None) is None, "a new installation"


def test_a_database_file_that_is_lost_beside_its_backups_is_no_new_installation(tmp_path: Path) -> None:
    """Its users come back by a restore; a poll would begin without them."""
    home = healthy_home(tmp_path)

    def stores() -> list[tuple[str, bool]]:
        checks = examine({"RSS_PIPELINE_HOME": str(home)}, cwd=tmp_path, clock=lambda: NOON)
        return [
            (each.state, "`rss-pipeline restore`" in each.fix) for each in checks if each.name == "stores"
        ]

    assert stores() == []
    for file in home.glob("rss.sqlite*"):
        file.unlink()
    assert stores() == [("failure", True)]
    (home / "rss.sqlite").touch()
    assert stores() == [("failure", True)], "a copy that broke off"


@pytest.mark.parametrize(("listed", "names_the_file"), [(1, True), (0, False)])
def test_advice_for_a_feed_that_a_user_brought_does_not_name_feeds_yaml(
    tmp_path: Path, listed: int, names_the_file: bool
) -> None:
    database = migrated(tmp_path / "rss.sqlite")
    fill(database)
    for change in (
        "consecutive_failures = 5, last_error_kind = 'http_status'",
        "last_error_kind = 'gone'",
        "fetch_url = 'https://new.example/', consecutive_failures = 0, last_error_kind = NULL",
    ):
        database.query(f"UPDATE feeds SET listed = ?, {change}", [listed])
        looks = [
            Look(
                database=database,
                objects=lambda: FolderStore(tmp_path),
                settings=of(tmp_path),
                now=NOON,
                at_once=at_once,
            )
            for at_once in (True, False)
        ]
        names = {"feeds_answer", "feeds_not_gone", "feeds_not_moved"}
        found = [check.find(look) for look in looks for check in CHECKS if check.name in names]
        wrong = [each for each in found if each is not None and each.state != "ok"]
        assert len(wrong) == 2, "of `doctor` and of the UI"
        assert wrong[0].sentences == wrong[1].sentences
        for each in wrong:
            assert ("feeds.yaml" in each.fix) is names_the_file, each
    database.close()
