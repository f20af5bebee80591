"""Image tasks claimed and closed: none twice, none of a host with a request in progress, none lost."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.models.item import ImageSize, image_task_id, item_id
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline.storage.feeds.claims import claim as claim_feeds
from rss_pipeline.storage.images import image_claims as claims
from rss_pipeline.storage.images import image_closings as closings
from rss_pipeline.storage.images import image_tasks as tasks
from rss_pipeline.storage.images.image_claims import ImageClaim, ImagesDue
from rss_pipeline.storage.images.image_closings import MAX_ATTEMPTS, Archived, Asked, Attempted, ImageRelease
from rss_pipeline.storage.images.image_tasks import ItemImages
from rss_pipeline_tests.storage.subscriptions.readers import add_user, subscribe
from rss_pipeline_tests.storage.values import HOUR, NOW, item, register, spec, visit

ONE = image_task_id(item_id("a", "1"), "https://x.example/1")


@pytest.fixture
def known(database: Database) -> Database:
    """Two feeds; `a` has items 1 to 3, `b` has item 1."""
    register(database, spec("a"), spec("b"))
    visit(database, [item(guid) for guid in "123"])
    visit(database, [item("1")], id="b")
    return database


def wait_for(database: Database, guid: str, *urls: str, feed: str = "a", since: datetime = NOW) -> None:
    """Tasks for these images of an item."""
    found = [ItemImages(item_id=item_id(feed, guid), urls=urls)]
    for batch in tasks.record_statements(found, feeds=[], rules="now", now=since):
        database.batch(batch)


def claim(database: Database, *, now: datetime = NOW, limit: int = 100, run: str = "r") -> ImageClaim:
    return claims.claim_images(database, now=now, run_id=run, lease_seconds=180, limit=limit)


def urls(claimed: ImageClaim) -> list[str]:
    return [task.url for task in claimed.tasks]


def lapse(database: Database) -> None:
    database.query("UPDATE leases SET expires_at = '2000-01-01T00:00:00Z'")


def task(database: Database, id: str = ONE) -> Row:
    return database.query("SELECT * FROM image_tasks WHERE id = ?", [id]).rows[0]


def test_what_a_download_needs_comes_with_the_claim(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1", "https://y.example/2")
    first, second = claim(known).tasks
    assert (first.id, first.feed_id, first.guid, first.host) == (ONE, "a", "1", "x.example")
    assert (first.position, second.position) == (0, 1)
    assert (first.attempts, first.was_interrupted, first.postponed_at) == (0, False, None)
    assert (
        first.item_link
        == known.query("SELECT link FROM items WHERE id = ?", [item_id("a", "1")]).rows[0]["link"]
    )


def test_a_private_feeds_links_are_shown_to_no_image_host(known: Database) -> None:
    register(known, replace(spec("a"), allow_private=True), spec("b"))
    wait_for(known, "1", "https://x.example/1")
    [task] = claim(known).tasks
    assert task.item_link is None


def test_a_task_has_the_private_hosts_that_its_feed_opens(known: Database) -> None:
    register(known, replace(spec("a"), allow_private=True, private_hosts=("nas.lan",)), spec("b"))
    wait_for(known, "1", "https://x.example/1")
    wait_for(known, "1", "https://y.example/1", feed="b")
    found = {task.feed_id: (task.feed.allow_private, task.feed.private_hosts) for task in claim(known).tasks}
    assert found == {"a": (True, ("nas.lan",)), "b": (False, ())}


def test_a_feed_with_a_query_or_a_password_sends_no_referer(known: Database) -> None:
    with_query = replace(spec("a"), url=f"{spec('a').url}?token=1")
    register(known, with_query, replace(spec("b"), access=Access(username="me")))
    wait_for(known, "1", "https://x.example/1")
    wait_for(known, "1", "https://y.example/1", feed="b")
    assert [task.item_link for task in claim(known).tasks] == [None] * 2


def test_a_task_is_claimed_once_and_its_host_is_left_to_that_run(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1", "https://y.example/1")
    assert len(claim(known, limit=1).tasks) == 1
    wait_for(known, "2", "https://x.example/2")
    assert urls(claim(known)) == ["https://y.example/1"]
    assert claim(known).tasks == ()


def test_the_longest_due_comes_first_and_a_host_gets_no_more_than_its_share(
    known: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PER_HOST", 2)
    wait_for(known, "1", *(f"https://x.example/{n}" for n in range(5)), since=NOW - HOUR)
    wait_for(known, "2", "https://y.example/1", since=NOW - 2 * HOUR)
    wait_for(known, "3", "https://z.example/1")
    claimed = urls(claim(known))
    assert claimed[0] == "https://y.example/1"
    assert sorted(claimed)[0].startswith("https://x.example/")
    assert len(claimed) == 4


def test_ten_thousand_older_images_of_one_host_do_not_starve_the_others(known: Database) -> None:
    known.query(
        """INSERT INTO image_tasks (id, item_id, original_url, created_at, updated_at, host, position)
        SELECT 't' || value, ?, 'https://big.example/' || value, ?, ?, 'big.example', CAST(value AS INTEGER)
        FROM json_each(?)""",
        [item_id("a", "1"), instant(NOW - HOUR), instant(NOW - HOUR), json.dumps(list(range(10_000)))],
    )
    wait_for(known, "2", "https://small.example/1")
    claimed = urls(claim(known, limit=500))
    assert "https://small.example/1" in claimed
    assert len(claimed) == claims.PER_HOST + 1


def test_a_claims_texts_are_bounded_and_one_task_is_always_taken(known: Database) -> None:
    long = "https://{}.example/" + "x" * 60_000
    wait_for(known, "1", *(long.format(f"h{n}") for n in range(30)))
    claimed = len(claim(known).tasks)
    assert claimed == 1_000_000 // (60_000 + 60)
    assert len(claim(known).tasks) == 30 - claimed


def test_a_feed_that_does_not_archive_images_is_passed_over(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1")
    wait_for(known, "1", "https://y.example/1", feed="b")
    register(known, replace(spec("a"), images=False), spec("b"))
    assert urls(claim(known)) == ["https://y.example/1"]


def test_a_run_that_died_leaves_its_tasks_interrupted_and_one_that_released_them_does_not(
    known: Database,
) -> None:
    wait_for(known, "1", "https://x.example/1", "https://y.example/2")
    first = claim(known)
    closings.release(known, first.token, [ImageRelease(task_id=first.tasks[1].id)], now=NOW)
    lapse(known)
    assert {task.url: task.was_interrupted for task in claim(known).tasks} == {
        "https://x.example/1": True,
        "https://y.example/2": False,
    }


def test_the_hosts_of_feeds_and_of_images_are_held_apart(known: Database) -> None:
    wait_for(known, "1", f"https://{spec('a').host}/1.png")
    assert len(claim(known).tasks) == 1
    wanted = Named(ids=["a"], now=NOW)
    assert len(claim_feeds(known, wanted, run_id="p", lease_seconds=180, limit=1).feeds) == 1
    lapse(known)
    claim_feeds(known, wanted, run_id="p", lease_seconds=180, limit=1)
    assert len(claim(known).tasks) == 1


@pytest.mark.parametrize("table", ["hosts", "image_holds"])
def test_a_host_that_requested_a_hold_is_left_alone(known: Database, table: str) -> None:
    known.query(f"INSERT INTO {table} VALUES ('x.example', ?, 'asked', 1)", [instant(NOW + HOUR)])
    wait_for(known, "1", "https://x.example/1", "https://y.example/1")
    assert urls(claim(known)) == ["https://y.example/1"]
    assert urls(claim(known, now=NOW + 2 * HOUR)) == ["https://x.example/1"]


def test_success_is_recorded_with_key_and_size(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1")
    claimed = claim(known)
    archived = [Archived(task_id=ONE, key="images/a/x/0.png", bytes=70, pixels=ImageSize(6, 4))]
    assert closings.record_archived(known, claimed.token, archived, now=NOW + HOUR) == {ONE}
    row = task(known)
    assert (row["status"], row["r2_key"], row["bytes"], row["attempts"]) == (
        "success",
        "images/a/x/0.png",
        70,
        0,
    )
    assert (row["width"], row["height"]) == (6, 4)
    assert (row["updated_at"], row["lease_token"], row["last_error"]) == (instant(NOW + HOUR), None, None)
    lapse(known)
    assert claim(known).tasks == ()


def test_a_request_is_known_for_a_day_with_what_it_came_to(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1", "https://y.example/2")
    claimed = claim(known)
    done = Archived(
        task_id=ONE, key="k", bytes=1, asked=(Asked(url_hash="x1", inside=frozenset({"nas.lan"})),)
    )
    failed = Attempted(
        task_id=claimed.tasks[1].id,
        message="no",
        next_attempt_at=NOW + 24 * HOUR,
        asked=(Asked(url_hash="y2", failed="gone"),),
    )
    closings.record_archived(known, claimed.token, [done], now=NOW)
    closings.record_attempted(known, claimed.token, [failed], now=NOW + timedelta(seconds=0.5))
    found = claims.earlier_requests(known, ["x1", "y2", "z3"], now=NOW + 23 * HOUR)
    image, failure = found.pop("x1"), found.pop("y2")
    assert found == {}
    assert (image.task_id, image.key, image.asked_at, image.inside) == (
        ONE,
        "k",
        NOW,
        frozenset({"nas.lan"}),
    )
    assert (failure.key, failure.failure) == (None, Failure(kind="gone", message="no"))
    assert set(claims.earlier_requests(known, ["x1", "y2"], now=NOW + 24 * HOUR)) == {"y2"}
    assert claims.earlier_requests(known, ["x1", "y2"], now=NOW + timedelta(hours=24, seconds=1)) == {}
    again = Attempted(task_id="t", message="no", next_attempt_at=NOW, asked=(Asked(url_hash="z3"),))
    closings.record_attempted(known, "no token", [again], now=NOW + 48 * HOUR)
    assert [row["url_hash"] for row in known.query("SELECT url_hash FROM image_urls").rows] == ["z3"]


def test_hosts_that_need_a_referer_are_known_for_a_month_and_not_without_end(
    known: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for(known, "1", "https://x.example/1", "https://y.example/2")
    closings.keep_referers(known, {"x.example": True, "y.example": True, "z.example": True}, now=NOW)
    closings.keep_referers(known, {"y.example": False}, now=NOW)
    closings.keep_referers(known, {}, now=NOW)
    assert claim(known).referers == {"x.example"}
    lapse(known)
    assert claim(known, now=NOW + 31 * 24 * HOUR).referers == set()
    monkeypatch.setattr(closings, "MOST_REFERERS", 2)
    closings.keep_referers(known, {"new.example": True}, now=NOW + HOUR)
    hosts = known.query("SELECT host FROM image_referers ORDER BY host").rows
    assert [row["host"] for row in hosts] == ["new.example", "x.example"]


def test_the_third_failed_attempt_is_the_last(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1")
    at = NOW
    for attempt in (1, 2, 3):
        claimed = claim(known, now=at)
        assert [task.attempts for task in claimed.tasks] == [attempt - 1]
        at += HOUR
        failed = [Attempted(task_id=ONE, message=f"said\0 no {attempt}", next_attempt_at=at)]
        assert closings.record_attempted(known, claimed.token, failed, now=NOW) == {ONE}
        leases.end(known, claimed.token, forgive=True)
        assert claim(known, now=at - timedelta(seconds=1)).tasks == ()
    row = task(known)
    assert (row["status"], row["attempts"], row["last_error"]) == ("failed", 3, "said no 3")
    assert row["next_attempt_at"] is None
    assert claim(known, now=at + 1000 * HOUR).tasks == ()


def test_a_claim_that_was_lost_records_nothing(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1")
    lost = claim(known)
    lapse(known)
    again = claim(known)
    archived = [Archived(task_id=ONE, key="k", bytes=1)]
    failed = [Attempted(task_id=ONE, message="no", next_attempt_at=NOW)]
    assert closings.record_archived(known, lost.token, archived, now=NOW) == set()
    assert closings.record_attempted(known, lost.token, failed, now=NOW) == set()
    closings.release(known, lost.token, [ImageRelease(task_id=ONE)], now=NOW)
    assert (task(known)["status"], task(known)["attempts"]) == ("pending", 0)
    assert closings.record_archived(known, again.token, archived, now=NOW) == {ONE}
    assert closings.still_there(known, [ONE, "gone"]) == {ONE}


def test_what_is_postponed_counts_no_attempt_and_remembers_since_when(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1")
    claimed = claim(known)
    postponed = ImageRelease(task_id=ONE, due_at=NOW + HOUR, kind="our_outage", reason="x")
    closings.release(known, claimed.token, [postponed], now=NOW)
    leases.end(known, claimed.token, forgive=True)
    assert claim(known).tasks == ()
    again = claim(known, now=NOW + HOUR)
    # A release without an attempt leaves the beginning of the outage.
    closings.release(known, again.token, [ImageRelease(task_id=ONE)], now=NOW + HOUR)
    leases.end(known, again.token, forgive=True)
    (third,) = claim(known, now=NOW + HOUR).tasks
    assert (third.attempts, third.postponed_at, third.was_interrupted) == (0, NOW, False)


def test_an_image_of_a_host_on_hold_comes_after_the_hold(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1", "https://y.example/2")
    claimed = claim(known)
    first, second = claimed.tasks
    on_hold = ImageRelease(task_id=first.id, due_at=NOW + HOUR)
    closings.release(known, claimed.token, [on_hold], now=NOW)
    foreign = ImageRelease(task_id=second.id, due_at=NOW + 9 * HOUR)
    closings.release(known, "another token", [foreign], now=NOW)
    leases.end(known, claimed.token, forgive=True)
    assert [task.id for task in claim(known).tasks] == [second.id]
    (again,) = claim(known, now=NOW + HOUR).tasks
    assert (again.id, again.attempts, again.postponed_at) == (first.id, 0, None)


def test_a_wrong_clock_heals(known: Database) -> None:
    wait_for(known, "1", "https://x.example/1", since=NOW + 1000 * HOUR)
    known.query("INSERT INTO image_holds VALUES ('x.example', ?, 'asked', 1)", [instant(NOW + 1000 * HOUR)])
    assert urls(claim(known)) == ["https://x.example/1"]


def test_the_sensor_gets_what_waits_and_which_runs_are_alive(known: Database) -> None:
    assert claims.images_due(known, NOW) == ImagesDue(
        fresh=0, retries=0, requested=0, oldest_fresh_at=None, live_run_ids=()
    )
    wait_for(known, "1", "https://x.example/1", "https://y.example/1", "https://z.example/1")
    claimed = claim(known, limit=1, run="at it")
    (taken,) = claimed.tasks
    due = claims.images_due(known, NOW)
    assert (due.fresh, due.retries, due.oldest_fresh_at) == (2, 0, instant(NOW))
    assert due.live_run_ids == ("at it",)
    failed = [Attempted(task_id=taken.id, message="no", next_attempt_at=NOW + HOUR)]
    closings.record_attempted(known, claimed.token, failed, now=NOW)
    leases.end(known, claimed.token, forgive=True)
    assert claims.images_due(known, NOW).retries == 0
    assert claims.images_due(known, NOW + HOUR).retries == 1


def test_tasks_are_counted_by_how_they_ended(known: Database) -> None:
    wait_for(known, "1", *(f"https://x{n}.example/" for n in range(4)))
    claimed = claim(known, limit=3)
    one, two, three = claimed.tasks
    closings.record_archived(
        known, claimed.token, [Archived(task_id=t.id, key=t.id, bytes=7) for t in (one, two)], now=NOW
    )
    known.query("UPDATE image_tasks SET status = 'failed' WHERE id = ?", [three.id])
    assert closings.image_totals(known) == closings.ImageTotals(pending=1, success=2, failed=1, bytes=14)
    assert closings.pending_images(known) == 1


def test_when_a_feed_last_answered(known: Database) -> None:
    assert claims.last_answer(known) is not None
    known.query("UPDATE feeds SET last_fetched_at = NULL")
    assert claims.last_answer(known) is None


@pytest.fixture
def reading(known: Database) -> Database:
    """Ann subscribes to `a`, and item 1 of it has two images; eve subscribes to nothing."""
    for user in ("ann", "eve"):
        add_user(known, user)
    subscribe(known, "ann", "a")
    wait_for(known, "1", "https://x.example/1", "https://y.example/2")
    return known


def missing(database: Database, *, user: str = "ann", now: datetime = NOW) -> tasks.MissingImages:
    return tasks.missing_of(database.batch([tasks.missing_images(user, item_id("a", "1"), now=now)])[0])


def request_now(database: Database, *, user: str = "ann", now: datetime = NOW) -> int:
    return database.batch([tasks.request_images(user, item_id("a", "1"), now=now)])[0].changes


def fail(database: Database, times: int, *, at: datetime = NOW) -> None:
    """Let every image fail so often, each time when it is due."""
    for n in range(times):
        claimed = claim(database, now=at + n * timedelta(days=1))
        failed = [
            Attempted(task_id=task.id, message="no", next_attempt_at=at + (n + 1) * timedelta(days=1))
            for task in claimed.tasks
        ]
        closings.record_attempted(database, claimed.token, failed, now=at + n * timedelta(days=1))
        database.query("DELETE FROM leases")


def test_images_that_wait_are_requested_once_and_start_a_download(reading: Database) -> None:
    assert missing(reading) == tasks.MissingImages(requestable=2, coming=0, waiting=0)
    assert request_now(reading) == 2
    assert missing(reading) == tasks.MissingImages(requestable=0, coming=2, waiting=0)
    assert request_now(reading) == 0
    due = claims.images_due(reading, NOW)
    assert (due.fresh, due.requested) == (2, 2)


def test_images_that_failed_for_good_get_one_more_attempt_and_no_earlier_than_an_hour_later(
    reading: Database,
) -> None:
    fail(reading, MAX_ATTEMPTS)
    last = NOW + timedelta(days=MAX_ATTEMPTS - 1)
    assert missing(reading, now=last + HOUR / 2) == tasks.MissingImages(requestable=0, coming=0, waiting=2)
    assert request_now(reading, now=last + HOUR / 2) == 0
    assert request_now(reading, now=last + HOUR) == 2
    assert sorted(urls(claim(reading, now=last + HOUR))) == ["https://x.example/1", "https://y.example/2"]
    reading.query("UPDATE image_tasks SET lease_token = NULL")
    reading.query("DELETE FROM leases")
    fail(reading, 1, at=last + HOUR)
    assert reading.query("SELECT DISTINCT status, attempts FROM image_tasks").rows == [
        {"status": "failed", "attempts": MAX_ATTEMPTS}
    ]
    assert claims.images_due(reading, last + 9 * HOUR).requested == 0


def test_images_that_a_host_put_off_can_be_requested_an_hour_later(reading: Database) -> None:
    claimed = claim(reading, now=NOW)
    put_off = [
        ImageRelease(task_id=task.id, due_at=NOW + 24 * HOUR, kind="host_on_hold", reason="429")
        for task in claimed.tasks
    ]
    closings.release(reading, claimed.token, put_off, now=NOW)
    assert missing(reading, now=NOW + HOUR / 2) == tasks.MissingImages(requestable=0, coming=0, waiting=2)
    assert request_now(reading, now=NOW + HOUR / 2) == 0
    assert request_now(reading, now=NOW + HOUR) == 2


def test_a_host_on_hold_and_a_feed_that_had_its_bytes_of_the_day_are_left_alone(reading: Database) -> None:
    reading.query(
        "INSERT INTO image_holds VALUES ('x.example', ?, 'asked', 1)", [f"{NOW + HOUR:%Y-%m-%dT%H:%M:%SZ}"]
    )
    assert request_now(reading) == 2
    claimed = claim(reading)
    assert urls(claimed) == ["https://y.example/2"]
    full = ImageRelease(task_id=claimed.tasks[0].id, due_at=NOW + 9 * HOUR, kind="day_full", reason="full")
    closings.release(reading, claimed.token, [full], now=NOW)
    reading.query("DELETE FROM leases")
    assert missing(reading) == tasks.MissingImages(requestable=0, coming=1, waiting=1)
    assert request_now(reading) == 0


def test_no_one_requests_images_of_a_feed_that_is_not_theirs_or_that_archives_none(reading: Database) -> None:
    assert request_now(reading, user="eve") == 0
    assert missing(reading, user="eve").number == 0
    reading.query("UPDATE feeds SET images = 0")
    assert request_now(reading) == 0
    assert missing(reading).number == 0
