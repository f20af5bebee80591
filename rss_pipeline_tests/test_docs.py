"""Every `rss-pipeline` command that README.md and docs/ show works as it stands there.

Each is run in this process, on a home of its own in which a poll has collected something. What cannot be run
here is listed by name with the reason.
"""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli import main
from rss_pipeline.collector.models import item_id, utc_now
from rss_pipeline.orchestration.checks import build_checks
from rss_pipeline.settings import Settings
from rss_pipeline_tests.cloudflare import Cloudflare
from rss_pipeline_tests.pipeline import Pipeline, new_instance, rss
from rss_pipeline_tests.server import Answer, FeedServer

TOP = Path(__file__).parents[1]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]
ENDLESS = {"up"}
"""Starts servers and does not end; test_up.py runs it."""
NOT_RUN = {
    "make",
    "git",
    "npx",
    "ssh",
    "dagster",
    "duckdb",
    "openssl",
    "python",
    "pip",
    "cd",
    ".venv/bin/pip",
}
"""Programs of others, set-up and benchmarks: CI's first steps, or an account or a tool we do not bring."""


def parts(page: Path) -> Iterator[tuple[str | None, str]]:
    """A page's text and fenced blocks in order: the language, "" where none is named, None for text."""
    lines: list[str] = []
    language: str | None = None
    for line in page.read_text("utf-8").splitlines():
        if line.lstrip().startswith("```"):
            yield language, "\n".join(lines)
            lines, language = [], line.strip().removeprefix("```") if language is None else None
        else:
            lines.append(line)
    yield None, "\n".join(lines)


def blocks(page: Path, language: str = "") -> list[str]:
    """The fenced blocks of a page in this language."""
    return [text for found, text in parts(page) if found == language]


def commands() -> dict[str, str]:
    """Every command, lines of plain blocks and `rss-pipeline ...` in the text, with a page that shows it."""
    found = {}
    for page in PAGES:
        for language, text in parts(page):
            shown = [line.strip() for line in text.splitlines()] if language == "" else []
            if language is None:  # A line break in a paragraph is a blank.
                shown = re.findall(r"`((?:\.venv/bin/)?rss-pipeline [^`]+)`", " ".join(text.split()))
            for line in shown:
                command = line.removeprefix(".venv/bin/").partition(" # ")[0].partition(" | ")[0].strip()
                if command.startswith("rss-pipeline "):
                    found[command] = page.name
    return found


COMMANDS = sorted(commands().items())


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which the feeds that the pages name were collected; their server goes on answering."""
    home = tmp_path_factory.mktemp("collected")
    with FeedServer() as server, new_instance(home) as instance:
        pipeline = Pipeline(home, instance)
        pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "lwn")
        pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("b"))), "xkcd")
        pipeline.poll()
        pipeline.close()
        yield home


@pytest.fixture
def home(collected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as the environment and the folder one stands in."""
    home = tmp_path / "home"
    shutil.copytree(collected, home)
    values = {
        "RSS_PIPELINE_HOME": str(home),
        "RSS_FEEDS_FILE": str(home / "feeds.yaml"),
        "RSS_HOST_DELAY_SECONDS": "0",
        "DAGSTER_HOME": str(home / "dagster"),
        "COLUMNS": "200",
    }
    monkeypatch.chdir(home)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return home


def filled(line: str) -> list[str]:
    """The arguments, with what stands for something replaced by what is there."""
    line = re.sub(r"<item id>|\bITEM\b|\bID\b", item_id("lwn", "a"), line)
    line = re.sub(r"\[?FEED(\.\.\.)?\]?", "lwn", line)
    return shlex.split(line)[1:]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, input="y\n")


@pytest.mark.slow
@pytest.mark.parametrize(("line", "page"), COMMANDS)
def test_a_command_that_a_page_shows_works(
    line: str, page: str, home: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = filled(line)
    assert arguments[0] in main.commands
    if arguments[0] in ENDLESS:
        return
    if arguments[0] == "copy":
        cloudflare: Cloudflare = request.getfixturevalue("cloudflare")
        for name, value in cloudflare.environ.items():
            monkeypatch.setenv(name, value)
        assert run("migrate").exit_code == 0
        if arguments[arguments.index("--from") + 1] == "cloudflare":
            assert run("copy", "--from", "embedded", "--to", "cloudflare").exit_code == 0
            shutil.rmtree(home / "objects")
            (home / "rss.sqlite").unlink()
    if "--alert" in arguments:
        server = request.getfixturevalue("server")
        monkeypatch.setenv("RSS_ALERT_WEBHOOK", server.route("127.0.0.9", "/hook", Answer()))
    if arguments[0] == "restore":
        (home / "rss.sqlite").unlink()
    if arguments[0] == "forget":
        (home / "feeds.yaml").write_text("feeds: []\n", "utf-8")
        assert run("poll").exit_code == 0
    result = run(*arguments)
    assert result.exit_code == 0, f"{page}: {result.output}"


def test_plain_blocks_show_commands_that_are_known() -> None:
    for page in PAGES:
        for block in blocks(page):
            first = block.split()[0]
            assert first.removeprefix(".venv/bin/") in {*NOT_RUN, "rss-pipeline", "sqlite3"} or _is_tree(
                block
            ), f"{page.name}: {block}"


def _is_tree(block: str) -> bool:
    """A list of folders and what they hold."""
    return all(re.match(r"[\w/.-]+/ {2,}\S", line) for line in block.strip().splitlines())


@pytest.mark.slow
def test_the_queries_that_readme_shows_give_rows(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "var").symlink_to(home)
    monkeypatch.chdir(tmp_path)
    readme = TOP / "README.md"
    if shutil.which("sqlite3"):
        (query,) = [block for block in blocks(readme) if block.startswith("sqlite3")]
        assert subprocess.run(["bash", "-c", query], capture_output=True, check=True).stdout
    (script,) = [block for block in blocks(readme, "python") if block.startswith("import sqlite3")]
    exec(script, {})
    assert "1" in capsys.readouterr().out


def test_every_check_stands_in_the_operator_s_table() -> None:
    page = (TOP / "docs" / "operating.md").read_text("utf-8")
    settings = Settings(home=TOP, feeds_file=TOP / "feeds.yaml", user_agent="x")
    names = {spec.name for check in build_checks(settings, clock=utc_now) for spec in check.check_specs}
    assert names == set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
