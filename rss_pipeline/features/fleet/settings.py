"""The settings of a fleet: its broker, the database of Dagster's tables, this machine's name and places."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.settings import DAGSTER_DATABASE, DAGSTER_SCHEMA, RunsElsewhere, Settings
from rss_pipeline.storage.backends.backend import Server
from rss_pipeline.storage.database import Database

_POSTGRES = "DATABASE_URL"
_BROKER = "RSS_BROKER_URL"
_DRIVER = "postgresql+psycopg2"
_FILE = Path(__file__).with_name("dagster_fleet.yaml")
_LINES = {
    """# Runs, events and ticks are SQLite files in DAGSTER_HOME that each process keeps open.
# Dagster's own classes open and close them for each statement.
storage:
  custom:
    module: rss_pipeline.orchestration.instance.storages
    class: OpenSqliteStorage
    config:
      base_dir:
        env: DAGSTER_HOME

""": "",
    """# `rss-pipeline up` forks runs from a process that has everything imported. Below Dagster's own
# commands this is Dagster's launcher.
run_launcher:
  module: rss_pipeline.orchestration.run_launcher
  class: ForkedRunLauncher

""": "",
    """  module: rss_pipeline.orchestration.queueing
  class: BackfillsLastRunCoordinator
""": """  module: rss_pipeline.features.fleet.dagster
  class: FleetRunCoordinator
""",
    """    # A poll, a download and two runs of a backfill leave one for a run that a person starts.
    max_concurrent_runs: 5
""": """    # As many as the workers have places for: the coordinator adds a limit for each of their queues.
    max_concurrent_runs: -1
""",
}
"""Lines of dagster.yaml, and those of a fleet in their place; the others of a fleet are in its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings(RunsElsewhere):
    """Several machines: runs go through a broker to workers."""

    broker_url: str = field(repr=False)
    """The URL of a Redis; may hold a password."""
    worker_name: str
    """The name of the worker on this machine; no other has it."""
    worker_runs: int = 2
    """Runs that the worker on this machine executes at once, besides one that a person waits for."""

    @property
    def broker_where(self) -> str:
        """The broker, for people."""
        parts = urlsplit(self.broker_url)
        port = "" if parts.port is None else f":{parts.port}"
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def servers(self) -> tuple[Server, ...]:
        """The broker, and the database of Dagster's tables."""
        return (
            Server(
                what="the broker of this installation (RSS_BROKER_URL)",
                url=self.broker_url,
                default_port=6379,
            ),
            Server(
                what="the database of Dagster's tables (DAGSTER_DATABASE_URL)",
                url=self.dagster_url,
                default_port=5432,
            ),
        )

    def dagster_yaml(self, text: str) -> str:
        """The queue, the tables and the launcher of a fleet in the place of one machine's."""
        for of_one, of_fleet in _LINES.items():
            text = text.replace(of_one, of_fleet)
        return text + _FILE.read_text("utf-8")

    def dagster_files(self) -> tuple[Path, ...]:
        """The file of what only a fleet has."""
        return (_FILE,)


def read(reader: EnvironmentReader) -> FleetSettings | None:
    """The broker of several machines, or None. It needs a Postgres database."""
    broker, dagster = reader.redis(_BROKER), reader.postgres(DAGSTER_DATABASE, more=(_DRIVER,))
    runs = reader.whole("RSS_WORKER_RUNS", 2, 1, 64)
    name = reader.machine("RSS_WORKER_NAME")
    database = reader.text(_POSTGRES)
    if reader.text(_BROKER) is None:
        if dagster is not None:
            reader.add(
                f"set, but not {_BROKER}; Dagster's tables are in Postgres only where several machines work:"
                " set both, or none",
                DAGSTER_DATABASE,
            )
        return None
    if database is None:
        reader.add(
            f"not set, but {_BROKER} is; several machines share a database: set both, or none", _POSTGRES
        )
        return None
    return FleetSettings(
        broker_url=broker or "",
        dagster_url=_for_dagster(dagster) if dagster else _for_dagster(database, schema=DAGSTER_SCHEMA),
        worker_name=name,
        worker_runs=runs,
    )


def is_fleet(database: Database, settings: Settings) -> bool:  # noqa: ARG001 - other features ask it
    """True where several machines work."""
    return settings.of(FleetSettings) is not None


def _for_dagster(url: str, *, schema: str | None = None) -> str:
    """The URL of a database for Dagster: with the driver that its statements are written for, which is not
    SQLAlchemy's default any more, and with UTC as the server's time. Dagster takes the times that the server
    writes for UTC.
    """
    # Not urlunsplit(): it would write a URL of a socket, `postgresql:///feeds`, without its empty host.
    address, _, query = url.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    options = [given.get("options", ""), "-ctimezone=UTC", f"-csearch_path={schema}" if schema else ""]
    missing = [option for option in options[1:] if option and option not in options[0]]
    given["options"] = " ".join([*options[:1], *missing]).strip()
    return f"{_DRIVER}:{address.partition(':')[2]}?{urlencode(given, quote_via=quote)}"
