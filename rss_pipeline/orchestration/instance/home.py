"""Dagster's home folder: its configuration file, and the instance in it.

The definitions that run there are built in orchestration/build.py.
"""

import hashlib
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import dagster as dg
import yaml

from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.errors import InfrastructureError, SettingMistake, SettingsError, disk_full, disk_is_full
from rss_pipeline.orchestration.dagster_private import (
    CheckError,
    ConfigurableClassData,
    InstanceRef,
    NoOpComputeLogManager,
)
from rss_pipeline.orchestration.instance.storages import RunOutput
from rss_pipeline.put_aside import damage_of_tables, put_aside
from rss_pipeline.settings import DAGSTER_DATABASE, Settings

_logger = logging.getLogger(__name__)

_FOLDERS = ("history", "history/runs", "schedules", "storage")
_TABLES = {
    "history/runs.db": "SELECT run_body FROM runs",
    "history/runs/index.db": "SELECT last_materialization FROM asset_keys",
    "schedules/schedules.db": "SELECT instigator_body FROM instigators"
    " UNION ALL SELECT tick_body FROM job_ticks",
}
"""Files that all runs need, with what is read of all; one of a single run is needed by that alone."""
_STAMP = "# As rss_pipeline wrote it, and kept up to date by it until you change it: "
_STAMPED = re.compile(re.escape(_STAMP) + r"([0-9a-f]{64})\n")
_UNSTAMPED = frozenset(
    {
        "c3d0e185e6a5abb07cb215ff80bbf6f77fc8f5777c93c5a3f544be557cb6cdee",
        "832e2c62dbd5b55b831cf0557e68e34580cc57d9d5ca85de89d2582ed0e1f1b4",
    }
)
"""SHA-256 of the files that were written before there was a stamp."""
_OURS = files("rss_pipeline").joinpath("dagster.yaml")
_RUNS = "max_concurrent_runs: {}\n"
_LONGEST_REASON = 300
"""Dagster's sentence may go on with all that could stand there."""
_MOST_RUNS = 20
"""On one machine: each is a process. Polls of more shards take turns."""


def prepare_home(settings: Settings) -> Path:
    """Make Dagster's home with our dagster.yaml, and set DAGSTER_HOME to it.

    A dagster.yaml of an older version of ours is replaced; one that a person changed stays as it is.
    """
    home = settings.dagster_home
    with _writable(home):
        if os.path.lexists(home) and not home.is_dir():
            _put_aside(home, "it is no folder")
        home.mkdir(parents=True, exist_ok=True)
        target = home / "dagster.yaml"
        ours = stamped(_shipped(settings))
        if (why := _damage(target, ours)) is not None:
            _put_aside(target, why)
        if not target.exists() or (is_untouched(target.read_text("utf-8")) and _differs(target, ours)):
            beside = target.with_name(f"dagster.yaml.{os.getpid()}")
            beside.write_text(ours, "utf-8")
            beside.replace(target)
    os.environ["DAGSTER_HOME"] = str(home)
    if settings.runs_elsewhere is not None:
        # Its dagster.yaml has the name of this variable; the processes that we start have it, too.
        os.environ[DAGSTER_DATABASE] = settings.runs_elsewhere.dagster_url
    return home


@contextmanager
def _writable(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise InfrastructureError(f"{disk_full(home)}. Cause: {error}") from error
        mistake = SettingMistake(("RSS_PIPELINE_HOME",), f"{error}; name a folder that can be written")
        raise SettingsError(mistake) from error


def _damage(file: Path, ours: str) -> str | None:
    """A clause about a dagster.yaml that nobody wrote so; None for any other, also with a mistake in it."""
    if not os.path.lexists(file):
        return None
    if not file.is_file():
        return "it is no file"
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError:
        return "it is no text"
    except OSError as error:
        return error.strerror or "it cannot be read"
    if "\0" in text:
        return "it is no text"
    if not text.strip():
        return "it is empty"
    return "its end is missing" if text != ours and ours.startswith(text) else None


def put_damaged_aside(home: Path) -> None:
    """Put aside files of Dagster's history in this home that cannot be used: with them nothing would start.
    What was in them is missing in the UI; feeds, items and all else of ours are not there.

    Raises:
        OSError: the folder cannot be written.
    """
    for name in _FOLDERS:
        folder = home / name
        if os.path.lexists(folder) and not folder.is_dir():
            _put_aside(folder, "it is no folder")
    for name, documents in _TABLES.items():
        if (why := damage_of_tables(home / name, documents=documents)) is not None:
            _put_aside(home / name, why)


def _put_aside(path: Path, why: str) -> None:
    aside = put_aside(path)
    _logger.warning("%s is damaged (%s): it is now %s, and Dagster begins a new one", path, why, aside)


def warn_without_home(settings: Settings) -> None:
    """Log one sentence where DAGSTER_HOME is not set.

    Dagster's own commands then work in a temporary instance, which has none of the feeds' partitions; their
    error message names neither.
    """
    if not os.environ.get("DAGSTER_HOME"):
        logging.getLogger(__name__).warning(
            "DAGSTER_HOME is not set, so a Dagster command uses a temporary instance without this project's"
            " feeds and history; for the project's own instance: export DAGSTER_HOME=%s",
            settings.dagster_home.absolute(),
        )


def changed_by_hand(settings: Settings) -> str | None:
    """A sentence about a dagster.yaml that was changed by hand and so differs from that of this version."""
    target = settings.dagster_home / "dagster.yaml"
    text = target.read_text("utf-8")
    if is_untouched(text) or text == _shipped(settings):
        return None
    more = () if settings.runs_elsewhere is None else settings.runs_elsewhere.dagster_files()
    shipped = " and ".join(map(str, (_OURS, *more)))
    return (
        f"{target} was changed by hand and stays as it is; the file of this version is {shipped}. Compare the"
        " two; delete yours to get that one."
    )


def stamped(text: str) -> str:
    """The file with a first line that shows if the rest was changed."""
    return f"{_STAMP}{_sha256(text)}\n{text}"


def is_untouched(text: str) -> bool:
    """True for a dagster.yaml as a version of this project wrote it."""
    stamp = _STAMPED.match(text)
    return _sha256(text) in _UNSTAMPED if stamp is None else _sha256(text[stamp.end() :]) == stamp[1]


@contextmanager
def by_hand(file: Path) -> Iterator[None]:
    """Raise `SettingsError` where Dagster cannot use this file, of which a person may have written a part."""
    try:
        yield
    except (yaml.YAMLError, dg.DagsterInvalidConfigError, CheckError) as error:
        reason = one_line(str(error))[:_LONGEST_REASON]
        mistake = SettingMistake((str(file),), f"Dagster cannot use it; correct it, or remove it. {reason}")
        raise SettingsError(mistake) from error


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """The instance that `rss-pipeline up` shows."""
    home = _usable_home(settings)
    with by_hand(home / "dagster.yaml"):
        return dg.DagsterInstance.from_config(str(home))


def open_instance_at_terminal(settings: Settings) -> dg.DagsterInstance:
    """The same instance for runs in this process, with their output left to the terminal."""
    return instance_without_output(_usable_home(settings))


def _usable_home(settings: Settings) -> Path:
    home = prepare_home(settings)
    _make_schema(settings)
    if settings.runs_elsewhere is None:
        with _writable(home):
            put_damaged_aside(home)
    return home


def instance_without_output(home: Path) -> dg.DagsterInstance:
    """The instance of this home, which keeps nothing of what its runs print.

    A `compute_logs` of a person's own dagster.yaml stays in use.
    """
    with by_hand(home / "dagster.yaml"):
        ref = InstanceRef.from_dir(str(home))
    found = ref.compute_logs_data
    is_ours = found is not None and found.module_name == RunOutput.__module__
    if is_ours or found == InstanceRef.config_defaults(str(home))["compute_logs"]:
        nowhere = ConfigurableClassData(
            NoOpComputeLogManager.__module__, NoOpComputeLogManager.__name__, "{}"
        )
        ref = ref._replace(compute_logs_data=nowhere)
    with by_hand(home / "dagster.yaml"):
        return dg.DagsterInstance.from_ref(ref)


def _make_schema(settings: Settings) -> None:
    """Make the schema of Dagster's tables in our database, where they are to be there."""
    if (elsewhere := settings.runs_elsewhere) is None:
        return
    # Only there is its driver for certain.
    from rss_pipeline.storage.backends.postgres.connection import check_options

    schema = elsewhere.schema
    if schema is not None:
        settings.database.make_schema(schema)
    check_options(elsewhere.libpq_url, schema=schema)


def _shipped(settings: Settings) -> str:
    text = _OURS.read_text("utf-8")
    if settings.runs_elsewhere is not None:
        text = settings.runs_elsewhere.dagster_yaml(text)
    # The polls of all shards leave as much room for other runs as the one poll did.
    return text.replace(_RUNS.format(5), _RUNS.format(min(4 + settings.shards, _MOST_RUNS)))


def _differs(path: Path, text: str) -> bool:
    return path.read_text("utf-8") != text


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
