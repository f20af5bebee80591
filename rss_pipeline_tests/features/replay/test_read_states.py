"""Read states and stars after a replay: the same, item by item."""

import pytest

from rss_pipeline.storage.subscriptions import item_lists
from rss_pipeline.storage.subscriptions.chosen import Chosen, Filter, Page, Scope, Shown
from rss_pipeline.storage.subscriptions.item_states import mark_items, mark_shown, star_items
from rss_pipeline_tests.features.replay.replays import replayed
from rss_pipeline_tests.features.replay.yesterdays_parser import poll_with_worse_parser
from rss_pipeline_tests.storage.subscriptions.readers import unread
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import FeedServer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "repair"), [("embedded", False), ("cloudflare", True), ("postgres", True)], indirect=["place"]
)
def test_a_replay_leaves_every_mark_and_star_and_what_it_brings_in_is_unread(
    place: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch, repair: bool
) -> None:
    poll_with_worse_parser(place, server, monkeypatch)
    read_and_star(place)
    before = seen(place)
    assert set(before.values()) == {(False, False), (True, False), (True, True), (False, True)}
    for again in (False, True):
        [one] = replayed(place, "one", repair=repair)
        assert (one.items_new, one.items_repaired) == ((0, 0) if again else (2, 3 if repair else 0))
        assert seen(place) == before | {"missed": (False, False), "missed-too": (False, False)}
    assert unread(place.database, "ann") == {"one": sum(not is_read for is_read, _ in seen(place).values())}


def read_and_star(place: Pipeline) -> None:
    """Ann reads the items of the first document but one, and one of those above them; she stars both."""
    database = place.database
    subscribe(database, "ann", "one")
    known = {row["guid"]: (row["id"], int(row["arrived"])) for row in place.items("one")}

    def chosen(*guids: str) -> Chosen:
        return Chosen.by_ids([known[guid][0] for guid in guids])

    first = max(known[guid][1] for guid in ("fine", "garbled-ü"))
    database.batch(mark_shown("ann", Shown(scope=Scope(feed_id="one"), up_to=first)))
    database.batch(mark_items("ann", chosen("fine"), is_read=False))
    database.batch(mark_items("ann", chosen("garbled-ö"), is_read=True))
    database.batch(star_items("ann", chosen("fine", "garbled-ö"), at=place.clock()))


def seen(place: Pipeline) -> dict[str, tuple[bool, bool]]:
    """Guid to whether ann has read it, and whether it has her star."""
    page = Page(limit=100)
    [result] = place.database.batch([item_lists.list_items("ann", Filter(), page)])
    guids = {row["id"]: row["guid"] for row in place.items("one")}
    return {
        guids[row.id]: (row.is_read, row.starred_at is not None)
        for row in item_lists.items_of(result, page).items
    }
