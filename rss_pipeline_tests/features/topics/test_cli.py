"""The command `publish`: topics published now, and what it prints; what `poll` prints of topics."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline_tests.features.topics.stored import set_topics, topic
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.stored import add_feeds, add_items, item


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command in this process, for the home of `pipeline`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["publish", *arguments])

    return call


@pytest.fixture
def stored(pipeline: Pipeline) -> Pipeline:
    add_feeds(pipeline.database, "a", "b")
    add_items(
        pipeline.database, [item("a", "1", "2026-02-01T00:00:00Z"), item("b", "1", "2026-02-02T00:00:00Z")]
    )
    set_topics(pipeline.database, topic("t", "a", "b"), topic("u", "b"))
    return pipeline


def lines(said: Result) -> list[list[str]]:
    """The cells of the table's rows."""
    rows = [line.strip("│ ").split("│") for line in said.stdout.splitlines() if "│" in line]
    return [[cell.strip() for cell in row] for row in rows]


def test_it_publishes_the_named_topics_or_all_and_says_what_was_written(
    stored: Pipeline, invoke: Any
) -> None:
    said = invoke("t")
    assert said.exit_code == 0, said.output
    assert lines(said) == [["t", "2", "2", "topics/t.json, topics/t.atom"]]
    everything = invoke()
    assert lines(everything) == [
        ["t", "2", "2", "unchanged"],
        ["u", "1", "1", "topics/u.json, topics/u.atom"],
    ]
    assert [info.key for info in stored.objects.list("topics/")] == [
        *("topics/index.json", "topics/index.opml"),
        *("topics/t.atom", "topics/t.json", "topics/u.atom", "topics/u.json"),
    ]


def test_it_says_the_same_to_programs(stored: Pipeline, invoke: Any) -> None:
    [told] = json.loads(invoke("u", "--json").stdout)
    assert {name: told[name] for name in ("topic_id", "entries", "feeds", "changed", "error")} == {
        "topic_id": "u",
        "entries": 1,
        "feeds": 1,
        "changed": ["topics/u.json", "topics/u.atom"],
        "error": None,
    }
    assert told["bytes"] == sum(info.size for info in stored.objects.list("topics/u."))


def test_an_unknown_topic_is_an_error_with_the_known_ones_and_nothing_is_written(
    stored: Pipeline, invoke: Any
) -> None:
    said = invoke("t", "v")
    assert said.exit_code == 1
    assert "no topic has the id 'v'; the topics are t, u." in said.output
    assert list(stored.objects.list("topics/")) == []


def test_without_topics_it_says_so(pipeline: Pipeline, invoke: Any) -> None:
    said = invoke()
    assert said.exit_code == 0
    assert "There are no topics" in said.stdout
    assert "there are no topics" in invoke("t").output


def test_a_topic_that_cannot_be_published_is_a_sentence_and_an_exit_code(
    stored: Pipeline, invoke: Any
) -> None:
    # A key that is a folder cannot be put.
    (stored.settings.objects_path / "topics" / "t.atom" / "x").mkdir(parents=True)
    said = invoke()
    assert said.exit_code == 1
    assert [line[3] for line in lines(said)] == ["failed", "topics/u.json, topics/u.atom"]
    assert "t: t.atom: another key is a folder of this one's name" in said.stderr


@pytest.mark.slow
def test_a_poll_names_the_topics_that_it_published_and_ends_with_1_where_their_store_takes_none(
    tmp_path: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(tmp_path))
    fine = server.route("127.0.0.2", "/feed", Answer(body=rss("a"), etag='"1"'))
    (tmp_path / "feeds.yaml").write_text(
        f"feeds: [{{url: '{fine}', id: fine, allow_private: true}}]\n"
        "topics: {t: {of: [fine], public: true}}\n",
        "utf-8",
    )
    (tmp_path / "objects").mkdir()
    in_the_way = tmp_path / "objects" / "topics"
    in_the_way.touch()
    first = CliRunner().invoke(main, ["poll"])
    assert (first.exit_code, first.stdout.splitlines()) == (
        1,
        ["1 feeds visited: 1 with a new document, 0 unchanged, 0 failed; 1 new items."],
    )
    assert "Topics were not published; the next poll tries again." in first.stderr
    in_the_way.unlink()
    second = CliRunner().invoke(main, ["poll"])
    assert (second.exit_code, second.stdout.splitlines()) == (
        0,
        ["Nothing was due.", "1 topics published: t."],
    )
    assert CliRunner().invoke(main, ["poll"]).stdout == "Nothing was due.\n"
