"""Cloudflare D1 as a Database, through the proxy Worker (proxy-worker/).

Only the requests and the mapping of errors; limits are in database.py, SQL elsewhere. No write is ever
retried here: a request that got no answer may have been applied.
"""

import json
import logging
from collections.abc import Sequence
from typing import Any

import httpx

from rss_pipeline.errors import DatabaseUnavailable, StorageRejected
from rss_pipeline.storage.database import Result, Statement, Value, check_limits

logger = logging.getLogger("rss_pipeline")

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 35.0
"""D1 gives a whole batch 30 s."""
CONNECTIONS = 16

DATA_KINDS = frozenset({"constraint", "limit"})
"""The Worker's error kinds that concern one statement's data and not the database."""

_PARAMETER_CHARACTERS = 200
_RESPONSE_CHARACTERS = 2_048
_SQL_CHARACTERS = 1_000


class D1Database:
    """A `Database` in D1. One pooled client, safe to share between threads."""

    def __init__(self, url: str, token: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._url = url.rstrip("/")
        self._client = httpx.Client(
            base_url=self._url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(answer_seconds, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
        )

    def query(self, sql: str, params: Sequence[Value] = ()) -> Result:
        statement = Statement(sql, params)
        check_limits(statement)
        return _result(self._post("/query", _payload(statement), [statement]))

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if not statements:
            raise ValueError("an empty batch")
        for statement in statements:
            check_limits(statement)
        answers = self._post("/batch", [_payload(statement) for statement in statements], statements)
        if not isinstance(answers, list) or len(answers) != len(statements):
            raise DatabaseUnavailable(f"{self._url}/batch: the answer has not one result a statement")
        return [_result(answer) for answer in answers]

    def close(self) -> None:
        self._client.close()

    def _post(self, path: str, payload: object, statements: Sequence[Statement]) -> Any:
        body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            response = self._client.post(path, content=body, headers={"Content-Type": "application/json"})
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            what = f"{type(error).__name__}: {error}"
            raise self._unavailable(path, statements, what, "check D1_PROXY_URL and the network") from error
        if response.status_code == httpx.codes.OK:
            try:
                return response.json()
            except ValueError as error:
                raise self._unavailable(
                    path,
                    statements,
                    f"200 with what is not JSON: {_cut(response)}",
                    "is this the proxy Worker?",
                ) from error
        raise self._refusal(path, statements, response)

    def _refusal(
        self, path: str, statements: Sequence[Statement], response: httpx.Response
    ) -> DatabaseUnavailable | StorageRejected:
        kind, message = _error(response)
        if kind in DATA_KINDS:
            logger.warning("D1 refused a value: %s\n%s", message, _describe(statements))
            return StorageRejected(f"the database refused a value: {message}")
        what = f"{response.status_code}: {message or _cut(response)}"
        return self._unavailable(path, statements, what, _advice(response.status_code, kind))

    def _unavailable(
        self, path: str, statements: Sequence[Statement], what: str, advice: str
    ) -> DatabaseUnavailable:
        logger.error("POST %s%s -> %s\n%s", self._url, path, what, _describe(statements))
        return DatabaseUnavailable(f"POST {self._url}{path} -> {what} ({advice}). {_brief(statements)}")


def _payload(statement: Statement) -> dict[str, object]:
    return {"sql": statement.sql, "params": list(statement.params)}


def _result(answer: Any) -> Result:
    try:
        return Result(list(answer["results"]), int(answer["meta"]["changes"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DatabaseUnavailable(f"the proxy's answer has no results: {str(answer)[:200]}") from error


def _error(response: httpx.Response) -> tuple[str, str]:
    try:
        error = response.json()["error"]
        return str(error["kind"]), str(error["message"])[:_RESPONSE_CHARACTERS]
    except (ValueError, KeyError, TypeError):
        return "", ""


def _advice(status: int, kind: str) -> str:
    if status == httpx.codes.UNAUTHORIZED:
        return "D1_PROXY_TOKEN is not the Worker's secret"
    if kind == "syntax":
        return "schema and code may differ; run `rss-pipeline migrate`"
    if kind == "overloaded":
        return "the database is overloaded; it is asked again later"
    return "the poll is tried again later"


def _cut(response: httpx.Response) -> str:
    return response.text[:_RESPONSE_CHARACTERS]


def _brief(statements: Sequence[Statement]) -> str:
    more = f" and {len(statements) - 1} more" if len(statements) > 1 else ""
    return f"Statement: {' '.join(statements[0].sql.split())[:200]}{more}"


def _describe(statements: Sequence[Statement]) -> str:
    return "\n".join(
        f"{' '.join(statement.sql.split())[:_SQL_CHARACTERS]}"
        f" <- {[str(value)[:_PARAMETER_CHARACTERS] for value in statement.params]}"
        for statement in statements[:5]
    )
