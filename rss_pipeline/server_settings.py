"""The settings of servers outside this machine: D1, Postgres, a bucket, the broker of a fleet.

Each is set as a whole or not at all. How this machine runs is settings.py's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit

from rss_pipeline.environment import EnvironmentReader

_D1 = ("D1_PROXY_URL", "D1_PROXY_TOKEN")
_POSTGRES = "DATABASE_URL"
_FOLDER_ADDRESS = "RSS_OBJECTS_PUBLIC_URL"
_BROKER = "RSS_BROKER_URL"
_DRIVER = "postgresql+psycopg2"
DAGSTER_DATABASE = "DAGSTER_DATABASE_URL"
"""The variable that names the database of Dagster's own tables; dagster.yaml of a fleet reads it."""
DAGSTER_SCHEMA = "dagster"
"""The schema of Dagster's own tables in `DATABASE_URL`, so that one dump has all."""
_BUCKET = ("BUCKET", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
_BUCKET_OPTIONAL = ("PUBLIC_BUCKET", "PUBLIC_URL", "TOPICS_BUCKET", "TOPICS_PUBLIC_URL")
_HOSTS_OF_BUCKETS = (
    ".r2.cloudflarestorage.com",
    ".amazonaws.com",
    ".digitaloceanspaces.com",
    ".backblazeb2.com",
    ".wasabisys.com",
)
"""Services that give each bucket a host of its own, besides the endpoint."""
_AWS_REGION = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class D1Settings:
    """The proxy Worker in front of a D1 database."""

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """A database of a Postgres server."""

    url: str = field(repr=False)
    """May hold a password."""

    @property
    def where(self) -> str:
        """Server and database, for people."""
        parts = urlsplit(self.url)
        host = parts.hostname or "".join(parse_qs(parts.query).get("host", ["localhost"]))
        port = "" if parts.port is None else f":{parts.port}"
        return f"postgresql://{host}{port}{parts.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """Several machines: runs go through a broker to workers."""

    broker_url: str = field(repr=False)
    """The URL of a Redis; may hold a password."""
    dagster_url: str = field(repr=False)
    """The URL of the database with Dagster's own tables, for SQLAlchemy; may hold a password."""
    worker_name: str
    """The name of the worker on this machine; no other has it."""
    worker_runs: int = 2
    """Runs that the worker on this machine executes at once, besides one that a person waits for."""

    @property
    def schema(self) -> str | None:
        """The schema of Dagster's tables where they have one of their own beside ours, else None."""
        return DAGSTER_SCHEMA if f"-csearch_path={DAGSTER_SCHEMA}" in unquote(self.dagster_url) else None

    @property
    def libpq_url(self) -> str:
        """The URL of Dagster's database for libpq; may hold a password."""
        return self.dagster_url.replace("+psycopg2", "", 1)

    @property
    def broker_where(self) -> str:
        """The broker, for people."""
        parts = urlsplit(self.broker_url)
        port = "" if parts.port is None else f":{parts.port}"
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """A bucket, by its S3 API: Cloudflare's R2, or any other. `public_url` is the address of public objects
    for browsers, if any."""

    prefix: Literal["R2", "S3"] = "R2"
    """The prefix of the variables that name the bucket."""
    endpoint_url: str
    region: str = "auto"
    path_style: bool = True
    """True: the bucket is in the path of an address, else in its host name."""
    bucket: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    public_url: str | None = None
    public_bucket: str | None = None
    """A bucket for what everybody may read; `public_url` is its address then. Without it, that address shows
    the backups and what users have as well, unless the bucket's policy is for a prefix."""
    topics_bucket: str | None = None
    """A bucket of their own for topics: a public one would show the backups as well."""
    topics_public_url: str | None = None
    """The address of topics for everybody."""


def d1_settings(reader: EnvironmentReader) -> D1Settings | None:
    """The proxy Worker, or None if no variable names one."""
    given = reader.all_or_none(_D1)
    if given is None:
        return None
    reader.check_web("D1_PROXY_URL", given["D1_PROXY_URL"])
    return D1Settings(url=given["D1_PROXY_URL"], token=given["D1_PROXY_TOKEN"])


def postgres_settings(reader: EnvironmentReader) -> PostgresSettings | None:
    """The database of a Postgres server, or None. Two databases are a mistake."""
    url = reader.postgres(_POSTGRES)
    if url is None:
        return None
    if reader.text(_D1[0]) is not None:
        reader.add(
            "both set; the tables are in Cloudflare D1 or in Postgres: take one of them out",
            _D1[0],
            _POSTGRES,
        )
    return PostgresSettings(url=url)


def fleet_settings(reader: EnvironmentReader) -> FleetSettings | None:
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


def bucket_settings(reader: EnvironmentReader) -> S3Settings | None:
    """The bucket, R2's or another one's, or None. Two are a mistake."""
    r2 = _of_bucket(reader, "R2", required=("ENDPOINT_URL", *_BUCKET))
    s3 = _of_bucket(reader, "S3", required=_BUCKET, optional=("ENDPOINT_URL", "REGION", "PATH_STYLE"))
    if r2 is not None and s3 is not None:
        reader.add("both are set, and there is one bucket; unset one of them", "R2_BUCKET", "S3_BUCKET")
    return r2 or s3


def folder_address(reader: EnvironmentReader) -> str | None:
    """The public address of the folder of objects, or None. A bucket has one of its own."""
    url = reader.text(_FOLDER_ADDRESS)
    if url is None:
        return None
    _check_place(reader, _FOLDER_ADDRESS, url)
    for bucket in ("R2_BUCKET", "S3_BUCKET"):
        if reader.text(bucket) is not None:
            public = f"{bucket.partition('_')[0]}_PUBLIC_URL"
            reader.add(f"set, but the objects are in a bucket; set {public} instead", _FOLDER_ADDRESS)
    return url


def _check_place(reader: EnvironmentReader, name: str, url: str) -> None:
    """Note an address to which the keys of objects cannot be added."""
    reader.check_web(name, url)
    if re.search(r"[\s?#\"'<>]", url):
        reader.add("has `?`, `#`, a quote or a space in it; write the address of the folder alone", name)


def _check_endpoint(reader: EnvironmentReader, name: str, bucket: str) -> None:
    """Note an endpoint that has the bucket in it, as the dashboards of stores show it: each key would begin
    with the bucket's name, and a list find none."""
    try:
        parts = urlsplit(reader.text(name) or "")
        host, port = parts.hostname or "", "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return
    folders = [part for part in parts.path.split("/") if part]
    if folders and folders[-1] == bucket:
        path = "".join(f"/{part}" for part in folders[:-1])
        reader.add(f"ends with the bucket's name; write {parts.scheme}://{host}{port}{path}", name)
    elif host.startswith(f"{bucket}.".lower()) and host.endswith(_HOSTS_OF_BUCKETS):
        own = host[len(bucket) + 1 :]
        reader.add(f"begins with the bucket's name; write {parts.scheme}://{own}{port}", name)


def _of_bucket(
    reader: EnvironmentReader,
    prefix: Literal["R2", "S3"],
    *,
    required: Sequence[str],
    optional: Sequence[str] = (),
) -> S3Settings | None:
    """The bucket that the variables with this prefix name."""
    needed = [f"{prefix}_{name}" for name in required]
    given = reader.all_or_none(needed)
    more = {name: reader.text(f"{prefix}_{name}") for name in (*optional, *_BUCKET_OPTIONAL)}
    for name in ("ENDPOINT_URL", "PUBLIC_URL", "TOPICS_PUBLIC_URL"):
        if (url := reader.text(f"{prefix}_{name}")) is not None:
            _check_place(reader, f"{prefix}_{name}", url)
    if given is None:
        for name, text in more.items():
            if text is not None:
                reader.add(f"set, but not {', '.join(needed)}; set them too, or none", f"{prefix}_{name}")
        return None
    if more["PUBLIC_BUCKET"] == given[f"{prefix}_BUCKET"]:
        reader.add(
            "the same bucket; the public one shows everything in it, and this one has the backups:"
            " make another",
            f"{prefix}_PUBLIC_BUCKET",
            f"{prefix}_BUCKET",
        )
    _check_endpoint(reader, f"{prefix}_ENDPOINT_URL", given[f"{prefix}_BUCKET"])
    region = "auto" if prefix == "R2" else more["REGION"] or _AWS_REGION
    return S3Settings(
        prefix=prefix,
        endpoint_url=reader.text(f"{prefix}_ENDPOINT_URL") or f"https://s3.{region}.amazonaws.com",
        region=region,
        path_style=prefix == "R2" or reader.on_off("S3_PATH_STYLE", True),
        bucket=given[f"{prefix}_BUCKET"],
        access_key_id=given[f"{prefix}_ACCESS_KEY_ID"],
        secret_access_key=given[f"{prefix}_SECRET_ACCESS_KEY"],
        public_url=more["PUBLIC_URL"],
        public_bucket=more["PUBLIC_BUCKET"],
        topics_bucket=more["TOPICS_BUCKET"],
        topics_public_url=more["TOPICS_PUBLIC_URL"],
    )
