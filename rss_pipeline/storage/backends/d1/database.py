"""Cloudflare D1 as a Database, through the proxy Worker (proxy-worker/).

Only the requests and the mapping of errors; limits are in database.py, SQL elsewhere. No write is ever
retried here: a request that got no answer may have been applied.
"""

import json
import logging
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import LifoQueue
from typing import Any

from rss_pipeline.errors import DatabaseFull, DatabaseUnavailable, StorageRejected
from rss_pipeline.httpx_without_cli import httpx
from rss_pipeline.storage.database import (
    Result,
    Statement,
    Value,
    as_json,
    as_request,
    check_batch,
    described,
)
from rss_pipeline.tls import tls_context

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 35.0
"""For all of an answer. D1 gives a whole batch 30 s."""
CONNECTIONS = 16
IDLE_SECONDS = 3.0
"""For a connection that nothing uses. workerd closes it after 5 s, and httpx by default keeps it for as long:
a request sent at that moment gets no answer."""

DATA_KINDS = frozenset({"constraint", "limit", "too_large"})
"""The Worker's error kinds that concern one statement's data and not the database."""

_PARAMETER_CHARACTERS = 200
_RESPONSE_CHARACTERS = 2_048
_MESSAGE_CHARACTERS = 500
_SQL_CHARACTERS = 1_000
_STATEMENTS_LOGGED = 5


class D1Database:
    """A `Database` in D1, safe to share between threads: as many connections as threads that wait for it at
    once, at most CONNECTIONS.

    Raises:
        DatabaseUnavailable: URL or token cannot be used at all.
    """

    def __init__(
        self, url: str, token: str, *, ca_file: Path | None = None, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        # httpx would quote a header it cannot send, token and all.
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise DatabaseUnavailable("D1_PROXY_TOKEN: a token is of printable ASCII without blanks")
        self._url = url.rstrip("/")
        self._token = token
        self._answer_seconds = answer_seconds
        # The authorities are read from files, which takes some 20 ms, and a local Worker needs none.
        is_local = self._url.lower().startswith("http:")
        self._trust = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_local else tls_context(ca_file, trust_env=True)
        )
        # A client for each connection, used by one thread at a time: where threads share httpx's pool, one
        # takes a connection for expired, and closes it, on which the answer to another has just come in.
        self._clients = [self._client()]
        self._idle: LifoQueue[httpx.Client | None] = LifoQueue()
        for _ in range(CONNECTIONS - 1):
            self._idle.put(None)
        self._idle.put(self._clients[0])

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        statement = Statement(sql, params, name=name)
        check_batch([statement])
        return self._post("/query", as_request(statement), [statement])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        check_batch(statements)
        return self._post("/batch", [as_request(statement) for statement in statements], statements)

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _post(self, path: str, payload: object, statements: Sequence[Statement]) -> list[Result]:
        try:
            status, body = self._exchange(path, as_json(payload))
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, RuntimeError) as error:
            # RuntimeError: httpx's for a client that was closed.
            what = f"{type(error).__name__}: {error}"
            raise self._unavailable(path, statements, what, "check D1_PROXY_URL and the network") from error
        if status != httpx.codes.OK:
            raise self._refusal(path, statements, status, body)
        try:
            return _results(json.loads(body), len(statements))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            what = f"200 with what the proxy Worker does not say: {_text(body)}"
            raise self._unavailable(path, statements, what, "check D1_PROXY_URL") from error

    def _exchange(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body. httpx's time-out is one a read, and an answer may come in by the byte."""
        deadline = time.monotonic() + self._answer_seconds
        with self._idle_client() as client, client.stream("POST", path, content=body) as response:
            answer = bytearray()
            for piece in response.iter_bytes():
                answer += piece
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout(f"no whole answer within {self._answer_seconds:g} s")
            return response.status_code, bytes(answer)

    def _client(self) -> httpx.Client:
        try:
            return httpx.Client(
                base_url=self._url,
                headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
                timeout=httpx.Timeout(self._answer_seconds, connect=CONNECT_SECONDS),
                limits=httpx.Limits(keepalive_expiry=IDLE_SECONDS),
                verify=self._trust,
            )
        except httpx.InvalidURL as error:
            raise DatabaseUnavailable(f"D1_PROXY_URL: not a URL: {error}") from error

    @contextmanager
    def _idle_client(self) -> Iterator[httpx.Client]:
        """A client that no other thread uses; waits where all are in use."""
        client = self._idle.get()
        try:
            if client is None:
                client = self._client()
                self._clients.append(client)
            yield client
        finally:
            self._idle.put(client)

    def _refusal(
        self, path: str, statements: Sequence[Statement], status: int, body: bytes
    ) -> DatabaseUnavailable | StorageRejected:
        kind, message = _error(body)
        what = f"{status} {kind}: {message}" if kind else f"{status}: {_text(body)}"
        if kind in DATA_KINDS:
            self._log(logging.WARNING, path, statements, what)
            return StorageRejected(
                self._without_token(f"the database refused a value: {message[:_MESSAGE_CHARACTERS]}")
            )
        unavailable = self._unavailable(path, statements, what, _advice(status, kind))
        return DatabaseFull(str(unavailable)) if kind == "full" else unavailable

    def _unavailable(
        self, path: str, statements: Sequence[Statement], what: str, advice: str
    ) -> DatabaseUnavailable:
        self._log(logging.ERROR, path, statements, what)
        more = f" and {len(statements) - 1} more" if len(statements) > 1 else ""
        return DatabaseUnavailable(
            self._without_token(
                f"the database cannot be used: {advice}. POST {self._url}{path} ->"
                f" {what[:_MESSAGE_CHARACTERS]}. Statement: {described(statements[0], characters=200)}{more}"
            )
        )

    def _log(self, level: int, path: str, statements: Sequence[Statement], what: str) -> None:
        lines = [
            f"{described(statement, characters=_SQL_CHARACTERS)}"
            f" <- {[str(value)[:_PARAMETER_CHARACTERS] for value in statement.params]}"
            for statement in statements[:_STATEMENTS_LOGGED]
        ]
        if len(statements) > len(lines):
            lines.append(f"and {len(statements) - len(lines)} more")
        text = "\n".join([f"POST {self._url}{path} -> {what[:_RESPONSE_CHARACTERS]}", *lines])
        logger.log(level, "%s", self._without_token(text))

    def _without_token(self, text: str) -> str:
        """Another server at the Worker's address may quote our headers."""
        return text.replace(self._token, "[D1_PROXY_TOKEN]")


def _results(answer: Any, count: int) -> list[Result]:
    answers = answer if isinstance(answer, list) else [answer]
    if len(answers) != count:
        raise ValueError(f"{len(answers)} results of {count}")
    if not all(isinstance(one["results"], list) for one in answers):
        raise TypeError("results is no list")
    if not all(isinstance(row, dict) for one in answers for row in one["results"]):
        raise TypeError("a row is no object")
    return [Result.of_rows(one["results"], int(one["meta"]["changes"])) for one in answers]


def _error(body: bytes) -> tuple[str, str]:
    """Kind and message of the Worker's refusal; nothing, where something else answered."""
    try:
        error = json.loads(body)["error"]
        return str(error["kind"]), str(error["message"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return "", ""


_ADVICE = {
    "unauthorized": "D1_PROXY_TOKEN is not the Worker's secret; set both to the same",
    "syntax": "schema and code may differ; run `rss-pipeline migrate`",
    "request": "Worker and code do not fit together; deploy proxy-worker/ again",
    "not_found": "check D1_PROXY_URL: the Worker's address, without a path",
    "method": "check D1_PROXY_URL: the Worker's address, without a path",
    "quota": "the day's free rows are used up; wait until 00:00 UTC or take the paid plan",
    "full": "the database or the account has no room left; run `rss-pipeline clean`, or `rss-pipeline forget`"
    " for feeds that are not needed",
    "overloaded": "the database is overloaded; the next poll tries again",
    "timeout": "D1 took too long; whether it was applied is not known, the next poll finds out",
    "internal": "the Worker's log says more (wrangler tail); the poll is tried again later",
}


def _advice(status: int, kind: str) -> str:
    if kind in _ADVICE:
        return _ADVICE[kind]
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return "check D1_PROXY_TOKEN, and any proxy in front of the Worker"
    if not kind and (status < 400 or status == httpx.codes.NOT_FOUND):
        return "check D1_PROXY_URL: is this the proxy Worker?"
    return "the poll is tried again later"


def _text(body: bytes) -> str:
    return body[:_RESPONSE_CHARACTERS].decode("utf-8", "replace")
