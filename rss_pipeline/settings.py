"""The environment as one frozen `Settings`, or every mistake in it.

Nothing is opened or created here, and no variable is read anywhere else; the feeds themselves are
`collector.registry`'s.
"""

import difflib
import math
import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from importlib.metadata import version
from ipaddress import IPv4Address, ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from rss_pipeline.collector.http.addresses import AddressRange, is_never_opened
from rss_pipeline.collector.models.feed import FOREVER_DAYS
from rss_pipeline.errors import SettingMistake, SettingsError
from rss_pipeline.web.authority import Authority, read_authority

PARSE_TIMEOUT_SECONDS = 20.0
"""A document of 5,000 items takes some 6 s; one built to be slow (40,000 attributes) is killed here."""

_VARIABLES = (
    "RSS_PIPELINE_HOME",
    "RSS_FEEDS_FILE",
    "RSS_PIPELINE_LEASE_SECONDS",
    "RSS_USER_AGENT_CONTACT",
    "RSS_FETCH_CONCURRENCY",
    "RSS_HOST_DELAY_SECONDS",
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
    "RSS_KEEP_DAYS",
    "RSS_BACKUP_DAYS",
    "RSS_HISTORY_DAYS",
    "RSS_CLEAN_AT",
    "RSS_TIMEZONE",
    "RSS_PROXY",
    "RSS_CA_FILE",
    "RSS_PORT",
    "RSS_UI_HOSTS",
    "RSS_UI_ADDRESS",
    "RSS_ALERT_WEBHOOK",
    "ALLOW_NETWORKS",
    "ALLOW_PORTS",
)
_D1 = ("D1_PROXY_URL", "D1_PROXY_TOKEN")
_R2 = ("R2_ENDPOINT_URL", "R2_BUCKET", "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY")
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class D1Settings:
    """The proxy Worker in front of a D1 database."""

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class R2Settings:
    """An R2 bucket, by its S3 API. `public_url` is the address of its objects for browsers, if any."""

    endpoint_url: str
    bucket: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    public_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How this machine runs the pipeline. Paths are absolute."""

    home: Path
    feeds_file: Path
    user_agent: str
    lease_seconds: int = 180
    """Time for which a run without a sign of life keeps its feeds."""
    fetch_concurrency: int = 5
    host_delay_seconds: float = 1.0
    """Between two requests to one host."""
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
    """Of one feed and UTC day; the others wait for the next day."""
    image_free_percent: float = 5.0
    image_free_gb: float = 2.0
    """Images are not downloaded while less than one of the two is free on a disk of this machine."""
    items_per_day: int = 20_000
    """New items of one feed and UTC day; the others are left out, with a warning on the feed."""
    keep_days: int = 180
    """Items are retired at this age, unless feeds.yaml says otherwise of their feed."""
    backup_days: int = 30
    """Backups are deleted at this age, except for each feed's newest."""
    history_days: float = 30.0
    """Dagster's runs are purged this long after their end."""
    clean_at: time = time(4, 0)
    timezone: str = "UTC"
    """Time zone of `clean_at`: a name of the tz database."""
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
    alert_webhook: str | None = field(default=None, repr=False)
    """Where alerts go; whoever has this URL can post there."""
    d1: D1Settings | None = None
    """None: the embedded database, `database_path`."""
    r2: R2Settings | None = None
    """None: the embedded object store, `objects_path`."""
    unknown: tuple[str, ...] = ()
    """A sentence for each RSS_* variable that is no setting. A warning: others may use the prefix."""

    @property
    def database_path(self) -> Path:
        return self.home / "rss.sqlite"

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
        reader = _Reader(environ, cwd)
        settings = cls(
            home=reader.path("RSS_PIPELINE_HOME", "var"),
            feeds_file=reader.path("RSS_FEEDS_FILE", "feeds.yaml"),
            user_agent=reader.user_agent("RSS_USER_AGENT_CONTACT"),
            lease_seconds=reader.whole("RSS_PIPELINE_LEASE_SECONDS", 180, 1, 86_400),
            fetch_concurrency=reader.whole("RSS_FETCH_CONCURRENCY", 5, 1, 100),
            host_delay_seconds=reader.decimal("RSS_HOST_DELAY_SECONDS", 1.0, 0.0, 60.0),
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
            keep_days=reader.whole("RSS_KEEP_DAYS", 180, 1, FOREVER_DAYS),
            backup_days=reader.whole("RSS_BACKUP_DAYS", 30, 7, FOREVER_DAYS),
            history_days=reader.decimal("RSS_HISTORY_DAYS", 30.0, 0.0005, FOREVER_DAYS),
            clean_at=reader.time("RSS_CLEAN_AT", time(4, 0)),
            timezone=reader.timezone("RSS_TIMEZONE", "UTC"),
            proxy=reader.proxy("RSS_PROXY"),
            ca_file=reader.authorities("RSS_CA_FILE"),
            allow_networks=reader.networks("ALLOW_NETWORKS"),
            allow_ports=reader.ports("ALLOW_PORTS"),
            port=reader.whole("RSS_PORT", 3000, 1, 65_535),
            ui_address=reader.ipv4("RSS_UI_ADDRESS", "127.0.0.1"),
            ui_hosts=reader.names("RSS_UI_HOSTS"),
            alert_webhook=reader.webhook("RSS_ALERT_WEBHOOK"),
            d1=reader.d1(),
            r2=reader.r2(),
            unknown=_unknown(environ),
        )
        if reader.mistakes:
            raise SettingsError(*reader.mistakes)
        return settings


class _Reader:
    """Reads one variable after the other and collects the mistakes."""

    def __init__(self, environ: Mapping[str, str], cwd: Path) -> None:
        self.mistakes: list[SettingMistake] = []
        self._environ = environ
        self._cwd = cwd

    def path(self, name: str, default: str) -> Path:
        text = self._text(name) or default
        try:
            path = self._cwd / Path(text).expanduser()
        except RuntimeError:
            self._wrong(name, text, "write a path without ~, for that user has no home folder")
            path = self._cwd / default
        return Path(os.path.abspath(path))

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        return self._number(name, default, int, f"a whole number from {least:,} to {most:,}", least, most)

    def decimal(self, name: str, default: float, least: float, most: float) -> float:
        return self._number(name, default, float, f"a number from {least:g} to {most:g}", least, most)

    def time(self, name: str, default: time) -> time:
        text = self._text(name)
        if text is None:
            return default
        match = re.fullmatch(r"([0-9]{1,2}):([0-9]{2})", text)
        if match is None or int(match[1]) > 23 or int(match[2]) > 59:
            self._wrong(name, text, f"write a time of day as 04:00; unset, it is {default:%H:%M}")
            return default
        return time(int(match[1]), int(match[2]))

    def timezone(self, name: str, default: str) -> str:
        text = self._text(name)
        if text is None:
            return default
        if text not in available_timezones():
            self._wrong(name, text, f"write a name like Europe/Berlin; unset, it is {default}")
            return default
        return text

    def user_agent(self, name: str) -> str:
        product = f"rss_pipeline/{version('rss_pipeline')}"
        contact = self._text(name)
        if contact is None:
            return product
        if (
            not contact.isascii()
            or not contact.isprintable()
            or len(contact) > 200
            or re.search(r"[()\\]", contact)
        ):
            wanted = (
                "write an address or URL in at most 200 ASCII characters, without brackets and backslashes"
            )
            self._wrong(name, contact, wanted)
        return f"{product} (+{contact})"

    def proxy(self, name: str) -> str | None:
        text = self._text(name)
        if text is None:
            return None
        try:
            parts = urlsplit(text)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            # The value may hold a password.
            self._add("not the URL of a proxy; write http://[user:password@]host:port", name)
        return text

    def webhook(self, name: str) -> str | None:
        text = self._text(name)
        if text is not None:
            self._check_web(name, text)
        return text

    def authorities(self, name: str) -> Path | None:
        text = self._text(name)
        if text is None:
            return None
        path = self.path(name, text)
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except OSError as error:
            wanted = "write the path of a PEM file with the certificates of the authorities to trust"
            self._wrong(name, text, f"{error.strerror or error}; {wanted}")
        return path

    def networks(self, name: str) -> tuple[AddressRange, ...]:
        networks = []
        for text in self._listed(name):
            try:
                network = ip_network(text)
            except ValueError:
                self._wrong(name, text, _range_meant(text))
                continue
            if is_never_opened(network):
                self._wrong(
                    name,
                    text,
                    "link-local, metadata, multicast and unspecified addresses are never requested",
                )
            networks.append(network)
        return tuple(networks)

    def ports(self, name: str) -> frozenset[int]:
        ports = set()
        for text in self._listed(name):
            if re.fullmatch(r"[0-9]{1,5}", text) and 0 < int(text) < 65_536:
                ports.add(int(text))
            else:
                self._wrong(name, text, "write ports from 1 to 65535, with commas between them")
        return frozenset(ports)

    def ipv4(self, name: str, default: str) -> str:
        text = self._text(name)
        if text is None:
            return default
        try:
            return str(IPv4Address(text))
        except ValueError:
            self._wrong(name, text, f"write an IPv4 address of this machine; unset, it is {default}")
            return default

    def names(self, name: str) -> tuple[Authority, ...]:
        found = []
        for text in self._listed(name):
            authority = read_authority(text)
            if authority is None:
                self._wrong(
                    name, text, "write names as in a browser's address, rss.example.org or localhost:8080"
                )
            else:
                found.append(authority)
        return tuple(found)

    def d1(self) -> D1Settings | None:
        given = self._all_or_none(_D1)
        if given is None:
            return None
        self._check_web("D1_PROXY_URL", given["D1_PROXY_URL"])
        return D1Settings(url=given["D1_PROXY_URL"], token=given["D1_PROXY_TOKEN"])

    def r2(self) -> R2Settings | None:
        given = self._all_or_none(_R2)
        public_url = self._text("R2_PUBLIC_URL")
        if public_url is not None:
            self._check_web("R2_PUBLIC_URL", public_url)
        if given is None:
            if public_url is not None:
                self._add(f"set, but not {', '.join(_R2)}; set them too, or none", "R2_PUBLIC_URL")
            return None
        self._check_web("R2_ENDPOINT_URL", given["R2_ENDPOINT_URL"])
        return R2Settings(
            endpoint_url=given["R2_ENDPOINT_URL"],
            bucket=given["R2_BUCKET"],
            access_key_id=given["R2_ACCESS_KEY_ID"],
            secret_access_key=given["R2_SECRET_ACCESS_KEY"],
            public_url=public_url,
        )

    def _all_or_none(self, names: Sequence[str]) -> dict[str, str] | None:
        given = {name: text for name in names if (text := self._text(name)) is not None}
        missing = [name for name in names if name not in given]
        if given and missing:
            there = ", ".join(given)
            self._add(f"not set, but {there} is; set all of them, or none", *missing)
        return None if missing else given

    def _check_web(self, name: str, text: str) -> None:
        """Note a value that is no URL. It may hold a secret, so it is not repeated."""
        try:
            parts = urlsplit(text)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname)
            usable = usable and parts.username is None and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            self._add("not a URL; write https://..., without user and password", name)

    def _text(self, name: str) -> str | None:
        return self._environ.get(name, "").strip() or None

    def _listed(self, name: str) -> list[str]:
        return [text for part in (self._text(name) or "").split(",") if (text := part.strip())]

    def _number(
        self,
        name: str,
        default: _Number,
        kind: Callable[[str], _Number],
        wanted: str,
        least: float,
        most: float,
    ) -> _Number:
        text = self._text(name)
        if text is None:
            return default
        try:
            number = kind(text)
        except ValueError:
            number = kind("-1")
        if not (math.isfinite(number) and least <= number <= most):
            self._wrong(name, text, f"write {wanted}; unset, it is {default:g}")
            return default
        return number

    def _wrong(self, name: str, text: str, advice: str) -> None:
        self._add(f'"{text[:80]}" cannot be used; {advice}', name)

    def _add(self, message: str, *names: str) -> None:
        self.mistakes.append(SettingMistake(names, message))


def _default_workers() -> int:
    """One worker for each core, at most 4: parsing more at once would starve the rest of the run."""
    return max(1, min(4, os.cpu_count() or 1))


def _range_meant(text: str) -> str:
    try:
        return f"write {ip_network(text, strict=False)} or {text.partition('/')[0]}"
    except ValueError:
        return "write ranges such as 198.18.0.0/15, with commas between them"


def _unknown(environ: Mapping[str, str]) -> tuple[str, ...]:
    sentences = []
    for name in sorted(environ):
        if name.startswith(("RSS_", "ALLOW_NETWORK", "ALLOW_PORT")) and name not in _VARIABLES:
            close = difflib.get_close_matches(name, _VARIABLES, n=1, cutoff=0.7)
            meant = f'did you mean "{close[0]}"?' if close else "it is ignored"
            sentences.append(f"{name}: no setting has this name; {meant}")
    return tuple(sentences)
