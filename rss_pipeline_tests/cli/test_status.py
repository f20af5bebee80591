"""The command `status`: a line for each feed that fits the terminal, equal errors once, JSON for programs."""

import json
import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from rss_pipeline.cli.main import main
from rss_pipeline.cli.output import status_table as output
from rss_pipeline.cli.output.status_table import Column
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.storage.conftest import nobody
from rss_pipeline_tests.support.cost import costs_less_than
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"
NOT_FOUND = "404 Not Found: there is no feed at this address."
LONG_ID = "a-feed-with-an-id-of-forty-characters-00"


def ago(**time: float) -> str:
    return instant(utc_now() - timedelta(**time))


def add_feed(database: Database, id: str, **columns: Any) -> str:
    """A feed as the registry makes it, visited a moment ago, unless `columns` say otherwise."""
    row = {
        "id": id,
        "url": f"http://{id}.example/",
        "host": f"{id}.example",
        "next_fetch_at": ago(hours=-2),
        "created_at": ago(days=30),
        "last_visited_at": ago(minutes=1),
        "last_success_at": ago(minutes=1),
        **columns,
    }
    database.query(
        f"INSERT INTO feeds ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values())
    )
    return id


def failed(kind: str, sentence: str, *, times: int = 1, **columns: Any) -> dict[str, Any]:
    return {"last_error_kind": kind, "last_error": sentence, "consecutive_failures": times, **columns}


def add_feeds(database: Database, count: int) -> None:
    """Feeds as the registry makes them, never visited."""
    database.query(
        """INSERT INTO feeds (id, url, host, next_fetch_at, created_at)
        SELECT 'f' || value, 'http://h' || value || '/', 'h' || value, ?2, ?2 FROM json_each(?1)""",
        [json.dumps(list(range(count))), instant(utc_now())],
    )


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command in this process, for the home of `pipeline`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(tmp_path))
    monkeypatch.setenv("RSS_FEEDS_FILE", str(tmp_path / "feeds.yaml"))
    monkeypatch.setenv("COLUMNS", "400")

    def call(*arguments: str, columns: int | None = 400) -> Result:
        if columns is None:
            monkeypatch.delenv("COLUMNS")
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that any user may enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="rss-pipeline-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def collected(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """A pipeline that has collected one feed; another one fails."""
    pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a", "b", title="News [/b] :x:"))), "news")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(status=404)), "broken")
    pipeline.poll()
    return pipeline


def lines_of(result: Result) -> dict[str, list[str]]:
    """The lines of the feeds by their first word, as words."""
    return {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.split()}


def test_status_of_an_empty_home_says_what_to_do(invoke: Any) -> None:
    result = invoke("status")
    assert result.exit_code == 0
    assert result.stdout == "No feed was visited yet: list feeds in feeds.yaml and run `rss-pipeline poll`.\n"


def test_status_is_a_line_a_feed_with_its_health_items_newest_item_and_next_visit(
    invoke: Any, collected: Pipeline
) -> None:
    """A title is a stranger's text: no markup of the terminal's."""
    database = collected.database
    database.query("UPDATE feeds SET next_fetch_at = ? WHERE id = 'news'", [ago(minutes=-27.5)])
    database.query(
        "UPDATE feeds SET rhythm = ? WHERE id = 'news'",
        [json.dumps([ago(hours=-5), ago(days=6 * 366), ago(days=7 * 366)])],
    )
    result = invoke("status")
    assert result.exit_code == 0
    assert "2 feeds scheduled, 1 failing\n" in result.stdout
    [news] = [line for line in result.stdout.splitlines() if line.startswith("news ")]
    assert news.split(maxsplit=7) == ["news", "ok", "2", "6", "years", "28", "min", "News [/b] :x:"]
    assert result.stdout.index("broken  failing") < result.stdout.index("news    ok"), "failing ones first"
    error = collected.feed("broken")["last_error"]
    assert f"http_status: {error}\n    broken (failed once)\n" in result.stdout


def test_health_is_one_word_for_each_state(invoke: Any, pipeline: Pipeline) -> None:
    states = {
        "fine": ("ok", {}),
        "unread": ("new", {"last_visited_at": None, "last_success_at": None}),
        "broken": ("failing", failed("timeout", "It is slow.")),
        "away": ("gone", failed("gone", "410 Gone.")),
        "elsewhere": ("moved", {"fetch_url": "http://new.example/"}),
        "doubtful": ("warning", {"warning": "Its guids change.", "warning_kinds": '["shared_guids"]'}),
        "off": ("disabled", {"enabled": 0, **failed("gone", "410 Gone.")}),
        "out": ("unlisted", {"registered": 0, **failed("timeout", "It is slow.")}),
    }
    for id, (_, columns) in states.items():
        add_feed(pipeline.database, id, **columns)
    result = invoke("status")
    assert ", 1 with items that share a guid or link" in result.stdout.splitlines()[0]
    lines = result.stdout.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("feed "))
    table = {line.split()[0]: line.split()[1] for line in lines[head + 1 : head + 1 + len(states) - 1]}
    assert table == {id: health for id, (health, _) in states.items() if id != "out"}
    as_json = {feed["id"]: feed["health"] for feed in json.loads(invoke("status", "--json").stdout)["feeds"]}
    assert as_json == {**table, "out": "unlisted"}
    assert "warning: Its guids change.\n    doubtful\n" in result.stdout


@pytest.mark.parametrize("columns", [None, 80, 120, 60])
def test_no_title_and_no_id_breaks_the_columns_or_the_width(
    invoke: Any, pipeline: Pipeline, columns: int | None
) -> None:
    """Wide characters, emoji of several code points, right to left, controls; ids of forty characters. A pipe
    has 80 columns."""
    titles = {
        LONG_ID: "朝日新聞デジタル 速報ニュースの見出しをすべてお届けするフィード" * 3,
        "arabic": "الجزيرة نت - الأخبار العربية والعالمية 24" * 3,
        "emoji": "👩‍💻 Code & ☕ 🇩🇪 ❤️ Blog" * 5,
        "hostile": "\x1b[31m\x07\u202egnp.exe\nFORGED ok 1 2 3",
        "none": None,
    }
    for id, title in titles.items():
        add_feed(pipeline.database, id, title=title, **failed("http_status", NOT_FOUND * 2))
    result = invoke("status", columns=columns)
    lines = result.stdout.splitlines()
    assert max(map(cell_len, lines)) <= (columns or 80)
    assert max(map(cell_len, lines)) >= (columns or 80) - 3, "the titles have the room that is left"
    assert not any(line.endswith(" ") for line in lines)
    assert "\x1b" not in result.stdout
    assert "\nFORGED" not in result.stdout
    head = next(n for n, line in enumerate(lines) if line.startswith("feed "))
    table = lines[head : head + 6]
    for line in table[1:]:
        assert cell_len(line[: line.index("failing")]) == lines[head].index("health")
        assert cell_len(line[: line.index("2 h") + 3]) == lines[head].index("next") + len("next")
    [shown] = [line.split()[0] for line in table if line.startswith("a-feed")]
    assert shown == LONG_ID or (shown.endswith("…") and LONG_ID.startswith(shown[:-1]) and len(shown) > 15)


def test_a_column_is_one_entry_of_the_table(
    invoke: Any, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps = Column("missed", lambda row, _: f"{row['gaps']} gaps", align="right")
    monkeypatch.setattr(output, "COLUMNS", (*output.COLUMNS[:2], gaps, *output.COLUMNS[2:]))
    for number in range(2):
        add_feed(pipeline.database, LONG_ID[number:], title="A long title " * 9, gaps=number)
    lines = invoke("status", columns=60).stdout.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("feed "))
    end = lines[head].index("missed") + len("missed")
    assert {line[:end].rpartition("  ")[2] for line in lines[head + 1 : head + 3]} == {"0 gaps", "1 gaps"}
    assert max(map(cell_len, lines)) <= 60


def test_equal_errors_are_one_sentence_with_the_feeds_that_it_holds_for(
    invoke: Any, pipeline: Pipeline
) -> None:
    for n in range(9):
        sentence = f"The host name f{n}.example does not resolve."
        add_feed(pipeline.database, f"f{n}", **failed("dns", sentence, times=n + 1))
    add_feed(pipeline.database, "alone", **failed("dns", "The host alone.example has no address."))
    add_feed(pipeline.database, "off", enabled=0, **failed("timeout", "Nobody wants to know."))
    output = invoke("status").stdout
    assert (
        "dns: The host name <host> does not resolve.\n    f8 (failed 9 times), f7 (failed 8 times),"
        " f6 (failed 7 times), f5 (failed 6 times), f4 (failed 5 times), f3 (failed 4 times),"
        " ... and 3 more feeds\n"
        "dns: The host alone.example has no address.\n    alone (failed once)\n"
    ) in output
    assert "Nobody wants to know" not in output


def test_status_names_the_most_frequent_errors_and_counts_the_others(invoke: Any, pipeline: Pipeline) -> None:
    for n in range(15):
        add_feed(pipeline.database, f"f{n}", **failed("html", f"This is page {n}."))
    add_feed(pipeline.database, "g", **failed("html", "This is page 14."))
    lines = invoke("status").stdout.splitlines()
    errors = [line for line in lines if line.startswith("html: ")]
    assert len(errors) == 12
    assert errors[0] == "html: This is page 14."
    assert lines[-1] == "... and 3 more errors and warnings: `rss-pipeline status FEED` shows one feed's"


def test_verbose_adds_the_next_visit_and_why_below_each_feed(invoke: Any, pipeline: Pipeline) -> None:
    at = ago(hours=-2)
    reason = "once a day: nothing new for 6 years"
    add_feed(pipeline.database, "old", next_fetch_at=at, schedule_reason=reason)
    add_feed(pipeline.database, "off", enabled=0)
    add_feed(pipeline.database, "broken", **failed("timeout", "It is slow.", times=2))
    plain = invoke("status").stdout
    assert reason not in plain
    output = invoke("status", "-v").stdout
    assert f"    next visit at {at}: {reason}\n" in output
    assert "    no next visit: `enabled: false` in feeds.yaml\n" in output
    assert "    failed twice: It is slow.\n" in output
    assert "timeout: It is slow." not in output, "once is enough"


def test_a_feed_on_a_host_on_hold_is_next_at_the_end_of_the_hold(invoke: Any, pipeline: Pipeline) -> None:
    add_feed(pipeline.database, "held", next_fetch_at=ago(minutes=1))
    until = ago(hours=-3, minutes=1)
    pipeline.database.query(
        "INSERT INTO hosts (host, hold_until, reason) VALUES ('held.example', ?, '429')", [until]
    )
    assert lines_of(invoke("status"))["held"] == ["held", "ok", "0", "-", "2", "h"]
    assert f"next visit at {until}: its host is on hold" in invoke("status", "-v").stdout
    later = ago(hours=-4)
    pipeline.database.query(
        "INSERT INTO feed_holds (feed_id, host, hold_until, reason) VALUES ('held', '', ?, 'it is full')",
        [later],
    )
    assert f"next visit at {later}: it is full" in invoke("status", "-v").stdout


def test_status_lists_moves_and_missed_items_of_feeds_that_do_well(invoke: Any, collected: Pipeline) -> None:
    collected.database.query(
        "UPDATE feeds SET fetch_url = 'http://new.example/', gaps = 2, last_gap_at = ? WHERE id = 'news'",
        [instant(utc_now())],
    )
    result = invoke("status")
    assert "1 failing, 1 moved" in result.stdout
    moved = "[news]: moved for good, requested at http://new.example/: write that into feeds.yaml with"
    assert moved in " ".join(result.stdout.split())
    found = json.loads(invoke("status", "--json").stdout)
    news = next(feed for feed in found["feeds"] if feed["id"] == "news")
    assert (found["moved"], found["gaps"], news["fetch_url"], news["gaps"]) == (
        1,
        2,
        "http://new.example/",
        2,
    )
    assert [note.partition(",")[0] for note in news["notes"]] == [
        "moved for good",
        "items were probably missed 2 times",
    ]
    one = invoke("status", "news").stdout
    assert one.count("\nnotes ") == 2


def test_status_as_json_has_the_counts_and_every_feed(invoke: Any, collected: Pipeline) -> None:
    result = json.loads(invoke("status", "--json").stdout)
    assert {
        name: result[name] for name in ("registered", "failing", "items", "unregistered", "disabled")
    } == {
        "registered": 2,
        "failing": 1,
        "items": 2,
        "unregistered": 0,
        "disabled": 0,
    }
    assert set(result["disk"]) == {"database", "objects"}
    assert result["disk"]["database"]["bytes"] > 0
    assert {feed["id"]: feed["items"] for feed in result["feeds"]} == {"news": 2, "broken": 0}
    for feed in result["feeds"]:
        # 1 == True in Python, and not for a program that reads the JSON.
        flags = [str(feed[name]) for name in ("registered", "enabled", "needs_access")]
        assert flags == ["True", "True", "False"]


def test_status_says_how_many_feeds_it_does_not_list(invoke: Any, collected: Pipeline) -> None:
    add_feeds(collected.database, 60)
    collected.database.query("UPDATE feeds SET enabled = 0 WHERE id = 'f1'")
    collected.database.query("UPDATE feeds SET registered = 0 WHERE id = 'f2'")

    def more(*arguments: str) -> list[str]:
        lines = invoke("status", *arguments).stdout.splitlines()
        return [line for line in lines if line.endswith("--limit 0 shows all")]

    assert more() == ["... and 11 more: --limit 0 shows all"]
    assert more("--limit", "60") == ["... and 1 more: --limit 0 shows all"]
    assert more("--limit", "61") == more("--limit", "0") == []


def test_status_as_json_has_all_feeds_unless_an_option_limits_them(invoke: Any, collected: Pipeline) -> None:
    add_feeds(collected.database, 60)

    def listed(*arguments: str) -> int:
        return len(json.loads(invoke("status", "--json", *arguments).stdout)["feeds"])

    assert (listed(), listed("--limit", "0"), listed("--limit", "7")) == (62, 62, 7)


def test_status_of_one_feed_shows_all_of_it(invoke: Any, collected: Pipeline) -> None:
    result = invoke("status", "broken")
    assert result.exit_code == 0
    assert "consecutive_failures  1\n" in result.stdout
    assert "http_status" in result.stdout
    assert "schedule_reason       failure 1 in a row: 30 min" in result.stdout
    assert "enabled               yes\n" in result.stdout
    assert "News" not in result.stdout


def test_status_exits_with_1_once_a_feed_has_failed_ten_times(invoke: Any, collected: Pipeline) -> None:
    collected.database.query("UPDATE feeds SET consecutive_failures = 10 WHERE id = 'broken'")
    result = invoke("status")
    assert result.exit_code == 1
    assert "1 failing (1 of them ten times or more)" in result.stdout
    assert invoke("status", "--json").exit_code == 1


@pytest.mark.parametrize("is_open", [False, True], ids=["nobody has it open", "the daemon has it open"])
def test_reading_commands_need_no_right_to_write(
    monkeypatch: pytest.MonkeyPatch, public_folder: Path, server: FeedServer, is_open: bool
) -> None:
    """Another user of the machine, a backup, a home mounted read-only."""
    home = public_folder / "var"
    monkeypatch.chdir(public_folder)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(home))
    pipeline = Pipeline(home)
    pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a", "b"))), "news")
    pipeline.poll()
    id = pipeline.items("news")[0]["id"]
    commands = (
        ["status"],
        ["status", "--json"],
        ["items", "news"],
        ["item", id],
        ["item", id, "--html"],
        ["export"],
    )
    for command in commands:
        # Python loads modules late, and the user of this test may not be able to.
        CliRunner().invoke(main, command)
    if not is_open:
        pipeline.close()
    for folder, _, names in os.walk(home):
        Path(folder).chmod(0o555)
        for name in names:
            Path(folder, name).chmod(0o444)
    before = sorted(home.rglob("*"))
    with nobody():
        results = [CliRunner().invoke(main, command) for command in commands]
        refused = CliRunner().invoke(main, ["migrate"])
    for folder, _, _ in os.walk(home):
        Path(folder).chmod(0o755)
    assert [result.exit_code for result in results] == [0] * len(commands), [each.output for each in results]
    assert "1 feeds scheduled" in results[0].stdout
    assert "Title of a" in results[2].stdout
    assert sorted(home.rglob("*")) == before
    if not is_open:
        assert refused.exit_code == 1
    else:
        pipeline.close()


def test_five_thousand_feeds_are_listed_in_a_second(invoke: Any, pipeline: Pipeline) -> None:
    """With 20 items each; a third fail, each with another sentence."""
    add_feeds(pipeline.database, 5_000)
    pipeline.database.query(
        """UPDATE feeds SET consecutive_failures = 2, last_error_kind = 'html', last_error = 'No feed: ' || id
        WHERE rowid % 3 = 0"""
    )
    pipeline.database.query(
        """INSERT INTO items (id, feed_id, guid, pub_date, created_at, categories, enclosures, guid_source,
          pub_date_source, arrived)
        SELECT feeds.id || '-' || n.value, feeds.id, n.value, ?2, ?2, '[]', '[]', 'guid', 'feed', n.value
        FROM feeds, json_each(?1) AS n""",
        [json.dumps(list(range(20))), ago(days=1)],
    )
    invoke("status")
    with costs_less_than(1):
        result = invoke("status")
    assert "5,000 feeds scheduled, 1,666 failing" in result.stdout
    assert result.stdout.count("failing") == 51, "50 of them are listed"


def test_shards_are_shown_with_what_waits_in_them(
    invoke: Any, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_feed(pipeline.database, "a", next_fetch_at=ago(minutes=10), bucket=0)
    add_feed(pipeline.database, "b", next_fetch_at=ago(minutes=35), bucket=1023)
    add_feed(pipeline.database, "c", next_fetch_at=ago(minutes=20), bucket=1023)
    assert "shards" not in invoke("status").stdout
    monkeypatch.setenv("RSS_SHARDS", "3")
    assert "3 shards: 2 of 3 (2 due for 35 min), 1 of 3 (1 due for 10 min)" in invoke("status").stdout
    found = json.loads(invoke("status", "--json").stdout)["shards"]
    assert [(each["shard"], each["due"]) for each in found] == [("1 of 3", 1), ("2 of 3", 2), ("3 of 3", 0)]
    pipeline.database.query("UPDATE feeds SET next_fetch_at = ?", [ago(hours=-1)])
    assert "3 shards: nothing is due" in invoke("status").stdout
