"""The registry on its way into the feeds table and the partition keys, and its secrets, which go nowhere."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import RegistryError
from rss_pipeline.pipeline.visits.visit import Stored
from rss_pipeline.storage.feeds import due
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline_tests.support.pipeline import Pipeline, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


def keys(pipeline: Pipeline) -> list[str]:
    return list(pipeline.instance.get_dynamic_partitions("feeds"))


def take_out(pipeline: Pipeline, *ids: str) -> list[dict[str, Any]]:
    """Take feeds out of the registry; those taken."""
    gone = [feed for feed in pipeline.feeds if feed["id"] in ids]
    pipeline.feeds = [feed for feed in pipeline.feeds if feed["id"] not in ids]
    pipeline.write_registry()
    return gone


def sentence_of(result: Any) -> str:
    """What a failed run says."""
    (failure,) = [event for event in result.all_node_events if event.is_step_failure]
    return str(failure.event_specific_data.error)


def test_a_new_url_is_a_row_that_is_due_now_and_a_partition_key(pipeline: Pipeline) -> None:
    id = pipeline.register("http://example.com/feed", "feed", title="Mine", interval="2h")
    synced = pipeline.sync()
    assert ([spec.id for spec in synced.changes.added], pipeline.keys_added) == ([id], 1)
    feed = pipeline.feed(id)
    assert (feed["url"], feed["title"], feed["interval"]) == ("http://example.com/feed", "Mine", 7200)
    assert feed["next_fetch_at"] == feed["created_at"] == instant(pipeline.clock())
    assert keys(pipeline) == [id]

    again = pipeline.sync()
    assert (again.changes.is_empty, pipeline.keys_added) == (True, 0)


def test_a_poll_syncs_first_so_a_new_feed_is_visited_by_the_poll_that_finds_it(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "feed")
    pipeline.poll()
    assert pipeline.guids(id) == ["a"]
    assert keys(pipeline) == [id]


def test_a_key_that_a_crash_kept_from_being_added_is_added_by_the_next_sync(pipeline: Pipeline) -> None:
    """Rows first, then keys: in between the process may die."""
    id = pipeline.register("http://example.com/feed", "feed")
    pipeline.sync()
    pipeline.instance.delete_dynamic_partition("feeds", id)
    pipeline.sync()
    assert pipeline.keys_added == 1
    assert keys(pipeline) == [id]


def test_a_feed_that_is_gone_is_not_scheduled_keeps_all_it_has_and_comes_back(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for n, id in enumerate(("first", "second", "third"), start=2):
        pipeline.register(server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(id), etag='"1"')), id)
    pipeline.poll()
    gone = take_out(pipeline, "first")
    server.forget()
    pipeline.poll(all_feeds=True)
    assert server.asked("127.0.0.2") == []
    assert pipeline.feed("first")["registered"] == 0
    assert (pipeline.guids("first"), len(pipeline.events("first"))) == (["first"], 1)
    assert keys(pipeline) == ["first", "second", "third"]

    result = pipeline.materialize("first")
    assert not result.success
    assert "no longer in feeds.yaml, so it is not fetched; add it there again to do so" in sentence_of(result)
    assert server.asked("127.0.0.2") == []

    pipeline.feeds = [*pipeline.feeds, *gone]
    pipeline.write_registry()
    server.route("127.0.0.2", "/feed", Answer(body=rss("first", "more"), etag='"2"'))
    pipeline.sync()
    assert pipeline.feed("first")["next_fetch_at"] == instant(pipeline.clock())
    pipeline.poll()
    assert pipeline.guids("first") == ["first", "more"]
    assert server.requests[-1].headers["if-none-match"] == '"1"', "its validators were kept too"
    assert keys(pipeline) == ["first", "second", "third"], "a key keeps its place"


def test_a_feed_that_is_switched_off_keeps_its_place_and_says_so(pipeline: Pipeline) -> None:
    id = pipeline.register("http://127.0.0.2:9/feed", "feed", enabled=False)
    pipeline.poll(all_feeds=True)
    assert pipeline.feed(id)["last_visited_at"] is None
    assert "`enabled: false` in feeds.yaml; take that away" in sentence_of(pipeline.materialize(id))


WRONG = {
    "not YAML": "feeds: [",
    "an unknown key": "feeds:\n- url: http://example.com/feed\n  intervall: 1h\n",
    "nothing": "",
    "no text": "\0\0\0",
}


@pytest.mark.parametrize("text", [*WRONG.values(), None], ids=[*WRONG, "no file"])
def test_a_wrong_registry_changes_nothing_and_the_poll_goes_on_with_the_feeds_as_they_were(
    text: str | None, pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "feed")
    pipeline.sync()
    before = pipeline.rows("SELECT * FROM feeds")
    if text is None:
        pipeline.settings.feeds_file.unlink()
    else:
        pipeline.settings.feeds_file.write_text(text, "utf-8")
    with pytest.raises(RegistryError, match="nothing was changed") as raised:
        pipeline.sync()
    assert str(pipeline.settings.feeds_file) in str(raised.value)
    assert pipeline.rows("SELECT * FROM feeds") == before
    pipeline.poll()
    assert pipeline.guids(id) == ["a"]


def test_feeds_with_a_password_wait_while_the_registry_cannot_be_read(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """Without it they would collect failures that are not their own."""
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    locked = pipeline.register(url.replace("//", "//me:secret@"), "locked")
    headed = pipeline.register(
        server.route("127.0.0.3", "/feed", Answer(body=rss("b"))), "headed", headers={"X-Key": "secret"}
    )
    plain = pipeline.register(server.route("127.0.0.4", "/feed", Answer(body=rss("c"))), "plain")
    pipeline.sync()
    pipeline.settings.feeds_file.write_text("feeds: [", "utf-8")
    rounds = pipeline.poll()
    assert ends(rounds, lambda visit: visit.feed.id) == [plain]
    pipeline.poll(all_feeds=True)
    for id in (locked, headed):
        result = pipeline.materialize(id)
        assert "needs the headers or the password that feeds.yaml has for it" in sentence_of(result)
        feed = pipeline.feed(id)
        assert (feed["consecutive_failures"], feed["unclosed_claims"]) == (0, 0)
        assert (feed["lease_token"], feed["last_visited_at"]) == (None, None)
    assert pipeline.rows("SELECT token FROM leases") == []
    assert {request.host for request in server.requests} == {"127.0.0.4"}

    assert not due.is_claimable(pipeline.database, Due(now=pipeline.clock())), "or polls would not end"
    pipeline.write_registry()
    pipeline.clock.turn(minutes=5)
    pipeline.poll()
    assert (pipeline.guids(locked), pipeline.guids(headed)) == (["a"], ["b"])


def test_a_waiting_feed_of_a_dead_run_does_not_keep_the_others_of_it_from_being_visited(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    locked = pipeline.register(url.replace("//", "//me:secret@"), "a-locked")
    plain = pipeline.register(server.route("127.0.0.4", "/feed", Answer(body=rss("c"))), "plain")
    pipeline.sync()
    pipeline.hold(locked, plain)
    pipeline.lapse_leases()
    pipeline.settings.feeds_file.write_text("feeds: [", "utf-8")
    assert ends(pipeline.poll(), lambda visit: (visit.feed.id, type(visit.outcome))) == [(plain, Stored)]
    assert (pipeline.feed(locked)["lease_token"], pipeline.rows("SELECT token FROM leases")) == (None, [])


def test_a_registry_that_would_unschedule_more_than_half_is_refused_unless_it_is_meant(
    pipeline: Pipeline,
) -> None:
    ids = [pipeline.register(f"http://example.com/{n}", f"feed-{n:02}") for n in range(12)]
    pipeline.sync()
    take_out(pipeline, *ids[:7])
    with pytest.raises(RegistryError, match=r"7 of 12 feeds would no longer be scheduled.*poll --yes"):
        pipeline.sync()
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 12
    pipeline.sync(yes=True)
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 5
    assert len(keys(pipeline)) == 12


@pytest.mark.parametrize(("before", "gone"), [(12, 6), (10, 10)])
def test_half_of_the_feeds_and_all_of_a_small_registry_may_go_without_a_question(
    before: int, gone: int, pipeline: Pipeline
) -> None:
    ids = [pipeline.register(f"http://example.com/{n}", f"feed-{n:02}") for n in range(before)]
    pipeline.sync()
    take_out(pipeline, *ids[:gone])
    assert len(pipeline.sync().changes.unregistered) == gone


def test_a_variable_takes_its_value_from_the_environment(pipeline: Pipeline) -> None:
    pipeline.register("http://${FEED_HOST}/feed", "feed", title="${FEED_TITLE}")
    pipeline.sync(environ={"FEED_HOST": "example.com", "FEED_TITLE": "Named elsewhere"})
    feed = pipeline.feed("feed")
    assert (feed["url"], feed["title"]) == ("http://example.com/feed", "Named elsewhere")
    with pytest.raises(RegistryError, match="FEED_HOST"):
        pipeline.sync(environ={"FEED_TITLE": "x"})
    assert pipeline.feed("feed")["registered"] == 1


def test_keys_stand_in_the_order_of_the_file_and_new_ones_come_last(pipeline: Pipeline) -> None:
    for id in ("m", "z", "a"):
        pipeline.register(f"http://example.com/{id}", id)
    pipeline.sync()
    pipeline.feeds.insert(0, {"url": "http://example.com/new", "id": "new"})
    pipeline.feeds.reverse()
    pipeline.write_registry()
    pipeline.sync()
    assert keys(pipeline) == ["m", "z", "a", "new"]


def test_twelve_hundred_feeds_sync_and_sync_again(pipeline: Pipeline) -> None:
    """SQLite's instance storage binds a variable a key, the database takes a megabyte a parameter."""
    ids = [f"feed-{n:04}" for n in range(1200)]
    pipeline.feeds = [
        {"url": f"http://example.com/{id}/{'p' * 400}", "id": id, "title": "t" * 500} for id in ids
    ]
    pipeline.write_registry()
    pipeline.sync()
    assert pipeline.keys_added == 1200
    assert keys(pipeline) == ids
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 1200
    assert pipeline.sync().changes.is_empty


PASSWORD = "correct-horse-battery"
TOKEN = "staple-0123456789"
SECRETS = [
    PASSWORD.encode(),
    TOKEN.encode(),
    base64.b64encode(f"me:{PASSWORD}".encode()),
]


def _leaks(folder: Path) -> list[str]:
    """Files below a folder that hold a secret."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in SECRETS)
    ]


@pytest.mark.slow
def test_passwords_and_secret_headers_go_to_their_server_and_are_written_nowhere(
    tmp_path: Path, server: FeedServer
) -> None:
    """Whatever becomes of the feed: stored, refused, junk, unreachable; by the command, by hand."""
    home, registry = tmp_path / "home", tmp_path / "feeds.yaml"
    good = server.route(HOST, "/feed", Answer(body=rss("a"), etag='"1"'))
    refused = server.route(HOST, "/refused", Answer(status=401, body=b"who are you"))
    junk = server.route(HOST, "/junk", Answer(body=b"no feed"))
    moved = server.route(HOST, "/moved", Answer(status=302, headers={"Location": "/nowhere/"}))
    headed = server.route("127.0.0.3", "/feed", Answer(body=rss("b")))
    with_password = [good, refused, junk, moved, "http://127.0.0.7:9/unreachable"]
    lines = [
        f"- url: {url.replace('//', '//me:${FEED_PASSWORD}@')}\n  allow_private: true\n"
        for url in with_password
    ]
    lines.append(f"- url: {headed}\n  allow_private: true\n  id: headed\n  headers: {{X-Token: '{TOKEN}'}}\n")
    registry.write_text("feeds:\n" + "".join(lines), "utf-8")
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RSS_")},
        "RSS_PIPELINE_HOME": str(home),
        "RSS_FEEDS_FILE": str(registry),
        "RSS_HOST_DELAY_SECONDS": "0",
        "FEED_PASSWORD": PASSWORD,
    }
    program = str(Path(sys.executable).with_name("rss-pipeline"))

    def command(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments], env=environ, cwd=tmp_path, check=False, capture_output=True, timeout=120
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return (done.stdout + done.stderr).decode()

    said = command("poll", "--all", "--json")
    assert '"stored": 2' in said
    assert '"failed": 4' in said
    for arguments in (["poll", "--all"], ["status", "--json"], ["status", "refused"], ["items", "headed"]):
        said += command(*arguments)
    registry.write_text(registry.read_text("utf-8") + "- url: 17\n  headers: {X: [" + TOKEN, "utf-8")
    said += command("poll")

    basic = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    assert {request.headers["authorization"] for request in server.asked(HOST, "/feed")} == {basic}
    assert {request.headers["x-token"] for request in server.asked("127.0.0.3")} == {TOKEN}
    assert not any(secret.decode() in said for secret in SECRETS), said
    assert (home / "rss.sqlite").is_file()
    assert (home / "dagster").is_dir()
    assert _leaks(home) == []


def test_a_run_by_hand_writes_no_secret_either(
    pipeline: Pipeline, server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/refused", Answer(status=401))
    id = pipeline.register(
        url.replace("//", f"//me:{PASSWORD}@"), "refused", headers={"X-Token": "${HEADER}"}
    )
    os.environ["HEADER"] = TOKEN
    try:
        pipeline.sync()
        result = pipeline.materialize(id)
    finally:
        del os.environ["HEADER"]
    assert server.requests[-1].headers["x-token"] == TOKEN
    assert not any(secret.decode() in sentence_of(result) for secret in SECRETS)
    pipeline.settings.feeds_file.unlink()
    assert _leaks(tmp_path) == []
