"""A first start without network, as a person at the terminal sees it.

What happens to the feeds is in pipeline/visits/faults/test_first_start.py. No name below .invalid resolves,
with or without a network (RFC 6761).
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline.orchestration.instance.home import open_instance
from rss_pipeline.orchestration.jobs import POLL_FEEDS
from rss_pipeline.orchestration.recent_runs import recent_runs
from rss_pipeline.settings import Settings
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

SENTENCE = "No feed could be reached. Is this machine online?"


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(tmp_path))
    monkeypatch.setenv("RSS_HOST_DELAY_SECONDS", "0")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_poll_and_status_say_it_and_end_with_1_and_no_back_off_follows(
    tmp_path: Path, invoke: Callable[..., Result]
) -> None:
    hosts = ("one", "two", "three")
    tmp_path.joinpath("feeds.yaml").write_text(
        "feeds:\n" + "".join(f"- http://{host}.invalid/feed\n" for host in hosts), "utf-8"
    )
    first = invoke("poll")
    assert first.exit_code == 1
    assert first.stdout.startswith(f"The run failed: fetch: {SENTENCE} No failure was counted; the next att")
    assert "0 feeds visited" not in first.stdout
    again = invoke("poll")
    assert (again.exit_code, again.stdout.startswith(f"{SENTENCE} The next attempt is at ")) == (1, True)
    as_json = invoke("poll", "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["nothing_reached"][:9]) == (1, SENTENCE[:9])
    status = invoke("status")
    assert (status.exit_code, status.stderr.startswith(f"{SENTENCE} The next attempt is at ")) == (1, True)
    assert json.loads(invoke("status", "--json").stdout)["failing"] == 0
    settings = Settings.from_environ({"RSS_PIPELINE_HOME": str(tmp_path)}, cwd=tmp_path)
    with open_instance(settings) as instance:
        assert [run.state for run in recent_runs(instance, POLL_FEEDS)] == ["offline"]


def test_after_the_first_answer_neither_says_it(
    pipeline: Pipeline, server: FeedServer, invoke: Callable[..., Result]
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("1"))), "up", interval="24h")
    pipeline.poll()
    pipeline.database.query("UPDATE feeds SET schedule_kind = 'our_outage'")
    status = invoke("status")
    assert (status.exit_code, status.stderr) == (0, "")


def test_where_no_feed_has_an_answer_poll_and_status_end_with_1_until_one_has(
    tmp_path: Path, server: FeedServer, invoke: Callable[..., Result]
) -> None:
    """Each address is one that a person has to change; none of them gets better by itself."""
    feeds = tmp_path / "feeds.yaml"
    fine = server.route("127.0.0.2", "/feed", Answer(body=rss("1")))
    inside = "- {url: 'http://10.0.0.1/feed', id: inside}\n"
    feeds.write_text(f"{inside}- {{url: '{fine}', id: closed}}\n", "utf-8")
    said = "No feed could be reached at its last visit: blocked_address (2)."
    assert (first := invoke("poll")).exit_code == 1
    assert "2 feeds visited" in first.stdout
    assert said in first.stdout
    assert (again := invoke("poll")).exit_code == 1, "nothing is due, and nothing is better"
    assert again.stdout.startswith(said)
    assert json.loads(invoke("poll", "--json").stdout)["nothing_reached"].startswith(said)
    assert (status := invoke("status")).exit_code == 1
    assert said in status.stderr

    feeds.write_text(f"{inside}- {{url: '{fine}', id: closed, allow_private: true}}\n", "utf-8")
    assert (fixed := invoke("poll")).exit_code == 0, "the other feed fails as any feed may"
    assert "1 with a new document" in fixed.stdout
    assert invoke("status").exit_code == 0
