"""Dagster's home folder: its configuration file, and the instance in it.

The definitions that run there are built in orchestration/build.py.
"""

import hashlib
import logging
import os
import re
from importlib.resources import files
from pathlib import Path

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._serdes import ConfigurableClassData

from rss_pipeline.errors import InfrastructureError, SettingMistake, SettingsError, disk_full, disk_is_full
from rss_pipeline.settings import Settings

_STAMP = "# As rss_pipeline wrote it, and kept up to date by it until you change it: "
_STAMPED = re.compile(re.escape(_STAMP) + r"([0-9a-f]{64})\n")
_UNSTAMPED = frozenset(
    {
        "c3d0e185e6a5abb07cb215ff80bbf6f77fc8f5777c93c5a3f544be557cb6cdee",
        "832e2c62dbd5b55b831cf0557e68e34580cc57d9d5ca85de89d2582ed0e1f1b4",
    }
)
"""SHA-256 of the files that were written before there was a stamp."""


def prepare_home(settings: Settings) -> Path:
    """Make Dagster's home with our dagster.yaml, and point DAGSTER_HOME at it.

    A dagster.yaml of an older version of ours is replaced; one that a person changed stays as it is.
    """
    home = settings.dagster_home
    try:
        home.mkdir(parents=True, exist_ok=True)
        target = home / "dagster.yaml"
        ours = stamped(_shipped())
        if not target.exists() or (is_untouched(target.read_text("utf-8")) and _differs(target, ours)):
            beside = target.with_name(f"dagster.yaml.{os.getpid()}")
            beside.write_text(ours, "utf-8")
            beside.replace(target)
    except OSError as error:
        if disk_is_full(error):
            raise InfrastructureError(f"{disk_full(home)}. It was noticed by {error}") from error
        mistake = SettingMistake(("RSS_PIPELINE_HOME",), f"{error}; name a folder that can be written")
        raise SettingsError(mistake) from error
    os.environ["DAGSTER_HOME"] = str(home)
    return home


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
    if is_untouched(text) or text == _shipped():
        return None
    return (
        f"{target} was changed by hand and stays as it is; the file of this version is"
        f" {files('rss_pipeline').joinpath('dagster.yaml')}. Compare the two; delete yours to get that one."
    )


def stamped(text: str) -> str:
    """The file with a first line that shows if the rest was changed."""
    return f"{_STAMP}{_sha256(text)}\n{text}"


def is_untouched(text: str) -> bool:
    """True for a dagster.yaml as a version of this project wrote it."""
    stamp = _STAMPED.match(text)
    return _sha256(text) in _UNSTAMPED if stamp is None else _sha256(text[stamp.end() :]) == stamp[1]


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """The instance that `rss-pipeline up` shows."""
    return dg.DagsterInstance.from_config(str(prepare_home(settings)))


def open_instance_at_terminal(settings: Settings) -> dg.DagsterInstance:
    """The same instance for runs in this process, with their output left to the terminal.

    Dagster would start four processes a run to copy the output into files and back: 25 MB, and a tenth of a
    second of processor time. A `compute_logs` of a person's own dagster.yaml stays in use.
    """
    home = str(prepare_home(settings))
    ref = InstanceRef.from_dir(home)
    if ref.compute_logs_data == InstanceRef.config_defaults(home)["compute_logs"]:
        nowhere = ConfigurableClassData(
            NoOpComputeLogManager.__module__, NoOpComputeLogManager.__name__, "{}"
        )
        ref = ref._replace(compute_logs_data=nowhere)
    return dg.DagsterInstance.from_ref(ref)


def _shipped() -> str:
    return files("rss_pipeline").joinpath("dagster.yaml").read_text("utf-8")


def _differs(path: Path, text: str) -> bool:
    return path.read_text("utf-8") != text


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
