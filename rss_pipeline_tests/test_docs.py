"""Promises of README.md, docs/ and examples/: commands work, paths exist, lists are complete.

Every `rss-pipeline` and `sqlite3` command is run in this process, on a home of its own in which a poll has
collected something. Programs that cannot be run here are listed by name with the reason.
"""

import importlib.util
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.models.item import item_id
from rss_pipeline.extras import FLEET, PARQUET, POSTGRES
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline, new_instance
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

TOP = Path(__file__).parents[1]
PAGES = [
    TOP / "README.md",
    *(
        page
        for each in ("docs/*.md", "benchmarks/*.md", "examples/*/README.md")
        for page in sorted(TOP.glob(each))
    ),
]
ENDLESS = {"up", "reader", "worker"}
"""Commands that do not end; test_up.py, test_reader.py, test_fleet.py run them. Nor do those with `--listen`
or `--follow`."""
OF_OTHERS = {"add"}
"""Commands that request sites of others; test_add.py runs them."""
NOT_RUN = {
    "make",
    "git",
    "npx",
    "ssh",
    "dagster",
    "dg",
    "export",
    "docker",
    "duckdb",
    "openssl",
    "python",
    "python3",
    "pip",
    "cd",
    "rm",
    "systemctl",
    "loginctl",
    "journalctl",
    "pg_dump",
    "pg_restore",
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


def bare(line: str) -> str:
    """A command without the variables it is given and without the way to its program."""
    return re.sub(r"^(?:\w+=\S+ +)*(?:(?:\.\./)*\.venv/bin/)?", "", line)


def commands() -> dict[str, str]:
    """Every command, lines of plain blocks and `rss-pipeline ...` in the text, with a page that shows it."""
    found = {}
    for page in PAGES:
        for language, text in parts(page):
            shown = [line.strip() for line in text.splitlines()] if language == "" else []
            if language is None:  # A line break in a paragraph is a blank.
                shown = re.findall(r"`((?:\.venv/bin/)?rss-pipeline [^`]+)`", " ".join(text.split()))
            for line in shown:
                command = bare(line).partition(" # ")[0].partition(" | ")[0].strip()
                if command.startswith("rss-pipeline "):
                    found[command] = page.name
    return found


def queries() -> list[str]:
    """Every command of sqlite3, which has its lines in a block of its own or is in the text."""
    found = []
    for page in PAGES:
        for language, text in parts(page):
            if language == "" and text.startswith("sqlite3 "):
                found.append(text)
            if language is None:
                found += re.findall(r"`(sqlite3 [^`]+)`", " ".join(text.split()))
    return found


COMMANDS = sorted(commands().items())


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which the feeds that the pages name were collected; their server goes on answering."""
    home = tmp_path_factory.mktemp("collected")
    with FeedServer() as server, new_instance(home) as instance:
        pipeline = DagsterPipeline(home, instance)
        # The commands have the machine's clock: by the tests' the feeds would be overdue for long.
        pipeline.clock.turn(seconds=int((utc_now() - pipeline.clock()).total_seconds()))
        pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "lwn")
        pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("b"))), "xkcd")
        pipeline.poll()
        # A visit by hand comes a minute after the last answer.
        pipeline.database.query("UPDATE feeds SET last_fetched_at = '2026-01-01T00:00:00Z'")
        pipeline.close()
        yield home


@pytest.fixture
def home(collected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as the environment and the folder one is in."""
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
    """The arguments, with each placeholder replaced by what is there."""
    line = re.sub(r"<item id>|\bITEM\b|\bID\b", item_id("lwn", "a"), line)
    line = re.sub(r"\[?FEED(\.\.\.)?\]?", "lwn", line)
    line = re.sub(r"\bNAME\b", "ada", line).partition(" < ")[0]
    return shlex.split(line)[1:]


def run(*arguments: str) -> Result:
    typed = "y\n" if arguments[0] != "user" or "remove" in arguments else "correct horse\n" * 2
    return CliRunner().invoke(main, arguments, input=typed)


@pytest.mark.slow
@pytest.mark.parametrize(("line", "page"), COMMANDS)
def test_a_command_that_a_page_shows_works(
    line: str, page: str, home: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = filled(line)
    assert arguments[0] in main.list_commands(click.Context(main))
    if arguments[0] in ENDLESS | OF_OTHERS or {"--listen", "--follow", "--queue"} & {*arguments}:
        return
    if arguments[0] == "import":
        opml = '<opml><body><outline xmlUrl="https://example.org/feed"/></body></opml>'
        (home / arguments[1]).write_text(opml, "utf-8")
    if arguments[0] == "copy":
        source = arguments[arguments.index("--from") + 1]
        sides = " ".join(arguments)
        if "cloudflare" in sides:
            cloudflare: Cloudflare = request.getfixturevalue("cloudflare")
            for name, value in cloudflare.environ.items():
                monkeypatch.setenv(name, value)
            assert run("migrate").exit_code == 0
        if "postgres" in sides:
            monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
        if source != "embedded":
            assert run("copy", "--from", "embedded", "--to", source).exit_code == 0
            (home / "rss.sqlite").unlink()
        if source == "cloudflare":
            shutil.rmtree(home / "objects")
    if "--alert" in arguments:
        server = request.getfixturevalue("server")
        monkeypatch.setenv("RSS_ALERT_WEBHOOK", server.route("127.0.0.9", "/hook", Answer()))
    if arguments[0] == "user" and arguments[1] not in ("add", "code"):
        assert run("user", "add", "ada").exit_code == 0
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
            program = bare(block).split()[0]
            assert program in {*NOT_RUN, "rss-pipeline", "sqlite3"} or _is_tree(block), f"{page}: {block}"


def _is_tree(block: str) -> bool:
    """A list of folders and what they hold."""
    return all(re.match(r"[\w/.-]+/ {2,}\S", line) for line in block.strip().splitlines())


@pytest.fixture
def beside_var(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is one in which that home is `var`."""
    (tmp_path / "var").symlink_to(home)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="no sqlite3 on this machine")
@pytest.mark.parametrize("command", queries())
def test_a_command_of_sqlite_that_a_page_shows_works(command: str, beside_var: None) -> None:
    (path,) = re.findall(r"(?<= )var/[\w/]+\.(?:db|sqlite)", command)
    assert Path(path).is_file(), "sqlite3 would make it and say nothing"
    found = subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True)
    assert found.stderr == ""
    assert ("SELECT" in command) == bool(found.stdout)
    for copy in re.findall(r"\.backup (\S+)\"", command):
        with closing(sqlite3.connect(copy)) as database:
            assert database.execute("SELECT count(*) FROM items").fetchone() == (2,)


def test_reading_saving_and_shrinking_are_among_the_commands_of_sqlite() -> None:
    shown = "\n".join(queries())
    assert [word for word in ("SELECT", ".backup", "VACUUM") if word not in shown] == []


@pytest.mark.slow
def test_the_query_in_python_that_a_page_shows_gives_rows(
    beside_var: None, capsys: pytest.CaptureFixture[str]
) -> None:
    page = TOP / "docs" / "storage.md"
    (script,) = [text for text in blocks(page, "python") if text.startswith("import sqlite3")]
    exec(script, {})
    assert "1" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs the program sqlite3")
def test_a_copy_of_the_database_is_put_back_as_the_page_says(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "var").symlink_to(home)
    monkeypatch.chdir(tmp_path)
    page = blocks(TOP / "docs" / "storage.md")
    (copying,) = [block for block in page if ".backup" in block]
    (putting_back,) = [block for block in page if block.startswith("rm ")]
    shell, _, command = putting_back.rpartition("\n")

    def stored(sql: str) -> set[str]:
        with closing(sqlite3.connect("var/rss.sqlite")) as database:
            return {value for (value,) in database.execute(sql)}

    subprocess.run(["bash", "-ec", copying], check=True)
    with closing(sqlite3.connect("var/rss-copy.sqlite")) as copy, copy:
        # A copy from before the one feed was added, and before the other had its item.
        copy.execute("DELETE FROM items")
        copy.execute("DELETE FROM feeds WHERE id = 'xkcd'")
    with closing(sqlite3.connect("var/rss.sqlite")) as killed:
        killed.execute("UPDATE feeds SET id = id || '-since'")
        killed.commit()
        left_behind = (home / "rss.sqlite-wal").read_bytes()
    (home / "rss.sqlite-wal").write_bytes(left_behind)
    subprocess.run(["bash", "-ec", shell], check=True)
    assert (stored("SELECT id FROM feeds"), stored("SELECT guid FROM items")) == ({"lwn"}, set())
    assert run(*filled(command)).exit_code == 0
    assert (stored("SELECT id FROM feeds"), stored("SELECT guid FROM items")) == ({"lwn", "xkcd"}, {"a", "b"})


def settings_of(page: str) -> list[str]:
    """The variables in the first column of a page's tables."""
    text = (TOP / page).read_text("utf-8")
    return [name for row in re.findall(r"^\| (`[A-Z].+?) \|", text, re.MULTILINE) for name in row.split(", ")]


def test_every_setting_is_in_its_table() -> None:
    listed = re.findall(r"^#([A-Z_0-9]+)=", (TOP / ".env.example").read_text("utf-8"), flags=re.MULTILINE)
    assert sorted(settings_of("docs/settings.md")) == sorted(f"`{name}`" for name in listed)


def test_every_table_has_a_comment_and_is_printed_with_it() -> None:
    text = run("schema").output
    for name in re.findall(r"^CREATE TABLE (\w+)", text, re.MULTILINE):
        one = run("schema", name).output
        assert re.match(rf"-- .+\n(-- .+\n)*CREATE TABLE {name} \(", one), name
        assert one in text + "\n"


def test_the_command_that_installs_an_extra_is_the_same_everywhere() -> None:
    for extra, name in ((PARQUET, "downstream"), (POSTGRES, "postgres"), (FLEET, "fleet")):
        assert extra.command in (TOP / "docs" / f"{name}.md").read_text("utf-8")


def folders(*tops: str) -> set[str]:
    """The folders of our own with files in them, of which a newcomer wants to know what they hold."""
    held = {path.parent for top in tops for path in (TOP / top).rglob("*.*") if path.is_file()}
    return {
        f"{folder.relative_to(TOP)}/"
        for folder in held
        if not {"__pycache__", "node_modules", "dist", "var"} & set(folder.relative_to(TOP).parts)
        and not any(part.startswith(".") for part in folder.relative_to(TOP).parts)
    }


def test_the_map_has_a_line_for_every_folder_and_no_folder_that_is_gone() -> None:
    (map_,) = [block for block in blocks(TOP / "docs" / "development.md") if _is_tree(block)]
    shown = [line.split()[0] for line in map_.splitlines()]
    tests = {
        folder
        for folder in folders("rss_pipeline_tests")
        if not (TOP / folder.replace("rss_pipeline_tests", "rss_pipeline", 1)).is_dir()
    }
    ours = folders("rss_pipeline", "benchmarks", "deploy", "examples", "proxy-worker", "docs") | tests
    assert sorted(ours - set(shown)) == []
    assert [folder for folder in shown if not (TOP / folder).is_dir()] == []
    assert len(shown) == len(set(shown))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    text = "\n".join(text for language, text in parts(page) if language is None)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


PROSE = [*PAGES, TOP / "CHANGELOG.md", TOP / "proxy-worker" / "README.md"]


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(TOP)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = "\n".join(text for language, text in parts(page) if language is None)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(TOP)))
def test_every_path_and_module_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    files = [f"/{path.relative_to(TOP)}" for top in TOP.iterdir() for path in ours(top)]
    for path in re.findall(r"`([\w./-]+\.(?:py|sql|ts|md|mjs))`", text):
        assert any(file.endswith(f"/{path}") for file in files), path
    for folder in re.findall(r"`((?:rss_pipeline|rss_pipeline_tests|benchmarks|docs)/[\w./-]*/)`", text):
        assert (TOP / folder).is_dir(), folder
    for module in re.findall(
        r"`(?:python -m )?((?:rss_pipeline|rss_pipeline_tests|benchmarks)(?:\.\w+)+)", text
    ):
        assert importlib.util.find_spec(module) is not None, module


def ours(top: Path) -> Iterator[Path]:
    """A file at the top, or the files of a folder there, without those of installed packages."""
    if top.is_file():
        yield top
    elif not top.name.startswith(".") and top.name != "var":
        yield from (path for path in top.rglob("*.*") if "node_modules" not in path.parts)


def test_the_threat_model_names_tests_that_exist() -> None:
    folder = Path(__file__).parent
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (TOP / "docs" / "security.md").read_text("utf-8"))
    assert len(named) > 5
    missing = [f"{file}::{name}" for file, name in named if not is_defined(folder / file, name)]
    assert missing == []


def is_defined(file: Path, name: str) -> bool:
    return file.is_file() and f"def {name}(" in file.read_text("utf-8")
