"""A text of some megabytes, stored by a visit and by a restore."""

from rss_pipeline_tests.features.replay.replays import drop_database, restored
from rss_pipeline_tests.pipeline.visits.test_large_documents import (
    HOST,
    WORDS,
    _guid,
    episodes,
    noise,
    of_guids,
)
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer


@EVERYWHERE
def test_a_text_of_three_megabytes_is_kept_as_far_as_the_database_has_room(
    place: Pipeline, server: FeedServer
) -> None:
    id = place.register(server.route(HOST, "/feed", Answer(body=episodes(100, 3_000_000, 100))), "large")
    long = of_guids("small", noise(3_000), noise(3_000_000))
    guids = place.register(server.route(HOST, "/guids", Answer(body=long)), "guids")
    place.poll()
    assert len(place.guids(guids)) == 3, "an index of Postgres has 2,704 bytes for a guid, a row 2 MB"

    def check() -> None:
        small, text, last = (item["content_html"] for item in sorted(place.items(id), key=_guid))
        assert small == last == WORDS
        whole = WORDS * (3_000_000 // len(WORDS))
        if not place.settings.pays_by_row:
            assert text == whole
        else:
            assert whole.startswith(text)
            assert 1_990_000 < len(text) < 2_000_000

    check()
    place.poll(all_feeds=True)
    drop_database(place)
    result = restored(place)
    assert (result.items_new, result.items_cut) == (6, 0 if not place.settings.pays_by_row else 1)
    check()
