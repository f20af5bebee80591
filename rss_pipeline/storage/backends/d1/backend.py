"""Cloudflare D1 as a backend: the proxy Worker in front of it, its settings, limits and probe."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage.backends.backend import (
    DatabaseBackend,
    Server,
    ServerAnswer,
    SizeVerdict,
    http_date,
    shown,
)
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.sql import NOW

PROBE_SECONDS = 10.0
LIMIT_BYTES = 10_000_000_000
FREE_LIMIT_BYTES = 500_000_000
FULL = 0.8
"""Part of a limit from which on it is worth a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class D1Backend(DatabaseBackend):
    """Cloudflare D1 through the proxy Worker. `rss-pipeline migrate` brings its schema up to date."""

    name = "d1"
    title = "D1"
    maker = "Cloudflare"
    variables = ("D1_PROXY_URL", "D1_PROXY_TOKEN")
    secrets = (("token", "D1_PROXY_TOKEN"),)
    side = ("cloudflare", "r2")
    pays_by_row = True
    fix = (
        "Check D1_PROXY_URL and the network; D1_PROXY_TOKEN must be what `npx wrangler secret put"
        " D1_PROXY_TOKEN` was given in proxy-worker/."
    )

    url: str = shown("The proxy Worker's URL.")
    token: str = shown("The Worker's bearer token.", repr=False)
    ca_file: Path | None = shown(
        "Certificate authorities to trust besides the usual ones; a PEM file.", default=None
    )

    @classmethod
    def read(cls, reader: EnvironmentReader, *, ca_file: Path | None) -> Self | None:
        given = reader.all_or_none(cls.variables)
        if given is None:
            return None
        reader.check_web("D1_PROXY_URL", given["D1_PROXY_URL"])
        return cls(url=given["D1_PROXY_URL"], token=given["D1_PROXY_TOKEN"], ca_file=ca_file)

    @property
    def place(self) -> str:
        return self.url

    @property
    def where(self) -> str:
        return f"Cloudflare D1, behind {self.url}"

    def servers(self) -> Iterable[Server]:
        yield Server(what="the D1 proxy of this installation (D1_PROXY_URL)", url=self.url)

    def connect(self, *, for_requests: bool = False, alone_where_full: bool = False) -> Database:
        from rss_pipeline.storage.backends.d1.database import D1Database

        return D1Database(self.url, self.token, ca_file=self.ca_file)

    def probe(self) -> ServerAnswer:
        """One small query, without the Database, for its answer's head and meta. The clock is the Worker's or
        the database's."""
        from rss_pipeline.httpx_without_cli import httpx
        from rss_pipeline.tls import tls_context

        url = f"{self.url.rstrip('/')}/query"
        try:
            answer = httpx.post(
                url,
                headers={"Authorization": f"Bearer {self.token}"},
                json={"sql": f"SELECT {NOW} AS now", "params": []},
                timeout=PROBE_SECONDS,
                verify=tls_context(self.ca_file, trust_env=True),
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise DatabaseUnavailable(f"POST {url} -> {type(error).__name__}: {error}") from error
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            raise DatabaseUnavailable(f"POST {url} -> 401: the Worker does not accept D1_PROXY_TOKEN")
        try:
            body = answer.json()
            now = str(body["results"][0]["now"])
            size = body["meta"].get("size_after")
            clock = http_date(answer.headers.get("Date")) or datetime.fromisoformat(now)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            said = " ".join(answer.text[:300].split())
            raise DatabaseUnavailable(f"POST {url} -> {answer.status_code}: {said}") from error
        return ServerAnswer(
            said=f"{self.url}: the proxy answers and accepts the token",
            clock=clock,
            size_bytes=None if size is None else int(size),
        )

    def judge_size(self, size: int | None) -> SizeVerdict:
        """The size beside the limits of both plans, paid and free: D1 does not say which one it is."""
        if size is None:
            return SizeVerdict(
                state="warning", found="the proxy did not say", fix="Look it up with `npx wrangler d1 info`."
            )
        found = f"{size / 1e6:,.1f} MB"
        if size >= FULL * LIMIT_BYTES:
            return SizeVerdict(
                state="failure" if size >= 0.98 * LIMIT_BYTES else "warning",
                found=f"{found} of 10 GB, D1's limit",
                fix="Keep items for fewer days (RSS_KEEP_DAYS, then `rss-pipeline clean`), or remove feeds"
                " you no longer need (`rss-pipeline forget`): both work in a full database, too.",
            )
        if FULL * FREE_LIMIT_BYTES <= size <= FREE_LIMIT_BYTES:
            return SizeVerdict(
                state="warning",
                found=f"{found} of the 500 MB that D1's free plan has",
                fix="On the free plan, move to the paid one before writes fail; on the paid one all is well.",
            )
        return SizeVerdict(found=f"{found} of 10 GB (500 MB on the free plan)")
