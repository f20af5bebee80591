"""The contract with Dagster's private code: it is what it was when ours was written against it.

With another release these tests fail before a user's installation does. Then
`python -m rss_pipeline_tests.orchestration.test_dagster_private` prints what has changed in each name since
the release that was read, and with `--write` it writes the tables anew. dagster_private.py has the reason
beside each name.
"""

import ast
import inspect
import re
from pathlib import Path

import dagster as dg
from dagster_graphql.schema import create_schema
from dagster_webserver.webserver import DagsterWebserver

from rss_pipeline.orchestration import dagster_private, dagster_private_commands
from rss_pipeline_tests.support.read_code import ReadCode

ROOT = Path(__file__).parents[2]
OURS = [Path(inspect.getfile(module)) for module in (dagster_private, dagster_private_commands)]

BESIDE = {
    # Public, but ours use what is private in them.
    "DefaultRunLauncher": dg.DefaultRunLauncher,
    "QueuedRunCoordinator": dg.QueuedRunCoordinator,
    # Of packages that promise nothing about their modules, and are imported only where they are needed.
    "DagsterWebserver": DagsterWebserver,
    "create_schema": create_schema,
}
NOT_DAGSTERS = {"_replace", "_exit"}
"""Names of named tuples, and of `os`."""

READ_IN = {
    "dagster": "1.13.27",
    "dagster-graphql": "1.13.27",
    "dagster-pipes": "1.13.27",
    "dagster-shared": "1.13.27",
    "dagster-webserver": "1.13.27",
}
DIGESTS = {
    "AssetCheckExecutionsTable": "762bb4cdcb1f",
    "AssetObservationData": "03d11767755f",
    "BACKFILL_ID_TAG": "989fa4e98547",
    "BULK_ACTION_TERMINAL_STATUSES": "78cde5ec50e6",
    "BackfillTagsTable": "b14ee982df40",
    "BulkActionStatus": "82521691f559",
    "BulkActionsFilter": "e508308ac064",
    "BulkActionsTable": "4f34cf45eca9",
    "CODE_VERSION_TAG": "30ed531c3d4c",
    "COMPUTE_KIND_TAG": "973b3198282e",
    "CapturedLogContext": "fb4e46e71729",
    "CheckError": "103b953deca3",
    "CheckRunHealthResult": "d8ad66c8c068",
    "CodeLocationOrigin": "fd2de388758a",
    "ComputeIOType": "21ce7997e686",
    "ConfigType": "13739478a2ac",
    "ConfigurableClass": "19f0fb24f3b5",
    "ConfigurableClassData": "1cc5a4304f9d",
    "ConfigurableResourceFactoryResourceDefinition": "ff022d171cfd",
    "ConfiguredDefinitionConfigSchema": "cf60e08e2c7c",
    "DATA_VERSION_IS_USER_PROVIDED_TAG": "ebf336219a4c",
    "DATA_VERSION_TAG": "56cb100115f6",
    "DagsterDaemon": "17fe4a904704",
    "DagsterSqliteStorage": "b3330d67cff3",
    "DagsterUserCodeUnreachableError": "9533a7eeff32",
    "DagsterWebserver": "2b8104444eef",
    "DefaultRunLauncher": "813f3c3c05a0",
    "EventHandlerFn": "7ea08a46ee8d",
    "GRPC_INFO_TAG": "eb9856fb04a6",
    "IDefinitionConfigSchema": "4db1a6bf7ad1",
    "INDEX_SHARD_NAME": "2314b1fe665c",
    "INPUT_DATA_VERSION_TAG_PREFIX": "a902d6ae82f7",
    "INPUT_EVENT_POINTER_TAG_PREFIX": "a347d781d7c1",
    "IO_TYPE_EXTENSION": "c64fb4952a5e",
    "InMemoryEventLogStorage": "4a9b64df936c",
    "InProcessCodeLocation": "1a9d41740153",
    "InProcessCodeLocationOrigin": "4484138d8b0d",
    "InstanceRef": "c186356321f0",
    "InstigatorState": "c5355452af8c",
    "InstigatorStatus": "6524c250e73d",
    "InstigatorType": "d8867782f3e5",
    "IntervalDaemon": "b94ed91898ff",
    "JobFailureData": "35b93f278a27",
    "JobTickTable": "5c7f75e36878",
    "LaunchRunContext": "6310b17dc64a",
    "LocalComputeLogManager": "83fe9853ba4a",
    "ManagedGrpcPythonEnvCodeLocationOrigin": "4d9bbddb2341",
    "ModuleCodePointer": "2e91e4ccb1f4",
    "ModuleTarget": "535485ca88e2",
    "NoOpComputeLogManager": "dfbe5d841017",
    "PRIORITY_TAG": "6c613d5bbc55",
    "PartitionBackfill": "07116fc93246",
    "ProxyServerManager": "071318411cd6",
    "QueuedRunCoordinator": "6fadcd0c8256",
    "RETRY_STRATEGY_TAG": "8ee5f4411e2c",
    "RUN_FAILURE_REASON_TAG": "821dffafe846",
    "RemotePartitionSetOrigin": "28278c762c9a",
    "RemoteRepositoryOrigin": "172a0a2a856b",
    "RunFailureReason": "974de843830f",
    "RunLauncher": "1d9081e8acb0",
    "RunQueueConfig": "0a6b01148628",
    "RunTagsTable": "e545e46f1f6c",
    "RunsTable": "939c60d7513b",
    "SensorInstigatorData": "1a052c9ebe15",
    "SqlEventLogStorage": "dfe579476eea",
    "SqlEventLogStorageMetadata": "dd31aeeef819",
    "SqlEventLogStorageTable": "8a0779dcf66c",
    "SqlRunStorage": "ce81b4471914",
    "SqlScheduleStorage": "aec85ec68942",
    "SqliteEventLogStorage": "c29d83d60244",
    "SqliteEventLogStorageWatchdog": "cd600a026151",
    "SqliteRunStorage": "9d2c524c446d",
    "SqliteScheduleStorage": "6ae73ca5acfd",
    "StepMaterializationData": "54a947184c1e",
    "WorkerStatus": "e2ab95769c0c",
    "WorkspaceFileTarget": "f7ded48e0e2c",
    "WorkspaceLoadTarget": "ed7616afc574",
    "WorkspaceProcessContext": "93474501a726",
    "capture_interrupts": "9092d28bdcd6",
    "configure_loggers": "f290e5314c81",
    "convert_user_facing_definition_config_schema": "1d9d9e6708bb",
    "create_daemons_from_instance": "e04d4da966e8",
    "create_db_conn_string": "e649057a793c",
    "create_schema": "5ae1dc3a67fc",
    "daemon_controller_from_instance": "7ecf05b99eb6",
    "event_logs_directory": "ab3215673d53",
    "execute_run_command_body": "62fe62ba9f8d",
    "get_alembic_config": "af345f0fd9d4",
    "make_new_backfill_id": "5e9b648aa131",
    "make_new_run_id": "fdcb2627d46a",
    "partition_set_snap_name_for_job_name": "1237cfa5658d",
    "redirect_to_file": "54cbce1287b1",
    "runs_directory": "1e2d5a68c696",
    "schedule_directory": "bd28224a7629",
    "setup_interrupt_handlers": "901c8806cad3",
    "sqlite_event_log": "b1cdb7acd207",
}


def _used() -> dict[str, object]:
    both = {**vars(dagster_private), **vars(dagster_private_commands)}
    ours = ("__", "_contextmanager", "_Iterator", "_without_commands")
    private = {name: value for name, value in both.items() if not name.startswith(ours)}
    return {**private, **BESIDE}


def _read_code() -> ReadCode:
    return ReadCode(
        module="rss_pipeline_tests.orchestration.test_dagster_private", used=_used(), read_in=READ_IN
    )


def test_dagster_is_the_release_of_which_the_private_code_was_read() -> None:
    code = _read_code()
    changed = {name for name, digest in code.digests().items() if DIGESTS.get(name) != digest}
    assert (code.releases(), changed) == (READ_IN, set())


def test_no_other_module_names_private_code_of_dagster() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("rss_pipeline", "benchmarks", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path not in OURS
        for name in _named(path)
        if name.startswith("dagster._")
    ]
    assert found == []


def test_private_attributes_are_those_of_classes_in_the_table() -> None:
    known = "".join(_read_code().texts().values())
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "rss_pipeline").rglob("*.py"))
        if any(each.startswith(("dagster.", "rss_pipeline.orchestration.")) for each in _named(path))
        for name in _borrowed(ast.parse(path.read_text("utf-8"))) - NOT_DAGSTERS
        if not re.search(rf"\b{name}\b", known)
    }
    assert found == set()


def _borrowed(tree: ast.Module) -> set[str]:
    """The private attributes of others."""
    used, own = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name.startswith("_") and name[1] != "_":
                used.add(name)
            case ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                own.add(name)
    return used - own


def _named(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    names = []
    for node in ast.walk(ast.parse(text)) if "dagster" in text else ():
        match node:
            case ast.Import():
                names += [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(module)):
                names += [f"{module}.{alias.name}" for alias in node.names]
            case ast.Constant(value=str(value)) if " " not in value:
                names.append(value)
    return names


if __name__ == "__main__":
    _read_code().main()
