"""`restore --retired`: a clean is undone from the backups, and may be killed on the way."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.replay.service import Revived, revive
from rss_pipeline_tests.features.replay.replays import collected, replayed
from rss_pipeline_tests.support.faulty_stores import Calls, FaultyDatabase
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer

archive = pytest.importorskip("rss_pipeline_tests.features.retention.archive")
NEW, OLD, cleaned, forget_cleans, stock = (
    archive.NEW,
    archive.OLD,
    archive.cleaned,
    archive.forget_cleans,
    archive.stock,
)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def retired(place: Pipeline, server: FeedServer) -> Pipeline:
    """Two feeds with three items each that a clean has just removed, by the database's clock."""
    stock(place, server)
    assert cleaned(place).total.items == 6
    return place


def revived(pipeline: Pipeline, since: datetime = LONG_AGO, **parts: object) -> Revived:
    with pipeline.session(**parts) as session:  # type: ignore[arg-type]
        return revive(session.run, pool=session.parser_pool, spool=session.spool, since=since)


def is_back(pipeline: Pipeline) -> None:
    for id in ("one", "two"):
        assert pipeline.guids(id) == sorted((*NEW, *OLD))
    assert pipeline.rows("SELECT * FROM expired_items") == []


@EVERYWHERE
def test_items_come_back_with_their_content_and_stay(retired: Pipeline) -> None:
    result = revived(retired)
    assert (result.feeds, result.items_retired, result.items_revived, result.items_lost) == (2, 6, 6, 0)
    is_back(retired)
    [item] = [row for row in retired.items("one") if row["guid"] == "old-1"]
    assert "Text of old-1" in item["content_html"]
    assert item["created_at"] == "2026-03-02T12:00:01Z", "its document's"
    assert len(retired.rows("SELECT id FROM image_tasks WHERE status = 'pending'")) == 12
    assert cleaned(retired).total.items == 0, "they are as new as their arrival"
    before = collected(retired)
    assert revived(retired).items_retired == 0
    assert collected(retired) == before


def test_only_what_was_retired_since_then_comes_back(retired: Pipeline) -> None:
    retired.database.query(
        "UPDATE expired_items SET expired_at = '2025-01-01T00:00:00Z' WHERE guid = 'old-1'"
    )
    assert revived(retired).items_revived == 4
    assert retired.guids("one") == sorted((*NEW, *OLD[1:]))
    assert [row["guid"] for row in retired.rows("SELECT guid FROM expired_items")] == ["old-1", "old-1"]
    assert revived(retired, datetime.now(UTC) + timedelta(days=1)).items_retired == 0


def test_what_no_backup_has_any_more_comes_back_with_the_next_document_that_lists_it(
    retired: Pipeline, server: FeedServer
) -> None:
    retired.objects.delete_many(retired.backups("one"))
    result = revived(retired)
    assert (result.items_revived, result.items_lost) == (3, 3)
    assert retired.guids("one") == sorted(NEW)
    assert retired.rows("SELECT * FROM expired_items") == []
    server.route("127.0.0.2", "/feed", Answer(body=rss(*OLD, *NEW, title="Another title")))
    retired.poll("one")
    assert retired.guids("one") == sorted((*NEW, *OLD))


def test_a_usual_replay_brings_nothing_back(retired: Pipeline) -> None:
    replayed(retired)
    assert retired.guids("one") == sorted(NEW)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["embedded"], indirect=True)
@pytest.mark.parametrize("applied", [False, True], ids=["before", "after"])
def test_one_that_ends_at_any_statement_is_completed_by_the_next(retired: Pipeline, applied: bool) -> None:
    old = {(id, guid) for id in ("one", "two") for guid in OLD}
    failing, is_over = 0, False
    while not is_over:
        failing += 1
        calls = Calls(failing, applied=applied)
        faulty = FaultyDatabase(retired.database, calls, DatabaseUnavailable)
        try:
            revived(retired, database=faulty)
            is_over = True
        except DatabaseUnavailable:
            stored = {(id, guid) for id in ("one", "two") for guid in retired.guids(id)}
            dead = {(row["feed_id"], row["guid"]) for row in retired.rows("SELECT * FROM expired_items")}
            assert old <= stored | dead, "neither lost"
            assert not stored & dead, "nor twice"
            revived(retired)
        is_back(retired)
        retire_again(retired)
    assert failing > 5


def retire_again(pipeline: Pipeline) -> None:
    forget_cleans(pipeline)
    pipeline.database.query(
        "UPDATE items SET arrived = NULL, created_at = '2025-01-01T00:00:00Z' WHERE guid LIKE 'old%'"
    )
    assert cleaned(pipeline).total.items == 6


@pytest.mark.parametrize("place", ["embedded"], indirect=True)
def test_the_command_says_what_is_back(
    retired: Pipeline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"RSS_PIPELINE_HOME": str(retired.settings.home)}

    def invoke(since: str, *words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, ["restore", "--retired", since, *words], env=environ)
        assert done.exit_code == code, done.output
        return done.output

    assert "neither a day (2026-02-18) nor an instant" in " ".join(invoke("soon", code=2).split())
    assert "0 items of 0 feeds were removed since 2199-01-01T00:00:00Z" in invoke("2199-01-01")
    assert json.loads(invoke("2026-01-01", "--json"))["items_revived"] == 6
    is_back(retired)
    assert not (retired.settings.dagster_home / "dagster.yaml").exists(), "without Dagster"
