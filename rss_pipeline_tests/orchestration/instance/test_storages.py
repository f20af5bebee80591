"""Dagster's SQLite files that stay open: they are Dagster's files, no statement waits for the disk, and no
process touches what another one opened."""

import os
import queue
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import dagster as dg
import psutil
import pytest
import sqlalchemy
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

from rss_pipeline.orchestration.instance.home import open_instance, stamped
from rss_pipeline.orchestration.instance.run_history import History
from rss_pipeline.orchestration.instance.storages import (
    MOST_OPEN,
    OPEN_FILES,
    OpenEventLogStorage,
    OpenRunStorage,
    OpenScheduleStorage,
    RunOutput,
)
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

PATIENCE = 30.0


def content(path: Path) -> tuple[object, ...]:
    with closing(sqlite3.connect(path)) as connection:
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        version = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        mode = connection.execute("PRAGMA journal_mode").fetchall()
    return {(*row[:3], row[3] and " ".join(row[3].split())) for row in schema}, version, mode


def runs_folder(pipeline: Pipeline) -> Path:
    return pipeline.settings.home / "dagster" / "history" / "runs"


def own_files(folder: Path) -> set[str]:
    """The databases in this folder that this process has open, by their names."""
    there = {os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")}
    return {path.name for path in folder.glob("*.db") if str(path) in there}


def test_a_new_home_has_them(pipeline: Pipeline) -> None:
    (pipeline.settings.dagster_home / "dagster.yaml").unlink()
    with open_instance(pipeline.settings) as instance:
        kinds = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
        assert list(map(type, kinds)) == [OpenRunStorage, OpenEventLogStorage, OpenScheduleStorage]
        assert instance.run_storage.get_runs() == []


def test_what_a_run_prints_is_in_its_files_and_no_process_copies_it(
    pipeline: Pipeline, capfd: pytest.CaptureFixture[str]
) -> None:
    (pipeline.settings.dagster_home / "dagster.yaml").unlink()
    with open_instance(pipeline.settings) as instance:
        output = instance.compute_log_manager
        assert isinstance(output, RunOutput)
        key = ["a-run", "compute_logs", "a-step"]
        others = psutil.Process().children()
        with capfd.disabled(), output.capture_logs(key):
            os.write(1, b"of a library\n")
            print("of a step")  # noqa: T201
            print("a warning", file=sys.stderr)  # noqa: T201
            assert not output.is_capture_complete(key)
            assert psutil.Process().children() == others
        found = output.get_log_data(key)
        assert (found.stdout, found.stderr) == (b"of a library\nof a step\n", b"a warning\n")
        assert output.is_capture_complete(key)
        there = output.get_log_metadata(key).stdout_location
        assert there == str(pipeline.settings.dagster_home / "storage" / "/".join(key)) + ".out"


def test_a_home_that_dagster_made_goes_on_in_the_same_files(pipeline: Pipeline) -> None:
    home = pipeline.settings.dagster_home
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text(stamped("telemetry: {enabled: false}\n"), "utf-8")
    with dg.DagsterInstance.from_config(str(home)) as before:
        assert type(before.event_log_storage) is SqliteEventLogStorage
        run = before.create_run_for_job(dg.GraphDefinition("old").to_job())
        before.report_engine_event("said before", run)
    with open_instance(pipeline.settings) as instance:
        assert isinstance(instance.event_log_storage, OpenEventLogStorage)
        assert [each.run_id for each in instance.get_runs()] == [run.run_id]
        assert [entry.message for entry in instance.all_logs(run.run_id)] == ["said before"]


def test_storages_that_a_person_chose_stay(pipeline: Pipeline, tmp_path: Path) -> None:
    home = pipeline.settings.dagster_home
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text(f"storage: {{sqlite: {{base_dir: {tmp_path / 'theirs'}}}}}\n", "utf-8")
    with open_instance(pipeline.settings) as instance:
        assert type(instance.event_log_storage) is SqliteEventLogStorage
    assert (tmp_path / "theirs/history/runs.db").exists()


def test_the_file_of_a_run_is_the_one_that_dagster_makes(
    dagster_pipeline: DagsterPipeline, tmp_path: Path
) -> None:
    storage = dagster_pipeline.instance.event_log_storage
    assert isinstance(storage, OpenEventLogStorage)
    dagsters = SqliteEventLogStorage(str(tmp_path))
    for name in ("ours", "theirs"):
        with (storage if name == "ours" else dagsters).run_connection(name):
            pass
    ours = runs_folder(dagster_pipeline) / "ours.db"
    assert content(ours) == content(tmp_path / "theirs.db")
    assert content(runs_folder(dagster_pipeline) / "index.db") == content(tmp_path / "index.db")


def test_a_history_of_another_version_of_dagster_has_files_by_dagster(
    dagster_pipeline: DagsterPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = dagster_pipeline.instance.event_log_storage
    assert isinstance(storage, OpenEventLogStorage)
    with storage.index_connection() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '567bc23fd1ac'")
    with storage.run_connection("one") as connection:
        made = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
    assert made != "567bc23fd1ac"


def test_a_file_that_was_cut_short_while_it_was_made_is_completed(dagster_pipeline: DagsterPipeline) -> None:
    storage = dagster_pipeline.instance.event_log_storage
    assert isinstance(storage, OpenEventLogStorage)
    (runs_folder(dagster_pipeline) / "cut.db").touch()
    with closing(sqlite3.connect(runs_folder(dagster_pipeline) / "half.db")) as half:
        half.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    for name in ("cut", "half"):
        assert storage.get_records_for_run(name).records == []


def test_no_event_of_a_poll_ends_a_log_nor_loads_alembic(
    dagster_pipeline: DagsterPipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dagster_pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    dagster_pipeline.poll()
    opened: list[str] = []
    sqlalchemy.event.listen(
        sqlalchemy.pool.Pool,
        "connect",
        connected := lambda connection, _: opened.append(
            Path(connection.execute("PRAGMA database_list").fetchone()[2]).stem
        ),
    )
    monkeypatch.setattr(ScriptDirectory, "from_config", None)
    try:
        [round_] = dagster_pipeline.poll(all_feeds=True)
    finally:
        sqlalchemy.event.remove(sqlalchemy.pool.Pool, "connect", connected)
    assert round_.error is None
    # One makes the file of the run, one stays open.
    assert opened == [round_.run_id] * 2
    logs = {path.name.partition(".")[0] for path in runs_folder(dagster_pipeline).glob("*.db-wal")}
    assert logs >= {round_.run_id, "index"}
    OPEN_FILES.close()
    assert not list(runs_folder(dagster_pipeline).glob("*.db-wal"))


def test_dagsters_files_wait_for_no_disk_and_no_other_process(dagster_pipeline: DagsterPipeline) -> None:
    instance = dagster_pipeline.instance
    storage = instance.event_log_storage
    assert isinstance(storage, OpenEventLogStorage)
    runs, ticks = instance.run_storage, instance.schedule_storage
    assert isinstance(runs, OpenRunStorage)
    assert isinstance(ticks, OpenScheduleStorage)
    for connect in (runs.connect, ticks.connect, storage.index_connection):
        with connect() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 1
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 60_000
            # A second one meanwhile, as threads of the daemon have it.
            with connect() as second:
                assert second.exec_driver_sql("SELECT 1").scalar_one() == 1


def test_few_files_of_runs_stay_open_and_none_that_was_removed(dagster_pipeline: DagsterPipeline) -> None:
    OPEN_FILES.close()
    instance, folder = dagster_pipeline.instance, runs_folder(dagster_pipeline)
    job = dg.GraphDefinition("one").to_job()
    runs = [instance.create_run_for_job(job) for _ in range(2 * MOST_OPEN)]
    for run in runs:
        instance.report_engine_event("one event", run)
    assert 1 <= len(own_files(folder)) <= MOST_OPEN
    newest = runs[-1].run_id
    assert f"{newest}.db" in own_files(folder)

    History(instance).remove([newest])
    assert list(instance.all_logs(newest)) == []
    assert all(len(list(instance.all_logs(run.run_id))) == 1 for run in runs[:-1])


def test_a_child_touches_no_file_of_its_parent(dagster_pipeline: DagsterPipeline) -> None:
    instance = dagster_pipeline.instance
    run = instance.create_run_for_job(dg.GraphDefinition("one").to_job())
    instance.report_engine_event("by the parent", run)
    file = runs_folder(dagster_pipeline) / f"{run.run_id}.db"
    log, ours = file.with_name(f"{file.name}-wal"), OPEN_FILES.engine(str(file))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            instance.report_engine_event("by the child", run)
            code = int(OPEN_FILES.engine(str(file)) is ours)
            OPEN_FILES.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    # The child was not the last to close the file, for all it knows.
    assert log.exists()
    instance.report_engine_event("by the parent again", run)
    assert [entry.message for entry in instance.all_logs(run.run_id)] == [
        "by the parent",
        "by the child",
        "by the parent again",
    ]


def test_the_ui_sees_each_event_of_a_run_with_a_file_that_is_held_open(
    dagster_pipeline: DagsterPipeline,
) -> None:
    instance = dagster_pipeline.instance
    run = instance.create_run_for_job(dg.GraphDefinition("one").to_job())
    instance.report_engine_event("begun", run)
    seen: queue.Queue[str | None] = queue.Queue()
    instance.event_log_storage.watch(run.run_id, None, lambda entry, _: seen.put(entry.message))
    try:
        for message in "abcdef":
            instance.report_engine_event(message, run)
            while seen.get(timeout=PATIENCE) != message:
                pass
    finally:
        instance.event_log_storage.dispose()
