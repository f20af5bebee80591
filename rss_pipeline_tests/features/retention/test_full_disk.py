"""A full disk: commands that read do, and `clean` and `forget` make room."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.reserve import keep_reserve
from rss_pipeline_tests.cli.program import environment
from rss_pipeline_tests.cli.stores.test_full_disk import GONE, fill, fill_by_log, has_room_again, small_disk
from rss_pipeline_tests.features.retention.archive import add_rest, age
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

__all__ = ["small_disk"]


@pytest.mark.slow
def test_on_a_disk_without_a_free_byte_commands_that_read_read_and_those_that_make_room_do(
    pipeline: Pipeline, server: FeedServer, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No one has the databases open: SQLite, ours and Dagster's, needs files beside them, and a log."""
    old = [f"old-{n}" for n in range(GONE)]
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss(*old, "new"))), "news")
    pipeline.poll()
    pipeline.database.query("UPDATE items SET summary = ? WHERE guid LIKE 'old%'", ["x" * 20_000])
    age(pipeline, "news", 181, *old)
    add_rest(pipeline, GONE + 1)
    pipeline.database.close()
    shutil.copytree(pipeline.settings.home, small_disk, dirs_exist_ok=True)
    feeds = small_disk / "feeds.yaml"
    monkeypatch.chdir(small_disk)

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(main, arguments, env=environment(small_disk))
        # `doctor` fails: the disk is full.
        assert result.exit_code == (arguments[0] == "doctor"), result.output
        return result.output

    keep_reserve(small_disk)
    fill(small_disk)
    assert "news" in call("status")
    assert "No items" not in call("items", "news")
    said = call("doctor")
    assert "rss.sqlite can be read" in said
    assert "`rss-pipeline clean` removes what is old" in said

    before = (small_disk / "rss.sqlite").stat().st_size
    assert f"{GONE} items removed" in call("clean", "--yes")
    assert (small_disk / "rss.sqlite").stat().st_size < before - 400_000
    freed = shutil.disk_usage(small_disk).free
    assert freed > 400_000
    assert "Nothing is old enough" in call("clean", "--yes")
    assert shutil.disk_usage(small_disk).free == freed, "what is kept for it is kept again"

    fill(small_disk)
    feeds.write_text("feeds: []\n", "utf-8")
    assert "news: 1 items and 0 image tasks deleted." in call("forget", "news", "--yes")
    assert "news" not in call("status")

    # A version that kept nothing, or others, have taken all room: nothing is lost, and it can be read.
    (small_disk / "reserve").unlink()
    fill(small_disk)
    assert "news" not in call("status")


@pytest.mark.slow
def test_a_log_that_the_file_has_no_room_for_keeps_no_clean_from_making_room(
    pipeline: Pipeline, server: FeedServer, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare() -> None:
        age(pipeline, "news", 181, *(f"old-{n}" for n in range(GONE)))
        add_rest(pipeline, GONE + 1)

    log = fill_by_log(pipeline, server, small_disk, prepare)
    monkeypatch.chdir(small_disk)

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(main, arguments, env=environment(small_disk))
        assert result.exit_code == 0, result.output
        return result.output

    assert "1 items" in call("forget", "other", "--yes")
    assert f"{GONE} items removed" in call("clean", "--yes")
    has_room_again(small_disk, log)
