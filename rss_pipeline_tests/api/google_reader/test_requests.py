"""Calls of the Google Reader API on D1: each request to the database is a round trip over the network."""

from typing import Any

import pytest

from rss_pipeline_tests.api.google_reader.conftest import Two
from rss_pipeline_tests.api.google_reader.phone import API
from rss_pipeline_tests.support.counted import as_on_d1

ALL = "user/-/state/com.google/reading-list"
READ = "user/-/state/com.google/read"


@pytest.mark.parametrize(
    ("call", "params", "most"),
    [
        ("subscription/list", {}, 1),
        ("tag/list", {}, 1),
        ("unread-count", {}, 1),
        ("stream/items/ids", {"s": ALL, "xt": READ, "n": 1_000}, 1),
        ("stream/items/ids", {"s": "user/-/label/News", "n": 10}, 1),
        ("stream/items/ids", {"s": "feed/a", "n": 10}, 1),
        ("stream/contents", {"s": ALL, "n": 10}, 2),
        ("stream/contents", {"s": "feed/a", "n": 10}, 2),
    ],
)
def test_on_d1_a_list_is_one_request_and_a_page_of_items_two(
    two: Two, call: str, params: dict[str, Any], most: int
) -> None:
    remote, database = as_on_d1(two.ann.reader)
    client = remote.client(authorization=f"GoogleLogin auth={two.ann.auth}")
    assert client.get(API + call, params=params).status_code == 200
    assert database.requests == most


@pytest.mark.parametrize(
    ("call", "stream", "most"),
    [
        ("stream/items/contents", ALL, 2),
        ("edit-tag", ALL, 1),
        ("mark-all-as-read", ALL, 1),
        ("mark-all-as-read", "user/-/label/News", 1),
        ("mark-all-as-read", "feed/a", 1),
    ],
)
def test_on_d1_marks_are_one_request_and_named_items_two(two: Two, call: str, stream: str, most: int) -> None:
    remote, database = as_on_d1(two.ann.reader)
    client = remote.client(authorization=f"GoogleLogin auth={two.ann.auth}")
    fields = {"i": [str(number) for number in two.a], "a": READ, "s": stream, "ts": str(max(two.a))}
    assert client.post(API + call, data=fields).status_code == 200
    assert database.requests == most


def test_where_the_session_was_shown_a_folder_a_feed_is_marked_by_two_requests(two: Two) -> None:
    """It may be the feed's folder, and what was shown of that counts."""
    remote, database = as_on_d1(two.ann.reader)
    client = remote.client(authorization=f"GoogleLogin auth={two.ann.auth}")
    client.get(API + "stream/items/ids", params={"s": "user/-/label/News", "n": 10})
    before = database.requests
    assert client.post(API + "mark-all-as-read", data={"s": "feed/a"}).status_code == 200
    assert database.requests - before == 2
