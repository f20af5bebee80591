"""The registry on its way into the feeds table."""

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.registry.load import parse_registry
from rss_pipeline.errors import RegistryError
from rss_pipeline.features import FEATURES, FEED_KEYS
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.pipeline.visits.visit import Refused, Stored
from rss_pipeline.storage.backends.s3.backend import R2Backend
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline.storage.feeds import due
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline.storage.reports.overview import feed_health, overview
from rss_pipeline_tests.support.pipeline import Pipeline, ends, rss
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

HOST = "127.0.0.2"


class Watched(Database):
    """A database with a list of the names of its statements, by request."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.batches: list[list[str]] = []

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.batch([Statement(sql, params, name=name)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self.batches.append([statement.name for statement in statements])
        return self._database.batch(statements)

    def close(self) -> None:
        self._database.close()


def take_out(pipeline: Pipeline, *ids: str) -> list[dict[str, Any]]:
    """Take feeds out of the registry; those taken."""
    gone = [feed for feed in pipeline.feeds if feed["id"] in ids]
    pipeline.feeds = [feed for feed in pipeline.feeds if feed["id"] not in ids]
    pipeline.write_registry()
    return gone


def refused(pipeline: Pipeline, id: str) -> str:
    """The sentence of a refresh by hand that may not visit the feed."""
    visit = pipeline.refresh(id)[id]
    assert isinstance(visit.outcome, Refused)
    return visit.outcome.message


def test_a_poll_syncs_first_so_a_new_feed_is_visited_by_the_poll_that_finds_it(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "feed")
    pipeline.poll()
    assert pipeline.guids(id) == ["a"]


def test_a_new_url_is_a_row_that_is_due_now(pipeline: Pipeline) -> None:
    id = pipeline.register("http://example.com/feed", "feed", title="Mine", interval="2h")
    synced = pipeline.sync()
    assert [spec.id for spec in synced.changes.added] == [id]
    feed = pipeline.feed(id)
    assert (feed["url"], feed["title"], feed["interval"]) == ("http://example.com/feed", "Mine", 7200)
    assert feed["next_fetch_at"] == feed["created_at"] == instant(pipeline.clock())

    assert pipeline.sync().changes.is_empty


def test_the_folder_of_feeds_yaml_is_stored_and_follows_it(pipeline: Pipeline) -> None:
    id = pipeline.register("http://example.com/feed", "feed", folder="News / Europe")
    pipeline.sync()
    assert pipeline.feed(id)["folder"] == "News/Europe"
    assert pipeline.sync().changes.is_empty
    del pipeline.feeds[0]["folder"]
    pipeline.write_registry()
    pipeline.sync()
    assert pipeline.feed(id)["folder"] is None


@pytest.mark.slow
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
    assert pipeline.guids("first") == ["first"]

    assert "no longer in feeds.yaml, so it is not fetched; add it there again to do so" in refused(
        pipeline, "first"
    )
    assert server.asked("127.0.0.2") == []

    pipeline.feeds = [*pipeline.feeds, *gone]
    pipeline.write_registry()
    server.route("127.0.0.2", "/feed", Answer(body=rss("first", "more"), etag='"2"'))
    pipeline.sync()
    assert pipeline.feed("first")["next_fetch_at"] == instant(pipeline.clock())
    pipeline.poll()
    assert pipeline.guids("first") == ["first", "more"]
    assert server.requests[-1].headers["if-none-match"] == '"1"', "its validators were kept too"


def known(pipeline: Pipeline) -> list[str]:
    """Ids of the feeds of which the removal has not begun."""
    return [row["id"] for row in pipeline.rows("SELECT id FROM feeds WHERE forgotten = 0 ORDER BY id")]


def test_of_feeds_that_are_gone_those_without_items_and_backups_are_removed(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pages = {
        "items": Answer(body=rss("a")),
        "no-items": Answer(body=rss()),
        "web-page": Answer(body=b"<!DOCTYPE html><title>No feed</title><p>Hello</p>"),
        "not-found": Answer(status=404),
        "stays": Answer(status=404),
    }
    for id, answer in pages.items():
        pipeline.register(server.route(HOST, f"/{id}", answer), id)
    pipeline.register("http://127.0.0.2:1/", "unanswered")
    pipeline.poll()
    pipeline.register("http://127.0.0.2/new", "never-visited")
    pipeline.sync()
    assert [id for id in pages if pipeline.backups(id)] == ["items", "no-items", "web-page"]
    take_out(pipeline, *pages.keys() - {"stays"}, "unanswered", "never-visited")
    assert pipeline.sync(yes=True).removed == ("never-visited", "not-found", "unanswered")
    assert known(pipeline) == ["items", "no-items", "stays", "web-page"]
    assert pipeline.sync().removed == ()


def test_a_backup_that_the_database_does_not_know_keeps_its_feed(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """Its run was killed after it had written the backup."""
    url = server.route(HOST, "/feed", Answer(body=rss("a")), Answer(status=404))
    pipeline.register(url, "feed")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("b"))), "stays")

    class Dies:
        def begin(self, step: str, total: int) -> None:
            if step == "parse":
                raise RuntimeError("power cut")

        def advance(self, step: str, by: int = 1) -> None: ...

    (round_,) = pipeline.try_poll(progress=Dies())
    assert round_.error is not None
    pipeline.lapse_leases()
    pipeline.poll("feed")
    feed = pipeline.feed("feed")
    assert (feed["last_error_kind"], feed["last_body_at"], feed["failed_hash"]) == ("http_status", None, None)
    assert len(pipeline.backups("feed")) == 1
    take_out(pipeline, "feed")
    assert pipeline.sync().removed == ()
    pipeline.objects.delete_many(pipeline.backups("feed"))
    assert pipeline.sync().removed == ("feed",)


def test_a_feed_that_a_run_is_visiting_is_removed_after_its_visit_or_not_at_all(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for n, id in enumerate(("feed", "stays"), start=2):
        pipeline.register(server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(id))), id)

    class Meanwhile:
        def begin(self, step: str, total: int) -> None: ...

        def advance(self, step: str, by: int = 1) -> None:
            if step == "fetch":
                take_out(pipeline, "feed")
                assert pipeline.sync().removed == ()

    pipeline.poll("feed", progress=Meanwhile())
    assert pipeline.guids("feed") == ["feed"]
    assert pipeline.sync().removed == ()
    assert known(pipeline) == ["feed", "stays"]


def test_an_object_store_that_cannot_be_read_removes_nothing_and_stops_no_sync(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    for id in ("a", "b", "c"):
        pipeline.register(f"http://example.com/{id}", id)
    pipeline.sync()
    take_out(pipeline, "a")
    pipeline.register("http://example.com/d", "d")
    pipeline.set(objects_server=R2Backend(
        endpoint_url="http://127.0.0.1:1", bucket="b", access_key_id="k", secret_access_key="s"
    ))  # fmt: skip
    assert pipeline.sync().removed == ()
    assert known(pipeline) == ["a", "b", "c", "d"]
    assert "are removed by a later sync" in caplog.text
    caplog.clear()
    pipeline.database.query("UPDATE feeds SET last_body_at = created_at WHERE id = 'a'")
    assert pipeline.sync().removed == ()
    assert caplog.text == "", "the store is not requested for a feed that is known to have a backup"
    pipeline.database.query("UPDATE feeds SET last_body_at = NULL WHERE id = 'a'")
    pipeline.set(objects_server=None)
    assert pipeline.sync().removed == ("a",)


def test_a_file_that_lists_no_feed_removes_none(pipeline: Pipeline) -> None:
    pipeline.register("http://example.com/a", "a")
    pipeline.sync()
    gone = take_out(pipeline, "a")
    synced = pipeline.sync()
    assert (synced.changes.unregistered, synced.removed) == (("a",), ())
    assert known(pipeline) == ["a"]
    pipeline.feeds = gone
    pipeline.write_registry()
    assert pipeline.sync().removed == ()
    assert pipeline.feed("a")["registered"] == 1


def test_a_publishers_hold_is_kept_for_a_feed_that_is_taken_out_and_added_again(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """The limit of the feed (503) and of its host (429)."""
    answers = {"feed": (HOST, 503), "host": ("127.0.0.3", 429)}
    for id, (host, status) in answers.items():
        busy = Answer(status=status, headers={"Retry-After": "7200"})
        pipeline.register(server.route(host, f"/{id}", busy, Answer(body=rss(id))), id)
    pipeline.register(server.route("127.0.0.4", "/feed", Answer(body=rss("c"))), "stays")
    pipeline.poll()
    gone = take_out(pipeline, *answers)
    assert pipeline.sync(yes=True).removed == ("feed", "host")
    pipeline.feeds += gone
    pipeline.write_registry()
    pipeline.poll()
    pipeline.poll(*answers)
    assert [len(server.asked(host)) for host, _ in answers.values()] == [1, 1]
    pipeline.clock.turn(hours=3)
    pipeline.poll()
    assert [pipeline.guids(id) for id in answers] == [["feed"], ["host"]]


def test_a_feed_with_an_address_that_changes_with_its_id_loses_nothing(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.register(server.route(HOST, "/old", Answer(body=rss("a"))), "feed")
    pipeline.poll()
    pipeline.feeds[0]["url"] = server.route(HOST, "/new", Answer(body=rss("b")))
    pipeline.write_registry()
    assert pipeline.sync().removed == ()
    pipeline.poll()
    assert pipeline.guids("feed") == ["a", "b"]

    # An address that wants no request for a while gets none, though the feed had another one meanwhile.
    busy = server.route(HOST, "/busy", Answer(status=503, headers={"Retry-After": "7200"}))
    for url in (busy, server.route(HOST, "/other", Answer(body=rss("c"))), busy, busy):
        pipeline.feeds[0]["url"] = url
        pipeline.write_registry()
        pipeline.poll()
        pipeline.clock.turn(minutes=30)
    assert pipeline.guids("feed") == ["a", "b", "c"]
    assert [request.target for request in server.requests].count("/busy") == 1


def test_a_feed_that_was_blocked_is_due_once_its_address_is_opened(
    pipeline: Pipeline, server: FeedServer
) -> None:
    ids = ("flag", "list", "setting")
    for number, id in enumerate(ids, start=2):
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", Answer(body=rss(id))), id)
        pipeline.feeds[-1]["allow_private"] = False
    pipeline.write_registry()

    def state() -> dict[str, tuple[str, bool]]:
        now = instant(pipeline.clock())
        rows = {id: pipeline.feed(id) for id in ids}
        return {id: (row["last_error_kind"], row["next_fetch_at"] <= now) for id, row in rows.items()}

    pipeline.poll()
    assert state() == dict.fromkeys(ids, ("blocked_address", False))
    pipeline.feeds[0]["allow_private"] = True
    pipeline.feeds[1]["allow_private"] = ["127.0.0.3"]
    pipeline.write_registry()
    pipeline.sync()
    blocked = ("blocked_address", False)
    assert state() == dict.fromkeys(ids, ("blocked_address", True)) | {"setting": blocked}
    opened_settings = replace(pipeline.settings, allow_networks=(ip_network("127.0.0.4/32"),))
    sync_registry(pipeline.database, opened_settings, now=pipeline.clock())
    assert state()["setting"] == ("blocked_address", True)
    pipeline.database.query("UPDATE feeds SET next_fetch_at = '2100-01-01T00:00:00Z'")
    sync_registry(pipeline.database, opened_settings, now=pipeline.clock())
    assert state()["setting"] == blocked, "once, when the setting changes"

    others: tuple[tuple[str, dict[str, Any]], ...] = (
        ("blocked_address", {"allow_ports": frozenset({8080})}),
        ("too_large", {"max_feed_mb": 30}),
        ("tls", {"ca_file": Path("own.pem")}),
        ("connect", {"proxy": "http://user:password@proxy.example:3128"}),
    )
    for kind, values in others:
        opened_settings = replace(opened_settings, **values)
        pipeline.database.query(
            "UPDATE feeds SET next_fetch_at = '2100-01-01T00:00:00Z',"
            " last_error_kind = iif(id = 'flag', ?, 'gone')",
            [kind],
        )
        sync_registry(pipeline.database, opened_settings, now=pipeline.clock())
        assert state() == {"flag": (kind, True), "list": ("gone", False), "setting": ("gone", False)}


@pytest.mark.parametrize("in_url", [True, False])
def test_a_feed_that_was_refused_is_due_once_its_password_is_another(
    pipeline: Pipeline, server: FeedServer, in_url: bool
) -> None:
    def answer(request: Request) -> Answer:
        said = request.headers.get("authorization") or request.headers.get("x-key")
        return Answer(body=rss("a")) if said in ("Basic dTpyaWdodA==", "right") else Answer(status=401)

    url = server.route(HOST, "/feed", answer)
    pipeline.register(url, "feed")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(status=404)), "other")
    for value in ("wrong", "right"):
        with_password = {"url": url.replace("//", f"//u:{value}@")}
        pipeline.feeds[0] |= with_password if in_url else {"headers": {"X-Key": value}}
        pipeline.write_registry()
        pipeline.poll()
    assert pipeline.guids("feed") == ["a"]
    assert len(server.asked("127.0.0.3")) == 1, "the others wait"
    assert "right" not in str(pipeline.rows("SELECT * FROM installation"))


def test_a_feed_that_is_switched_off_keeps_its_place_and_says_so(pipeline: Pipeline) -> None:
    id = pipeline.register("http://127.0.0.2:9/feed", "feed", enabled=False)
    pipeline.poll(all_feeds=True)
    assert pipeline.feed(id)["last_visited_at"] is None
    assert "`enabled: false` in feeds.yaml; remove that" in refused(pipeline, id)


def test_an_entry_that_is_not_watched_is_a_name_and_a_page_alone(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = server.route(HOST, "/blog/", Answer(body=rss("a")))
    id = pipeline.register(url, "blog", title="A blog", watch=False)
    synced = pipeline.sync()
    assert synced.scheduled == [], "no partition"
    pipeline.poll(all_feeds=True)
    pipeline.clock.turn(days=30)
    assert due.due_now(pipeline.database, pipeline.clock()) == 0
    pipeline.poll()
    assert server.asked(HOST) == []
    assert "`watch: false` in feeds.yaml" in refused(pipeline, id)
    [row] = feed_health(pipeline.database)
    assert (row["health"], row["title"], row["last_error_kind"]) == ("unwatched", "A blog", None)
    assert pipeline.feed(id)["link"] == url
    whole = overview(pipeline.database, now=pipeline.clock())
    assert (whole.registered, whole.disabled, whole.unwatched, whole.due) == (0, 0, 1, 0)
    assert pipeline.sync().is_without_changes

    # It has a feed one day: that is visited at once.
    pipeline.feeds[0].pop("watch")
    pipeline.write_registry()
    pipeline.poll()
    assert len(pipeline.items(id)) == 1
    assert pipeline.sync().scheduled == [id]


def test_an_entry_that_is_not_watched_stays_so_for_its_subscribers(pipeline: Pipeline) -> None:
    id = "page"
    pipeline.feeds = [{"url": "http://page.example/", "id": id, "watch": False}]
    pipeline.register("http://127.0.0.3:9/", "other", enabled=False)
    pipeline.sync()
    subscribe(pipeline.database, "ann", id)
    take_out(pipeline, id)
    synced = pipeline.sync()
    assert (synced.kept, synced.scheduled) == ((id,), ["other"])
    assert pipeline.sync().scheduled == ["other"]
    assert pipeline.feed(id)["enabled"] == 0
    pipeline.poll(all_feeds=True)
    assert [row["health"] for row in feed_health(pipeline.database, feed_id=id)] == ["unwatched"]


@pytest.mark.parametrize("name", FEED_KEYS)
def test_a_key_that_needs_documents_is_refused_beside_watch_false(name: str, tmp_path: Path) -> None:
    text = f"feeds:\n- url: https://a.example/\n  watch: false\n  {name}: auto\n"
    with pytest.raises(RegistryError) as refusal:
        parse_registry(text, path=tmp_path / "feeds.yaml", environ={})
    assert f"line 4: feeds[0].{name}: is for what is collected" in str(refusal.value)


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
        assert "needs the headers or the password that feeds.yaml has for it" in refused(pipeline, id)
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


@pytest.mark.parametrize(("before", "gone"), [(12, 7), (3, 2), (3, 3)])
def test_a_registry_that_would_unschedule_more_than_half_is_refused_unless_it_is_meant(
    before: int, gone: int, pipeline: Pipeline
) -> None:
    ids = [pipeline.register(f"http://example.com/{n}", f"feed-{n:02}") for n in range(before)]
    pipeline.sync()
    take_out(pipeline, *ids[:gone])
    sentence = rf"{gone} of {before} feeds would no longer be scheduled.*poll --yes"
    with pytest.raises(RegistryError, match=sentence):
        pipeline.sync()
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == before
    pipeline.sync(yes=True)
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == before - gone


@pytest.mark.parametrize(("before", "gone"), [(12, 6), (4, 2), (3, 1), (2, 2)])
def test_half_of_the_feeds_and_all_of_two_may_go_without_a_question(
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


@pytest.mark.slow
def test_twelve_hundred_feeds_sync_and_sync_again(pipeline: Pipeline) -> None:
    """The database takes a megabyte a parameter."""
    ids = [f"feed-{n:04}" for n in range(1200)]
    pipeline.feeds = [
        {"url": f"http://example.com/{id}/{'p' * 400}", "id": id, "title": "t" * 500} for id in ids
    ]
    pipeline.write_registry()
    pipeline.sync()
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 1200
    assert pipeline.sync().changes.is_empty


def test_a_sync_reads_feeds_and_what_features_store_in_one_request(pipeline: Pipeline) -> None:
    pipeline.register("http://example.com/feed", "feed", allow_private=False)
    pipeline.sync()
    database = Watched(pipeline.database)
    assert sync_registry(database, pipeline.settings, now=pipeline.clock()).is_without_changes
    of_features = [each.registry_key.stored.load().name for each in FEATURES if each.registry_key is not None]
    assert database.batches[0] == ["read registry", "read settings that end failures", *of_features]
    assert not {name for batch in database.batches[1:] for name in batch} & set(of_features)
