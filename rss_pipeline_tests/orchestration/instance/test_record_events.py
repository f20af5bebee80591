"""Events recorded in one transaction: the same rows as Dagster writes for events that an op yields."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg

from rss_pipeline.orchestration.instance.record_events import record_events

_BY_NATURE = {"timestamp", "run_id", "pid", "log_message_id", "log_timestamp"}


def _events() -> list[dg.AssetMaterialization | dg.AssetObservation]:
    return [
        dg.AssetMaterialization("news", partition="a", metadata={"n": 1}, tags={"dagster/data_version": "x"}),
        dg.AssetMaterialization("news", partition="b", description="Said so.", metadata={"n": 2}),
        dg.AssetObservation("news", partition="c", description="Not visited.", metadata={"n": 3}),
        dg.AssetMaterialization("other", metadata={"n": 4}),
    ]


@dg.op(out=dg.Out(dg.Nothing, is_required=False))
def report(context: dg.OpExecutionContext, how: str) -> Iterator[Any]:
    if how == "yielded":
        yield from _events()
    else:
        record_events(context, _events())
        record_events(context, [])
        seen = context.instance.get_latest_materialization_event(dg.AssetKey("other"))
        assert seen is not None, "recorded when it returns, before the op has ended"
    yield dg.Output(None)


@dg.job(executor_def=dg.in_process_executor)
def reporting() -> None:
    report()


def _written(home: Path, how: str) -> dict[str, list[Any]]:
    folder = home / how
    folder.mkdir()
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        result = reporting.execute_in_process(
            instance=instance, run_config={"ops": {"report": {"inputs": {"how": how}}}}
        )
        partitions = sorted(instance.get_materialized_partitions(dg.AssetKey("news")))
    rows: dict[str, list[Any]] = {"partitions": list(partitions)}
    for file in ("index", result.run_id):
        with closing(sqlite3.connect(folder / "history" / "runs" / f"{file}.db")) as database:
            found = database.execute(
                "SELECT event, dagster_event_type, step_key, asset_key, partition FROM event_logs"
                " WHERE dagster_event_type LIKE 'ASSET%' ORDER BY id"
            ).fetchall()
            rows[file if file == "index" else "run"] = [(_plain(event), *rest) for event, *rest in found]
            if file == "index":
                rows["tags"] = database.execute(
                    "SELECT asset_key, key, value FROM asset_event_tags ORDER BY id"
                ).fetchall()
                rows["assets"] = [
                    (key, _plain(last))
                    for key, last in database.execute(
                        "SELECT asset_key, last_materialization FROM asset_keys"
                    )
                ]
    return rows


def _plain(event: str) -> Any:
    """The event without what differs between any two runs."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(each) for name, each in value.items() if name not in _BY_NATURE}
        return [without(each) for each in value] if isinstance(value, list) else value

    return without(json.loads(event))


def test_recorded_events_are_the_rows_that_yielded_ones_would_be(tmp_path: Path) -> None:
    recorded = _written(tmp_path, "recorded")
    assert recorded == _written(tmp_path, "yielded")
    assert recorded["partitions"] == ["a", "b"]
    assert len(recorded["index"]) == len(recorded["run"]) == 4
    assert recorded["tags"], "data versions are indexed"


def test_events_recorded_together_differ_in_their_milliseconds(tmp_path: Path) -> None:
    """The UI's list of an asset's events shows one of those that do not."""
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        reporting.execute_in_process(
            instance=instance, run_config={"ops": {"report": {"inputs": {"how": "recorded"}}}}
        )
        records = instance.fetch_materializations(dg.AssetKey("news"), limit=10).records
    assert len({int(record.timestamp * 1_000) for record in records}) == 2
