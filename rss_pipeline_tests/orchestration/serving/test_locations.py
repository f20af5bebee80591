"""The code locations of daemon and webserver: ours within them, those of others in code servers."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.remote_origin import InProcessCodeLocationOrigin as DagstersOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._serdes import deserialize_value, serialize_value

from rss_pipeline.errors import SettingsError
from rss_pipeline.orchestration.dagster_private import (
    DagsterUserCodeUnreachableError,
    ManagedGrpcPythonEnvCodeLocationOrigin,
    WorkspaceProcessContext,
)
from rss_pipeline.orchestration.run_launcher import ForkedRunLauncher
from rss_pipeline.orchestration.serving import locations
from rss_pipeline.orchestration.serving.locations import (
    InProcessCodeLocationOrigin,
    Locations,
    Places,
    is_own,
)
from rss_pipeline_tests.orchestration.serving import hanging
from rss_pipeline_tests.support.up import free_port
from rss_pipeline_tests.support.waiting import soon

OURS = {"module_name": "rss_pipeline.definitions"}
LAUNCHER = f"""
run_launcher:
  module: {ForkedRunLauncher.__module__}
  class: {ForkedRunLauncher.__name__}
"""
ANOTHER = """
run_launcher:
  module: dagster
  class: DefaultRunLauncher
"""


@contextmanager
def instance_of(folder: Path, launcher: str) -> Iterator[dg.DagsterInstance]:
    """An instance with these lines in its dagster.yaml."""
    folder.mkdir(exist_ok=True)
    (folder / "dagster.yaml").write_text(f"telemetry: {{enabled: false}}\n{launcher}", "utf-8")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


@pytest.mark.parametrize(
    ("launcher", "forks", "inside"),
    [(LAUNCHER, True, 1), (LAUNCHER, False, 0), (ANOTHER, True, 0), ("", True, 0)],
)
def test_our_code_needs_no_code_server_where_runs_are_forked_and_no_one_set_another_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: str, forks: bool, inside: int
) -> None:
    monkeypatch.setattr(locations, "FORKS_RUNS", forks)
    (tmp_path / "dagster.yaml").write_text(launcher, "utf-8")
    places = Places.of(None, home=tmp_path)
    assert (len(places.inside), len(places.in_servers)) == (inside, 1 - inside)
    assert [each.location_name for each in (*places.inside, *places.in_servers)] == ["rss_pipeline"]


@pytest.mark.parametrize("text", ["", "load_from: [", "load_frm: []", "a sentence"])
def test_a_workspace_that_dagster_cannot_use_is_named_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "workspace.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(SettingsError) as raised:
        Places.of(file, home=tmp_path)
    [line] = str(raised.value).splitlines()
    assert line.startswith(f"{file}: Dagster cannot use it; correct it, or remove it. ")


@pytest.mark.parametrize(
    ("target", "own"),
    [
        (OURS, True),
        ({**OURS, "attribute": "defs"}, True),
        ({**OURS, "attribute": "other"}, False),
        ({**OURS, "executable_path": sys.executable}, True),
        ({**OURS, "executable_path": "/usr/bin/another-python"}, False),
        ({**OURS, "working_directory": "/"}, False),
        ({"module_name": "their.definitions"}, False),
        ({"python_file": "definitions.py"}, False),
    ],
)
def test_a_location_is_ours_by_its_module_interpreter_and_folder(target: dict[str, str], own: bool) -> None:
    origin = ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(**target), location_name="any")
    assert is_own(origin) is own


def test_dagster_reads_and_writes_our_origin_as_its_own() -> None:
    """A run and a sensor have it in their rows, and a state keeps the id that it gives."""
    target = LoadableTargetOrigin(module_name="rss_pipeline.definitions")
    ours, theirs = (
        each(target, location_name="any") for each in (InProcessCodeLocationOrigin, DagstersOrigin)
    )
    assert serialize_value(ours) == serialize_value(theirs)
    assert deserialize_value(serialize_value(ours), DagstersOrigin) == theirs


@pytest.fixture
def location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The definitions of hanging.py, as a location in this process, with a short time for a tick."""
    monkeypatch.setattr(locations, "TICK_SECONDS", 0.2)
    monkeypatch.setattr(hanging, "HANGS", tmp_path / "hangs")
    hanging.HANGS.touch()
    target = LoadableTargetOrigin(module_name=hanging.__name__, executable_path=sys.executable)
    with instance_of(tmp_path, "") as instance:
        yield InProcessCodeLocationOrigin(target, location_name="any").create_location(instance)
    hanging.HANGS.unlink(missing_ok=True)


def sensor(location: Any, name: str) -> Any:
    """One tick of it."""
    [repository] = location.get_repositories().values()
    return location.get_sensor_execution_data(
        location._instance, repository.handle, name, None, None, None, None, None
    )


def test_a_sensor_that_hangs_fails_after_a_time_and_holds_up_no_other(location: Any) -> None:
    with pytest.raises(DagsterUserCodeUnreachableError, match=r"hangs took more than 0\.2 s"):
        sensor(location, "hangs")
    # The daemon takes the location anew each minute.
    location = location.origin.create_location(location._instance)
    with pytest.raises(DagsterUserCodeUnreachableError, match="The last tick of hangs still hangs"):
        sensor(location, "hangs")
    assert sensor(location, "goes_on").skip_message == "at once"
    hanging.HANGS.unlink()

    def skipped() -> str | None:
        try:
            message: str = sensor(location, "hangs").skip_message
        except DagsterUserCodeUnreachableError:
            return None
        return message

    assert soon(skipped) == "it hangs no more"


def test_a_schedule_that_hangs_fails_after_a_time(location: Any) -> None:
    [repository] = location.get_repositories().values()
    with pytest.raises(DagsterUserCodeUnreachableError, match="hangs_daily took more than"):
        location.get_schedule_execution_data(location._instance, repository.handle, "hangs_daily", None, None)


def test_a_reload_leaves_the_definitions_as_they_are(location: Any) -> None:
    """The UI had none after a click on "Reload all"."""
    [again] = location.origin.reload_location(location._instance).get_repositories().values()
    assert [each.name for each in again.get_sensors()] == ["goes_on", "hangs"]


def test_an_error_of_a_tick_is_the_ticks(location: Any) -> None:
    with pytest.raises(Exception, match="nowhere"):
        sensor(location, "nowhere")


@pytest.mark.slow
def test_a_location_of_somebody_else_that_fails_to_load_harms_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    theirs = {"host": "127.0.0.1", "port": free_port(), "location_name": "theirs"}
    entries = [{"python_module": {**OURS, "location_name": "ours"}}, {"grpc_server": theirs}]
    workspace, file = tmp_path / "workspace.yaml", tmp_path / "written.yaml"
    workspace.write_text(yaml.dump({"load_from": entries}), "utf-8")
    with instance_of(tmp_path / "instance", LAUNCHER) as instance, ExitStack() as opened:
        opened.enter_context(Places.of(workspace, home=tmp_path / "instance").served(instance, file))
        with pytest.warns(UserWarning, match="Error loading repository location theirs"):
            context = opened.enter_context(WorkspaceProcessContext(instance, Locations(file)))
        found = context.create_request_context().get_code_location_entries()
        kinds = {name: type(entry.code_location).__name__ for name, entry in found.items()}
    assert kinds == {"rss_pipeline": "_Location", "theirs": "NoneType"}
