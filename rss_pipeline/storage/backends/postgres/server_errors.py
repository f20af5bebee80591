"""Errors of Postgres as ours: data that is refused, or a database that cannot be used, with what to do."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, urlsplit

import psycopg

from rss_pipeline.errors import DatabaseFull, DatabaseUnavailable, StorageRejected, TableMissing
from rss_pipeline.storage.database import Statement, described

_MESSAGE_CHARACTERS = 500

_DATA_CLASSES = ("22", "23", "54")
"""Data exceptions, constraints, and limits of the server."""
_NOT_DATA = frozenset({"22P02", "22023"})
"""The given value is no JSON, or no number: to SQLite and D1 that is our error, too."""

_POOLER = (
    "a pooler in front of the server mixes up prepared statements: use PgBouncer 1.21 or newer with"
    " max_prepared_statements, its pool_mode=session, or the server's own address in DATABASE_URL"
)
_PASSWORD = "check user and password in DATABASE_URL"
_ADVICE = {
    "3F000": "the database lacks our functions: run `rss-pipeline migrate`",
    "42883": "schema and code may differ; run `rss-pipeline migrate`",
    "42703": "schema and code may differ; run `rss-pipeline migrate`",
    "42P01": "schema and code may differ; run `rss-pipeline migrate`",
    "42P05": _POOLER,
    "26000": _POOLER,
    "42501": "the user of DATABASE_URL lacks a right: it must own the database, or its schema",
    "53100": "the server's disk is full: run `rss-pipeline clean`; where it removes nothing, make 2 MB free"
    " there and run it again",
    "53200": "the server has no memory left; see its log",
    "53300": "the server takes no more connections: raise max_connections, or run fewer processes",
    "25006": "the server only reads: name the primary in DATABASE_URL, not a standby",
    "55P03": "another batch has held the lock for a minute: see pg_stat_activity for what runs",
    "57014": "the statement was cancelled: by statement_timeout, or by hand",
    "40001": "other batches were in the way each time; the next run tries again",
    "40P01": "other batches were in the way each time; the next run tries again",
}
_KINDS = {"42P01": TableMissing, "53100": DatabaseFull}
_NO_CONNECTION = "08006"
"""The code of an error that came from libpq and not from the server, which has no code."""
_CLASS_ADVICE = {
    "08": "the connection was lost; the next run tries again",
    "28": _PASSWORD,
    "3D": "check the database's name in DATABASE_URL: it is not there",
    "26": _POOLER,
    "42": "schema and code may differ; run `rss-pipeline migrate`",
    "57": "the server ended the connection; the next run tries again",
    "58": "the server had an error of its disk or system; see its log",
    "XX": "the server had an internal error; see its log",
}

# Of a connection that is not made there is no code: the words of libpq and of the server are the only sign.
_NOT_CONNECTED = (
    (
        r"connection refused|no such file or directory",
        "no server listens there; start it, or check the host and port in DATABASE_URL",
    ),
    (r"password|authentication|role .* does not exist|pg_hba", _PASSWORD),
    (r"database .* does not exist", "check the database's name in DATABASE_URL: it is not there"),
    (
        r"too many (?:clients|connections)|connection slots",
        "the server takes no more connections: raise max_connections, or run fewer processes",
    ),
    (
        r"starting up|shutting down|recovery mode",
        "the server is starting or stopping; the next run tries again",
    ),
    (r"translate host name|resolve", "check the host in DATABASE_URL, and the network"),
    (
        r"timeout|timed out|unreachable",
        "the server does not answer: check the host in DATABASE_URL, and the network",
    ),
    (r"certificate|ssl", "check sslmode and sslrootcert in DATABASE_URL"),
)


def not_connected(error: psycopg.Error, where: str, url: str) -> DatabaseUnavailable:
    """The error of a connection that could not be made. `where` names the database, without a password."""
    text = _words(error)
    for secret in _passwords(url):
        text = text.replace(secret, "***")
    advice = next(
        (advice for words, advice in _NOT_CONNECTED if re.search(words, text, re.IGNORECASE)),
        "check DATABASE_URL and the network",
    )
    if advice is _PASSWORD and "%" in urlsplit(url).netloc:
        advice += ": a % of its own is written %25 there"
    return DatabaseUnavailable(f"the database cannot be used: {advice}. {where}: {text}")


def failed(
    error: psycopg.Error, statements: Sequence[Statement], where: str
) -> DatabaseUnavailable | StorageRejected:
    """The error of statements. The first of them is the one that failed, as far as that is known."""
    code = error.sqlstate or ""
    text = _words(error)
    if code.startswith(_DATA_CLASSES) and code not in _NOT_DATA:
        return StorageRejected(f"the database refused a value: {text}")
    if isinstance(error, psycopg.OperationalError) and not code:
        code = _NO_CONNECTION
    advice = _ADVICE.get(code) or _CLASS_ADVICE.get(code[:2], "the next run tries again")
    more = f" and {len(statements) - 1} more" if len(statements) > 1 else ""
    kind = _KINDS.get(code, DatabaseUnavailable)
    return kind(
        f"the database cannot be used: {advice}. {where}: {text} ({code or type(error).__name__})."
        f" Statement: {described(statements[0], characters=200)}{more}"
    )


def _passwords(url: str) -> Iterator[str]:
    """As it is written and as it is meant: libpq quotes what it cannot read."""
    parts = urlsplit(url)
    written = [parts.password or "", *re.findall(r"password=([^&]+)", parts.query)]
    yield from filter(None, [*written, *map(unquote, written)])


def _words(error: psycopg.Error) -> str:
    message = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(message.split())[:_MESSAGE_CHARACTERS]
