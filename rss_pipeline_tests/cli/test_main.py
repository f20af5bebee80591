"""The command `rss-pipeline`: what it does, what it prints, and its exit code.

As a process of its own where streams, exit code or imports matter; in this process elsewhere (conftest.py).
"""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.cli.main import main
from rss_pipeline.cli.output.terminal import explained
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reader.accounts.users import find_user
from rss_pipeline.reader.refresh import new_search
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.refresh.refresh_requests import search_request_statements
from rss_pipeline_tests.cli.program import HOST, PROGRAM, environment, run
from rss_pipeline_tests.storage.conftest import nobody
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import cpu_seconds_of_children


@pytest.mark.slow
def test_poll_visits_what_is_due_then_nothing_and_all_of_it_with_all(
    invoke: Any, tmp_path: Path, server: FeedServer
) -> None:
    fine = server.route(HOST, "/feed", Answer(body=rss("a", "b"), etag='"1"'))
    (tmp_path / "feeds.yaml").write_text(f"- url: {fine}\n  id: fine\n  allow_private: true\n", "utf-8")
    first = run(tmp_path, "poll")
    assert (first.code, first.out) == (
        0,
        "1 feeds visited: 1 with a new document, 0 unchanged, 0 failed; 2 new items.\n",
    )
    assert "1 feeds in the registry: 1 new, 0 changed, 0 no longer scheduled" in first.err
    copies = list(tmp_path.glob("dagster/storage/*/compute_logs"))
    assert copies == [], "Dagster starts four processes to copy output that is the terminal's"
    again = invoke("poll")
    assert (again.exit_code, again.stdout) == (0, "Nothing was due.\n")
    assert len(server.requests) == 1

    broken = server.route("127.0.0.3", "/feed", Answer(status=404))
    with (tmp_path / "feeds.yaml").open("a", encoding="utf-8") as file:
        file.write(f"- url: {broken}\n  id: broken\n  allow_private: true\n")
    everything = invoke("poll", "--all", "--json")
    assert everything.exit_code == 0, "a feed that fails is tried again by itself"
    result = json.loads(everything.stdout)
    (failure,) = result.pop("failures")
    assert (failure["feed_id"], failure["kind"]) == ("broken", "http_status")
    assert "404" in failure["message"]
    (run_id,) = result.pop("runs")
    assert len(run_id) == 36
    assert result == {
        "stored": 0,
        "unchanged": 1,
        "failed": 1,
        "given_back": 0,
        "on_hold": 0,
        "not_visited": [],
        "items_new": 0,
        "gaps": 0,
        "errors": [],
        "published": [],
        "publication_error": None,
        "requested": 0,
        "registry_error": None,
        "nothing_reached": None,
    }

    soon = invoke("poll", "fine", "--wait", "0")
    assert (soon.exit_code, len(server.asked(HOST))) == (1, 2)
    assert "[fine] was not visited: it answered at 20" in soon.stderr
    assert "a visit by hand waits a minute after that: 20" in soon.stderr
    with closing(sqlite3.connect(tmp_path / "rss.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE feeds SET last_fetched_at = '2026-01-01T00:00:00Z'")
    one = invoke("poll", "fine")
    assert (one.exit_code, one.stdout.split(":")[0]) == (0, "1 feeds visited")
    assert len(server.asked(HOST)) == 3
    assert len(server.asked("127.0.0.3")) == 1

    assert invoke("poll", "--all", "--strict").exit_code == 1
    assert invoke("poll", "--strict").exit_code == 0, "nothing was due"
    with closing(sqlite3.connect(tmp_path / "rss.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE feeds SET last_fetched_at = '2026-01-01T00:00:00Z'")
    table = invoke("poll", "broken")
    assert table.exit_code == 1, "it was named"
    assert "broken" in table.stdout
    assert "http_status" in table.stdout


def test_poll_makes_the_visits_that_users_of_the_reader_wait_for(
    invoke: Any, tmp_path: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By cron, without `up`, no one else does."""
    monkeypatch.setenv("ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("ALLOW_PORTS", str(server.port))
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    (tmp_path / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    assert invoke("user", "add", "ada", "--password-stdin", input="correct horse battery\n").exit_code == 0
    with open_database(Settings.from_environ(os.environ, cwd=tmp_path)) as database:
        id = find_user(database, "ada")
        search = new_search(id, url, now=utc_now())
        database.batch(search_request_statements(search))
        done = invoke("poll")
        assert (done.exit_code, done.stdout) == (0, "1 visit was made for users of the reader.\n")
        [item] = database.query("SELECT guid FROM items").rows
        [task] = database.query("SELECT state, result FROM refresh_requests").rows
    assert (item["guid"], task["state"]) == ("a", "done")
    assert json.loads(task["result"])["outcome"] == "subscribed"
    assert invoke("poll").stdout == "Nothing was due.\n"


def test_poll_exits_with_1_where_the_registry_is_wrong_and_goes_on_all_the_same(
    invoke: Any, tmp_path: Path, server: FeedServer
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    (tmp_path / "feeds.yaml").write_text(f"- url: {url}\n  allow_private: true\n", "utf-8")
    assert invoke("poll").exit_code == 0
    with (tmp_path / "feeds.yaml").open("a", encoding="utf-8") as file:
        file.write("- url: not a url\n")
    said = invoke("poll", "--all", "--json")
    assert said.exit_code == 1
    assert json.loads(said.stdout)["unchanged"] == 1
    assert "1 mistake(s); nothing was changed." in said.stderr
    assert "line 3" in said.stderr
    assert "line 3" in json.loads(said.stdout)["registry_error"]

    nothing_due = invoke("poll")
    assert nothing_due.exit_code == 1
    assert nothing_due.stdout == "No feed was visited.\n"
    assert "feeds.yaml has errors (see above)" in nothing_due.stderr.splitlines()[-1]


def test_poll_exits_with_1_and_a_sentence_where_a_store_fails(
    invoke: Any, tmp_path: Path, server: FeedServer
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    (tmp_path / "feeds.yaml").write_text(f"- url: {url}\n  allow_private: true\n", "utf-8")
    (tmp_path / "objects").write_bytes(b"in the way")
    said = invoke("poll")
    assert said.exit_code == 1
    assert "The run failed: " in said.stdout
    assert "is writable and the disk has room" in said.stdout
    assert server.requests == []
    as_json = invoke("poll", "--json")
    (error,) = json.loads(as_json.stdout)["errors"]
    assert "is writable and the disk has room" in error
    assert as_json.exit_code == 1


def test_a_database_that_cannot_be_opened_is_a_sentence_for_every_command(
    invoke: Any, tmp_path: Path
) -> None:
    (tmp_path / "rss.sqlite").mkdir()
    for arguments in (["poll"], ["status"], ["items", "x"], ["item", "x"], ["forget", "x"], ["migrate"]):
        result = invoke(*arguments)
        assert result.exit_code == 1
        assert "check the path, its rights and the disk" in result.stderr


def test_a_home_that_this_user_may_not_reach_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "closed/var"
    home.parent.mkdir(mode=0)
    with nobody():
        with pytest.raises(PermissionError) as raised:
            home.exists()
        assert explained(raised.value, home, home / "dagster")
    assert f"{home} cannot be reached: Permission denied. Give" in capsys.readouterr().err
    assert not explained(PermissionError(13, "Permission denied", "/elsewhere"), home)


def test_settings_that_cannot_be_are_a_sentence(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSS_BATCH_SIZE", "many")
    monkeypatch.setenv("RSS_PORTT", "1")
    result = invoke("status")
    assert result.exit_code == 1
    assert 'RSS_BATCH_SIZE: "many" cannot be used; write a whole number from 1 to 5,000' in result.stderr


def test_an_unknown_setting_is_a_warning(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSS_PORTT", "1")
    result = invoke("status")
    assert result.exit_code == 0
    assert 'RSS_PORTT: no setting has this name; did you mean "RSS_PORT"?' in result.stderr


def test_poll_of_a_feed_that_may_not_be_visited_says_why(invoke: Any, collected: Pipeline) -> None:
    """`Nothing was due` alone would leave a person in the dark who named it."""
    collected.feeds[0]["enabled"] = False
    collected.write_registry()
    result = invoke("poll", "news")
    assert result.exit_code == 1
    assert "[news] was not visited: `enabled: false` in feeds.yaml; remove that to fetch it" in result.stderr
    collected.feeds[0]["enabled"] = True
    collected.write_registry()
    collected.sync()
    collected.hold("news")
    result = invoke("poll", "news", "--wait", "0")
    assert result.exit_code == 1
    assert "[news] was not visited: another run is visiting it" in result.stderr


def test_poll_takes_more_than_half_of_the_feeds_out_only_with_yes(
    invoke: Any, pipeline: Pipeline, server: FeedServer
) -> None:
    for n in range(12):
        pipeline.register(server.route(HOST, f"/{n}", Answer(body=rss(f"g{n}"))), f"feed-{n}")
    pipeline.sync()
    pipeline.feeds = pipeline.feeds[:2]
    pipeline.write_registry()
    refused = invoke("poll", "feed-0")
    assert refused.exit_code == 1
    assert "confirm it with `rss-pipeline poll --yes`" in refused.stderr
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 12
    # A visit by hand comes a minute after the last answer.
    pipeline.database.query("UPDATE feeds SET last_fetched_at = '2026-01-01T00:00:00Z'")
    assert invoke("poll", "feed-0", "--yes").exit_code == 0
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 2


def test_a_poll_with_nothing_due_needs_no_dagster_and_no_parser_and_is_no_run(
    collected_in_runs: DagsterPipeline, tmp_path: Path, invoke: Any
) -> None:
    code = (
        "import sys; from rss_pipeline.cli.main import main; main(['poll', '--json'], standalone_mode=False);"
        "sys.exit(bool({'dagster', 'lxml', 'boto3'} & set(sys.modules)))"
    )

    def poll() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment(tmp_path),
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
        )

    collected_in_runs.database.query(
        "UPDATE feeds SET next_fetch_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '+1 hour')"
    )
    idle = poll()
    assert (idle.returncode, json.loads(idle.stdout)["runs"]) == (0, []), idle.stderr

    # A run that was killed before its report left a change without an event: the next poll reports it.
    collected_in_runs.database.query("UPDATE feeds SET reported_count = change_count - 1 WHERE id = 'news'")
    [run_id] = json.loads(invoke("poll", "--json").stdout)["runs"]
    assert collected_in_runs.instance.get_run_by_id(run_id) is not None
    assert collected_in_runs.feed("news")["reported_count"] == collected_in_runs.feed("news")["change_count"]


@pytest.mark.slow
def test_status_needs_no_dagster_and_less_than_a_second(collected: Pipeline, tmp_path: Path) -> None:
    code = (
        "import sys; from rss_pipeline.cli.main import main; main(['status'], standalone_mode=False);"
        "sys.exit('dagster' in sys.modules)"
    )
    spent: list[float] = []
    while len(spent) < 3 and min(spent, default=1.0) >= 1.0:  # The best of some, on a busy machine.
        before = cpu_seconds_of_children()
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(tmp_path),
            cwd=tmp_path,
            check=False,
            capture_output=True,
        )
        spent.append(cpu_seconds_of_children() - before)
        assert done.returncode == 0, done.stderr.decode()
    assert min(spent) < 1.0


def test_items_lists_the_newest_first(invoke: Any, collected: Pipeline) -> None:
    result = invoke("items", "news")
    assert result.exit_code == 0
    assert "Title of a" in result.stdout
    assert "2026-03-02T08:00:00Z" in result.stdout
    rows = json.loads(invoke("items", "news", "--json", "--limit", "1").stdout)
    assert len(rows) == 1
    assert set(rows[0]) >= {"id", "guid", "title", "link", "published_at", "content_characters"}


def test_items_of_a_feed_that_fails_begin_with_the_reason(invoke: Any, collected: Pipeline) -> None:
    feed = collected.feed("broken")
    assert invoke("items", "broken").stdout.splitlines()[1:] == [
        f"http_status: {feed['last_error']}",
        f"That was failure 1 in a row; the next visit is at {feed['next_fetch_at']}.",
        "No items so far.",
    ]
    collected.database.query("UPDATE feeds SET consecutive_failures = 4, last_error = 'it is away'")
    found = invoke("items", "news").stdout
    assert found.splitlines()[1].endswith(": it is away")
    assert "failure 4 in a row" in found
    assert "Title of a" in found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            "last_visited_at = NULL, consecutive_failures = 0",
            "it was not visited yet. `rss-pipeline poll bro",
        ),
        ("consecutive_failures = 0", "it was read, but its document had none"),
        ("registered = 0", "the feed is not in feeds.yaml"),
        ("enabled = 0", "`enabled: false` in feeds.yaml"),
    ],
)
def test_items_say_why_there_are_none(invoke: Any, collected: Pipeline, change: str, reason: str) -> None:
    collected.database.query(f"UPDATE feeds SET {change} WHERE id = 'broken'")
    [_, line] = invoke("items", "broken").stdout.splitlines()
    assert f"No items: {reason}" in line


EXACT = "<p>\u00e9 \u4e16\u754c\U0001f980 [b]x[/b] :x:</p>\r\n\t<pre>\x1b[31mred\x1b[0m</pre>  \n\n"


def content_of(page: str) -> str:
    """The content that the frame of a page shows."""
    document = unescape(page.partition(' srcdoc="')[2].partition('"')[0])
    return document.partition("</style>")[2]


@pytest.mark.slow
def test_item_html_has_the_content_character_for_character(tmp_path: Path, collected: Pipeline) -> None:
    """In a locale that knows ASCII only, and with escape sequences, which text would lose."""
    collected.database.query("UPDATE items SET content_html = ? WHERE guid = 'a'", [EXACT])
    id = collected.items("news")[0]["id"]
    done = subprocess.run(
        [PROGRAM, "item", id, "--html"],
        env={**environment(tmp_path), "LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert content_of(done.stdout.decode()) == EXACT


def test_item_html_has_archived_images_in_place_and_original_has_the_publishers(
    invoke: Any, collected: Pipeline
) -> None:
    html = '<p>x<img src="http://example.com/1.png">'
    item = collected.items("news")[0]
    collected.database.query("UPDATE items SET content_html = ? WHERE id = ?", [html, item["id"]])
    collected.database.query(
        """INSERT INTO image_tasks (id, item_id, original_url, r2_key, status, host, position, created_at,
        updated_at) VALUES ('1', ?, 'http://example.com/1.png', 'images/news/1/0.png', 'success', '', 0, '',
        '')""",
        [item["id"]],
    )
    url = collected.objects.url("images/news/1/0.png")
    page = invoke("item", item["id"], "--html").stdout
    assert content_of(page) == f'<p>x<img src="{url}">'
    assert (f"<title>{item['title']}</title>" in page, item["pub_date"] in page) == (True, True)
    assert content_of(invoke("item", item["id"], "--html", "--original").stdout) == html
    alone = invoke("item", item["id"], "--original")
    assert (alone.exit_code, "use one of them, too" in alone.stderr) == (2, True)


def test_a_strangers_escape_sequences_do_not_reach_the_terminal(invoke: Any, collected: Pipeline) -> None:
    evil = "\x1b]0;owned\x07 \x9b31m"
    collected.database.query("UPDATE items SET title = ?, author = ?", [evil, evil])
    collected.database.query("UPDATE feeds SET title = ?, last_error = ?, warning = ?", [evil, evil, evil])
    id = collected.items("news")[0]["id"]
    for arguments in (["status"], ["status", "news"], ["items", "news"], ["item", id], ["poll", "broken"]):
        said = invoke(*arguments).output
        assert not any(character in said for character in "\x1b\x07\x9b"), arguments


@pytest.mark.parametrize("command", ["status", "items", "poll", "forget"])
def test_a_name_that_no_feed_or_several_have_is_a_sentence(
    command: str, invoke: Any, collected: Pipeline
) -> None:
    unknown = invoke(command, "nosuch")
    assert unknown.exit_code == 1
    assert "no feed matches 'nosuch'; `rss-pipeline status` lists them" in unknown.stderr
    several = invoke(command, "127.0.0")
    assert several.exit_code == 1
    assert "'127.0.0' matches several feeds; name one:" in several.stderr
    assert f"  broken  {collected.feed('broken')['url']}\n" in several.stderr


def test_an_item_that_is_unknown_or_ambiguous_is_a_sentence(invoke: Any, collected: Pipeline) -> None:
    for start in ("zzz", ""):
        result = invoke("item", start)
        assert result.exit_code == 1
        assert "no item, or more than one, has an id that begins with" in result.stderr


@pytest.mark.slow
def test_up_says_that_its_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run(tmp_path, "up", env={"RSS_PORT": str(port)})
    assert said.code == 1
    assert f"port {port} is in use" in said.err
    assert "set RSS_PORT to another" in said.err
    assert not (tmp_path / "rss.sqlite").exists()


def test_every_command_has_help(invoke: Any) -> None:
    said = invoke("-h")
    assert said.exit_code == 0
    assert all(name in said.stdout for name in main.commands)
