"""Dagster's own home: its configuration file, and the instance in it.

What runs there is definitions.py's.
"""

import os
from importlib.resources import files
from pathlib import Path

import dagster as dg

from rss_pipeline.errors import SettingsError
from rss_pipeline.settings import Settings


def prepare_home(settings: Settings) -> Path:
    """Make Dagster's home with our dagster.yaml where there is none, and point DAGSTER_HOME at it.

    A dagster.yaml that is there stays as it is: a person may have changed it.
    """
    home = settings.dagster_home
    try:
        home.mkdir(parents=True, exist_ok=True)
        target = home / "dagster.yaml"
        if not target.exists():
            target.write_text(files("rss_pipeline").joinpath("dagster.yaml").read_text("utf-8"), "utf-8")
    except OSError as error:
        raise SettingsError(f"RSS_PIPELINE_HOME: {error}; name a folder that can be written") from error
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """The instance that `rss-pipeline up` shows."""
    return dg.DagsterInstance.from_config(str(prepare_home(settings)))
