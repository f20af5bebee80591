"""An embedded database that is empty beside backups is a loss, and no new installation."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from rss_pipeline.errors import DatabaseLost
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environ({"RSS_PIPELINE_HOME": str(tmp_path / "home")}, cwd=tmp_path)


@pytest.mark.parametrize("key", ["backups/a/2026-03-02T08:00:00Z.xml", "state/users/x.json"])
@pytest.mark.parametrize("is_there", [True, False], ids=["of 0 bytes", "not there"])
def test_an_empty_database_beside_backups_is_not_taken_for_a_new_one(
    settings: Settings, key: str, is_there: bool, invoke: Callable[..., Result]
) -> None:
    open_objects(settings).put(key, b"x", content_type="application/xml")
    if is_there:
        settings.database_path.touch()
    for _ in range(2):
        with pytest.raises(DatabaseLost, match=r"rss\.sqlite is empty, .*`rss-pipeline restore`.*--empty`"):
            open_database(settings).__enter__()
    with open_database(settings, is_restored=True) as database:
        assert database.query("SELECT id FROM feeds").rows == []
    with open_database(settings):
        pass


def test_images_and_topics_alone_are_of_no_database(settings: Settings) -> None:
    open_objects(settings).put("images/a/0/0.png", b"x", content_type="image/png")
    with open_database(settings):
        pass


def test_a_person_who_says_so_begins_with_an_empty_one(
    tmp_path: Path, invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.from_environ({}, cwd=tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(settings.home))
    open_objects(settings).put("backups/a/2026-03-02T08:00:00Z.xml", b"x", content_type="application/xml")
    for command in ("migrate", "status", "poll"):
        refused = invoke(command)
        assert refused.exit_code == 1
        assert "was probably lost" in refused.stderr
    assert invoke("migrate", "--empty").exit_code == 0
    assert invoke("migrate").exit_code == 0
