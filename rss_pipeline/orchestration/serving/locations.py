"""The code locations of daemon and webserver: our own inside them, those of others in code servers.

A code server of our own takes 185 MB in two processes, and is asked for its id twice a second. It is kept
only where a launcher that is not ours (run_launcher.py) starts its runs there.
https://docs.dagster.io/deployment/code-locations
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import yaml

from rss_pipeline.orchestration import dagster_private as private
from rss_pipeline.orchestration.dagster_private_commands import ProxyServerManager
from rss_pipeline.orchestration.instance.home import by_hand
from rss_pipeline.orchestration.instance.own_location import OWN_LOCATION, OWN_MODULE
from rss_pipeline.orchestration.run_launcher import FORKS_RUNS, ForkedRunLauncher

TICK_SECONDS = 60.0
"""Time for a tick, as for one in a code server."""
_Result = TypeVar("_Result")


class Locations(private.WorkspaceLoadTarget):
    """The locations of a workspace file, of which our own is loaded into this process."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def create_origins(self) -> Sequence[private.CodeLocationOrigin]:
        return [
            InProcessCodeLocationOrigin(origin.loadable_target_origin, location_name=origin.location_name)
            if is_own(origin)
            else origin
            for origin in private.WorkspaceFileTarget([str(self._file)]).create_origins()
        ]


class _These(private.WorkspaceLoadTarget):
    def __init__(self, origins: Sequence[private.CodeLocationOrigin]) -> None:
        self._origins = origins

    def create_origins(self) -> Sequence[private.CodeLocationOrigin]:
        return self._origins


def is_own(origin: private.CodeLocationOrigin) -> bool:
    """True for our definitions, in this interpreter and this folder."""
    if not isinstance(origin, private.ManagedGrpcPythonEnvCodeLocationOrigin):
        return False
    target = origin.loadable_target_origin
    return (
        target.module_name == OWN_MODULE
        and target.attribute in (None, "defs")
        and target.executable_path in (None, sys.executable)
        and Path(target.working_directory or ".").resolve() == Path.cwd()
    )


@dataclass(frozen=True, slots=True)
class Places:
    """The places of an installation's code locations: in daemon and webserver, or in code servers."""

    inside: Sequence[private.CodeLocationOrigin]
    """Ours, into daemon and webserver."""
    in_servers: Sequence[private.CodeLocationOrigin]

    @classmethod
    def of(cls, workspace: Path | None, *, home: Path) -> "Places":
        """The places for this workspace.yaml, or else for our own alone, in the instance of this home. No
        database is opened."""
        with by_hand(workspace) if workspace is not None else nullcontext():
            origins = [
                _named(origin) if is_own(origin) else origin for origin in _target(workspace).create_origins()
            ]
        inside = [origin for origin in origins if is_own(origin)] if starts_runs(home) else []
        return cls(inside, [origin for origin in origins if origin not in inside])

    def write(self, file: Path, servers: Sequence[Mapping[str, Any]] = ()) -> None:
        """Write a workspace file for `Locations`, with these code servers."""
        file.write_text(yaml.dump({"load_from": [*map(_entry, self.inside), *servers]}), "utf-8")

    @contextmanager
    def served(self, instance: dg.DagsterInstance, file: Path) -> Iterator[None]:
        """Code servers, and a workspace file with their addresses. Daemon and webserver share them: with
        servers of its own, the daemon would start each of them anew every minute."""
        with ProxyServerManager(
            instance, _These(self.in_servers), code_server_log_level="warning"
        ) as servers:
            self.write(file, servers.get_code_server_specs())
            yield


def starts_runs(home: Path) -> bool:
    """True where the runs of our definitions need no code server: `up` can fork them, and nobody has set
    another launcher in the dagster.yaml of this home."""
    with by_hand(home / "dagster.yaml"):
        launcher = private.InstanceRef.from_dir(str(home)).run_launcher_data
    ours = ForkedRunLauncher.__module__, ForkedRunLauncher.__name__
    return FORKS_RUNS and launcher is not None and (launcher.module_name, launcher.class_name) == ours


def _target(workspace: Path | None) -> private.WorkspaceLoadTarget:
    if workspace is not None:
        return private.WorkspaceFileTarget([str(workspace)])
    return private.ModuleTarget(OWN_MODULE, None, os.getcwd(), OWN_LOCATION)


def _named(origin: private.CodeLocationOrigin) -> private.CodeLocationOrigin:
    """Our location under the name that the runs of commands have, whatever name the workspace gives it: under
    another one the UI would list no runs of its jobs."""
    assert isinstance(origin, private.ManagedGrpcPythonEnvCodeLocationOrigin)
    return private.ManagedGrpcPythonEnvCodeLocationOrigin(
        origin.loadable_target_origin, location_name=OWN_LOCATION
    )


def _entry(origin: private.CodeLocationOrigin) -> Mapping[str, Any]:
    assert isinstance(origin, private.ManagedGrpcPythonEnvCodeLocationOrigin)
    target = origin.loadable_target_origin
    found = {
        "module_name": OWN_MODULE,
        "attribute": target.attribute,
        "working_directory": target.working_directory,
        "location_name": origin.location_name,
    }
    return {"python_module": {name: value for name, value in found.items() if value is not None}}


# Dagster writes an origin by the name of its class, and reads it as its own: so this one has that name.
class InProcessCodeLocationOrigin(private.InProcessCodeLocationOrigin):
    """The origin of a location in this process, in which a tick that hangs ends after a time."""

    def create_location(self, instance: dg.DagsterInstance) -> private.InProcessCodeLocation:
        # The daemon asks for one each minute, and a new one would begin ticks again that hang.
        place = self.location_name, self.loadable_target_origin
        with _LOADING:
            location = _LOADED.get(place)
            if location is None or not location.is_of(instance):
                location = _LOADED[place] = _Location(self, instance)
        return location

    def reload_location(self, instance: dg.DagsterInstance) -> private.InProcessCodeLocation:
        """The location as it is. "Reload all" calls it, also where no reload is supported: Dagster's own
        raises an error, and the UI has no definitions from then on."""
        return self.create_location(instance)


class _Location(private.InProcessCodeLocation):
    """A code location in this process. Its definitions are those of the start: a reload needs a restart."""

    def __init__(self, origin: InProcessCodeLocationOrigin, instance: dg.DagsterInstance) -> None:
        super().__init__(origin, instance)
        self._limit = TimeLimit(TICK_SECONDS)

    def is_of(self, instance: dg.DagsterInstance) -> bool:
        """True for the instance with which it was loaded."""
        return self._instance is instance

    def get_sensor_execution_data(self, *args: Any, **named: Any) -> Any:
        """Evaluate a sensor."""
        name = str(named.get("name", args[2] if len(args) > 2 else ""))
        return self._limit.run(name, lambda: super(_Location, self).get_sensor_execution_data(*args, **named))

    def get_schedule_execution_data(self, *args: Any, **named: Any) -> Any:
        """Evaluate a schedule."""
        name = str(named.get("schedule_name", args[2] if len(args) > 2 else ""))
        return self._limit.run(
            name, lambda: super(_Location, self).get_schedule_execution_data(*args, **named)
        )


_LOADED: dict[object, _Location] = {}
_LOADING = threading.Lock()


class TimeLimit:
    """Calls that end after a time, whatever they call: the daemon has four threads for all ticks."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._hanging: dict[str, threading.Thread] = {}

    def run(self, name: str, call: Callable[[], _Result]) -> _Result:
        """The call's result.

        Raises:
            DagsterUserCodeUnreachableError: it took too long, or the last call of this name still hangs. Its
                thread cannot be ended.
        """
        if (before := self._hanging.get(name)) is not None and before.is_alive():
            raise private.DagsterUserCodeUnreachableError(f"The last tick of {name} still hangs.")
        results: list[_Result] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(call())
            except BaseException as error:  # noqa: BLE001 - raised again, in the thread of the caller
                errors.append(error)

        thread = threading.Thread(target=work, name=f"tick of {name}", daemon=True)
        thread.start()
        thread.join(self._seconds)
        if thread.is_alive():
            self._hanging[name] = thread
            raise private.DagsterUserCodeUnreachableError(
                f"The tick of {name} took more than {self._seconds:g} s, and is not waited for."
            )
        self._hanging.pop(name, None)
        if errors:
            raise errors[0]
        return results[0]
