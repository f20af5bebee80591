"""The home of an installation is its user's alone, but for what a web server is to show."""

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.features.health.store_checks import check_home
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.folder.backend import FolderStore


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_is_made_for_its_user_alone_and_doctor_warns_of_an_open_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(home))
    assert CliRunner().invoke(main, ["purge", "--dry-run"]).exit_code == 0
    assert mode(home) == 0o700
    files = [path for path in home.rglob("*") if path.is_file()]
    assert home / "rss.sqlite" in files
    assert {mode(path) for path in files} == {0o600}
    settings = Settings.from_environ({"RSS_PIPELINE_HOME": str(home)}, cwd=tmp_path)
    assert [check.state for check in check_home(settings)] == ["ok"]
    home.chmod(0o755)
    [check] = check_home(settings)
    assert (check.state, check.fix) == ("warning", f"Close it: chmod 700 {home}")


def test_a_web_server_reads_public_files_and_no_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = os.umask(0o077)
    try:
        fill(home)
    finally:
        os.umask(before)
    assert mode(home / "objects/images/a/b") == 0o711
    assert mode(home / "objects/images/a/b/0.png") == 0o644
    assert mode(home / "objects/backups/a/b.xml") == 0o600


def test_what_was_stored_before_there_was_a_public_address_is_readable_under_it(tmp_path: Path) -> None:
    root = tmp_path / "home" / "objects"
    keys = ("images/a/b/0.png", "topics/a.json", "private-images/a/b/0.png", "backups/a/b.xml")
    before = os.umask(0o077)
    try:
        closed, address = FolderStore(root), "https://rss.example.org"
        for key in keys:
            closed.put(key, b"x", content_type="text/xml")
        store = FolderStore(root, public_url=address)
        assert [mode(root / key) for key in keys] == [0o644, 0o644, 0o600, 0o600]
        assert {mode(root), mode(root / "images/a/b"), mode(root / "topics")} == {0o711}
        assert sorted(each.key for each in store.list("")) == sorted(keys)
        # Without one for a while.
        FolderStore(root).put("images/a/c/0.png", b"x", content_type="image/png")
        FolderStore(root, public_url=address)
    finally:
        os.umask(before)
    assert mode(root / "images/a/c/0.png") == 0o644


def test_doctor_names_old_files_that_others_open_by_name_where_they_go_through_the_home(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    address = {"RSS_PIPELINE_HOME": str(home), "RSS_OBJECTS_PUBLIC_URL": "https://rss.example.org"}
    settings = Settings.from_environ(address, cwd=tmp_path)
    before = os.umask(0o077)
    try:
        fill(home)
        (home / "rss.sqlite").touch()
    finally:
        os.umask(before)
    assert [check.state for check in check_home(settings)] == ["ok"]
    (home / "rss.sqlite").chmod(0o644)
    (home / "objects" / "backups").chmod(0o755)
    [check] = check_home(settings)
    assert check.found == f"{home}: others on this machine can read backups, rss.sqlite in it"
    assert check.fix == f"Close them: chmod -R go= {home}/objects/backups {home}/rss.sqlite"


def fill(home: Path) -> None:
    store = FolderStore(home / "objects", public_url="https://rss.example.org")
    store.put("backups/a/b.xml", b"x", content_type="text/xml")
    assert mode(home) == 0o700
    store.put("images/a/b/0.png", b"x", content_type="image/png")
    assert {mode(home), mode(home / "objects")} == {0o711}
