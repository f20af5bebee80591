"""Counts by time, compared with a naive count of the same items in Python."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.statistics import sql
from rss_pipeline.features.statistics.service import days_until_today, midnight, shifts_of, weeks_until_today
from rss_pipeline.features.statistics.sql import feed_room, room_of
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope
from rss_pipeline_tests.storage.subscriptions.readers import add_user, subscribe
from rss_pipeline_tests.storage.values import change, claim_one, failed, register, spec, unchanged

NOW = datetime(2026, 11, 4, 19, 20, tzinfo=UTC)
"""Ten days after the clocks of Europe were put back, three after those of America."""
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Chatham"]
MINE, OTHERS = ("a", "b", "c"), "other"


@dataclass(frozen=True)
class Stored:
    """The stored parts of an item."""

    feed: str
    published: datetime
    fetched: datetime


@pytest.fixture
def items(database: Database) -> list[Stored]:
    """Items of two months; `ann` subscribes a, b and c, and the feed `other` is another user's."""
    chance = random.Random(16)
    register(database, *map(spec, (*MINE, OTHERS)))
    found = []
    first_of_b = NOW - timedelta(days=9)
    for number in range(600):
        feed = chance.choice(("a", "b", OTHERS))
        fetched = NOW - timedelta(seconds=chance.randrange(60 * 86_400))
        published = fetched - timedelta(minutes=chance.randrange(1, 600))
        if number % 50 == 0:
            published = fetched
        if number % 51 == 0:
            published = fetched + timedelta(days=2)
        if number % 40 == 0:
            published = fetched.replace(hour=0, minute=0, second=0)
        if feed == "b" and fetched < first_of_b:
            # They were all in its first document.
            published, fetched = fetched, first_of_b
        found.append(Stored(feed, published, fetched))
    rows = [
        [f"{number:032x}", item.feed, instant(item.published), instant(item.fetched), number + 1]
        for number, item in enumerate(found)
    ]
    change(
        database,
        """INSERT INTO items (id, feed_id, guid, title, pub_date, content_html, created_at, arrived,
          guid_source, pub_date_source)
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[0]'), 'Ünï',
          json_extract(value, '$[2]'), '<p>日本</p>', json_extract(value, '$[3]'),
          CAST(json_extract(value, '$[4]') AS INTEGER), 'guid', 'feed' FROM json_each(?)""",
        json.dumps(rows),
    )
    change(
        database,
        "UPDATE feeds SET first_stored_at = CASE id WHEN 'b' THEN ? ELSE '2025-01-01T00:00:00Z' END",
        instant(first_of_b),
    )
    for user in ("ann", "bob"):
        add_user(database, user)
    subscribe(database, "ann", *MINE)
    subscribe(database, "bob", OTHERS)
    return found


def counted_at(item: Stored) -> datetime:
    """The instant at which an item counts as having come in."""
    if item.feed == "b" and item.fetched == NOW - timedelta(days=9):
        return min(item.published, item.fetched)
    return item.fetched


def came(database: Database, window: sql.DayWindow, scope: Scope = ALL) -> list[sql.Came]:
    return sql.came(*database.batch(sql.came_in("ann", window, scope=scope)))


def by_feed_and_step(
    found: Sequence[Stored], zone: ZoneInfo, first: date, step: int
) -> Counter[tuple[str, int]]:
    days = [(item.feed, counted_at(item).astimezone(zone).date()) for item in found if item.feed in MINE]
    return Counter((feed, (day - first).days // step) for feed, day in days if day >= first)


@pytest.mark.parametrize("by_week", [False, True])
def test_items_are_counted_on_the_day_of_the_reader_s_zone_on_which_they_came_in(
    database: Database, items: list[Stored], by_week: bool
) -> None:
    for zone in map(ZoneInfo, ZONES):
        window = weeks_until_today(NOW, zone, weeks=6) if by_week else days_until_today(NOW, zone, days=30)
        counts = {
            (each.feed_id, step): n for each in came(database, window) for step, n in each.counts.items()
        }
        expected = by_feed_and_step(items, zone, window.first, window.step)
        assert counts == expected, zone
        assert sum(expected.values()) > 100
        if by_week:
            assert window.first.weekday() == 0


def test_one_feed_is_counted_as_it_is_among_all(database: Database, items: list[Stored]) -> None:
    window = days_until_today(NOW, ZoneInfo("UTC"), days=30)
    alone, of_first, foreign = (came(database, window, Scope(feed_id=id)) for id in ("a", "b", OTHERS))
    assert came(database, window) == [*alone, *of_first]
    assert foreign == []


def test_items_of_these_days_are_those_that_were_fetched_in_them_but_for_first_documents(
    database: Database, items: list[Stored]
) -> None:
    since = NOW - timedelta(days=12)
    [result] = database.batch([sql.came_since("ann", since)])
    expected = [item for item in items if item.feed in MINE and counted_at(item) == item.fetched >= since]
    assert sql.items_since(result) == len(expected) > 50


def test_hours_are_those_of_the_items_own_dates_where_these_have_a_time(
    database: Database, items: list[Stored]
) -> None:
    for zone in map(ZoneInfo, ZONES):
        today = NOW.astimezone(zone).date()
        since, until = midnight(today - timedelta(weeks=4), zone), midnight(today, zone)
        shifts = shifts_of(zone, since, until)
        [result] = database.batch([sql.hours_of("ann", since=since, until=until, shifts=shifts)])
        found = sql.published(result)
        expected: Counter[object] = Counter()
        for item in items:
            if item.feed in MINE and since <= min(item.published, item.fetched) < until:
                local = item.published.astimezone(zone)
                if item.published >= item.fetched:
                    expected["undated"] += 1
                elif instant(item.published).endswith("T00:00:00Z"):
                    expected["midnight"] += 1
                else:
                    expected[local.weekday(), local.hour] += 1
        assert found.undated == expected.pop("undated") > 0, zone
        assert found.at_midnight == expected.pop("midnight") > 0, zone
        assert found.counts == expected, zone
        assert found.total == sum(expected.values()) > 100


def test_stored_items_are_counted_only_where_that_is_wanted(database: Database, items: list[Stored]) -> None:
    counted, uncounted = database.batch(
        [sql.stored_items("ann", are_counted=True), sql.stored_items("ann", are_counted=False)]
    )
    found = sql.stored(counted)
    for feed in MINE:
        mine = [item.fetched for item in items if item.feed == feed]
        assert found[feed].items == len(mine)
        assert found[feed].last_came_at == max((at.replace(microsecond=0) for at in mine), default=None)
    assert set(found) == set(MINE)
    assert {each.items for each in sql.stored(uncounted).values()} == {None}


def test_visits_are_added_up_over_the_user_s_feeds(database: Database) -> None:
    register(database, *map(spec, (*MINE, OTHERS)))
    for user in ("ann", "bob"):
        add_user(database, user)
    subscribe(database, "ann", *MINE)
    subscribe(database, "bob", OTHERS)
    for back in (30, 2, 1):
        at = NOW - timedelta(days=back)
        for feed in ("a", "b", OTHERS):
            unchanged(database, *claim_one(database, feed, now=at), now=at)
        failed(database, *claim_one(database, "b", now=at), now=at)
    [result] = database.batch([sql.visits_of("ann")])
    assert sql.visit_days(result, since=NOW.date() - timedelta(days=27)) == [
        sql.VisitDay(day=NOW.date() - timedelta(days=back), news=0, unchanged=2, failed=1) for back in (2, 1)
    ]


def test_the_room_of_a_feed_is_that_of_its_text_in_bytes_and_of_its_images(
    database: Database, items: list[Stored]
) -> None:
    change(
        database,
        """INSERT INTO image_tasks (id, item_id, original_url, status, created_at, updated_at, host, position,
          bytes)
        SELECT items.id || '-' || value, items.id, 'https://x.example/', value, '', '', 'x.example', 0,
          CASE value WHEN 'success' THEN 1000 END
        FROM items, json_each('["success", "pending", "failed"]') WHERE feed_id IN ('a', 'other')""",
    )
    mine, foreign, empty = (
        feed_room(result)
        for result in database.batch([room_of("ann", "a"), room_of("ann", OTHERS), room_of("ann", "c")])
    )
    many = sum(item.feed == "a" for item in items)
    assert (mine.items, mine.text_bytes) == (many, many * len("Ünï<p>日本</p>".encode()))
    assert (mine.images_archived, mine.images_pending, mine.images_failed) == (many, many, many)
    assert mine.image_bytes == many * 1000
    assert foreign.items == empty.items == foreign.image_bytes == empty.text_bytes == 0
