"""The environment as one frozen `Settings`, or every mistake in it.

Nothing is opened or created here, and no variable is read anywhere else; the feeds themselves are
`collector.registry`'s.
"""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from pathlib import Path

from rss_pipeline.collector.http.addresses import AddressRange
from rss_pipeline.collector.models.feed import FOREVER_DAYS
from rss_pipeline.environment import EnvironmentReader, user_agent
from rss_pipeline.errors import SettingsError
from rss_pipeline.server_settings import (
    D1Settings,
    FleetSettings,
    PostgresSettings,
    S3Settings,
    bucket_settings,
    d1_settings,
    fleet_settings,
    folder_address,
    postgres_settings,
)
from rss_pipeline.web.authority import Authority

PARSE_TIMEOUT_SECONDS = 20.0
"""A document of 5,000 items takes some 6 s; one built to be slow (40,000 attributes) is killed here."""

_VARIABLES = (
    "RSS_PIPELINE_HOME",
    "RSS_FEEDS_FILE",
    "RSS_PIPELINE_LEASE_SECONDS",
    "RSS_USER_AGENT_CONTACT",
    "RSS_FETCH_CONCURRENCY",
    "RSS_HOST_DELAY_SECONDS",
    "RSS_MAX_FEED_MB",
    "RSS_BATCH_SIZE",
    "RSS_PARSE_WORKERS",
    "RSS_IMAGE_CONCURRENCY",
    "RSS_IMAGES_PER_HOST",
    "RSS_IMAGE_HOST_DELAY_SECONDS",
    "RSS_IMAGES_PER_ITEM",
    "RSS_IMAGE_MB_PER_DAY",
    "RSS_IMAGE_FREE_PERCENT",
    "RSS_IMAGE_FREE_GB",
    "RSS_ITEMS_PER_DAY",
    "RSS_BACKUP_MB_PER_DAY",
    "RSS_KEEP_DAYS",
    "RSS_BACKUP_DAYS",
    "RSS_HISTORY_DAYS",
    "RSS_CLEAN_AT",
    "RSS_SWEEP_AT",
    "RSS_TIMEZONE",
    "RSS_PROXY",
    "RSS_CA_FILE",
    "RSS_PORT",
    "RSS_UI_HOSTS",
    "RSS_UI_ADDRESS",
    "RSS_READER",
    "RSS_READER_PORT",
    "RSS_READER_ADDRESS",
    "RSS_READER_HOSTS",
    "RSS_READER_PROXIES",
    "RSS_ALERT_WEBHOOK",
    "RSS_READER_SECRET",
    "RSS_BROKER_URL",
    "RSS_OBJECTS_PUBLIC_URL",
    "RSS_SHARDS",
    "RSS_WORKER_NAME",
    "RSS_WORKER_RUNS",
    "ALLOW_NETWORKS",
    "ALLOW_PORTS",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the pipeline on this machine. Paths are absolute."""

    home: Path
    feeds_file: Path
    user_agent: str
    lease_seconds: int = 180
    """Time for which a run without a sign of life keeps its feeds."""
    fetch_concurrency: int = 5
    host_delay_seconds: float = 1.0
    """Between two requests to one host."""
    max_feed_mb: int | None = None
    """Megabytes of a feed's document that are read, as sent and decompressed; None is 10 and 20."""
    batch_size: int = 500
    """Feeds one poll claims at most."""
    parse_workers: int = 1
    parse_timeout_seconds: float = PARSE_TIMEOUT_SECONDS
    image_concurrency: int = 16
    """Images downloaded at once, over all hosts."""
    images_per_host: int = 2
    image_host_delay_seconds: float = 0.2
    """Between two images of one host, on each connection to it."""
    images_per_item: int = 100
    """Images of one item that are archived; the others are left out, with a warning on the feed."""
    image_mb_per_day: int = 200
    """For one feed and UTC day; the other images wait for the next day."""
    image_free_percent: float = 5.0
    image_free_gb: float = 2.0
    """Images are not downloaded while less than one of the two is free on a disk of this machine."""
    items_per_day: int = 20_000
    """New items of one feed and UTC day; the others are left out, with a warning on the feed."""
    backup_mb_per_day: int = 100
    """Megabytes of new backups of one feed and UTC day; then its next visit is on the next day."""
    keep_days: int = 180
    """Items are retired at this age, unless feeds.yaml says otherwise of their feed."""
    backup_days: int = 30
    """Backups are deleted at this age, except for each feed's newest."""
    history_days: float = 30.0
    """Dagster's runs are purged this long after their end."""
    clean_at: time = time(4, 0)
    sweep_at: time | None = None
    """The time at which every feed is visited each day, due or not; None: each when it is due."""
    timezone: str = "UTC"
    """Time zone of `clean_at` and `sweep_at`: a name of the tz database."""
    proxy: str | None = field(default=None, repr=False)
    """An outbound HTTP proxy; may hold a password."""
    ca_file: Path | None = None
    """Certificate authorities to accept besides the usual ones; PEM."""
    allow_networks: tuple[AddressRange, ...] = ()
    """Address ranges that feeds and images may be fetched from although they are not public."""
    allow_ports: frozenset[int] = frozenset()
    """Ports that may be used besides 80 and 443."""
    port: int = 3000
    ui_address: str = "127.0.0.1"
    """The IPv4 address of this machine that the UI listens on. Another one only where something in front of
    it decides who comes through, such as a container's published ports."""
    ui_hosts: tuple[Authority, ...] = ()
    """Names of the UI besides those of the loopback interface, as a browser's address bar shows them."""
    reader: bool = True
    """True if `up` starts the reader, too."""
    reader_port: int = 3001
    reader_address: str = "127.0.0.1"
    """The IPv4 address of this machine that the reader listens on; it has a login, but no TLS."""
    reader_hosts: tuple[Authority, ...] = ()
    """Names of the reader besides those of the loopback interface, as a browser's address bar shows them."""
    reader_proxies: tuple[AddressRange, ...] = ()
    """Addresses of reverse proxies with a trusted X-Forwarded-For and X-Forwarded-Proto."""
    alert_webhook: str | None = field(default=None, repr=False)
    """The target of alerts; anyone with this URL can post there."""
    reader_secret: str | None = field(default=None, repr=False)
    """The key that signs the tokens of users; None: the one in the home, which is made once."""
    d1: D1Settings | None = None
    """None: `postgres`, or the embedded database."""
    postgres: PostgresSettings | None = None
    """None: `d1`, or the embedded database, `database_path`."""
    s3: S3Settings | None = None
    """None: the embedded object store, `objects_path`."""
    objects_public_url: str | None = None
    """The address at which a web server shows images and topics of `objects_path`, if one does."""
    shards: int = 1
    """Parts, by host, in which feeds are polled; each has a run of its own."""
    fleet: FleetSettings | None = None
    """None: all runs are processes of this machine."""
    unknown: tuple[str, ...] = ()
    """A sentence for each RSS_* variable that is no setting. A warning: others may use the prefix."""

    @property
    def most_backup_bytes(self) -> int:
        """Bytes of new backups of one feed and day."""
        return self.backup_mb_per_day * 1_000_000

    @property
    def has_contact(self) -> bool:
        """True if RSS_USER_AGENT_CONTACT is set."""
        return self.user_agent != user_agent(None)

    @property
    def has_embedded_database(self) -> bool:
        """True if the database is the file `database_path`, and no server."""
        return self.d1 is None and self.postgres is None

    @property
    def pays_by_row(self) -> bool:
        """True if each request to the database, and each row that it reads, is paid for."""
        return self.d1 is not None

    @property
    def database_place(self) -> str:
        """The file or server that has the tables, for people."""
        if self.d1 is not None:
            return self.d1.url
        return str(self.database_path) if self.postgres is None else self.postgres.where

    @property
    def database_path(self) -> Path:
        return self.home / "rss.sqlite"

    @property
    def search_path(self) -> Path:
        """The search index, which may be deleted at any time."""
        return self.home / "search.sqlite"

    @property
    def objects_path(self) -> Path:
        return self.home / "objects"

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
        settings = cls(
            home=reader.path("RSS_PIPELINE_HOME", "var"),
            feeds_file=reader.path("RSS_FEEDS_FILE", "feeds.yaml"),
            user_agent=reader.user_agent("RSS_USER_AGENT_CONTACT"),
            lease_seconds=reader.whole("RSS_PIPELINE_LEASE_SECONDS", 180, 1, 86_400),
            fetch_concurrency=reader.whole("RSS_FETCH_CONCURRENCY", 5, 1, 100),
            host_delay_seconds=reader.decimal("RSS_HOST_DELAY_SECONDS", 1.0, 0.0, 60.0),
            max_feed_mb=reader.whole_or_none(
                "RSS_MAX_FEED_MB", 1, 200, unset="it is 10 as sent and 20 decompressed"
            ),
            batch_size=reader.whole("RSS_BATCH_SIZE", 500, 1, 5_000),
            parse_workers=reader.whole("RSS_PARSE_WORKERS", _default_workers(), 1, 64),
            image_concurrency=reader.whole("RSS_IMAGE_CONCURRENCY", 16, 1, 100),
            images_per_host=reader.whole("RSS_IMAGES_PER_HOST", 2, 1, 10),
            image_host_delay_seconds=reader.decimal("RSS_IMAGE_HOST_DELAY_SECONDS", 0.2, 0.0, 60.0),
            images_per_item=reader.whole("RSS_IMAGES_PER_ITEM", 100, 1, 100_000),
            image_mb_per_day=reader.whole("RSS_IMAGE_MB_PER_DAY", 200, 1, 1_000_000),
            image_free_percent=reader.decimal("RSS_IMAGE_FREE_PERCENT", 5.0, 0.0, 100.0),
            image_free_gb=reader.decimal("RSS_IMAGE_FREE_GB", 2.0, 0.0, 1_000_000.0),
            items_per_day=reader.whole("RSS_ITEMS_PER_DAY", 20_000, 1, 10_000_000),
            backup_mb_per_day=reader.whole("RSS_BACKUP_MB_PER_DAY", 100, 1, 1_000_000),
            keep_days=reader.whole("RSS_KEEP_DAYS", 180, 1, FOREVER_DAYS),
            backup_days=reader.whole("RSS_BACKUP_DAYS", 30, 7, FOREVER_DAYS),
            history_days=reader.decimal("RSS_HISTORY_DAYS", 30.0, 0.0005, FOREVER_DAYS),
            clean_at=reader.time_of_day("RSS_CLEAN_AT", time(4, 0)),
            sweep_at=reader.time_of_day_or_none("RSS_SWEEP_AT"),
            timezone=reader.timezone("RSS_TIMEZONE", "UTC"),
            proxy=reader.proxy("RSS_PROXY"),
            ca_file=reader.authorities("RSS_CA_FILE"),
            allow_networks=reader.networks("ALLOW_NETWORKS"),
            allow_ports=reader.ports("ALLOW_PORTS"),
            port=reader.whole("RSS_PORT", 3000, 1, 65_535),
            ui_address=reader.ipv4("RSS_UI_ADDRESS", "127.0.0.1"),
            ui_hosts=reader.names("RSS_UI_HOSTS"),
            reader=reader.on_off("RSS_READER", True),
            reader_port=reader.whole("RSS_READER_PORT", 3001, 1, 65_535),
            reader_address=reader.ipv4("RSS_READER_ADDRESS", "127.0.0.1"),
            reader_hosts=reader.names("RSS_READER_HOSTS"),
            reader_proxies=reader.ranges("RSS_READER_PROXIES"),
            alert_webhook=reader.webhook("RSS_ALERT_WEBHOOK"),
            reader_secret=reader.secret("RSS_READER_SECRET", least_bytes=32),
            d1=d1_settings(reader),
            postgres=postgres_settings(reader),
            s3=bucket_settings(reader),
            objects_public_url=folder_address(reader),
            shards=reader.whole("RSS_SHARDS", 1, 1, 1_024),
            fleet=fleet_settings(reader),
            unknown=unknown_settings(environ),
        )
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


def unknown_settings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each variable that looks like a setting and is none."""
    sentences = []
    for name in sorted(environ):
        if name.startswith(("RSS_", "ALLOW_NETWORK", "ALLOW_PORT")) and name not in _VARIABLES:
            close = difflib.get_close_matches(name, _VARIABLES, n=1, cutoff=0.7)
            meant = f'did you mean "{close[0]}"?' if close else "it is ignored"
            sentences.append(f"{name}: no setting has this name; {meant}")
    return tuple(sentences)
