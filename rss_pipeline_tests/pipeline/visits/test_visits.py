"""The rows and schedules of a poll, and of a refresh by hand.

Crashes, faults of the stores and the registry have files of their own, events the room orchestration.
"""

import gc
import logging
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import HostHold, OnHold
from rss_pipeline.collector.models.outcome import NotBegun, NotModified
from rss_pipeline.pipeline.visits.rounds import Round, not_begun, on_hold, poll_until_done, without_good
from rss_pipeline.pipeline.visits.visit import Stored
from rss_pipeline.storage.backups.backups import describe_backup
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince
from rss_pipeline_tests.support.pipeline import Pipeline, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


def outcome(visit: Any) -> type:
    return type(visit.outcome)


def test_a_first_poll_backs_up_stores_and_finds_images(pipeline: Pipeline, server: FeedServer) -> None:
    body = rss("a", "b", title="The feed", image="http://images.example")
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=body, etag='W/"1-gzip"')), "feed")
    pipeline.poll()

    assert pipeline.guids(id) == ["a", "b"]
    item = pipeline.items(id)[0]
    assert item["content_html"] == '<p>Text of a</p><img src="http://images.example/a.png">'
    assert (item["pub_date"], item["pub_date_source"]) == ("2026-03-02T08:00:00Z", "feed")
    assert item["created_at"] == instant(pipeline.clock())

    (key,) = pipeline.backups(id)
    assert key == f"backups/feed/{instant(pipeline.clock())}.xml"
    found = pipeline.objects.get(key)
    assert found is not None
    assert found[0] == body
    known = describe_backup(found[1])
    assert (known.etag, known.status, known.url) == ('W/"1-gzip"', 200, server.url(HOST, "/feed"))
    assert item["backup_key"] == key

    assert pipeline.tasks() == ["http://images.example/a.png", "http://images.example/b.png"]
    feed = pipeline.feed(id)
    assert (feed["title"], feed["link"]) == ("The feed", "http://example.com/")
    assert feed["last_etag"] == 'W/"1-gzip"'

    news = pipeline.reports(id)[0]
    assert (news["items_seen"], news["items_new"], news["http_status"]) == (2, 2, 200)
    assert (news["body_bytes"], news["backup_key"]) == (len(body), key)
    assert news["charset"].startswith("utf-8")


def test_an_unchanged_feed_is_requested_conditionally_and_neither_parsed_nor_backed_up(
    pipeline: Pipeline, server: FeedServer
) -> None:
    modified = "Mon, 02 Mar 2026 08:00:00 GMT"
    answer = Answer(body=rss("a"), etag='"1"', last_modified=modified)
    id = pipeline.register(server.route(HOST, "/feed", answer), "feed")
    pipeline.poll()
    rounds = pipeline.poll(all_feeds=True)

    assert ends(rounds, outcome) == [NotModified]
    first, second = server.requests
    assert "if-none-match" not in first.headers
    assert "if-modified-since" not in first.headers
    assert second.headers["if-none-match"] == '"1"'
    assert second.headers["if-modified-since"] == modified
    assert len(pipeline.backups(id)) == 1
    assert len(pipeline.reports(id)) == 1


def test_the_same_bytes_without_validators_are_not_parsed_again(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "feed")
    pipeline.poll()
    rounds = pipeline.poll(all_feeds=True)
    assert ends(rounds, outcome) == [NotModified]
    assert len(pipeline.backups(id)) == 1


def test_new_items_of_a_changed_document_are_added_and_old_ones_stay_as_they_were(
    pipeline: Pipeline, server: FeedServer
) -> None:
    changed = rss("a", "b").replace(b"Text of a", b"Rewritten a")
    url = server.route(HOST, "/feed", Answer(body=rss("a")), Answer(body=changed))
    id = pipeline.register(url, "feed")
    pipeline.poll()
    before = pipeline.items(id)
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a", "b"]
    assert pipeline.items(id)[0] == before[0]
    assert [report["items_new"] for report in pipeline.reports(id)] == [1, 1]


def test_a_feed_that_fails_harms_no_neighbour_and_does_not_fail_the_run(
    pipeline: Pipeline, server: FeedServer
) -> None:
    fine = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "fine")
    gone = pipeline.register(server.route("127.0.0.3", "/feed", Answer(status=404)), "gone")
    junk = pipeline.register(server.route("127.0.0.4", "/feed", Answer(body=b"\x00\x01junk")), "junk")
    html = pipeline.register(
        server.route("127.0.0.5", "/feed", Answer(body=b"<!doctype html><html><body>hi</body></html>")),
        "html",
    )
    pipeline.poll()
    assert pipeline.guids(fine) == ["a"]
    assert pipeline.feed(gone)["last_error_kind"] == "http_status"
    assert pipeline.feed(junk)["last_error_kind"] == "not_a_feed"
    assert pipeline.feed(html)["last_error_kind"] == "html"
    assert all(pipeline.feed(id)["last_error"] for id in (gone, junk, html))


def test_a_document_that_fails_stays_a_failure_with_one_backup_until_it_is_corrected(
    pipeline: Pipeline, server: FeedServer
) -> None:
    junk = Answer(body=b"this is no feed", etag='"bad"')
    id = pipeline.register(
        server.route(HOST, "/feed", junk, Answer(status=304), junk, Answer(body=rss("a"), etag='"good"')),
        "feed",
    )
    for count in (1, 2, 3):
        pipeline.poll(all_feeds=True)
        feed = pipeline.feed(id)
        assert feed["consecutive_failures"] == count
        assert (feed["last_etag"], feed["content_hash"]) == (None, None)
        assert len(pipeline.backups(id)) == 1
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a"]
    assert pipeline.feed(id)["consecutive_failures"] == 0
    assert pipeline.feed(id)["last_etag"] == '"good"'
    assert len(pipeline.backups(id)) == 2
    assert all("if-none-match" not in request.headers for request in server.requests)


def test_a_stored_feed_with_a_document_that_breaks_keeps_its_validators_through_a_304(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """A 304 to the good document's ETag says that it is there again. The bad one is backed up once."""
    url = server.route(HOST, "/feed", Answer(body=rss("a"), etag='"good"'))
    id = pipeline.register(url, "feed")
    pipeline.poll()
    junk = Answer(body=b"this is no feed", etag='"bad"')
    server.route(HOST, "/feed", junk, Answer(status=304), junk, junk)
    for count in (1, 0, 1, 2):
        pipeline.poll(all_feeds=True)
        assert pipeline.feed(id)["consecutive_failures"] == count
        assert pipeline.feed(id)["last_etag"] == '"good"'
        assert len(pipeline.backups(id)) == 2
    server.route(HOST, "/feed", Answer(body=rss("a", "b"), etag='"better"'))
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a", "b"]


def test_a_failure_doubles_the_wait_and_a_success_resets_it(pipeline: Pipeline, server: FeedServer) -> None:
    id = pipeline.register(server.route(HOST, "/feed", Answer(status=500)), "feed")
    for hours in (0.5, 1):
        pipeline.poll()
        due = datetime.fromisoformat(pipeline.feed(id)["next_fetch_at"])
        assert due - pipeline.clock().replace(microsecond=0) == timedelta(hours=hours)
        pipeline.clock.now = due
    server.route(HOST, "/feed", Answer(body=rss("a")))
    pipeline.poll()
    assert pipeline.feed(id)["consecutive_failures"] == 0


def test_the_tenth_failure_in_a_row_is_a_warning(
    pipeline: Pipeline, server: FeedServer, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.register(server.route(HOST, "/feed", Answer(status=500)), "feed")
    pipeline.sync()
    pipeline.database.query("UPDATE feeds SET consecutive_failures = 8")
    for warned in (False, True, False):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "rss_pipeline"):
            pipeline.poll(all_feeds=True)
        assert ("failed 10 times in a row" in caplog.text) == warned


def test_retry_after_lengthens_the_wait(pipeline: Pipeline, server: FeedServer) -> None:
    slow = Answer(status=503, headers={"Retry-After": "7200"})
    id = pipeline.register(server.route(HOST, "/feed", slow), "feed")
    pipeline.poll()
    assert pipeline.feed(id)["next_fetch_at"] == instant(pipeline.clock() + timedelta(hours=2))


def test_a_date_that_cannot_be_read_falls_back_to_the_fetch_time_and_is_logged(
    pipeline: Pipeline, server: FeedServer, caplog: pytest.LogCaptureFixture
) -> None:
    body = rss("a").replace(b"Mon, 02 Mar 2026 08:00:00 GMT", b"30 February, perhaps")
    url = server.route(HOST, "/feed", Answer(body=body))
    id = pipeline.register(url, "feed")
    with caplog.at_level(logging.WARNING, "rss_pipeline"):
        pipeline.poll()
    (item,) = pipeline.items(id)
    assert (item["pub_date"], item["pub_date_source"]) == (instant(pipeline.clock()), "fetched")
    assert item["pub_date_raw"] == "30 February, perhaps"
    (line,) = [record.getMessage() for record in caplog.records if "unreadable date" in record.getMessage()]
    assert "30 February, perhaps" in line
    assert "Title of a" in line
    assert url in line


def test_a_doubled_guid_is_stored_once_and_reported(pipeline: Pipeline, server: FeedServer) -> None:
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a", "b", "a"))), "feed")
    pipeline.poll()
    assert pipeline.guids(id) == ["a", "b"]
    assert pipeline.reports(id)[0]["duplicate_guids"] == 1


def test_guids_and_links_that_change_with_every_document_are_warned_of(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def fresh(turn: int) -> bytes:
        body = rss(*(f"t{n}" for n in range(8)))
        body = body.replace(b"</link><pub", f"?session={turn}</link><pub".encode())
        return body.replace(b"'false'>", f"'false'>token{turn}-".encode())

    url = server.route(HOST, "/feed", Answer(body=fresh(1)), Answer(body=fresh(2)))
    id = pipeline.register(url, "feed")
    pipeline.poll()
    assert pipeline.feed(id)["warning"] is None
    pipeline.poll(all_feeds=True)
    assert "unstable guids: 8 of 8" in pipeline.feed(id)["warning"]


def test_a_feed_may_opt_out_of_images(pipeline: Pipeline, server: FeedServer) -> None:
    body = rss("a", image="http://images.example")
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=body)), "feed", images=False)
    pipeline.poll()
    assert pipeline.guids(id) == ["a"]
    assert pipeline.tasks() == []
    pipeline.feeds[0]["images"] = True
    pipeline.write_registry()
    pipeline.poll(all_feeds=True)
    assert pipeline.tasks() == ["http://images.example/a.png"], "opting in later takes the items stored too"


@pytest.mark.slow
def test_a_hostile_document_costs_its_own_visit_and_no_more(pipeline: Pipeline, server: FeedServer) -> None:
    huge = rss(*(f"{n}{'<b>' * 300}".replace("<", "&lt;") for n in range(1_200)))
    pipeline.set(parse_timeout_seconds=0.05)
    slow = pipeline.register(server.route(HOST, "/feed", Answer(body=huge)), "slow")
    fine = pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("a"))), "fine")
    pipeline.poll()
    assert pipeline.feed(slow)["last_error_kind"] == "parse_timeout"
    assert pipeline.guids(fine) == ["a"]
    assert len(pipeline.backups(slow)) == 1


def test_html_that_kills_its_worker_costs_that_item_its_images_only(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The item is stored, marked as looked at, and its neighbours' images are found."""
    body = rss("a", "b", image="http://images.example")
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=body)), "feed")
    pipeline.poll(progress=_KillWorkersOnce())
    assert pipeline.guids(id) == ["a", "b"]
    assert pipeline.tasks() == ["http://images.example/a.png", "http://images.example/b.png"]
    assert pipeline.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []


class _KillWorkersOnce:
    """A Progress that kills this process's parser workers as extract_images begins."""

    def begin(self, step: str, total: int) -> None:
        if step == "extract_images":
            import psutil

            for child in psutil.Process().children(recursive=True):
                # Some other child may have ended since the list was made.
                with suppress(psutil.NoSuchProcess):
                    if "forkserver" in " ".join(child.cmdline()) and not child.children():
                        child.send_signal(signal.SIGKILL)

    def advance(self, step: str, by: int = 1) -> None: ...


def test_a_host_that_requested_a_hold_gets_it_also_from_a_refresh_by_hand(
    pipeline: Pipeline, server: FeedServer
) -> None:
    busy = Answer(status=429, headers={"Retry-After": "600"})
    first = pipeline.register(server.route(HOST, "/1", busy), "first")
    second = pipeline.register(server.route(HOST, "/2", Answer(body=rss("a"))), "second")
    pipeline.poll(first)
    asked = len(server.requests)
    visit = pipeline.refresh(second)[second]
    until = pipeline.clock() + timedelta(minutes=9)
    assert isinstance(visit.outcome, OnHold)
    assert (visit.outcome.hold.until, visit.outcome.by_hand) == (until, False)
    assert len(server.requests) == asked
    pipeline.clock.turn(minutes=11)
    assert isinstance(pipeline.refresh(second)[second].outcome, Stored)


@pytest.mark.slow
def test_a_feed_that_another_run_holds_is_waited_for_by_a_refresh_by_hand(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """The other run dies meanwhile: its lease lapses, and the feed is visited here."""
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "feed")
    pipeline.sync()
    pipeline.hold(id)
    pipeline.after(0.5, pipeline.lapse_leases)
    assert isinstance(pipeline.refresh(id)[id].outcome, Stored)
    assert pipeline.guids(id) == ["a"]


def test_a_poll_of_named_feeds_leaves_the_others_alone(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(server.route(HOST, "/1", Answer(body=rss("a"))), "one")
    pipeline.register(server.route("127.0.0.3", "/2", Answer(status=500)), "two")
    rounds = pipeline.poll("two")
    assert ends(rounds, outcome) == [Failure]
    assert pipeline.feed("one")["last_visited_at"] is None


def test_of_a_poll_of_many_rounds_only_what_went_wrong_stays_in_memory(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.register(server.route(HOST, "/1", Answer(body=rss("a", "b"))), "one")
    pipeline.register(server.route("127.0.0.3", "/2", Answer(status=500)), "two")
    pipeline.register(server.route("127.0.0.4", "/3", Answer(body=rss("c"))), "three")
    pipeline.settings = replace(pipeline.settings, batch_size=2)
    alive: list[int] = []
    gc.collect()

    def run_round(wanted: Due | NotVisitedSince) -> Round:
        alive.append(sum(type(each) is Round for each in gc.get_objects()))
        return Round(run_id="run", visits=pipeline.run(wanted))

    counts: Counter[str] = Counter()
    polls = poll_until_done(pipeline.database, run_round, clock=pipeline.clock, all_feeds=True)
    left = list(map(partial(without_good, counts), polls))
    assert [visit.feed.id for each in left for visit in each.visits] == ["two"]
    assert (counts["stored"], counts["failed"], counts["items_new"]) == (2, 1, 3)
    # The first one without its visits.
    assert alive[1] == alive[0] + 1


def test_what_a_later_round_visited_is_not_left_where_only_what_went_wrong_stays(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for number in range(1, 4):
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", Answer(body=rss("a"))), f"{number}")
    visits = pipeline.run(Due(now=pipeline.clock()))
    held = OnHold(hold=HostHold(host=HOST, until=pipeline.clock(), reason="HTTP 503"))
    ended: list[NotBegun | OnHold] = [NotBegun(), held, held]
    before = [replace(visit, outcome=each) for visit, each in zip(visits, ended, strict=True)]
    rounds = [Round(run_id="1", visits=before), Round(run_id="2", visits=visits[:2])]
    kept = list(map(partial(without_good, Counter()), rounds))
    assert [(not_begun(each), [left.feed_id for left in on_hold(each)]) for each in (rounds, kept)] == 2 * [
        ([], ["3"])
    ]


def test_a_round_with_an_error_is_the_last_one_also_with_visits(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for number in (1, 2):
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", Answer(body=rss("a"))), f"{number}")
    pipeline.sync()
    done = Round(run_id="1", visits=pipeline.run(Named(ids=["1"], now=pipeline.clock())), error="no room")
    assert len(list(poll_until_done(pipeline.database, lambda _: done, clock=pipeline.clock))) == 1
