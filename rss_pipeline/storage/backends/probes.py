"""Small requests that show whether a store answers, with its clock, size and rules.

Facts only; what they mean is pipeline/health/stores.py's.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.server_settings import D1Settings, PostgresSettings
from rss_pipeline.storage.backends.connect import connect_postgres
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import NOW

if TYPE_CHECKING:
    from rss_pipeline.storage.backends.s3 import S3Store


PROXY_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyAnswer:
    """Size and clock from one small query through the proxy; the clock is the Worker's or the database's."""

    size_bytes: int | None
    clock: datetime | None


def query_proxy(d1: D1Settings, *, ca_file: Path | None) -> ProxyAnswer:
    """One small query, without the Database, for its answer's head and meta.

    Raises DatabaseUnavailable: no answer, a refused token, or a server that is not the proxy Worker.
    """
    from rss_pipeline.httpx_without_cli import httpx
    from rss_pipeline.tls import tls_context

    url = f"{d1.url.rstrip('/')}/query"
    try:
        answer = httpx.post(
            url,
            headers={"Authorization": f"Bearer {d1.token}"},
            json={"sql": f"SELECT {NOW} AS now", "params": []},
            timeout=PROXY_SECONDS,
            verify=tls_context(ca_file, trust_env=True),
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise DatabaseUnavailable(f"POST {url} -> {type(error).__name__}: {error}") from error
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise DatabaseUnavailable(f"POST {url} -> 401: the Worker does not accept D1_PROXY_TOKEN")
    try:
        body = answer.json()
        now = str(body["results"][0]["now"])
        size = body["meta"].get("size_after")
        clock = _http_date(answer.headers.get("Date")) or datetime.fromisoformat(now)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        said = " ".join(answer.text[:300].split())
        raise DatabaseUnavailable(f"POST {url} -> {answer.status_code}: {said}") from error
    return ProxyAnswer(size_bytes=None if size is None else int(size), clock=clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAnswer:
    """Version, size and clock of a Postgres server."""

    version: str
    size_bytes: int
    clock: datetime


def query_postgres(postgres: PostgresSettings) -> PostgresAnswer:
    """One small query. Raises DatabaseUnavailable: no answer, or not to us."""
    database = connect_postgres(postgres)
    try:
        [row] = database.query(
            # Without our functions: a database that was not migrated answers, too.
            "SELECT pg_database_size(current_database()) AS bytes,"
            " to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS+00') AS now,"
            " current_setting('server_version') AS version",
            name="probe",
        ).rows
    finally:
        database.close()
    return PostgresAnswer(
        version=row["version"].split()[0],
        size_bytes=row["bytes"],
        clock=datetime.fromisoformat(row["now"]),
    )


def most_connections(database: Database) -> int:
    """The connections that a Postgres server gives to ordinary users."""
    [row] = database.query(
        "SELECT CAST(current_setting('max_connections') AS INTEGER)"
        " - CAST(current_setting('superuser_reserved_connections') AS INTEGER) AS connections",
        name="read the most connections",
    ).rows
    return int(row["connections"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """Days after which the bucket deletes backups; None: no rule. `unread`: why it is not known.

    It deletes the newest backups too, where no clean puts them again meanwhile (storage.backups.expiry).
    """

    days: int | None = None
    unread: str | None = None


def lifecycle(store: "S3Store", bucket: str) -> Lifecycle:
    """The bucket's rule for `backups/`, as far as this key may read it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        rules = store.client.get_bucket_lifecycle_configuration(Bucket=bucket).get("Rules", ())
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        return Lifecycle() if code == "NoSuchLifecycleConfiguration" else Lifecycle(unread=f"{code}")
    except (BotoCoreError, OSError) as error:
        return Lifecycle(unread=f"{type(error).__name__}")
    for rule in rules:
        prefix = rule.get("Filter", {}).get("Prefix", rule.get("Prefix"))
        days = rule.get("Expiration", {}).get("Days")
        if rule.get("Status") == "Enabled" and prefix in ("backups/", "backups") and days:
            return Lifecycle(days=int(days))
    return Lifecycle()


def objects_clock(store: "S3Store", bucket: str) -> datetime | None:
    """The S3 endpoint's clock, also where it refuses the request (a clock too wrong is a reason to)."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        answer = store.client.list_objects_v2(Bucket=bucket, MaxKeys=1)
    except ClientError as error:
        answer = error.response
    except (BotoCoreError, OSError):
        return None
    return _http_date(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date"))


def _http_date(text: str | None) -> datetime | None:
    try:
        return None if text is None else parsedate_to_datetime(text).astimezone(UTC)
    except ValueError:
        return None


def read_one(store: ObjectStore) -> str | None:
    """Read one backup, or any object; its key, None where there is none."""
    for prefix in ("backups/", ""):
        for info in store.list(prefix):
            if store.get(info.key) is not None:
                return info.key
    return None
