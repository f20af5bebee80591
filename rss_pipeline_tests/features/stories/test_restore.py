"""Stories of items that came back from backups, of any age: decided again in the order of then."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest

from rss_pipeline.features.stories import acts, moves, service, sql
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.mark import ItemMarks, mark_items
from rss_pipeline.storage.accounts.user_rows import change_preferences
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline.storage.items.stories import StoredMember, stored_stories
from rss_pipeline_tests.reader.accounts.signed_in import begin, signed_in
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer

replays = pytest.importorskip("rss_pipeline_tests.features.replay.replays")
kept_users = pytest.importorskip("rss_pipeline_tests.reader.kept_users")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TOWNS = ("Ravensdale", "Ostermark", "Villenoire")
FIRST = (
    "Landslide blocks road into {0}",
    "A landslide has blocked the only road into {0} on Tuesday. Mayor Orla Brandt said that forty residents"
    " of {0} are cut off, and that engineers from Tarnwick will begin to clear the debris tomorrow morning.",
)
SECOND = (
    "{0} cut off as landslide closes road",
    "Forty residents of {0} were cut off on Tuesday after a landslide closed the only road. Engineers from"
    " Tarnwick are to clear the debris, said the mayor, Orla Brandt.",
)


def document(*texts: tuple[str, str], town: str) -> Answer:
    items = "".join(
        f"<item><guid>{town} {number}</guid><title>{title.format(town)}</title>"
        f"<description>{text.format(town)}</description></item>"
        for number, (title, text) in enumerate(texts)
    )
    return Answer(body=f"<rss version='2.0'><channel><title>T</title>{items}</channel></rss>".encode())


@pytest.fixture
def ada(place: Pipeline, server: FeedServer) -> Caller:
    """Ada, with the feeds a, b and c. Within 60 days there was news of a town three times."""
    pipeline = place
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    papers = {"c": [FIRST], "a": [SECOND], "b": [(SECOND[0], FIRST[1])]}
    for number, (id, texts) in enumerate(papers.items(), start=2):
        answers = [document(*texts, town=town) for town in TOWNS]
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", *answers), id, shared=True)
    pipeline.sync()
    caller = signed_in(pipeline.database, "ada", clock=pipeline.clock)
    pipeline.database.batch([change_preferences(caller.user_id, '{"stories":true}')])
    kept_users.subscribe_feeds(pipeline, caller.user_id, *papers)
    for _ in TOWNS:
        for id in papers:
            pipeline.poll(id)
            pipeline.clock.turn(hours=1)
        decide(pipeline)
        pipeline.clock.turn(days=30)
    return Caller(
        begin(pipeline.database, caller.user_id, clock=pipeline.clock), pipeline.database, pipeline.clock
    )


def decide(pipeline: Pipeline, *, in_slices: bool = False) -> int:
    """Polls that decide until nothing waits; how many. `in_slices`: the time of each is over at once."""
    path = pipeline.settings.home / "stories.window"
    for number in range(1, 20):
        looks = iter([False])
        if service.catch_up(
            pipeline.database,
            pipeline.objects,
            path,
            is_over=lambda looks=looks: in_slices and next(looks, True),
        ).is_complete:
            return number
    raise AssertionError("it does not end")


def stories(pipeline: Pipeline) -> set[frozenset[str]]:
    rows = pipeline.rows(
        """SELECT m.story_id, i.feed_id, i.guid FROM story_members AS m
        JOIN items AS i ON i.id = m.item_id WHERE m.version > 0"""
    )
    grouped: dict[str, set[str]] = {}
    for row in rows:
        grouped.setdefault(row["story_id"], set()).add(f"{row['feed_id']} {row['guid']}")
    return {frozenset(each) for each in grouped.values() if len(each) > 1}


def choices(pipeline: Pipeline) -> list[dict[str, str]]:
    return pipeline.rows("SELECT user_id, item_id, story_id FROM story_choices ORDER BY 1, 2")


@EVERYWHERE
def test_after_the_database_was_lost_all_stories_are_as_they_were_in_slices(
    place: Pipeline, ada: Caller
) -> None:
    assert stories(place) == {frozenset({f"{feed} {town} 0" for feed in "abc"}) for town in TOWNS}
    first, second, third, *_ = (
        row["id"] for row in place.rows("SELECT id FROM items WHERE feed_id = 'a' ORDER BY created_at")
    )
    assert acts.apart(ada, first)
    assert acts.together(ada, second, third)
    mark_items(ada, [second], ItemMarks(is_read=True, is_starred=True))
    path = place.settings.home / "stories.window"
    assert moves.split(place.database, place.objects, path, first)
    assert moves.join(place.database, place.objects, path, third, second)
    before, chosen, seen = stories(place), choices(place), kept_users.seen(place)
    assert before == {
        frozenset({f"{feed} {TOWNS[0]} 0" for feed in "bc"}),
        frozenset({f"{feed} {town} 0" for feed in "abc" for town in TOWNS[1:]}),
    }
    reasons = members(place)
    kept_users.back_up(place)
    replays.drop_database(place)

    assert replays.restored(place).is_whole
    assert sql.ends(place.database).writer.is_restored
    assert decide(place, in_slices=True) >= len(TOWNS)

    assert stories(place) == before
    assert members(place) == reasons
    assert choices(place) == chosen
    assert kept_users.seen(place) == seen
    writer = sql.ends(place.database).writer
    assert (writer.again, writer.is_restored) == ("", False)
    assert decide(place) == 1
    assert stories(place) == before


def members(pipeline: Pipeline) -> dict[str, StoredMember]:
    """The members of all stories with their scores and reasons, without the numbers of their arrival."""
    found = stored_stories(pipeline.database, since=EPOCH)
    return {each.item_id: replace(each, arrived_at=EPOCH) for story in found for each in story.members}


def test_what_a_replay_brings_back_joins_its_story_of_then(place: Pipeline, ada: Caller) -> None:
    before = stories(place)
    place.database.query("DELETE FROM items WHERE feed_id = 'a'")
    assert stories(place) != before
    replays.replayed(place, "a")
    decide(place)
    assert stories(place) == before


@EVERYWHERE
def test_what_a_restore_brings_back_of_today_is_decided_in_the_order_of_then(
    place: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    # As the order of arrival: by the real clock.
    place.clock.now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)
    papers = {"c": FIRST, "b": SECOND, "a": (SECOND[0], FIRST[1])}
    for number, (id, text) in enumerate(papers.items(), start=2):
        answer = document(text, town=TOWNS[0])
        place.register(server.route(f"127.0.0.{number}", "/feed", answer), id, shared=True)
    place.sync()
    place.poll("c")
    place.clock.turn(minutes=5)
    # In one second, and stored in another order than that of their names.
    for id in ("b", "a"):
        place.run(Named(ids=[id], now=place.clock()))
    decide(place)
    before = members(place)
    assert len(before) == 3
    replays.drop_database(place)
    assert replays.restored(place).is_whole
    # More than are read at once.
    monkeypatch.setattr(sql, "ITEMS_AT_ONCE", 1)
    decide(place)
    assert members(place) == before
