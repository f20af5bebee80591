"""`user add`, `list`, `password`, `app` and `remove`, as an operator uses them."""

import json
import os
import pty
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.reader.accounts.login import LoggedIn, LoginRefused, log_in, log_in_with_app_password
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.installed import INSTALLED

Run = Callable[..., Result]
PASSWORD = "correct horse"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("RSS_", "D1_", "R2_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str, input: str | None = None) -> Result:
        result = CliRunner().invoke(main, ["user", *arguments], input=input)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


def logs_in(name: str, password: str) -> bool:
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())
    with open_database(settings) as database:
        answer = log_in(
            database,
            b"a key of thirty-two bytes or more",
            name=name,
            password=password,
            address="192.0.2.1",
            client="a test",
            clock=utc_now,
        )
    assert isinstance(answer, LoggedIn) or answer == LoginRefused()
    return isinstance(answer, LoggedIn)


def test_a_user_is_added_listed_given_another_password_and_removed(run: Run) -> None:
    assert run("list").output == "There are no users: add one with `rss-pipeline user add NAME`.\n"
    code = run("code").output
    assert "is the code for the first user. Type it at http://127.0.0.1:3001" in code
    assert run("code").output == code
    added = run("add", "Ada", input=f"{PASSWORD}\n{PASSWORD}\n")
    assert (run("code").exit_code, "there is a user already" in run("code").output) == (1, True)
    assert "ada can log in now. `rss-pipeline user app ada phone`" in added.output
    assert PASSWORD not in added.output
    assert logs_in("ada", PASSWORD)
    run("add", "ben", "--password-stdin", input="another horse\n")

    ada, ben = json.loads(run("list", "--json").output)
    assert (ada["name"], ada["sessions"], ada["app_passwords"]) == ("ada", 1, 0)
    assert ada["last_used_at"] is not None
    assert (ben["name"], ben["last_used_at"]) == ("ben", None)
    shown = run("list").output
    assert [line.split()[0] for line in shown.splitlines() if line[0].isalpha()] == ["name", "ada", "ben"]
    assert "argon2" not in shown + json.dumps(ada)

    changed = run("password", "ada", "--password-stdin", input="a third horse\n")
    assert changed.output == "The password is changed, and every session has ended.\n"
    assert json.loads(run("list", "--json").output)[0]["sessions"] == 0
    assert logs_in("ada", "a third horse")
    assert not logs_in("ada", PASSWORD)

    assert run("remove", "ada", input="n\n").exit_code == 1
    assert logs_in("ada", "a third horse")
    assert run("remove", "ada", input="y\n").exit_code == 0
    assert not logs_in("ada", "a third horse")
    assert run("remove", "BEN", "--yes").output == "BEN is removed.\n"
    assert json.loads(run("list", "--json").output) == []


@pytest.mark.parametrize("name", ["", "Ada Lovelace", "a\nb", "ünal", "x" * 65, "a/b", "a:b"])
def test_a_name_that_can_be_none_is_refused_before_a_password_is_typed(run: Run, name: str) -> None:
    refused = run("add", "--", name)
    assert refused.exit_code == 1
    assert "cannot be a user's name; write 1 to 64" in refused.output


def test_a_name_that_is_taken_is_refused(run: Run) -> None:
    run("add", "ada", "--password-stdin", input=PASSWORD)
    again = run("add", "ADA", "--password-stdin", input="another horse")
    assert again.exit_code == 1
    assert "there is a user ada already" in again.output
    assert logs_in("ada", PASSWORD)


@pytest.mark.parametrize("password", ["", "short", "\n" + PASSWORD, "x" * 1025, "x" * 20_000])
def test_a_password_that_can_be_none_adds_no_user(run: Run, password: str) -> None:
    refused = run("add", "ada", "--password-stdin", input=password)
    assert refused.exit_code == 1
    assert refused.output == "a password has from 8 to 1,024 characters; choose another one\n"
    assert json.loads(run("list", "--json").output) == []


def test_who_is_no_user_is_said(run: Run) -> None:
    for command in (("password", "eve", "--password-stdin"), ("remove", "eve", "--yes")):
        refused = run(*command, input=PASSWORD)
        assert refused.exit_code == 1
        assert "there is no user 'eve'; `rss-pipeline user list` shows all" in refused.output


@pytest.mark.slow
def test_a_password_typed_at_a_terminal_is_not_shown(run: Run, tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "from rss_pipeline.cli.main import main; main()", "user", "add", "ada"]
    with Popen(
        command,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=tmp_path,
        env=environ,
        start_new_session=True,
    ) as process:
        os.close(terminal)
        said = b""
        for prompt in (b"Password: ", b"The same again: "):
            while not said.endswith(prompt):
                said += os.read(controller, 1_000)
            os.write(controller, f"{PASSWORD}\n".encode())
        assert process.wait(60) == 0
    os.close(controller)
    assert PASSWORD.encode() not in said
    assert logs_in("ada", PASSWORD)


def test_an_app_gets_a_password_of_its_own_that_logs_in(run: Run) -> None:
    run("add", "Ada", "--password-stdin", input=f"{PASSWORD}\n")
    made = run("app", "Ada", "phone")
    lines = dict(line.split(": ", 1) for line in made.output.splitlines() if ": " in line)
    assert lines["Server"].strip().startswith("http://127.0.0.1:3001/greader")
    assert lines["User"].strip() == "ada"
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())
    with open_database(settings) as database:
        answer = log_in_with_app_password(
            database,
            name="ada",
            password=lines["Password"].strip(),
            address="192.0.2.1",
            client="a phone",
            clock=utc_now,
        )
    assert isinstance(answer, LoggedIn)
    again = run("app", "ada", "phone")
    assert again.exit_code == 1
    assert "there is an app password phone already" in again.output
    assert run("app", "nobody", "phone").exit_code == 1


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        (
            {"RSS_READER_HOSTS": "rss.example.org", "RSS_READER_PROXIES": "127.0.0.1"},
            "https://rss.example.org",
        ),
        ({"RSS_READER_HOSTS": "192.168.1.5:3001"}, "http://192.168.1.5:3001"),
        ({"RSS_READER_ADDRESS": "0.0.0.0", "RSS_READER_PORT": "3005"}, "http://127.0.0.1:3005"),
    ],
)
def test_the_address_to_type_is_one_that_the_reader_answers_at(
    run: Run, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], shown: str
) -> None:
    run("add", "ada", "--password-stdin", input=f"{PASSWORD}\n")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    servers = [line for line in run("app", "ada", "phone").output.splitlines() if line.startswith("Server:")]
    assert servers == [f"Server:   {shown}/greader"]


def test_a_new_user_may_subscribe_the_feeds_of_the_file(run: Run) -> None:
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())
    with open_database(settings) as database:
        register(database, spec("a"), spec("b", folder="News"), spec("c", access=Access(password="secret")))
    added = run("add", "ada", "--password-stdin", "--subscribe", input=f"{PASSWORD}\n")
    assert added.output.startswith("ada subscribes to 2 feeds of ")
    assert "Left out: 1 with a password, headers or allow_private" in added.output
    with open_database(settings) as database:
        rows = database.query("SELECT feed_id, folder FROM subscriptions ORDER BY feed_id").rows
    assert rows == [{"feed_id": "a", "folder": None}, {"feed_id": "b", "folder": "News"}]


@pytest.mark.skipif("opml" not in INSTALLED, reason="the feature opml is removed")
def test_a_user_who_exists_is_subscribed_to_what_the_file_gets_and_to_feeds_by_name(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "feeds.yaml").write_text("feeds:\n  - {url: https://a.example/, id: a, folder: News}\n")
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())

    def subscribed() -> dict[str, list[str]]:
        with open_database(settings) as database:
            rows = database.query(
                """SELECT u.name, s.feed_id FROM users AS u JOIN subscriptions AS s ON s.user_id = u.id
                ORDER BY s.feed_id"""
            ).rows
        return {name: [row["feed_id"][0] for row in rows if row["name"] == name] for name in ("ada", "bob")}

    added = run("add", "ada", "--password-stdin", "--subscribe", input=f"{PASSWORD}\n")
    assert added.output.startswith("ada subscribes to 1 feeds of "), "the file is read before the first poll"
    (tmp_path / "x.opml").write_text(
        '<opml version="2.0"><body><outline xmlUrl="https://b.example/"/></body></opml>'
    )
    imported = CliRunner().invoke(main, ["import", "x.opml"])
    assert "ada is subscribed to it." in imported.output
    assert subscribed() == {"ada": ["a", "b"], "bob": []}
    with (tmp_path / "feeds.yaml").open("a") as file:
        file.write("  - {url: https://e.example/, id: e}\n  - {url: https://f.example/, id: f}\n")
    (tmp_path / "x.opml").write_text(
        '<opml version="2.0"><body><outline xmlUrl="https://e.example/"/></body></opml>'
    )
    for command in (["import", "x.opml"], ["add", "https://f.example/"]):
        assert "ada is subscribed to it." in CliRunner().invoke(main, command).output, "it was there already"
    assert subscribed()["ada"] == ["a", "b", "e", "f"]

    run("add", "bob", "--password-stdin", input=f"{PASSWORD}\n")
    (tmp_path / "x.opml").write_text(
        '<opml version="2.0"><body><outline xmlUrl="https://c.example/"/></body></opml>'
    )
    imported = CliRunner().invoke(main, ["import", "x.opml"])
    assert "To read it: `rss-pipeline user subscribe NAME c" in imported.output
    with (tmp_path / "feeds.yaml").open("a") as file:
        file.write("  - {url: https://d.example/, id: d, allow_private: true}\n")
    chosen = run("subscribe", "Bob", "a", "c.example", "a")
    assert chosen.output == "bob subscribes to 2 more feeds.\n"
    again = run("subscribe", "bob", "a", "b.example")
    assert again.output == "bob subscribes to 1 more feed, and had 1.\n"
    closed = run("subscribe", "bob", "d")
    assert (closed.exit_code, "1 of 1 feeds were left out: users can" in closed.output) == (1, True)
    assert subscribed()["bob"] == ["a", "b", "c"]
    assert run("subscribe", "ada", "--all").output.startswith("ada subscribes to 5 feeds of ")
    for wrong in (("bob",), ("bob", "a", "--all"), ("bob", "nothing-like-it"), ("eve", "a")):
        assert run("subscribe", *wrong).exit_code != 0
    assert subscribed() == {"ada": ["a", "b", "c", "e", "f"], "bob": ["a", "b", "c"]}
    with open_database(settings) as database:
        rows = database.query("SELECT origin FROM subscriptions GROUP BY origin").rows
        assert sorted(str(row["origin"]) for row in rows) == ["None", "list"]


def test_a_new_user_learns_how_many_feeds_are_beyond_the_most(run: Run) -> None:
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())
    with open_database(settings) as database:
        register(database, *(spec(f"f{number}") for number in range(3_002)))
    added = run("add", "ada", "--password-stdin", "--subscribe", input=f"{PASSWORD}\n")
    assert added.output.startswith("ada subscribes to 3000 feeds of ")
    assert "Left out: 2 feeds; a user can subscribe to at most 3000." in added.output
