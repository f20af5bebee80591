"""D1's own errors: each is reported in a sentence with what to do, none is tried twice, none shows the token.

What D1 shares with SQLite is in test_database_contract.py and in the tests by table; what a proxy between us
and the Worker breaks of a whole run, in orchestration/.
"""

import json
import logging
import socket
import ssl
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rss_pipeline.errors import DatabaseFull, DatabaseUnavailable, StorageRejected
from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.connect import check_schema
from rss_pipeline.storage.backends.d1 import database as d1_database
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.d1.database import CONNECTIONS, IDLE_SECONDS, D1Database
from rss_pipeline.storage.database import Statement
from rss_pipeline_tests.storage.raw import Answers, Asked, RawServer, answer
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.waiting import PATIENCE

TOKEN = "hunter2-hunter2-hunter2"
INSERT = "INSERT INTO notes (id)\n  VALUES (?)"
NOTHING = {"results": [], "meta": {"changes": 0}}


@contextmanager
def answering(answers: Answers) -> Iterator[tuple[D1Database, RawServer]]:
    with RawServer(answers) as server:
        database = D1Database(server.url, TOKEN, answer_seconds=5)
        try:
            yield database, server
        finally:
            database.close()


def refusal(status: int, kind: str, message: str = "the reason") -> bytes:
    error = {"kind": kind, "message": message, "retryable": kind in {"transient", "overloaded"}}
    return answer(status, json.dumps({"error": error}).encode())


def trouble(answers: Answers, *, is_full: bool = False) -> str:
    """The last statement of an insert; it is sent exactly once."""
    with answering(answers) as (database, server), pytest.raises(DatabaseUnavailable) as caught:
        database.query(INSERT, ["1"])
    assert isinstance(caught.value, DatabaseFull) == is_full
    assert len(server.requests) == 1
    assert TOKEN not in "".join(traceback.format_exception(caught.value))
    text = str(caught.value)
    assert text.startswith("the database cannot be used: ")
    assert f". POST {server.url}/query -> " in text
    assert text.endswith("Statement: INSERT INTO notes (id) VALUES (?)")
    return text


@pytest.mark.parametrize(
    ("status", "kind", "advice"),
    [
        (401, "unauthorized", "D1_PROXY_TOKEN is not the Worker's secret"),
        (400, "syntax", "run `rss-pipeline migrate`"),
        (400, "request", "deploy proxy-worker/ again"),
        (404, "not_found", "check D1_PROXY_URL"),
        (405, "method", "check D1_PROXY_URL"),
        (429, "quota", "the day's free rows are used up; wait until 00:00 UTC or take the paid plan"),
        (507, "full", "no room left"),
        (503, "overloaded", "the database is overloaded; the next poll tries again"),
        (503, "transient", "the poll is tried again later"),
        (504, "timeout", "whether it was applied is not known"),
        (500, "internal", "wrangler tail"),
        (418, "not yet invented", "the poll is tried again later"),
    ],
)
def test_each_refusal_of_the_worker_says_what_to_do_and_is_final(status: int, kind: str, advice: str) -> None:
    text = trouble(refusal(status, kind), is_full=kind == "full")
    assert f"{status} {kind}: the reason" in text
    assert advice in text


@pytest.mark.parametrize(
    ("status", "body", "advice"),
    [
        (401, b"", "check D1_PROXY_TOKEN"),
        (403, b"<h1>Access</h1>", "check D1_PROXY_TOKEN"),
        (404, b"<h1>not here</h1>", "is this the proxy Worker?"),
        (302, b"", "is this the proxy Worker?"),
        (500, b"error code: 1101", "the poll is tried again later"),
        (503, b'{"error": "text"}', "the poll is tried again later"),
        (522, b"\xff\xfe", "the poll is tried again later"),
    ],
)
def test_what_answers_in_the_worker_s_place_is_quoted(status: int, body: bytes, advice: str) -> None:
    text = trouble(answer(status, body, "text/html", Location="/elsewhere"))
    assert f"-> {status}: {body.decode('utf-8', 'replace')}" in text
    assert advice in text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Welcome to our hotel</html>",
        b'{"results": [',
        b"\xff",
        b"[" * 100_000,
        b"null",
        b"1",
        b"{}",
        b"[]",
        b'{"results": [], "meta": {}}',
        b'{"results": [], "meta": {"changes": null}}',
        b'{"results": {}, "meta": {"changes": 0}}',
        b'{"results": null, "meta": {"changes": 0}}',
        b'{"results": [1], "meta": {"changes": 0}}',
        b'[{"results": [], "meta": {"changes": 0}}, {"results": [], "meta": {"changes": 0}}]',
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_a_200_that_is_no_result_is_never_an_empty_result(body: bytes) -> None:
    text = trouble(answer(200, body))
    assert "200 with what the proxy Worker does not say" in text
    assert "check D1_PROXY_URL" in text


def test_a_batch_with_too_few_results_is_our_error() -> None:
    with (
        answering(answer(200, json.dumps([NOTHING]).encode())) as (database, _),
        pytest.raises(DatabaseUnavailable, match="1 more"),
    ):
        database.batch([Statement("SELECT 1"), Statement("SELECT 2")])


@pytest.mark.parametrize(
    "given",
    [b"", b"HTTP/1.1 200 OK\r\nConte", b"SSH-2.0-OpenSSH_9\r\n", answer(200, b"x" * 100)[:-50]],
    ids=["no answer", "half a head", "another protocol", "half a body"],
)
def test_half_an_answer_is_our_error_and_is_not_requested_again(given: bytes) -> None:
    def close(asked: Asked) -> bytes:
        return given.replace(b"Content-Type", b"Connection: close\r\nContent-Type")

    assert "check D1_PROXY_URL and the network" in trouble(close)


def test_an_answer_that_comes_by_the_byte_ends_at_the_time_out() -> None:
    """The kernel hands the bytes on as they come; each resets a time-out of httpx, none ours."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        database = D1Database(f"http://127.0.0.1:{listening.getsockname()[1]}", TOKEN, answer_seconds=0.2)

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
                try:
                    while True:
                        connection.sendall(b" ")
                except OSError:
                    return

        dripping = threads.submit(drip)
        with pytest.raises(DatabaseUnavailable, match=r"no whole answer within 0\.2 s"):
            database.query("SELECT 1")
        database.close()
        dripping.result()


def test_no_answer_in_time_is_our_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        database = D1Database(f"http://127.0.0.1:{listening.getsockname()[1]}", TOKEN, answer_seconds=0.05)
        with pytest.raises(DatabaseUnavailable, match=r"check D1_PROXY_URL and the network.*ReadTimeout"):
            database.query("SELECT 1")
        database.close()


def test_a_refused_connection_is_our_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    database = D1Database(url, TOKEN)
    with pytest.raises(DatabaseUnavailable, match=r"check D1_PROXY_URL and the network.*ConnectError"):
        database.query("SELECT 1")
    database.close()


def test_a_closed_database_is_unavailable(cloudflare: Cloudflare) -> None:
    database = D1Database(cloudflare.url, cloudflare.token)
    database.close()
    database.close()
    with pytest.raises(DatabaseUnavailable, match="closed"):
        database.query("SELECT 1")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(409, "constraint"), (422, "limit"), (413, "too_large")],
    ids=lambda value: str(value),
)
def test_what_concerns_one_statement_s_data_is_a_refusal_of_it(status: int, kind: str) -> None:
    with (
        answering(refusal(status, kind, "UNIQUE constraint failed: notes.id")) as (database, server),
        pytest.raises(StorageRejected, match=r"^the database refused a value: UNIQUE constraint failed"),
    ):
        database.query(INSERT, ["1"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind", "level"), [(503, "overloaded", "ERROR"), (422, "limit", "WARNING")]
)
def test_the_log_has_statement_parameters_and_answer_each_cut(
    caplog: pytest.LogCaptureFixture, status: int, kind: str, level: str
) -> None:
    caplog.set_level(logging.DEBUG)
    given = refusal(status, kind, "m" * 10_000)
    statements = [Statement(INSERT, ["p" * 201, 7, None])] + [Statement("SELECT 1")] * 9
    with (
        answering(given) as (database, server),
        pytest.raises((DatabaseUnavailable, StorageRejected)) as caught,
    ):
        database.batch(statements)
    [record] = [one for one in caplog.records if one.name.startswith("rss_pipeline.")]
    text = record.getMessage()
    assert record.levelname == level
    assert f"POST {server.url}/batch -> {status} {kind}: mmm" in text
    assert "INSERT INTO notes (id) VALUES (?) <- ['" + "p" * 200 + "', '7', 'None']" in text
    assert "p" * 201 not in text
    assert "and 5 more" in text
    assert 2_000 < text.count("m") < 2_100
    assert str(caught.value).count("m") < 600
    assert "p" * 20 not in str(caught.value)


def test_the_log_has_what_else_answered_cut_to_two_kilobytes(caplog: pytest.LogCaptureFixture) -> None:
    trouble(answer(502, b"q" * 10_000, "text/html"))
    [record] = [one for one in caplog.records if one.name.startswith("rss_pipeline.")]
    assert 2_000 < record.getMessage().count("q") <= 2_048


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_token_shows_nowhere_even_where_the_answer_quotes_it(
    caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)

    def echo(asked: Asked) -> bytes:
        return answer(status, json.dumps(asked.headers).encode())

    with answering(echo) as (database, server), pytest.raises(DatabaseUnavailable) as caught:
        database.query(INSERT, ["1"])
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    shown = [
        *traceback.format_exception(caught.value),
        *(repr(error) for error in (caught.value, caught.value.__cause__, caught.value.__context__)),
        *(str(vars(one)) + one.getMessage() for one in caplog.records),
        repr(database),
    ]
    assert TOKEN not in "\n".join(shown)
    assert "Bearer [D1_PROXY_TOKEN]" in str(caught.value)


@pytest.mark.parametrize("message", ["constraint failed: {token}"])
def test_nor_does_it_show_in_a_refusal(caplog: pytest.LogCaptureFixture, message: str) -> None:
    given = refusal(409, "constraint", message.format(token=TOKEN))
    with answering(given) as (database, _), pytest.raises(StorageRejected) as caught:
        database.query(INSERT, ["1"])
    assert TOKEN not in repr(caught.value) + caplog.text


@pytest.mark.parametrize(
    "token", ["", "hunter2\n", "hunter2\r\nX: y", "hünter2", "hunter2 hunter2", "hunter2\0"]
)
def test_a_token_that_no_header_can_carry_is_refused_unseen(token: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="D1_PROXY_TOKEN") as caught:
        D1Database("http://127.0.0.1:1", token)
    assert "nter2" not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)


def test_a_url_that_is_none_names_its_variable() -> None:
    with pytest.raises(DatabaseUnavailable, match="D1_PROXY_URL"):
        D1Database("http://[::1", TOKEN)


def test_the_wrong_token_is_named_by_the_real_worker(cloudflare: Cloudflare) -> None:
    database = D1Database(cloudflare.url, TOKEN)
    with pytest.raises(
        DatabaseUnavailable, match=r"used: D1_PROXY_TOKEN is not the Worker's secret.*401 unauthorized"
    ):
        database.query("SELECT 1")
    database.close()


@pytest.mark.slow
def test_connections_are_kept_and_shared_by_threads() -> None:
    with answering(answer(200, json.dumps(NOTHING).encode())) as (database, server):
        for _ in range(5):
            database.query("SELECT 1")
        assert {asked.connection for asked in server.requests} == {1}
        with ThreadPoolExecutor(2 * CONNECTIONS) as threads:
            assert len(list(threads.map(lambda _: database.query("SELECT 1"), range(200)))) == 200
        assert max(asked.connection for asked in server.requests) <= CONNECTIONS
    assert len(server.requests) == 205


def test_a_connection_that_was_idle_for_too_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(d1_database, "IDLE_SECONDS", 0.0)
    with answering(answer(200, json.dumps(NOTHING).encode())) as (database, server):
        for _ in range(3):
            database.query("SELECT 1")
    assert [asked.connection for asked in server.requests] == [1, 2, 3]


@pytest.mark.slow
def test_workerd_keeps_an_idle_connection_for_longer_than_we_do(shared_cloudflare: Cloudflare) -> None:
    address = urlsplit(shared_cloudflare.url)
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: local\r\n\r\n")
        while b"true" not in (came := connection.recv(65_536)):
            assert came
        answered = time.monotonic()
        assert connection.recv(1) == b"", "the other end closes it"
    assert time.monotonic() - answered > IDLE_SECONDS + 1


def test_what_is_refused_before_sending_is_not_sent() -> None:
    refused: list[Callable[[D1Database], object]] = [
        lambda database: database.query("SELECT ?", ["\0"]),
        lambda database: database.query("SELECT ?", ["x" * 2_000_001]),
        lambda database: database.batch([Statement("SELECT 1"), Statement("SELECT ?", ["\ud800"])]),
        lambda database: database.batch([Statement("SELECT ?", ["x" * 1_500_000])] * 3),
    ]
    with answering(b"") as (database, server):
        for attempt in refused:
            with pytest.raises(StorageRejected):
                attempt(database)
    assert server.requests == []


def test_a_request_does_not_double_japanese_text() -> None:
    text = "語" * 1_000
    with answering(answer(200, json.dumps(NOTHING).encode())) as (database, server):
        database.query("SELECT ?", [text])
    [asked] = server.requests
    assert (asked.line, asked.headers["content-type"]) == ("POST /query HTTP/1.1", "application/json")
    assert text.encode() in asked.body
    assert len(asked.body) < 3_100


def test_to_migrate_d1_twice_is_to_migrate_it_once(empty_d1: D1Database) -> None:
    assert schema.schema_version(empty_d1) == 0
    with pytest.raises(DatabaseUnavailable, match="run `rss-pipeline migrate`"):
        check_schema(empty_d1)
    assert schema.migrate(empty_d1) == ["schema.sql"]
    before = empty_d1.query("SELECT * FROM sqlite_master").rows
    assert schema.migrate(empty_d1) == []
    assert empty_d1.query("SELECT * FROM sqlite_master").rows == before
    check_schema(empty_d1)


def test_a_migration_is_one_batch() -> None:
    tables = {"results": [], "meta": {"changes": 0}}

    def worker(asked: Asked) -> bytes:
        body = json.loads(asked.body)
        return answer(200, json.dumps([tables] * len(body) if isinstance(body, list) else tables).encode())

    with answering(worker) as (database, server):
        schema.migrate(database)
    paths = [asked.line.split()[1] for asked in server.requests]
    assert paths == ["/query", "/batch"]


def test_a_d1_ahead_of_the_code_is_left_alone(empty_d1: D1Database) -> None:
    schema.migrate(empty_d1)
    empty_d1.query("INSERT INTO schema_migrations VALUES (999, '0999_future.sql', '2030-01-01T00:00:00Z')")
    for refused in (schema.migrate, check_schema):
        with pytest.raises(
            DatabaseUnavailable, match=r"has schema 999, this code knows .* update rss_pipeline"
        ):
            refused(empty_d1)


def test_a_migration_that_fails_leaves_nothing_in_d1(
    empty_d1: D1Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "schema_text", lambda: "CREATE TABLE feeds (id TEXT);\nCREATE TABLE (;\n")
    with pytest.raises(DatabaseUnavailable):
        schema.migrate(empty_d1)
    assert empty_d1.query("SELECT name FROM sqlite_master WHERE name NOT GLOB '_cf_*'").rows == []


def test_a_worker_behind_an_authority_of_ones_own_is_trusted_where_it_is_named(tmp_path: Path) -> None:
    tls = Path(__file__).parents[2] / "support" / "tls"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls / "good.pem")
    body = json.dumps({"results": [{"now": "2026-03-02T12:00:00Z"}], "meta": {"changes": 0}}).encode()
    with FeedServer(tls=context) as server:
        url = server.route("127.0.0.2", "/query", Answer(body=body)).removesuffix("/query")
        for ca_file in (None, tls / "authority.pem"):
            d1 = D1Backend(url=url, token=TOKEN, ca_file=ca_file)
            database = d1.connect()
            try:
                if ca_file is None:
                    with pytest.raises(DatabaseUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                        database.query("SELECT 1")
                    with pytest.raises(DatabaseUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                        d1.probe()
                else:
                    assert database.query("SELECT 1").rows
                    assert d1.probe().clock is not None
            finally:
                database.close()
