"""The proxy Worker over real HTTP, R2 over S3, and that neither leaves a process behind.

What the Worker does inside is tested in proxy-worker/test; what the pipeline makes of it, in storage/.
"""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from botocore.exceptions import ClientError

from rss_pipeline.storage.schema import schema_text, split
from rss_pipeline_tests.support.services.cloudflare import Cloudflare, living, local_cloudflare
from rss_pipeline_tests.support.waiting import PATIENCE, soon

ONE = {"sql": "SELECT 1 AS one"}
CAP = 4_000_000


@pytest.fixture
def client(bare_cloudflare: Cloudflare) -> Iterator[httpx.Client]:
    with bare_cloudflare.client() as client:
        yield client


def query(client: httpx.Client, sql: str, *params: str | float | None) -> dict[str, Any]:
    answer = client.post("/query", json={"sql": sql, "params": params})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["kind"]


def answered(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """The answer to a request that is refused before its body is read. Where that comes after the answer, the
    connection is closed by then, and the client may learn of a reset before the answer."""

    def answer() -> httpx.Response | None:
        with contextlib.suppress(httpx.NetworkError, httpx.RemoteProtocolError):
            return ask()
        return None

    return soon(answer)


@pytest.mark.parametrize("path", ["/query", "/batch", "/exec", "/", "/nothing"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_without_a_token_every_path_and_method_is_refused_alike(
    shared_cloudflare: Cloudflare, path: str, method: str
) -> None:
    answer = httpx.request(method, shared_cloudflare.url + path)
    assert refusal(answer) == (401, "unauthorized")


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer {other}",
        "Bearer {part}",
        "Bearer {token}x",
        "Bearer {token}{token}",
        "Bearer {token} {token}",
        "Bearer",
        "{token}",
        "Basic {token}",
    ],
)
def test_a_token_that_is_not_the_one_is_refused(shared_cloudflare: Cloudflare, authorization: str) -> None:
    token = shared_cloudflare.token
    filled = authorization.format(token=token, part=token[:-1], other="x" * len(token))
    headers = {"Authorization": filled}
    answer = answered(lambda: httpx.post(f"{shared_cloudflare.url}/query", json=ONE, headers=headers))
    assert refusal(answer) == (401, "unauthorized")
    assert token not in answer.text


def test_a_token_in_the_query_opens_nothing_and_is_refused_beside_a_good_one(
    shared_cloudflare: Cloudflare,
) -> None:
    path = f"/query?token={shared_cloudflare.token}&access_token={shared_cloudflare.token}"
    answer = answered(lambda: httpx.post(shared_cloudflare.url + path, json=ONE))
    assert refusal(answer) == (401, "unauthorized")
    with shared_cloudflare.client() as client:
        answer = answered(lambda: client.post(path, json=ONE))
    assert refusal(answer) == (400, "request")
    assert shared_cloudflare.token not in answer.text


@pytest.mark.slow
def test_a_worker_without_a_secret_refuses_everyone() -> None:
    with local_cloudflare(token="") as closed:
        for authorization in (None, "", "Bearer", "Bearer undefined", "Bearer null"):
            headers = {} if authorization is None else {"Authorization": authorization}
            answer = answered(
                lambda headers=headers: httpx.post(f"{closed.url}/query", json=ONE, headers=headers)
            )
            assert refusal(answer) == (401, "unauthorized")
        assert httpx.get(f"{closed.url}/health").json() == {"ok": True}


def test_health_is_open_and_says_nothing_but_ok(shared_cloudflare: Cloudflare) -> None:
    answer = httpx.get(f"{shared_cloudflare.url}/health")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert httpx.post(f"{shared_cloudflare.url}/health").status_code == 405


def test_other_methods_and_paths_are_refused_with_the_token_too(client: httpx.Client) -> None:
    for path in ("/", "/query/", "/Query", "/tables", "/health/"):
        answer = answered(lambda path=path: client.post(path, json=ONE))
        assert refusal(answer) == (404, "not_found")
    for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
        for path in ("/query", "/batch", "/exec"):
            answer = client.request(method, path)
            assert refusal(answer) == (405, "method")
            assert answer.headers["Allow"] == "POST"


def test_a_stranger_is_answered_before_his_body_is_read(shared_cloudflare: Cloudflare) -> None:
    address = urlsplit(shared_cloudflare.url)
    assert address.hostname is not None
    with contextlib.closing(http.client.HTTPConnection(address.hostname, address.port, timeout=20)) as line:
        line.putrequest("POST", "/query")
        line.putheader("Content-Length", str(CAP - 1))
        line.endheaders()
        assert line.getresponse().status == 401


def test_a_body_over_the_cap_is_refused_by_its_announced_length(bare_cloudflare: Cloudflare) -> None:
    address = urlsplit(bare_cloudflare.url)
    assert address.hostname is not None
    with contextlib.closing(http.client.HTTPConnection(address.hostname, address.port, timeout=20)) as line:
        line.putrequest("POST", "/query")
        line.putheader("Authorization", f"Bearer {bare_cloudflare.token}")
        line.putheader("Content-Length", str(CAP + 1))
        line.endheaders()
        assert line.getresponse().status == 413


@pytest.mark.parametrize("size", [CAP + 1, 2 * CAP])
def test_a_body_over_the_cap_is_refused_also_without_a_length(bare_cloudflare: Cloudflare, size: int) -> None:
    def pieces() -> Iterator[bytes]:
        yield json.dumps(ONE).encode().ljust(size % 100_000 or 100_000)
        for _ in range(size // 100_000):
            yield b" " * 100_000

    with bare_cloudflare.client() as client:
        answer = answered(lambda: client.post("/query", content=pieces()))
        assert refusal(answer) == (413, "too_large")
        assert query(client, "SELECT 1 AS one")["results"] == [{"one": 1}]


def test_a_body_at_the_cap_is_taken(client: httpx.Client) -> None:
    assert client.post("/query", content=json.dumps(ONE).encode().ljust(CAP)).status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/query", b""),
        ("/query", b'{"sql": '),
        ("/query", b"\xff\xfe"),
        ("/query", b"[]"),
        ("/query", b"null"),
        ("/query", b'{"sql": ""}'),
        ("/query", b'{"sql": "SELECT ?", "params": "x"}'),
        ("/query", b'{"sql": "SELECT ?", "params": [true]}'),
        ("/query", b'{"sql": "SELECT ?", "params": [[1]]}'),
        ("/query", b'{"sql": "SELECT ?", "params": [NaN]}'),
        ("/batch", b'{"sql": "SELECT 1"}'),
        ("/batch", b"[]"),
        ("/batch", b'[{"sql": "SELECT 1"}, 5]'),
        ("/exec", b" "),
    ],
)
def test_what_has_not_the_form_is_refused_with_a_sentence(
    client: httpx.Client, path: str, body: bytes
) -> None:
    answer = client.post(path, content=body)
    assert refusal(answer) == (400, "request")
    assert answer.json()["error"]["retryable"] is False
    assert len(answer.json()["error"]["message"]) > 15


def test_rows_come_back_as_they_were_bound(client: httpx.Client) -> None:
    text = "日本語 😀 \u2028 'quoted' \\ \x7f"
    (row,) = query(client, "SELECT ? AS text, ? AS half, ? AS none", text, 0.5, None)["results"]
    assert row == {"text": text, "half": 0.5, "none": None}


def test_a_number_bound_into_a_text_column_is_a_double(client: httpx.Client) -> None:
    query(client, "CREATE TABLE t (x TEXT)")
    assert query(client, "INSERT INTO t VALUES (?) RETURNING x", 1)["results"] == [{"x": "1.0"}]


def test_meta_has_rows_written_indexes_included(client: httpx.Client) -> None:
    query(client, "CREATE TABLE t (id TEXT PRIMARY KEY, x TEXT UNIQUE, y TEXT)")
    query(client, "CREATE INDEX t_y ON t (y)")
    inserted = query(client, "INSERT INTO t VALUES (?, ?, ?) RETURNING id", "a", "b", "c")
    assert inserted["results"] == [{"id": "a"}]
    assert (inserted["meta"]["changes"], inserted["meta"]["rows_written"]) == (1, 4)
    ignored = query(client, "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT DO NOTHING", "a", "b", "c")
    assert (ignored["meta"]["changes"], ignored["meta"]["rows_written"]) == (0, 0)


def test_a_list_goes_in_as_json(client: httpx.Client) -> None:
    ids = [f"id-{number}" for number in range(300)]
    sql = "SELECT count(*) AS n FROM (SELECT value FROM json_each(?))"
    assert query(client, sql, json.dumps(ids))["results"] == [{"n": 300}]


def test_a_batch_answers_in_order_and_is_one_transaction(client: httpx.Client) -> None:
    query(client, "CREATE TABLE t (x TEXT PRIMARY KEY)")
    insert = {"sql": "INSERT INTO t VALUES (?)", "params": ["a"]}
    counted = {"sql": "SELECT count(*) AS n FROM t"}
    answer = client.post("/batch", json=[insert, counted]).json()
    assert [result["results"] for result in answer] == [[], [{"n": 1}]]

    ddl = {"sql": "CREATE TABLE left_behind (x)"}
    assert refusal(client.post("/batch", json=[ddl, counted, insert])) == (409, "constraint")
    assert query(client, "SELECT * FROM t")["results"] == [{"x": "a"}]
    assert refusal(client.post("/query", json={"sql": "SELECT * FROM left_behind"})) == (400, "syntax")


def test_the_schema_is_made_as_one_batch(client: httpx.Client) -> None:
    statements = split(schema_text())
    answer = client.post("/batch", json=[{"sql": statement} for statement in statements])
    assert answer.status_code == 200, answer.text
    tables = query(client, "SELECT name FROM sqlite_master WHERE type = 'table'")["results"]
    assert {"feeds", "items", "image_tasks", "leases"} <= {row["name"] for row in tables}


def test_exec_runs_a_statement_a_line(client: httpx.Client) -> None:
    answer = client.post("/exec", content="CREATE TABLE t (x);\nINSERT INTO t VALUES (1);")
    assert answer.json()["count"] == 2
    assert refusal(client.post("/exec", content="NONSENSE")) == (400, "syntax")


REFUSED: dict[str, tuple[str, list[Any], tuple[int, str]]] = {
    "UNIQUE": ("INSERT INTO t VALUES ('there', 1)", [], (409, "constraint")),
    "NOT NULL": ("INSERT INTO t VALUES (NULL, 1)", [], (409, "constraint")),
    "CHECK": ("INSERT INTO t VALUES ('new', 0)", [], (409, "constraint")),
    "FOREIGN KEY": ("INSERT INTO child VALUES ('nobody')", [], (409, "constraint")),
    "syntax": ("SELEKT 1", [], (400, "syntax")),
    "no table": ("SELECT * FROM nowhere", [], (400, "syntax")),
    "not bound": ("SELECT ?", [], (400, "syntax")),
    "BEGIN": ("BEGIN", [], (400, "syntax")),
    "VACUUM": ("VACUUM", [], (400, "syntax")),
    "101 parameters": (f"SELECT {', '.join('?' * 101)}", [1.0] * 101, (422, "limit")),
    "100 KB of SQL": (f"SELECT '{'x' * 100_000}'", [], (422, "limit")),
    "2 MB and a byte": ("SELECT length(?)", ["x" * 2_000_001], (422, "limit")),
    "2 MB in UTF-8": ("SELECT length(?)", ["語" * 666_667], (422, "limit")),
    "LIKE": ("SELECT 'x' LIKE ?", ["x" * 51], (422, "limit")),
    "compound": (" UNION ALL ".join(["SELECT 1"] * 6), [], (422, "limit")),
    "U+0000": ("SELECT ?", ["a\0b"], (422, "limit")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_d1_refuses_has_a_kind(client: httpx.Client, case: str) -> None:
    sql, params, expected = REFUSED[case]
    tables = (
        "CREATE TABLE t (x TEXT PRIMARY KEY NOT NULL, y CHECK (y > 0));\n"
        "CREATE TABLE child (x TEXT REFERENCES t);\nINSERT INTO t VALUES ('there', 1);"
    )
    assert client.post("/exec", content=tables).status_code == 200
    answer = client.post("/query", json={"sql": sql, "params": params})
    assert refusal(answer) == expected, answer.text
    assert answer.json()["error"]["retryable"] is False


def test_a_lone_surrogate_in_an_escape_is_refused(client: httpx.Client) -> None:
    answer = client.post("/query", content=rb'{"sql": "SELECT ?", "params": ["a\ud800b"]}')
    assert refusal(answer) == (422, "limit")


def test_an_object_is_put_read_listed_and_deleted(bare_cloudflare: Cloudflare) -> None:
    key, body = "backups/a feed/日本 +%.xml", os.urandom(100_000)
    with contextlib.closing(bare_cloudflare.s3()) as s3:
        put = {"Bucket": bare_cloudflare.bucket, "Key": key, "Body": body}
        s3.put_object(**put, ContentType="application/xml", Metadata={"visit": '{"status":200}'})
        got = s3.get_object(Bucket=bare_cloudflare.bucket, Key=key)
        assert (got["Body"].read(), got["ContentType"]) == (body, "application/xml")
        assert got["Metadata"] == {"visit": '{"status":200}'}
        with pytest.raises(ClientError, match="PreconditionFailed"):
            s3.put_object(**{**put, "Body": b"other"}, IfNoneMatch="*")
        listed = s3.list_objects_v2(Bucket=bare_cloudflare.bucket, Prefix="backups/")
        assert [(entry["Key"], entry["Size"]) for entry in listed["Contents"]] == [(key, 100_000)]
        s3.delete_objects(Bucket=bare_cloudflare.bucket, Delete={"Objects": [{"Key": key}]})
        with pytest.raises(ClientError, match="404"):
            s3.head_object(Bucket=bare_cloudflare.bucket, Key=key)


@pytest.mark.parametrize("changed", [{"aws_secret_access_key": "no"}, {"aws_access_key_id": "no"}])
def test_r2_checks_its_keys(shared_cloudflare: Cloudflare, changed: dict[str, str]) -> None:
    with contextlib.closing(shared_cloudflare.s3(**changed)) as s3, pytest.raises(ClientError) as refused:
        s3.list_objects_v2(Bucket=shared_cloudflare.bucket)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in {401, 403}


def test_the_fixture_hands_out_an_empty_one(bare_cloudflare: Cloudflare) -> None:
    parents_first = "CREATE TABLE p (x PRIMARY KEY);\nCREATE TABLE c (x REFERENCES p);\n"
    with bare_cloudflare.client() as client, contextlib.closing(bare_cloudflare.s3()) as s3:
        rows = "INSERT INTO p VALUES (1);\nINSERT INTO c VALUES (1);"
        assert client.post("/exec", content=parents_first + rows).status_code == 200
        s3.put_object(Bucket=bare_cloudflare.bucket, Key="a", Body=b"")
        bare_cloudflare.wipe()
        assert refusal(client.post("/query", json={"sql": "SELECT * FROM p"})) == (400, "syntax")
        assert s3.list_objects_v2(Bucket=bare_cloudflare.bucket)["KeyCount"] == 0


@pytest.mark.slow
def test_what_is_persisted_is_there_again_at_the_next_start(tmp_path: Path) -> None:
    with local_cloudflare(persist=tmp_path) as first, first.client() as client:
        query(client, "CREATE TABLE t AS SELECT 'kept' AS x")
        with contextlib.closing(first.s3()) as s3:
            s3.put_object(Bucket=first.bucket, Key="a", Body=b"kept")
    with local_cloudflare(persist=tmp_path) as second, second.client() as client:
        assert query(client, "SELECT x FROM t")["results"] == [{"x": "kept"}]
        with contextlib.closing(second.s3()) as s3:
            assert s3.get_object(Bucket=second.bucket, Key="a")["Body"].read() == b"kept"


@pytest.mark.slow
def test_it_ends_with_all_its_processes_and_frees_its_port() -> None:
    with local_cloudflare() as first:
        assert len(living(first.pid)) >= 2, "node and workerd"
    assert living(first.pid) == []
    port = urlsplit(first.url).port
    assert port is not None
    with local_cloudflare(port=port) as second:
        assert second.url == first.url


@pytest.mark.slow
def test_a_workerd_that_answers_no_more_is_started_again_with_the_same_rows() -> None:
    with local_cloudflare() as running, running.client() as client:
        query(client, "CREATE TABLE t AS SELECT 'kept' AS x")
        for process in psutil.Process(running.pid).children(recursive=True):
            process.suspend()
        running.wake(patience=0.2)
        assert query(client, "SELECT x FROM t")["results"] == [{"x": "kept"}]


@pytest.mark.slow
def test_it_ends_also_when_node_was_killed() -> None:
    with local_cloudflare() as running:
        os.kill(running.pid, signal.SIGKILL)
    assert living(running.pid) == []


@pytest.mark.slow
def test_it_ends_also_when_the_tests_are_killed() -> None:
    script = """
        from rss_pipeline_tests.support.services.cloudflare import local_cloudflare
        with local_cloudflare() as running:
            print(running.pid, flush=True)
            input()
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        assert len(living(pid)) >= 2
        tests.kill()
    assert eventually_gone(pid)


@pytest.mark.slow
def test_a_port_that_is_taken_is_reported(shared_cloudflare: Cloudflare) -> None:
    port = urlsplit(shared_cloudflare.url).port
    assert port is not None
    sentence = f"Port {port} is in use: stop the program that uses it, or use another port, such as"
    with pytest.raises(RuntimeError, match=sentence) as raised, local_cloudflare(port=port):
        pass
    assert "    at " not in str(raised.value), "a sentence and no stack"


def eventually_gone(group: int) -> bool:
    deadline = time.monotonic() + PATIENCE
    while living(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not living(group)
