"""Text of publishers on a terminal: it neither controls it nor forges a line, whichever command prints it."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.cli.output import terminal
from rss_pipeline.cli.output.polls import PollResult
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE

HOST = "127.0.0.2"
TRICKS = (
    "\x1b[31m\x1b]0;owned\x07\x1b]8;;http://e.example\x1b\\x",
    "\x9b2J\x9d52;c;aGk=\x9c",
    "\x08\x08\r",
    "\u202egnp.exe\u2066\u2069\u200f",
    "\nFORGED line\x0bFORGED\x0cFORGED\x85FORGED\u2028FORGED\u2029FORGED",
    "\x7f\x00\x1c",
)
HOSTILE = "A title " + " ".join(TRICKS)
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def hostile(tmp_path: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    """A pipeline that has collected from a hostile server; the environment names it."""
    for name, value in {
        "RSS_PIPELINE_HOME": tmp_path,
        "DAGSTER_HOME": tmp_path / "dagster",
        "RSS_FEEDS_FILE": tmp_path / "feeds.yaml",
        "RSS_HOST_DELAY_SECONDS": "0",
        "COLUMNS": "2000",
    }.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    authors = [{"name": HOSTILE}, {"name": f"{HOSTILE} too"}]
    item = {"id": HOSTILE, "title": HOSTILE, "content_html": HOSTILE, "authors": authors, "tags": [HOSTILE]}
    document = {"version": "https://jsonfeed.org/version/1.1", "title": HOSTILE, "items": [item]}
    page = f"<html><title>{HOSTILE}</title>".replace("\0", "")
    pipeline = Pipeline(tmp_path)
    pipeline.register(server.route(HOST, "/feed", Answer(body=json.dumps(document).encode())), "stored")
    pipeline.register(server.route("127.0.0.3", "/page", Answer(body=page.encode())), "page")
    pipeline.poll()
    yield pipeline
    pipeline.close()


def test_no_command_prints_a_control_character_or_a_line_of_a_publisher(
    hostile: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    [item] = hostile.items("stored")
    assert item["title"].count("\x1b") == HOSTILE.count("\x1b"), "it is stored as it was published"
    for command in (
        ["status"],
        ["status", "-v"],
        ["status", "stored"],
        ["status", "page"],
        ["status", "--json"],
        ["items", "stored"],
        ["items", "stored", "--json"],
        ["item", item["id"]],
        ["item", item["id"], "--json"],
        ["export"],
    ):
        output = CliRunner().invoke(main, command).output
        assert output.strip(), command
        assert CONTROLS.findall(output) == [], (command, output)
        # The text of an item has lines of its own, which are indented.
        indent = r"\s{0,1}" if command == ["item", item["id"]] else r"\s{0,4}"
        assert not re.search(f"^{indent}FORGED", output, re.MULTILINE), (command, output)
        if "--json" in command:
            json.loads([line for line in output.splitlines() if line.startswith(("{", "["))][-1])
    for record in caplog.records:
        if record.name.startswith("rss_pipeline"):
            assert CONTROLS.findall(record.getMessage()) == []


def test_json_of_an_item_is_the_published_text_with_its_characters_escaped(hostile: Pipeline) -> None:
    [item] = hostile.items("stored")
    output = CliRunner().invoke(main, ["item", item["id"], "--json"]).output
    assert json.loads(output)["content_html"] == item["content_html"]
    assert "\\u009b" in output
    exported = CliRunner().invoke(main, ["export"]).output
    assert json.loads(exported.splitlines()[0])["title"] == item["title"]


def test_html_is_exact_in_a_pipe_and_harmless_on_a_terminal(hostile: Pipeline) -> None:
    [item] = hostile.items("stored")
    program = str(Path(sys.executable).with_name("rss-pipeline"))
    command = [program, "item", item["id"], "--html", "--original"]
    piped = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    exact = {mark for mark in CONTROLS.findall(item["content_html"]) if mark != "\r"}
    assert exact <= set(CONTROLS.findall(piped.stdout.decode()))
    ours, theirs = pty.openpty()
    shown = subprocess.run(command, check=True, stdout=theirs, timeout=PATIENCE)
    os.close(theirs)
    text = os.read(ours, 100_000).decode().replace("\r\n", "\n")
    os.close(ours)
    assert shown.returncode == 0
    assert CONTROLS.findall(text) == []
    assert "FORGED" in text


def test_what_a_command_forgets_the_terminal_still_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    counts = dict.fromkeys(("stored", "unchanged", "failed", "items_new", "gaps"), 1)
    failures = [("page", HOSTILE, "html", HOSTILE)]
    PollResult(counts=counts, failures=failures, errors=[HOSTILE], runs=["1"]).show()
    table = terminal.new_table("feed")
    table.add_row(HOSTILE)
    console = terminal.new_console()
    console.print(table)
    console.print(HOSTILE, soft_wrap=True)
    terminal.say(HOSTILE)
    terminal.complain("Two lines\nof ours " + TRICKS[0])
    shown = capsys.readouterr()
    assert CONTROLS.findall(shown.out + shown.err) == []
    assert not re.search(r"^\s{0,4}FORGED", shown.out, re.MULTILINE)
    assert shown.err.splitlines()[:1] == ["Two lines"]
