"""Objects that all forks of `up` would make for themselves, made once before them and shared.

An instance of Dagster with our storages opens its files in each process anew, so that its forks can have it;
our code location as well. A first tick and a first poll load and make what every daemon and run needs.
Without this, a daemon has 35 MB more of its own, and a run takes twice the processor time.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import dagster as dg

from rss_pipeline.orchestration.in_process import poll_of_nothing
from rss_pipeline.orchestration.instance.own_location import OWN_MODULE
from rss_pipeline.orchestration.instance.storages import OPEN_FILES, OpenRunStorage, newest_revision
from rss_pipeline.orchestration.serving.locations import InProcessCodeLocationOrigin, Locations
from rss_pipeline.settings import Settings

_TICKS = ("poll_feeds_when_due", "end_dead_runs")
"""Sensors that are evaluated. What they find is found again by the daemon, a second later."""

_shared: list[dg.DagsterInstance] = []
_logger = logging.getLogger("dagster")


def warm(settings: Settings, workspace: Path) -> None:
    """Make them, for the code locations of this workspace file. Nothing where a person's dagster.yaml names
    other storages, or where a store of ours is a server: a connection cannot be shared."""
    instance = dg.DagsterInstance.get()
    servers = settings.database_server or settings.objects_server
    if not isinstance(instance.run_storage, OpenRunStorage) or servers is not None:
        instance.dispose()
        # With one of them open, nothing could be forked.
        OPEN_FILES.close()
        return
    _shared.append(instance)
    try:
        instance.get_runs(limit=1)
        newest_revision()
        for origin in Locations(workspace).create_origins():
            if not isinstance(origin, InProcessCodeLocationOrigin):
                continue
            location = origin.create_location(instance)
            for repository in location.get_repositories().values():
                for name in _TICKS:
                    location.get_sensor_execution_data(
                        instance, repository.handle, name, None, None, None, None, None
                    )
        definitions: dg.Definitions = import_module(OWN_MODULE).defs
        poll_of_nothing(definitions)
    # What does not work now is said by the daemon.
    except Exception as error:  # noqa: BLE001
        _logger.debug("not warmed: %s", error)
    finally:
        OPEN_FILES.close()


@contextmanager
def opened() -> Iterator[dg.DagsterInstance]:
    """The instance of DAGSTER_HOME, shared if there is one."""
    with _shared[0] if _shared else dg.DagsterInstance.get() as instance:
        yield instance
