"""The reader that `up` forks before Dagster is imported: the next one, which shares more, takes its place."""

import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from rss_pipeline.orchestration.serving.forked import AGAIN
from rss_pipeline_tests.support.waiting import PATIENCE

KEEPING = """
import os, sys, time
from pathlib import Path
from rss_pipeline.cli.services import _door, _reader
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
settings = Settings.from_environ(os.environ, cwd=Path.cwd())
with open_database(settings):
    pass
reader = _reader(settings, _door(int(sys.argv[1])), looks_are_forked=True)
reader.look()
first = reader.process
print("#", flush=True)
input()
reader.renew()
while reader.process is first:
    time.sleep(0.05)
    reader.look()
print("#", first.returncode, reader.process is not None, flush=True)
input()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it is forked on Linux alone")
def test_one_that_looks_for_alerts_is_renewed_without_a_visit(tmp_path: Path) -> None:
    pytest.importorskip("rss_pipeline.features.health")
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        environ = {
            **os.environ,
            "RSS_PIPELINE_HOME": str(tmp_path),
            "RSS_READER_PORT": str(port),
            "RSS_ALERT_WEBHOOK": "http://127.0.0.1:9/",
        }
        command = [sys.executable, "-c", KEEPING, str(door.fileno())]
        with subprocess.Popen(
            command,
            env=environ,
            pass_fds=[door.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as keeper:
            assert keeper.stdin is not None
            assert keeper.stdout is not None

            def said() -> str:
                # Between them are the lines of the reader.
                return next(line.strip() for line in iter(keeper.stdout.readline, "") if line[0] == "#")

            try:
                said()
                # Its handlers are there with its first page.
                url = f"http://127.0.0.1:{port}/"
                assert urllib.request.urlopen(url, timeout=PATIENCE).status == 200
                keeper.stdin.write("\n")
                keeper.stdin.flush()
                assert said() == f"# {AGAIN} True"
                assert urllib.request.urlopen(url, timeout=PATIENCE).status == 200
            finally:
                keeper.kill()
