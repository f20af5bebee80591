"""The order of feeds as a user changes it, feed by feed."""

from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.reader.order import Direction, moved
from rss_pipeline.storage.subscriptions.listing import FeedRow
from rss_pipeline_tests.storage.values import NOW


def row(id: str, folder: str | None, position: int) -> FeedRow:
    return FeedRow(
        feed_id=id,
        title=None,
        own_title=None,
        stored_url=f"https://{id}.example/",
        link=None,
        description=None,
        folder=folder,
        position=position,
        wished_interval=None,
        added=instant(NOW),
        read_at=None,
        unread=0,
        version=0,
        changed=None,
        health="ok",
        error_kind=None,
        error=None,
        fails_since=None,
        visit_at=instant(NOW),
        visit_reason=None,
        success_at=None,
    )


ROWS = [row("a", "News", 1), row("b", None, 5), row("c", "News", 7), row("d", None, 9)]


def test_a_feed_changes_places_with_its_neighbour_in_the_folder() -> None:
    assert moved(ROWS, "c", "up") == {"a": 7, "c": 1}
    assert moved(ROWS, "b", "down") == {"b": 9, "d": 5}


def test_the_first_and_the_last_of_a_folder_and_an_unknown_feed_stay() -> None:
    assert moved(ROWS, "a", "up") == moved(ROWS, "d", "down") == moved(ROWS, "x", "up") == {}


@given(
    st.lists(st.tuples(st.sampled_from(["News", None]), st.integers(0, 3)), min_size=1, max_size=8),
    st.integers(0, 7),
    st.sampled_from(["up", "down"]),
)
def test_whatever_the_places_were_only_the_two_have_changed_their_order(
    given: list[tuple[str | None, int]], number: int, direction: Direction
) -> None:
    ordered = sorted(enumerate(given), key=lambda each: (each[1][1], each[0]))
    rows = [row(str(id), folder, position) for id, (folder, position) in ordered]
    id = str(number % len(rows))
    new = moved(rows, id, direction)
    after = sorted(rows, key=lambda each: (new.get(each.feed_id, each.position), int(each.feed_id)))
    folder = next(each.folder for each in rows if each.feed_id == id)
    of_folder = [each.feed_id for each in rows if each.folder == folder]
    at = of_folder.index(id)
    other = at - 1 if direction == "up" else at + 1
    if 0 <= other < len(of_folder):
        of_folder[at], of_folder[other] = of_folder[other], of_folder[at]
    else:
        assert new == {}
    assert [each.feed_id for each in after if each.folder == folder] == of_folder
