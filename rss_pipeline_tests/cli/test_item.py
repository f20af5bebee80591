"""The command `item`: one item as text for a person, as a page in the browser, and as JSON for programs."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from rss_pipeline.cli.main import main
from rss_pipeline_tests.cli.program import run
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import soon

HTML = (
    '<h2>A heading</h2><p>Some <a href="/more">text</a> ' + "世界 and words " * 20 + "</p>"
    "<ul><li>one</li><li>" + "two " * 40 + "</li></ul><pre>\x1b[31mred\n    code</pre>"
)


@pytest.fixture
def collected(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """A pipeline with two items; the first has all that a text may have."""
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b", title="News"))), "news")
    pipeline.poll()
    pipeline.database.query(
        """UPDATE items SET content_html = ?, author = 'Ann\x07', authors = '["Ann\\u0007","Bo"]',
          enclosures = ?, categories = ?
        WHERE guid = 'a'""",
        [
            HTML,
            '[{"url":"https://e.example/1.mp3","type":"audio/mpeg","length":12345678}]',
            '["x","y"]',
        ],
    )
    return pipeline


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command in this process, for the home of `pipeline`, on 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(tmp_path))
    monkeypatch.setenv("RSS_FEEDS_FILE", str(tmp_path / "feeds.yaml"))
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> Result:
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


def item_id(pipeline: Pipeline, guid: str = "a") -> str:
    return next(row["id"] for row in pipeline.items("news") if row["guid"] == guid)


def test_an_item_is_a_text_with_its_links_at_the_end(invoke: Any, collected: Pipeline) -> None:
    result = invoke("item", item_id(collected)[:10])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:6] == [
        "Title of a",
        "News · Ann\ufffd, Bo · 2026-03-02T08:00:00Z",
        "http://example.com/a",
        "",
        "  A heading",
        "",
    ]
    assert lines[6].startswith("  Some text [1] 世界 and words")
    assert "  - one" in lines
    second = next(n for n, line in enumerate(lines) if line.startswith("  - two"))
    assert lines[second + 1].startswith("    two"), "the second line is below the text"
    assert lines[-6:] == [
        "",
        "  \ufffd[31mred",
        "      code",
        "",
        "[1] http://example.com/more",
        "enclosure: https://e.example/1.mp3 (audio/mpeg, 12.3 MB)",
    ]
    assert max(map(cell_len, lines)) <= 80
    assert "\x1b" not in result.stdout


def test_an_item_without_content_says_so_and_one_with_a_summary_shows_it(
    invoke: Any, collected: Pipeline
) -> None:
    collected.database.query("UPDATE items SET content_html = NULL WHERE guid = 'b'")
    assert invoke("item", item_id(collected, "b")).stdout.endswith("\n\nThe item has no content.\n")
    collected.database.query("UPDATE items SET summary = 'In short.' WHERE guid = 'b'")
    assert invoke("item", item_id(collected, "b")).stdout.endswith("\n\n  In short.\n")


def test_json_of_items_has_the_names_of_an_export(invoke: Any, collected: Pipeline) -> None:
    id = item_id(collected)
    found = json.loads(invoke("item", id, "--json").stdout)
    exported = {line["id"]: line for line in map(json.loads, invoke("export").stdout.splitlines())}[id]
    assert {name: found[name] for name in exported if name != "cursor"} == {
        name: value for name, value in exported.items() if name != "cursor"
    }
    assert (str(found["is_dated"]), found["categories"]) == ("True", ["x", "y"])
    assert (found["author"], found["authors"]) == ("Ann\x07", ["Ann\x07", "Bo"])
    assert found["feed_url"] == collected.feed("news")["url"]
    listed = {row["id"]: row for row in json.loads(invoke("items", "news", "--json").stdout)}[id]
    assert {name: exported[name] for name in listed if name != "content_characters"} == {
        name: value for name, value in listed.items() if name != "content_characters"
    }
    assert listed["content_characters"] == len(HTML)
    for names in (found, listed):
        assert not {"pub_date", "pub_date_source", "pub_date_raw", "created_at"} & set(names)


def test_open_shows_the_page_in_the_browser_from_a_file_that_no_one_else_reads(
    invoke: Any, collected: Pipeline, tmp_path: Path
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'shown')!r}, 'w').write(sys.argv[1])\n"
    )
    browser.chmod(0o755)
    result = run(tmp_path, "item", item_id(collected), "--open", env={"BROWSER": f"{browser} %s"})
    assert (result.code, result.out) == (0, "")
    soon(lambda: (tmp_path / "shown").exists() and (tmp_path / "shown").read_text() != "")
    page = Path((tmp_path / "shown").read_text().removeprefix("file://"))
    assert page.is_relative_to(collected.settings.spool_path), "a run removes it from there after a day"
    assert (stat.S_IMODE(page.stat().st_mode), stat.S_IMODE(page.parent.stat().st_mode)) == (0o600, 0o700)
    assert "<title>Title of a</title>" in page.read_text("utf-8")
    assert page.read_text("utf-8") == invoke("item", item_id(collected), "--html").stdout


def test_open_without_a_browser_names_the_file(collected: Pipeline, tmp_path: Path) -> None:
    nothing = {"BROWSER": "/bin/false %s", "PATH": "/nonexistent", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    result = run(tmp_path, "item", item_id(collected), "--open", "--original", env=nothing)
    assert result.code == 1
    assert "no browser was found: open that file yourself, or name one in BROWSER" in result.err
    [page] = collected.settings.spool_path.glob("page-*/item.html")
    assert str(page) in result.err


def test_options_that_exclude_each_other_are_refused(invoke: Any, collected: Pipeline) -> None:
    for arguments in (["--original"], ["--json", "--html"], ["--json", "--open"]):
        assert invoke("item", item_id(collected), *arguments).exit_code == 2
