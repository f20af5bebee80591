"""Run history does not grow for ever, and nothing that is green turns grey for it."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from sqlalchemy.exc import SQLAlchemyError

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.orchestration.instance.nothing_to_purge import nothing_to_purge
from rss_pipeline.orchestration.instance.run_history import History
from rss_pipeline.orchestration.instance.storages import OPEN_FILES
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS, ITEM_IMAGES
from rss_pipeline.orchestration.upkeep.purge_job import purge_history
from rss_pipeline.pipeline.triggers.daily import Allowance
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline, copied, new_instance
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

OLD = timedelta(days=31)


@pytest.fixture(scope="module")
def server() -> Iterator[FeedServer]:
    """One for all, for its port is in the home that they copy; `polled` sets the feeds of each test."""
    with FeedServer() as server:
        yield server


def serve(server: FeedServer) -> list[str]:
    """The URLs of three feeds."""
    return [
        server.route(f"127.0.0.{n + 2}", "/feed", Answer(body=rss(f"{n}-a", f"{n}-b"), etag='"1"'))
        for n in range(3)
    ]


@pytest.fixture(scope="module")
def polled_once(server: FeedServer, tmp_path_factory: pytest.TempPathFactory) -> DagsterPipeline:
    """The pipeline of `polled`, closed."""
    home = tmp_path_factory.mktemp("polled")
    with new_instance(home) as instance:
        pipeline = DagsterPipeline(home, instance)
        pipeline.clock.now = utc_now()
        for n, url in enumerate(serve(server)):
            pipeline.register(url, f"feed-{n}", interval="30m")
        pipeline.poll()
        pipeline.close()
    return pipeline


@pytest.fixture
def polled(polled_once: DagsterPipeline, server: FeedServer, tmp_path: Path) -> Iterator[DagsterPipeline]:
    """Three feeds that were visited just now, by Dagster's clock as well as by ours."""
    serve(server)
    with copied(polled_once, tmp_path) as pipeline:
        yield pipeline


def purge(pipeline: DagsterPipeline, **config: Any) -> dict[str, Any]:
    """Run the job; gives the numbers it reports."""
    keep = timedelta(days=config.get("days", pipeline.settings.history_days))
    nothing = is_quiet(pipeline, keep)
    result = (
        pipeline.definitions()
        .resolve_job_def("purge_history")
        .execute_in_process(instance=pipeline.instance, run_config={"ops": {"purge": {"config": config}}})
    )
    [output] = [event for event in result.all_node_events if event.is_successful_output]
    figures = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert not (nothing and any(n for name, n in figures.items() if name != "dry_run")), figures
    return figures


def is_quiet(pipeline: DagsterPipeline, keep: timedelta = timedelta(days=30)) -> bool:
    """The answer without Dagster to the question whether a purge would find nothing."""
    home = Path(pipeline.instance.root_directory)
    return nothing_to_purge(home, pipeline.database, before=pipeline.clock() - keep)


def age(pipeline: DagsterPipeline, by: timedelta = OLD) -> None:
    """As if all runs and backfills there are had ended that long ago."""
    before = datetime.now(UTC) - by
    at = before.strftime("%Y-%m-%d %H:%M:%S.%f")
    home = Path(pipeline.instance.root_directory)
    with closing(sqlite3.connect(home / "history" / "runs.db")) as database:
        database.execute("UPDATE runs SET create_timestamp = ?, update_timestamp = ?", [at, at])
        database.execute("UPDATE bulk_actions SET timestamp = ?", [at])
        database.commit()
    for path in [*(home / "history" / "runs").glob("*-*.db*"), *(home / "storage").rglob("*")]:
        os.utime(path, (before.timestamp(), before.timestamp()))


def run_ids(pipeline: DagsterPipeline) -> set[str]:
    return set(pipeline.instance.get_run_ids())


def green(pipeline: DagsterPipeline) -> list[str]:
    return sorted(pipeline.instance.get_materialized_partitions(FEED_ITEMS))


def of_runs(pipeline: DagsterPipeline, ids: set[str]) -> dict[str, int]:
    """Rows and files that any table or folder of the instance has of these runs."""
    home = Path(pipeline.instance.root_directory)
    found: dict[str, int] = {}
    for path in home.rglob("*.db"):
        with closing(sqlite3.connect(path)) as database:
            tables = [
                name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            for table in tables:
                rows = database.execute(f"SELECT * FROM {table}").fetchall()
                # Which run reported a poll last is all that an asset without events keeps of it.
                rows = [row for row in rows if table != "asset_keys" or '["polls"]' not in row]
                if count := sum(any(value in ids for value in row) for row in rows):
                    found[f"{path.name}: {table}"] = count
    if files := [path for path in home.rglob("*") if ids & set(path.name.split(".")) and path.name != "runs"]:
        found["files"] = len(files)
    return found


def test_a_run_that_is_purged_leaves_no_row_and_no_file_behind(polled: DagsterPipeline) -> None:
    before = run_ids(polled)
    assert of_runs(polled, before).keys() >= {
        "runs.db: runs",
        "runs.db: run_tags",
        "index.db: event_logs",
        "files",
    }
    age(polled)
    told = purge(polled)
    assert of_runs(polled, before) == {}
    assert run_ids(polled).isdisjoint(before)
    assert (told["runs_removed"], told["runs_kept"], told["runs_left"]) == (1, 0, 0)
    assert told["bytes_removed"] > 100_000
    assert told["files_removed"] >= 1
    assert told["events_removed"] >= 3
    assert told["unfinished"] is False


def test_every_feed_stays_green_and_hears_a_heartbeat_without_news(polled: DagsterPipeline) -> None:
    versions = [polled.latest_record(id).asset_materialization.tags for id in green(polled)]
    age(polled)
    assert purge(polled)["heartbeats"] == 3
    assert green(polled) == ["feed-0", "feed-1", "feed-2"]
    assert [event["items_new"] for event in polled.events("feed-0")] == [0]
    assert [polled.latest_record(id).asset_materialization.tags for id in green(polled)] == versions
    polled.clock.turn(minutes=1)
    assert purge(polled)["heartbeats"] == 0
    polled.poll(all_feeds=True)
    assert len(polled.events("feed-0")) == 1, "the heartbeat counts: nothing new is told"


def test_a_feed_that_was_reported_since_needs_no_heartbeat(polled: DagsterPipeline) -> None:
    age(polled)
    polled.materialize("feed-1")
    told = purge(polled)
    assert (told["runs_removed"], told["heartbeats"]) == (1, 2)
    assert len(polled.events("feed-1")) == 1


def test_what_is_younger_or_in_flight_or_of_a_backfill_in_progress_stays(polled: DagsterPipeline) -> None:
    made = {
        status: polled.instance.create_run_for_job(purge_history, status=status, tags=tags).run_id
        for status, tags in [
            (dg.DagsterRunStatus.STARTING, {}),
            (dg.DagsterRunStatus.STARTED, {}),
            (dg.DagsterRunStatus.FAILURE, {"dagster/backfill": "going"}),
            (dg.DagsterRunStatus.SUCCESS, {"dagster/backfill": "ended"}),
        ]
    }
    for id, status in [("going", BulkActionStatus.REQUESTED), ("ended", BulkActionStatus.COMPLETED_SUCCESS)]:
        polled.instance.add_backfill(
            PartitionBackfill(
                id, status=status, from_failure=False, tags={"by": "me"}, backfill_timestamp=time.time(),
                title=None, description=None,
            )
        )  # fmt: skip
    age(polled)
    young = polled.instance.create_run_for_job(purge_history, status=dg.DagsterRunStatus.SUCCESS).run_id
    told = purge(polled)
    assert (told["runs_removed"], told["backfills_removed"]) == (2, 1)
    gone = made.pop(dg.DagsterRunStatus.SUCCESS)
    assert run_ids(polled) >= {young, *made.values()}
    assert gone not in run_ids(polled)
    assert [each.backfill_id for each in polled.instance.get_backfills()] == ["going"]


def test_a_run_in_which_somebodys_own_asset_was_last_made_stays(polled: DagsterPipeline) -> None:
    @dg.asset
    def digest() -> None: ...

    @dg.asset_check(asset="digest")
    def is_whole() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    first = dg.materialize([digest, is_whole], instance=polled.instance).run_id
    last = dg.materialize([digest, is_whole], instance=polled.instance).run_id
    assert "index.db: asset_check_executions" in of_runs(polled, {first})
    age(polled)
    assert purge(polled)["runs_kept"] == 1
    assert of_runs(polled, {first}) == {}
    assert last in run_ids(polled)
    assert polled.instance.get_latest_materialization_event(dg.AssetKey("digest")) is not None


def test_a_red_key_stays_red_while_its_failed_run_is_there(
    polled: DagsterPipeline, server: FeedServer
) -> None:
    server.route("127.0.0.2", "/feed", Answer(status=404))
    age(polled)
    assert not polled.materialize("feed-0").success
    told = purge(polled)
    assert (told["runs_kept"], told["heartbeats"]) == (1, 2)
    assert red(polled) == {"feed-0"}


def red(pipeline: DagsterPipeline) -> set[str]:
    log = pipeline.instance.event_log_storage
    return set(log.get_latest_asset_partition_materialization_attempts_without_materializations(FEED_ITEMS))


def test_a_dry_run_reports_the_same_and_touches_nothing(polled: DagsterPipeline) -> None:
    age(polled)
    before = run_ids(polled)
    foretold = purge(polled, dry_run=True)
    assert run_ids(polled) >= before
    assert polled.events("feed-0")[0]["items_new"] == 2
    told = purge(polled)
    changed = {"dry_run", "bytes_removed", "events_removed"}
    assert {n: v for n, v in told.items() if n not in changed} == {
        n: v for n, v in foretold.items() if n not in changed
    }


def test_that_there_is_nothing_to_purge_is_known_without_dagster(polled: DagsterPipeline) -> None:
    """In doubt it is not: `purge` above compares each answer with what the job then finds."""
    # Files that are put back below must have no log beside them.
    OPEN_FILES.close()
    assert is_quiet(polled)
    assert not is_quiet(polled, timedelta(hours=-1)), "the run ended before then"
    home = Path(polled.instance.root_directory)
    events = home / "history" / "runs" / "index.db"
    lost = [
        (events, "DELETE FROM event_logs WHERE partition = 'feed-1'"),
        (events, "UPDATE asset_keys SET asset_details = 'wiped'"),
        (home / "history" / "runs.db", "UPDATE runs SET update_timestamp = '2020-01-01 00:00:00.000000'"),
        (home / "history" / "runs.db", "DROP TABLE runs"),
    ]
    for file, statement in lost:
        with there_and_back(file), closing(sqlite3.connect(file)) as database:
            database.execute(statement)
            database.commit()
            assert not is_quiet(polled), statement
        assert is_quiet(polled), statement
    polled.database.query(
        "INSERT INTO image_tasks (id, item_id, original_url, host, position, status, created_at, updated_at)"
        " SELECT 'i', id, 'u', 'h', 0, 'failed', created_at, created_at FROM items LIMIT 1"
    )
    assert not is_quiet(polled), "an image that no event reported"
    polled.database.query("DELETE FROM image_tasks")
    for configuration in (
        (home / "dagster.yaml").read_text("utf-8"),
        files("rss_pipeline").joinpath("dagster.yaml").read_text("utf-8"),
    ):
        (home / "dagster.yaml").write_text(configuration, "utf-8")
        assert is_quiet(polled)
    for place in ("storage: {postgres: {}}\n", "compute_logs: {module: m, class: c}\n"):
        (home / "dagster.yaml").write_text(configuration + place, "utf-8")
        assert not is_quiet(polled), place


@contextmanager
def there_and_back(file: Path) -> Iterator[None]:
    with closing(sqlite3.connect(file)) as database:
        # A copied home has its log beside it.
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = file.read_bytes()
    yield
    file.write_bytes(before)


def test_a_younger_age_may_be_chosen(polled: DagsterPipeline) -> None:
    age(polled, timedelta(days=2))
    assert purge(polled)["runs_removed"] == 0
    assert purge(polled, days=1.0)["runs_removed"] == 1
    age(polled, timedelta(days=2))
    polled.set(history_days=0.5)
    assert purge(polled)["runs_removed"] == 2


def test_ended_half_way_the_next_purge_goes_on(
    polled: DagsterPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.orchestration.upkeep.purge_job.RUNS_AT_ONCE", 1)
    for _ in range(2):
        polled.poll(all_feeds=True)
    age(polled)
    spent = iter([False, True, True])
    monkeypatch.setattr(Allowance, "is_spent", lambda *_: next(spent))
    told = purge(polled)
    assert (told["runs_removed"], told["runs_left"], told["unfinished"]) == (1, 2, True)
    [newest] = polled.instance.get_runs(limit=1)
    assert newest.tags["rss_pipeline/unfinished"] == "true"
    monkeypatch.undo()
    assert purge(polled)["runs_removed"] == 2
    assert len(green(polled)) == 3


@contextmanager
def a_file_that_cannot_be_removed(pipeline: DagsterPipeline, run_id: str) -> Iterator[None]:
    """A folder in the place of the run's own database: this holds for root too, unlike file rights."""
    [path] = (Path(pipeline.instance.root_directory) / "history" / "runs").glob(f"{run_id}.db")
    path.rename(path.with_suffix(".aside"))
    path.mkdir()
    yield
    path.rmdir()
    path.with_suffix(".aside").rename(path)


@contextmanager
def rows_that_cannot_be_removed(pipeline: DagsterPipeline, run_id: str) -> Iterator[None]:
    with closing(sqlite3.connect(Path(pipeline.instance.root_directory, "history", "runs.db"))) as database:
        database.execute("CREATE TRIGGER stop BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'no'); END")
        database.commit()
        yield
        database.execute("DROP TRIGGER stop")
        database.commit()


@pytest.mark.parametrize("fault", [a_file_that_cannot_be_removed, rows_that_cannot_be_removed])
def test_cut_short_at_any_place_it_is_completed_the_next_time(
    polled: DagsterPipeline, fault: Callable[[DagsterPipeline, str], AbstractContextManager[None]]
) -> None:
    """After the events went, and after the files went as well: the rows of the run are the last."""
    [run_id] = run_ids(polled)
    age(polled)
    with fault(polled, run_id), pytest.raises((OSError, SQLAlchemyError)):
        History(polled.instance).remove([run_id])
    assert run_ids(polled) == {run_id}
    purge(polled)
    assert of_runs(polled, {run_id}) == {}
    assert green(polled) == ["feed-0", "feed-1", "feed-2"]


def test_what_else_is_old_goes_too(polled: DagsterPipeline) -> None:
    files_of_runs_that_were_deleted_in_the_ui(polled)
    old_ticks_but_for_each_sensors_newest(polled)
    spool_folders_of_killed_runs_of_older_versions_after_a_day(polled)


def files_of_runs_that_were_deleted_in_the_ui(polled: DagsterPipeline) -> None:
    [id] = run_ids(polled)
    polled.instance.delete_run(id)
    assert of_runs(polled, {id})
    kept = Path(polled.instance.root_directory, "storage", "my-notes")
    kept.mkdir(parents=True)
    age(polled)
    assert purge(polled)["orphans_removed"] == 1
    assert of_runs(polled, {id}) == {}
    assert kept.exists()


def old_ticks_but_for_each_sensors_newest(polled: DagsterPipeline) -> None:
    history = Path(polled.instance.root_directory, "schedules")
    polled.instance.schedule_storage.get_ticks("origin", "one")
    with closing(sqlite3.connect(history / "schedules.db")) as database:
        rows = [(s, f"2026-01-0{day} 00:00:00.000000") for s in ("one", "two") for day in (1, 2, 3)]
        database.executemany("INSERT INTO job_ticks (selector_id, timestamp) VALUES (?, ?)", rows)
        database.commit()
        assert purge(polled)["ticks_removed"] == 4
        left = database.execute("SELECT selector_id, timestamp FROM job_ticks").fetchall()
    assert [(s, at[:10]) for s, at in left] == [("one", "2026-01-03"), ("two", "2026-01-03")]


def spool_folders_of_killed_runs_of_older_versions_after_a_day(polled: DagsterPipeline) -> None:
    for name, days in [("young", 0.9), ("old", 1.1)]:
        folder = polled.settings.spool_path / name
        folder.mkdir(parents=True)
        (folder / "body").write_bytes(b"x")
        at = (polled.clock() - timedelta(days=days)).timestamp()
        os.utime(folder, (at, at))
    purge(polled)
    left = {path.name for path in polled.settings.spool_path.iterdir()}
    assert ("young" in left, "old" in left) == (True, False)


def new_home(pipeline: DagsterPipeline, folder: Path) -> dg.DagsterInstance:
    """Dagster's home as it is after somebody deleted it."""
    folder.mkdir()
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    return dg.DagsterInstance.from_config(str(folder))


def lose_home(
    how: Callable[[DagsterPipeline], object], pipeline: DagsterPipeline, tmp_path: Path
) -> dict[str, list[Any]]:
    with new_home(pipeline, tmp_path / "another") as instance:
        pipeline.instance = instance
        how(pipeline)
        return {id: pipeline.events(id) for id in ("feed-0", "feed-1", "feed-2")}


def test_a_lost_home_is_green_again_after_the_next_poll_though_no_feed_has_news(
    polled: DagsterPipeline, tmp_path: Path
) -> None:
    polled.poll()
    told = lose_home(lambda pipeline: pipeline.poll(), polled, tmp_path)
    assert [[event["items_new"] for event in events] for events in told.values()] == [[0], [0], [0]]
    assert [[event["change"] for event in events] for events in told.values()] == [[1], [1], [1]]


def test_a_lost_home_is_green_again_after_a_purge_though_nothing_is_due(
    polled: DagsterPipeline, tmp_path: Path
) -> None:
    told = lose_home(purge, polled, tmp_path)
    assert [len(events) for events in told.values()] == [1, 1, 1]


def test_a_home_lost_between_two_machines_is_reported_once(polled: DagsterPipeline, tmp_path: Path) -> None:
    first = polled.instance
    lose_home(lambda pipeline: pipeline.sync(), polled, tmp_path)
    polled.instance = first
    polled.poll(all_feeds=True)
    assert [len(polled.events(id)) for id in ("feed-0", "feed-1")] == [1, 1], "this instance knew already"


def test_images_of_a_lost_home_are_green_again_after_a_purge(
    pipeline: DagsterPipeline, server: FeedServer, tmp_path: Path
) -> None:
    pipeline.clock.now = utc_now()
    server.route("127.0.0.3", "/i/a.png", Answer(body=png(8, 8), headers={"Content-Type": "image/png"}))
    body = rss("a", image=server.url("127.0.0.3", "/i"))
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=body)), "feed-0", interval="30m")
    pipeline.poll()
    assert pipeline.run_download_job()["success"] == 1

    def told() -> Any:
        event = pipeline.instance.get_latest_materialization_event(ITEM_IMAGES)
        assert event is not None
        assert event.asset_materialization is not None
        found = event.asset_materialization.metadata
        return event.run_id, found["success"].value, found["archived"].value

    before = told()[0]
    age(pipeline)
    purge(pipeline)
    assert told()[0] != before
    assert told()[1:] == (1, 0)
    with new_home(pipeline, tmp_path / "another") as instance:
        pipeline.instance = instance
        purge(pipeline)
        assert told()[1:] == (1, 0)
