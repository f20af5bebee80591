"""The environment as one frozen `Settings`, or every mistake in it.

Nothing is opened or created here. The variables of a store are read by its backend (storage/backends/),
those of a feature by it, all others here; the feeds themselves are `collector.registry`'s.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import time
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from rss_pipeline.collector.http.addresses import AddressRange
from rss_pipeline.collector.models.feed import FOREVER_DAYS
from rss_pipeline.environment import EnvironmentReader, user_agent
from rss_pipeline.errors import SettingsError
from rss_pipeline.features import FEATURES
from rss_pipeline.storage.backends.backend import DatabaseBackend, ObjectsBackend, Server
from rss_pipeline.storage.backends.connect import folder_address, read_database, read_objects
from rss_pipeline.storage.backends.folder.backend import OBJECTS_FOLDER, FolderBackend
from rss_pipeline.storage.backends.sqlite.backend import DATABASE_FILE, SqliteBackend
from rss_pipeline.web.authority import Authority

DAGSTER_DATABASE = "DAGSTER_DATABASE_URL"
"""The variable that names the database of Dagster's own tables, where other machines execute runs."""
DAGSTER_SCHEMA = "dagster"
"""The schema of Dagster's own tables in `DATABASE_URL`, so that one dump has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsElsewhere:
    """The settings of a feature by which other machines execute runs: Dagster's tables are where all of them
    see them."""

    dagster_url: str = field(repr=False)
    """The URL of the database with Dagster's own tables, for SQLAlchemy; may hold a password."""

    @property
    def schema(self) -> str | None:
        """The schema of Dagster's tables where they have one of their own beside ours, else None."""
        return DAGSTER_SCHEMA if f"-csearch_path={DAGSTER_SCHEMA}" in unquote(self.dagster_url) else None

    @property
    def libpq_url(self) -> str:
        """The URL of Dagster's database for libpq; may hold a password."""
        return self.dagster_url.replace("+psycopg2", "", 1)

    def servers(self) -> tuple[Server, ...]:
        """The servers of the installation that no feed may lead to."""
        return ()

    def dagster_yaml(self, text: str) -> str:
        """The dagster.yaml of these machines, from that of one."""
        return text

    def dagster_files(self) -> tuple[Path, ...]:
        """The files besides it that it is made of."""
        return ()


PARSE_TIMEOUT_SECONDS = 20.0
"""A document of 5,000 items takes some 6 s; one built to be slow (40,000 attributes) is killed here."""

_T = TypeVar("_T")


def _setting(
    name: str, default: _T, read: Callable[[EnvironmentReader, str, _T], _T], *, secret: bool = False
) -> _T:
    """A field with the variable that sets it, and how this is read. A secret is not in its `repr`."""
    return field(default=default, repr=not secret, metadata={"name": name, "read": read})


def _plain(read: Callable[[EnvironmentReader, str], _T]) -> Callable[[EnvironmentReader, str, _T], _T]:
    return lambda reader, name, _: read(reader, name)


def _whole(least: int, most: int) -> Callable[[EnvironmentReader, str, int], int]:
    return lambda reader, name, default: reader.whole(name, default, least, most)


def _decimal(least: float, most: float) -> Callable[[EnvironmentReader, str, float], float]:
    return lambda reader, name, default: reader.decimal(name, default, least, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the pipeline on this machine. Paths are absolute."""

    home: Path
    feeds_file: Path
    user_agent: str
    lease_seconds: int = _setting("RSS_PIPELINE_LEASE_SECONDS", 180, _whole(1, 86_400))
    """Time for which a run without a sign of life keeps its feeds."""
    fetch_concurrency: int = _setting("RSS_FETCH_CONCURRENCY", 5, _whole(1, 100))
    host_delay_seconds: float = _setting("RSS_HOST_DELAY_SECONDS", 1.0, _decimal(0.0, 60.0))
    """Between two requests to one host."""
    max_feed_mb: int | None = _setting(
        "RSS_MAX_FEED_MB",
        None,
        lambda reader, name, _: reader.whole_or_none(
            name, 1, 200, unset="it is 10 as sent and 20 decompressed"
        ),
    )
    """Megabytes of a feed's document that are read, as sent and decompressed; None is 10 and 20."""
    batch_size: int = _setting("RSS_BATCH_SIZE", 500, _whole(1, 5_000))
    """Feeds one poll claims at most."""
    parse_workers: int = 1
    parse_timeout_seconds: float = PARSE_TIMEOUT_SECONDS
    image_concurrency: int = _setting("RSS_IMAGE_CONCURRENCY", 16, _whole(1, 100))
    """Images downloaded at once, over all hosts."""
    images_per_host: int = _setting("RSS_IMAGES_PER_HOST", 2, _whole(1, 10))
    image_host_delay_seconds: float = _setting("RSS_IMAGE_HOST_DELAY_SECONDS", 0.2, _decimal(0.0, 60.0))
    """Between two images of one host, on each connection to it."""
    images_per_item: int = _setting("RSS_IMAGES_PER_ITEM", 100, _whole(1, 100_000))
    """Images of one item that are archived; the others are left out, with a warning on the feed."""
    image_mb_per_day: int = _setting("RSS_IMAGE_MB_PER_DAY", 200, _whole(1, 1_000_000))
    """For one feed and UTC day; the other images wait for the next day."""
    image_free_percent: float = _setting("RSS_IMAGE_FREE_PERCENT", 5.0, _decimal(0.0, 100.0))
    image_free_gb: float = _setting("RSS_IMAGE_FREE_GB", 2.0, _decimal(0.0, 1_000_000.0))
    """Images are not downloaded while less than one of the two is free on a disk of this machine."""
    items_per_day: int = _setting("RSS_ITEMS_PER_DAY", 20_000, _whole(1, 10_000_000))
    """New items of one feed and UTC day; the others are left out, with a warning on the feed."""
    backup_mb_per_day: int = _setting("RSS_BACKUP_MB_PER_DAY", 100, _whole(1, 1_000_000))
    user_backup_mb_per_day: int = _setting("RSS_USER_BACKUP_MB_PER_DAY", 500, _whole(1, 1_000_000))
    """Megabytes of new backups of one feed and UTC day; then its next visit is on the next day."""
    keep_days: int = _setting("RSS_KEEP_DAYS", 180, _whole(1, FOREVER_DAYS))
    """Items are retired at this age, unless feeds.yaml says otherwise of their feed."""
    backup_days: int = _setting("RSS_BACKUP_DAYS", 30, _whole(7, FOREVER_DAYS))
    """Backups are deleted at this age, except for each feed's newest."""
    history_days: float = _setting("RSS_HISTORY_DAYS", 30.0, _decimal(0.0005, FOREVER_DAYS))
    """Dagster's runs are purged this long after their end."""
    clean_at: time = _setting("RSS_CLEAN_AT", time(4, 0), EnvironmentReader.time_of_day)
    sweep_at: time | None = _setting("RSS_SWEEP_AT", None, _plain(EnvironmentReader.time_of_day_or_none))
    """The time at which every feed is visited each day, due or not; None: each when it is due."""
    timezone: str = _setting("RSS_TIMEZONE", "UTC", EnvironmentReader.timezone)
    """Time zone of `clean_at` and `sweep_at`: a name of the tz database."""
    proxy: str | None = _setting("RSS_PROXY", None, _plain(EnvironmentReader.proxy), secret=True)
    """An outbound HTTP proxy; may hold a password."""
    ca_file: Path | None = _setting("RSS_CA_FILE", None, _plain(EnvironmentReader.authorities))
    """Certificate authorities to accept besides the usual ones; PEM."""
    allow_networks: tuple[AddressRange, ...] = _setting(
        "ALLOW_NETWORKS", (), _plain(EnvironmentReader.networks)
    )
    """Address ranges that feeds and images may be fetched from although they are not public."""
    allow_ports: frozenset[int] = _setting("ALLOW_PORTS", frozenset(), _plain(EnvironmentReader.ports))
    """Ports that may be used besides 80 and 443."""
    port: int = _setting("RSS_PORT", 3000, _whole(1, 65_535))
    ui_address: str = _setting("RSS_UI_ADDRESS", "127.0.0.1", EnvironmentReader.ipv4)
    """The IPv4 address of this machine that the UI listens on. Another one only where something in front of
    it decides who comes through, such as a container's published ports."""
    ui_hosts: tuple[Authority, ...] = _setting("RSS_UI_HOSTS", (), _plain(EnvironmentReader.names))
    """Names of the UI besides those of the loopback interface, as a browser's address bar shows them."""
    reader: bool = _setting("RSS_READER", True, EnvironmentReader.on_off)
    """True if `up` starts the reader, too."""
    reader_port: int = _setting("RSS_READER_PORT", 3001, _whole(1, 65_535))
    reader_address: str = _setting("RSS_READER_ADDRESS", "127.0.0.1", EnvironmentReader.ipv4)
    """The IPv4 address of this machine that the reader listens on; it has a login, but no TLS."""
    reader_hosts: tuple[Authority, ...] = _setting("RSS_READER_HOSTS", (), _plain(EnvironmentReader.names))
    """Names of the reader besides those of the loopback interface, as a browser's address bar shows them."""
    reader_proxies: tuple[AddressRange, ...] = _setting(
        "RSS_READER_PROXIES", (), _plain(EnvironmentReader.ranges)
    )
    """Addresses of reverse proxies with a trusted X-Forwarded-For and X-Forwarded-Proto."""
    alert_webhook: str | None = _setting(
        "RSS_ALERT_WEBHOOK", None, _plain(EnvironmentReader.webhook), secret=True
    )
    """The target of alerts; anyone with this URL can post there."""
    reader_secret: str | None = _setting(
        "RSS_READER_SECRET", None, _plain(EnvironmentReader.secret), secret=True
    )
    """The key that signs the tokens of users; None: the one in the home, which is made once."""
    database_server: DatabaseBackend | None = None
    """None: the embedded database, `database_path`."""
    objects_server: ObjectsBackend | None = None
    """None: the embedded object store, `objects_path`."""
    objects_public_url: str | None = None
    """The address at which a web server shows images and topics of `objects_path`, if one does."""
    shards: int = _setting("RSS_SHARDS", 1, _whole(1, 1_024))
    """Parts, by host, in which feeds are polled; each has a run of its own."""
    of_features: tuple[object, ...] = ()
    """The values that features have read from their own variables, at most one of a type."""
    unknown: tuple[str, ...] = ()
    """A sentence for each RSS_* variable that is no setting. A warning: others may use the prefix."""

    def of(self, kind: type[_T]) -> _T | None:
        """The settings of this type that a feature has read, or None."""
        return next((each for each in self.of_features if isinstance(each, kind)), None)

    @property
    def runs_elsewhere(self) -> RunsElsewhere | None:
        """None: all runs are processes of this machine."""
        return self.of(RunsElsewhere)

    @property
    def most_backup_bytes(self) -> int:
        """Bytes of new backups of one feed and day."""
        return self.backup_mb_per_day * 1_000_000

    @property
    def most_user_backup_bytes(self) -> int:
        """Bytes of new backups of one user's feeds and day."""
        return self.user_backup_mb_per_day * 1_000_000

    @property
    def has_contact(self) -> bool:
        """True if RSS_USER_AGENT_CONTACT is set."""
        return self.user_agent != user_agent(None)

    @property
    def database(self) -> DatabaseBackend:
        """The database of this installation."""
        return self.database_server or SqliteBackend(self.database_path)

    @property
    def objects(self) -> ObjectsBackend:
        """The object store of this installation."""
        return self.objects_server or FolderBackend(self.objects_path, public_url=self.objects_public_url)

    @property
    def pays_by_row(self) -> bool:
        """True if each request to the database, and each row that it reads, is paid for."""
        return self.database.pays_by_row

    @property
    def database_path(self) -> Path:
        return self.home / DATABASE_FILE

    @property
    def objects_path(self) -> Path:
        return self.home / OBJECTS_FOLDER

    @property
    def dagster_home(self) -> Path:
        return self.home / "dagster"

    @property
    def spool_path(self) -> Path:
        return self.home / "spool"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], *, cwd: Path) -> "Settings":
        """Settings from `environ`; relative paths are taken from `cwd`. A variable set to nothing is unset.

        Raises SettingsError with all mistakes, each naming the variable and what to write.
        """
        reader = EnvironmentReader(environ, cwd)
        settings = cls(**_read(reader), unknown=unknown_settings(environ))
        if settings.reader and settings.reader_port == settings.port:
            reader.add(
                f"both are {settings.port}, and the UI needs a port of its own; set another one,"
                " or RSS_READER=off",
                "RSS_PORT",
                "RSS_READER_PORT",
            )
        if reader.mistakes:
            raise SettingsError(*reader.mistakes)
        return settings


def _default_workers() -> int:
    """One worker for each core, at most 4: parsing more at once would starve the rest of the run."""
    return max(1, min(4, os.cpu_count() or 1))


def _read(reader: EnvironmentReader) -> dict[str, Any]:
    """The values of all fields that variables set."""
    single = {
        each.name: each.metadata["read"](reader, each.metadata["name"], each.default)
        for each in fields(Settings)
        if each.metadata
    }
    return single | {
        "home": reader.path("RSS_PIPELINE_HOME", "var"),
        "feeds_file": reader.path("RSS_FEEDS_FILE", "feeds.yaml"),
        "user_agent": reader.user_agent("RSS_USER_AGENT_CONTACT"),
        "parse_workers": reader.whole("RSS_PARSE_WORKERS", _default_workers(), 1, 64),
        "database_server": read_database(reader, ca_file=single["ca_file"]),
        "objects_server": read_objects(reader, ca_file=single["ca_file"]),
        "objects_public_url": folder_address(reader),
        "of_features": tuple(value for value in _of_features(reader) if value is not None),
    }


def _of_features(reader: EnvironmentReader) -> list[object]:
    return [each.settings.read.load()(reader) for each in FEATURES if each.settings is not None]


def variables() -> set[str]:
    """The names of all variables that are settings."""
    reader = EnvironmentReader({}, Path())
    _read(reader)
    return reader.variables


def unknown_settings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each variable that looks like a setting and is none."""
    known = variables()
    sentences = []
    for name in sorted(environ):
        if name.startswith(("RSS_", "ALLOW_NETWORK", "ALLOW_PORT")) and name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
            meant = f'did you mean "{close[0]}"?' if close else "it is ignored"
            sentences.append(f"{name}: no setting has this name; {meant}")
    return tuple(sentences)
