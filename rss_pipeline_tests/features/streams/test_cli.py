"""The command `streams`: what a feed can be split by, what its streams select, and YAML to paste."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline.features.streams.service import refresh
from rss_pipeline_tests.cli.test_terminal import CONTROLS, HOSTILE
from rss_pipeline_tests.cli.test_without_dagster import collect, without_dagster
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

AUTHORS = ("小嶋 陽菜", "高橋 みなみ", "staff@example.jp (Staff Team)")


def document(*authors: str) -> bytes:
    """A feed with an item for each author; every third is a notice, every fifth has an enclosure."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{n}</guid><title>{'Notice' if n % 3 == 0 else 'Post'} {n}</title>"
        f"<pubDate>Mon, 02 Mar 2026 08:{n:02}:00 GMT</pubDate><dc:creator>{author}</dc:creator>"
        f"<category>{'staff' if n % 2 else ' Blog '}</category>"
        + ("<enclosure url='http://e.example/a.mp3' type='audio/mpeg' length='1'/>" if n % 5 == 0 else "")
        + "</item>"
        for n, author in enumerate(authors)
    )
    return (
        '<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
        f"<title>Idol</title>{items}</channel></rss>"
    ).encode()


@pytest.fixture
def shared(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """A feed of three authors with four items each."""
    url = server.route("127.0.0.2", "/idol", Answer(body=document(*AUTHORS * 4)))
    pipeline.register(url, "idol")
    pipeline.poll()
    return pipeline


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command in this process, for the home of `pipeline`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(tmp_path))
    monkeypatch.setenv("RSS_FEEDS_FILE", str(tmp_path / "feeds.yaml"))
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> Result:
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


def with_streams(pipeline: Pipeline, **streams: dict[str, Any]) -> None:
    pipeline.feeds[0]["streams"] = {name.replace("_", "-"): selector for name, selector in streams.items()}
    pipeline.write_registry()


def test_the_authors_and_categories_are_counted_and_a_block_is_proposed(
    invoke: Any, shared: Pipeline
) -> None:
    found = json.loads(invoke("streams", "idol", "--json").stdout)
    assert found["authors"] == [
        {"name": "Staff Team", "items": 4},
        {"name": "小嶋 陽菜", "items": 4},
        {"name": "高橋 みなみ", "items": 4},
    ]
    assert found["categories"] == [{"name": "Blog", "items": 6}, {"name": "staff", "items": 6}]
    assert (found["items"], found["unmatched"], found["streams"]) == (12, 12, [])
    lines = invoke("streams", "ido").stdout.splitlines()
    assert lines[-4:] == [
        "    streams:",
        "      staff-team: {author: Staff Team}",
        "      author-1: {author: 小嶋 陽菜}",
        "      author-2: {author: 高橋 みなみ}",
    ]


def test_the_block_of_the_output_is_pasted_as_it_is(invoke: Any, shared: Pipeline) -> None:
    block = invoke("streams", "idol").stdout.split("\n\n")[-1]
    file = shared.settings.feeds_file
    file.write_text(f"feeds:\n  - url: {shared.feeds[0]['url']}\n    id: idol\n{block}", "utf-8")
    found = json.loads(invoke("streams", "idol", "--json").stdout)
    assert [(each["name"], each["items"]) for each in found["streams"]] == [
        ("staff-team", 4),
        ("author-1", 4),
        ("author-2", 4),
    ]
    assert (found["unmatched"], found["yaml"]) == (0, None)


def test_a_selector_shows_its_items_before_a_poll_uses_it(invoke: Any, shared: Pipeline) -> None:
    with_streams(
        shared, haruna={"author": "小嶋陽菜", "not": {"title": "notice*"}}, typo={"author": "高橋 みなmi"}
    )
    result = invoke("streams", "idol")
    assert result.exit_code == 0
    assert "12 items, 2 streams; 12 items are in no stream" in result.stdout
    assert "typo: nearly fits: 高橋 みなみ" in result.stdout
    assert "haruna: new or changed in feeds.yaml: used from the next poll on" in result.stdout
    proposed = result.stdout.split("\n\n")[-1]
    assert "小嶋" not in proposed, "an author with a stream needs no second one"
    assert "author-1: {author: 高橋 みなみ}" in proposed
    shared.poll(all_feeds=True)
    assert "new or changed" not in invoke("streams", "idol").stdout


def test_an_xpath_is_judged_by_documents_and_by_a_replay(invoke: Any, shared: Pipeline) -> None:
    with_streams(shared, sound={"xpath": "//item[enclosure]"})
    result = invoke("streams", "idol")
    assert (
        "sound: new or changed in feeds.yaml: used for new documents from the next poll on" in result.stdout
    )
    assert json.loads(invoke("streams", "idol", "--json").stdout)["streams"][0]["items"] is None
    shared.poll(all_feeds=True)
    assert "run `rss-pipeline replay idol` to judge stored items" in invoke("streams", "idol").stdout
    pytest.importorskip("rss_pipeline.features.replay")
    assert invoke("replay", "idol").exit_code == 0
    found = json.loads(invoke("streams", "idol", "--json").stdout)
    assert (found["streams"][0]["items"], found["unmatched"]) == (3, 9)
    assert "replay" not in invoke("streams", "idol").stdout


def test_a_mistake_in_feeds_yaml_is_reported_and_the_last_streams_are_shown(
    invoke: Any, shared: Pipeline
) -> None:
    with_streams(shared, staff={"category": "staff"})
    shared.poll(all_feeds=True)
    shared.settings.feeds_file.write_text("feeds:\n  - url: nonsense\n", "utf-8")
    result = invoke("streams", "idol", "--json")
    assert "line 2" in result.stderr
    assert [each["name"] for each in json.loads(result.stdout)["streams"]] == ["staff"]


def test_without_a_feed_the_streams_of_all_feeds_are_listed(
    invoke: Any, shared: Pipeline, server: FeedServer
) -> None:
    assert "No feed has streams" in invoke("streams").stdout
    assert invoke("streams", "--json").stdout == "[]\n"
    shared.register(server.route("127.0.0.3", "/other", Answer(body=document("A"))), "other")
    with_streams(shared, staff={"category": "staff"}, sound={"xpath": "//item[enclosure]"})
    shared.feeds[1]["streams"] = {"a": {"author": "A"}}
    shared.write_registry()
    shared.poll(all_feeds=True)
    note = "idol/staff: selector changed; the next publication judges stored items"
    assert note in invoke("streams").stdout
    refresh(shared.database)
    listed = invoke("streams").stdout
    assert [line.replace("│", " ").split()[:2] for line in listed.splitlines() if "│" in line] == [
        ["idol/sound", "0"],
        ["idol/staff", "6"],
        ["other/a", "1"],
    ]
    assert "idol/sound: selector changed; run `rss-pipeline replay idol`" in listed

    # feeds.yaml as it is now: one stream is new, one has gone.
    with_streams(shared, staff={"category": "staff"}, new={"title": "x"})
    found = json.loads(invoke("streams", "--json").stdout)
    assert [(each["feed_id"], each["name"], each["items"], each["is_used"]) for each in found] == [
        ("idol", "new", None, False),
        ("idol", "staff", 6, True),
        ("other", "a", 1, True),
    ]
    assert "idol/new: new or changed in feeds.yaml: used from the next poll on" in invoke("streams").stdout
    shared.settings.feeds_file.write_text("feeds:\n  - url: nonsense\n", "utf-8")
    result = invoke("streams", "--json")
    assert "line 2" in result.stderr
    assert [each["name"] for each in json.loads(result.stdout)] == ["sound", "staff", "a"]


def test_a_feed_with_one_author_and_one_category_has_nothing_to_paste(
    invoke: Any, pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/one", Answer(body=document("A"))), "one")
    pipeline.sync()
    assert "rss-pipeline poll one" in invoke("streams", "one").stdout
    pipeline.poll()
    result = invoke("streams", "one")
    assert "neither several authors nor several categories" in result.stdout
    assert "streams:" not in result.stdout


def test_a_feed_that_is_not_known_is_an_error_as_in_other_commands(invoke: Any, shared: Pipeline) -> None:
    result = invoke("streams", "nothing")
    assert result.exit_code == 1
    assert "no feed matches 'nothing'" in result.stderr


def give(pipeline: Pipeline, stream: str, *guids: str) -> None:
    """Make these items members of a stream, as a visit does."""
    pipeline.database.query(
        """INSERT INTO item_streams (feed_id, stream, item_id) SELECT feed_id, ?, id FROM items
        WHERE guid IN (SELECT value FROM json_each(?))""",
        [stream, json.dumps(guids)],
    )


def test_items_and_exports_of_a_stream_have_its_items_only(invoke: Any, shared: Pipeline) -> None:
    with_streams(shared, some={"title": "*1*"}, other={"xpath": "//item"}, empty={"title": "x"})
    shared.poll(all_feeds=True)
    shared.database.query("DELETE FROM item_streams")
    give(shared, "some", "1", "10")
    give(shared, "other", "1", "2")

    def guids(*arguments: str) -> list[str]:
        return [json.loads(line)["guid"] for line in invoke("export", *arguments).stdout.splitlines()]

    assert [item["guid"] for item in json.loads(invoke("items", "idol/some", "--json").stdout)] == ["10", "1"]
    url = shared.feeds[0]["url"]
    assert [item["guid"] for item in json.loads(invoke("items", f"{url}/some", "--json").stdout)] == [
        "10",
        "1",
    ]
    assert sorted(guids("idol/some")) == ["1", "10"]
    assert sorted(guids("idol/some", "ido/other")) == ["1", "10", "2"], "each once"
    assert len(guids("idol/some", "idol")) == 12
    assert invoke("items", "idol/some").stdout.startswith("Idol, stream some")
    assert "rss-pipeline streams idol" in invoke("items", "idol/empty").stdout
    result = invoke("items", "idol/nothing")
    assert result.exit_code == 1
    assert "no stream 'nothing'; it has empty, other, some" in result.stderr


def test_it_prints_no_control_character_or_line_of_a_publisher(
    invoke: Any, pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    authors = [{"name": HOSTILE}, {"name": f"{HOSTILE} too"}]
    item = {"id": HOSTILE, "title": HOSTILE, "content_html": HOSTILE, "authors": authors, "tags": [HOSTILE]}
    document = {"version": "https://jsonfeed.org/version/1.1", "title": HOSTILE, "items": [item]}
    url = server.route("127.0.0.2", "/feed", Answer(body=json.dumps(document).encode()))
    pipeline.register(url, "stored")
    pipeline.poll()
    for more in ([], ["--json"]):
        output = invoke("streams", "stored", *more).output
        assert output.strip()
        assert CONTROLS.findall(output) == []
        assert not re.search(r"^\s{0,4}FORGED", output, re.MULTILINE), output


def test_it_loads_no_dagster(dagster_pipeline: DagsterPipeline, server: FeedServer) -> None:
    collect(dagster_pipeline, server)
    [said] = without_dagster(dagster_pipeline, [("streams", "news")])
    assert (said.code, "no streams" in said.text) == (0, True), said.text
