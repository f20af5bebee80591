"""`rss-pipeline metrics`: printed, into a file, and served; without Dagster."""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.features.health.cli import last_runs, own_names
from rss_pipeline.settings import Settings
from rss_pipeline.web.authority import Authority
from rss_pipeline_tests.support.waiting import PATIENCE

PROGRAM = """
import sys
from rss_pipeline_tests.support.no_dagster import refuse
refuse("dagster")
from rss_pipeline.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RSS_")}
    return {**clean, "RSS_PIPELINE_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def served(tmp_path: Path, environ: dict[str, str]) -> Iterator[str]:
    """The address of a server without Dagster."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "metrics", "--listen", "0"],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        found = re.search(r"http://127\.0\.0\.1:[0-9]+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()


def test_the_server_has_one_route_on_loopback_and_needs_no_dagster(served: str) -> None:
    with urllib.request.urlopen(f"{served}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert b'rss_feeds{state="answering"} 0.0' in answer.read()
    for path, method, status in (("/", "GET", 404), ("/other", "GET", 404), ("/metrics", "POST", 405)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(served + path, method=method))
        assert refused.value.code == status
        refused.value.close()
    # A page of another site, with a name that leads here.
    foreign = urllib.request.Request(f"{served}/metrics", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(foreign)
    assert refused.value.code == 421
    refused.value.close()


@pytest.mark.parametrize(
    ("listens_on", "own", "foreign"),
    [
        (
            "127.0.0.1",
            ("localhost:9464", "127.0.0.1", "[::1]:9464", "LOCALHOST", "rss.example.org", "prom.example"),
            ("", "evil.example", "10.0.0.5:9464", "localhost, evil.example", "localhost.evil.example", "a b"),
        ),
        ("0.0.0.0", ("10.0.0.5:9464", "[fd00::1]:9464", "localhost", "rss.example.org"), ("evil.example",)),
        ("10.0.0.5", ("10.0.0.5:9464",), ("10.0.0.5.evil.example",)),
    ],
)
def test_metrics_are_for_names_of_this_server(
    tmp_path: Path, listens_on: str, own: tuple[str, ...], foreign: tuple[str, ...]
) -> None:
    names = (Authority("rss.example.org", None),)
    settings = Settings(home=tmp_path, feeds_file=tmp_path, user_agent="test", reader_hosts=names)
    is_own = own_names(settings, listens_on, ["Prom.example"])
    assert [name for name in own if not is_own(name)] == []
    assert [name for name in foreign if is_own(name)] == []


def test_a_file_is_replaced_in_one_step_and_a_link_to_it_is_followed(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    real = tmp_path / "real.prom"
    real.write_text("old", "utf-8")
    real.chmod(0o644)
    (tmp_path / "rss.prom").symlink_to(real)
    done = CliRunner().invoke(main, ["metrics", "--output", "rss.prom"], env=environ)
    assert (done.exit_code, done.output) == (0, "")
    assert real.read_text("utf-8").startswith("# HELP rss_feeds ")
    assert real.stat().st_mode & 0o777 == 0o644
    printed = CliRunner().invoke(main, ["metrics"], env=environ).stdout
    assert printed.startswith("# HELP rss_feeds ")
    refused = CliRunner().invoke(main, ["metrics", "--output", "no/rss.prom"], env=environ)
    assert (refused.exit_code, "cannot be written" in refused.stderr) == (1, True)


@pytest.mark.parametrize("listen", ["x", "127.0.0.1:", "1:99999", ":-1"])
def test_an_address_that_cannot_be_listened_on_is_a_sentence(
    tmp_path: Path, environ: dict[str, str], listen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["metrics", "--listen", listen], env=environ)
    assert done.exit_code == 2
    assert "write a port, or HOST:PORT" in done.stderr


def test_without_a_history_of_dagster_no_job_is_known(tmp_path: Path) -> None:
    assert last_runs(Settings(home=tmp_path, feeds_file=tmp_path, user_agent="test")) == {}
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "runs.db").write_bytes(b"not a database, but as long as the head of one" * 9)
    assert last_runs(Settings(home=tmp_path, feeds_file=tmp_path, user_agent="test")) == {}
