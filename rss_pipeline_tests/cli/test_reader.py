"""`rss-pipeline reader`: the reader in a process of its own. Below `up` it is tested in test_up.py."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from rss_pipeline.features import FEATURES
from rss_pipeline_tests.support.up import PROGRAM, free_port
from rss_pipeline_tests.support.waiting import PATIENCE, soon


def environment(folder: Path, port: int) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RSS_", "DAGSTER_"))}
    return {**clean, "RSS_PIPELINE_HOME": str(folder / "home"), "RSS_READER_PORT": str(port)}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_and_serves_until_it_is_stopped_with_all_that_is_beside_it(
    tmp_path: Path, number: int
) -> None:
    beside = sum(len(feature.reader_processes) for feature in FEATURES)
    port = free_port()
    with subprocess.Popen(
        [PROGRAM, "reader"],
        cwd=tmp_path,
        env=environment(tmp_path, port),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().decode() == f"The reader is at http://127.0.0.1:{port}\n"
        url = f"http://127.0.0.1:{port}"
        assert process.stdout.readline().decode() == (
            f"There is no user yet. Open {url}/ in a browser on this machine, or add one:"
            " `rss-pipeline user add NAME --subscribe`\n"
        )
        line = process.stdout.readline().decode()
        printed = subprocess.run(
            [PROGRAM, "user", "code"], cwd=tmp_path, env=environment(tmp_path, port), capture_output=True
        )
        assert line == (
            f"From elsewhere the page asks for the code {printed.stdout[:9].decode()}; `rss-pipeline user"
            " code` prints it again\n"
        )
        assert "/first-user" in httpx.get(url, follow_redirects=True, timeout=PATIENCE).url.path
        assert httpx.get(f"{url}/api/about", timeout=PATIENCE).json()["name"] == "rss_pipeline"
        assert (tmp_path / "home" / "rss.sqlite").exists()
        assert (tmp_path / "home" / "reader_secret").stat().st_mode & 0o777 == 0o600
        # Some seconds after the reader, which answers first.
        reader = psutil.Process(process.pid)
        soon(lambda: len(reader.children(recursive=True)) == beside)
        others = reader.children(recursive=True)
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE) == (0 if number == signal.SIGINT else -signal.SIGTERM)
        assert process.stderr.read() == b""
        soon(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in others))


@pytest.mark.slow
def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [PROGRAM, "reader"],
            cwd=tmp_path,
            env=environment(tmp_path, port),
            check=False,
            capture_output=True,
            timeout=PATIENCE,
        )
    assert done.returncode == 1
    assert done.stderr.decode() == (
        f"RSS_READER_PORT: port {port} is in use (Address already in use): stop the program that uses it, or"
        " set another port\n"
    )


@pytest.mark.slow
def test_it_loads_neither_dagster_nor_what_only_a_poll_needs() -> None:
    program = """
import json, sys
from rss_pipeline_tests.support.no_dagster import refuse
refuse("dagster")
import rss_pipeline.api.server
unneeded = ("boto3", "botocore", "feedparser", "charset_normalizer", "pebble", "sqlalchemy", "rich")
print(json.dumps([name for name in unneeded if name in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=PATIENCE)
    assert json.loads(done.stdout) == []


def test_a_database_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    elsewhere = {"D1_PROXY_URL": "http://127.0.0.1:1", "D1_PROXY_TOKEN": "token"}
    said = subprocess.run(
        [PROGRAM, "reader"],
        cwd=tmp_path,
        env={**environment(tmp_path, free_port()), **elsewhere},
        capture_output=True,
        text=True,
    )
    [sentence] = said.stderr.splitlines()
    assert sentence.startswith("the database cannot be used: check D1_PROXY_URL and the network.")
