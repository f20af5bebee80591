"""A store with the S3 API that is not R2: `rclone serve s3`, with its objects in memory.

Unlike R2 it overwrites where a write is only for an absent key, and changes the case of metadata's names.
"""

import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline.storage.backends.s3.backend import S3Backend
from rss_pipeline.storage.backends.s3.objects import S3Store
from rss_pipeline_tests.support.waiting import soon

BUCKET = "feeds"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """Its address, and its one key."""

    endpoint_url: str
    access_key_id: str
    secret_access_key: str

    def settings(self) -> S3Backend:
        return S3Backend(
            endpoint_url=self.endpoint_url,
            region="us-east-1",
            bucket=BUCKET,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
        )

    def store(self) -> S3Store:
        return S3Store(
            endpoint_url=self.endpoint_url,
            bucket=BUCKET,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            prefix="S3",
            region="us-east-1",
            read_seconds=120,
        )


def rclone() -> Path | None:
    """The program, of the environment that runs the tests or of the system."""
    beside = Path(sys.executable).with_name("rclone")
    found = str(beside) if beside.exists() else shutil.which("rclone")
    return None if found is None else Path(found)


@contextmanager
def s3_server(program: Path, folder: Path) -> Iterator[S3Server]:
    """A running one with an empty bucket; its log is in `folder`."""
    key, secret = secrets.token_hex(10).upper(), secrets.token_hex(20)
    log = folder / "rclone.log"
    process = subprocess.Popen(
        [
            *(program, "serve", "s3", ":memory:", "--addr", "127.0.0.1:0", "--auth-key", f"{key},{secret}"),
            *("--config", folder / "none.conf", "--log-file", log, "--log-level", "NOTICE"),
        ],
        stdin=subprocess.DEVNULL,
    )
    try:
        soon(lambda: process.poll() is not None or "http://" in _text(log))
        address = _text(log).partition("http://")[2].partition("/")[0]
        server = S3Server(endpoint_url=f"http://{address}", access_key_id=key, secret_access_key=secret)
        with closing(server.store().client) as client:
            client.create_bucket(Bucket=BUCKET)
        yield server
    finally:
        process.kill()
        process.wait()


def _text(log: Path) -> str:
    return log.read_text("utf-8") if log.exists() else ""
