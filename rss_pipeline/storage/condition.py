"""What `doctor` asks of the stores: whether they answer, their clocks and sizes, and the feeds' trouble.

Facts only; what they mean and how to mend them is findings.py's.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rss_pipeline.collector.models import instant
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.settings import D1Settings
from rss_pipeline.storage.backups import list_backups
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.overview import PROMINENT_FAILURES

if TYPE_CHECKING:
    from rss_pipeline.storage.r2 import R2Store

PROXY_SECONDS = 10.0
ASKED_AT_ONCE = 16
_NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyAnswer:
    """What one small query through the proxy tells. `clock` is the Worker's, else the database's."""

    size_bytes: int | None
    clock: datetime | None


def ask_proxy(d1: D1Settings, *, ca_file: Path | None) -> ProxyAnswer:
    """One small query, without the Database, for its answer's head and meta.

    Raises DatabaseUnavailable: nobody answers, the token is refused, or it is not the proxy Worker.
    """
    import httpx

    from rss_pipeline.trust import trusted

    url = f"{d1.url.rstrip('/')}/query"
    try:
        answer = httpx.post(
            url,
            headers={"Authorization": f"Bearer {d1.token}"},
            json={"sql": f"SELECT {_NOW} AS now", "params": []},
            timeout=PROXY_SECONDS,
            verify=trusted(ca_file, trust_env=True),
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
class Lifecycle:
    """After how many days the bucket deletes backups; None: no rule. `unread` says why it is not known."""

    days: int | None = None
    unread: str | None = None


def lifecycle(store: "R2Store", bucket: str) -> Lifecycle:
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


def objects_clock(store: "R2Store", bucket: str) -> datetime | None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """The feeds' own, by what is stored. Each is a list of feed ids."""

    failing: Sequence[str]
    gone: Sequence[str]
    """Of which the publisher says 410 Gone."""
    moved: Sequence[str]
    """Asked at another address than the registered one."""
    warned: Sequence[str]
    unreported: Sequence[str]
    """With a change that Dagster has not been told of since `unreported_before`."""
    held_by_the_dead: Sequence[str]
    need_access: Sequence[str]


def trouble(database: Database, *, unreported_before: datetime) -> Trouble:
    """What the feeds table says, in one reading."""
    rows = database.query(
        f"""SELECT id, registered = 1 AND enabled = 1 AND consecutive_failures >= ? AS failing,
        registered = 1 AND enabled = 1 AND last_error_kind IS 'gone' AS gone,
        registered = 1 AND enabled = 1 AND fetch_url IS NOT NULL AS moved,
        registered = 1 AND warning IS NOT NULL AS warned,
        change_count > reported_count AND changed_at < ? AS unreported,
        registered = 1 AND needs_access = 1 AS need_access,
        lease_token IS NOT NULL AND lease_token NOT IN (SELECT token FROM leases WHERE expires_at > {_NOW})
          AS dead
        FROM feeds ORDER BY id""",
        [PROMINENT_FAILURES, instant(unreported_before)],
    ).rows

    def ids(name: str) -> list[str]:
        return [row["id"] for row in rows if row[name]]

    return Trouble(
        failing=ids("failing"),
        gone=ids("gone"),
        moved=ids("moved"),
        warned=ids("warned"),
        unreported=ids("unreported"),
        held_by_the_dead=ids("dead"),
        need_access=ids("need_access"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupLoss:
    """What a restore from backups would lose, of the feeds looked at."""

    feeds: int
    """That have items."""
    looked_at: int
    never: Sequence[str]
    """With items and no backup at all."""
    gone: Sequence[str]
    """With neither the backup of its newest item in the store nor a later one."""
    items: int
    """Of those feeds."""


def backup_loss(database: Database, store: ObjectStore, *, limit: int) -> BackupLoss:
    """Compare the newest backup keys of the `limit` feeds that changed last with the store."""
    feeds = database.query("SELECT count(DISTINCT feed_id) AS n FROM items").rows[0]["n"]
    rows = database.query(
        """SELECT feed_id AS id, max(backup_key) AS newest, count(*) AS items FROM items
        WHERE feed_id IN (SELECT id FROM feeds WHERE EXISTS (SELECT 1 FROM items WHERE feed_id = feeds.id)
          ORDER BY last_body_at DESC, id LIMIT ?)
        GROUP BY feed_id ORDER BY feed_id""",
        [limit],
    ).rows
    with ThreadPoolExecutor(ASKED_AT_ONCE, "doctor") as pool:
        there = list(pool.map(lambda row: _is_there(store, row), rows))
    lost = [row for row, found in zip(rows, there, strict=True) if not found]
    return BackupLoss(
        feeds=int(feeds),
        looked_at=len(rows),
        never=[row["id"] for row in lost if row["newest"] is None],
        gone=[row["id"] for row in lost if row["newest"] is not None],
        items=sum(int(row["items"]) for row in lost),
    )


def _is_there(store: ObjectStore, row: Row) -> bool:
    """A later document serves as well: it lists what was new in the one before, or no longer."""
    newest = row["newest"]
    if newest is None:
        return False
    if store.head(newest) is not None:
        return True
    return any(info.key > newest for info in list_backups(store, row["id"]))


def read_one(store: ObjectStore) -> str | None:
    """Read one backup, or any object; its key, None where there is none."""
    for prefix in ("backups/", ""):
        for info in store.list(prefix):
            if store.get(info.key) is not None:
                return info.key
    return None
