"""Marks: by item and all at once, that nothing unseen is marked, and that a repetition changes nothing."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rss_pipeline.api.google_reader.parameters import long_id
from rss_pipeline.reader.mark import undo_mark, undoable
from rss_pipeline_tests.api.google_reader.conftest import Two
from rss_pipeline_tests.api.google_reader.phone import Phone, arrive

STATE = "user/-/state/com.google"
ALL = f"{STATE}/reading-list"


def mark_all(phone: Phone, stream: str, **fields: Any) -> None:
    answer = phone.post("mark-all-as-read", {"s": stream, **fields})
    assert (answer.status_code, answer.content) == (200, b"OK")


def test_the_answer_is_ok_without_a_newline(two: Two) -> None:
    answer = two.ann.mark(two.a, a="read")
    assert answer.content == b"OK"
    assert answer.headers["content-type"].startswith("text/plain")


CALLS = [
    pytest.param("i={long}&a={S}/read&r={S}/kept-unread&ac=edit&T=x%0A", True, id="newsboat: read"),
    pytest.param(
        "i={long}&r={S}/read&a={S}/kept-unread&a={S}/tracking-kept-unread&ac=edit&T=x",
        False,
        id="newsboat: unread",
    ),
    pytest.param("i={long}&s=feed%2Fx&a={S}/read&ac=edit-tags&T=x&async=true", True, id="Liferea: read"),
    pytest.param("a={S}/read&i={decimal}", True, id="RSS Guard: read"),
    pytest.param("r={S}/read&i={decimal}", False, id="RSS Guard: unread"),
    pytest.param("i={hex}&a=user/1001/state/com.google/read", True, id="Readrops: read"),
]


@pytest.mark.parametrize(("form", "is_read"), CALLS)
def test_an_item_is_marked_in_every_client_s_words(two: Two, form: str, is_read: bool) -> None:
    ann, number = two.ann, two.a[1]
    if not is_read:
        ann.mark([number], a="read")
    body = form.format(S=STATE, long=long_id(number), decimal=number, hex=f"{number:x}")
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for _ in range(2):
        answer = ann.client.post("/greader/reader/api/0/edit-tag?client=x", content=body, headers=headers)
        assert answer.text == "OK"
        assert (number not in ann.unread()) is is_read
        assert ann.unread() >= {two.a[0], two.a[2]}


def test_rss_guard_puts_the_whole_form_into_the_address(two: Two) -> None:
    assert two.ann.post("edit-tag", None, i=str(two.a[0]), a=f"{STATE}/read").text == "OK"
    assert two.a[0] not in two.ann.unread()


@pytest.mark.slow
@pytest.mark.parametrize("count", [1_000, 10_000])
def test_as_many_items_are_marked_at_once_as_clients_send(two: Two, count: int) -> None:
    """NetNewsWire sends 1,000 and T, RSS Guard 9,999; FreshRSS silently loses the tag of such a form."""
    unknown = [long_id(1_700_000_000_000_000 + n) for n in range(count - 3)]
    fields = {"i": [*unknown, *map(long_id, two.a)], "a": f"{STATE}/read", "T": "x"}
    assert two.ann.post("edit-tag", fields).text == "OK"
    assert two.ann.unread("feed/a") == set()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"i": "1"}, 400),
        ({"a": f"{STATE}/read"}, 400),
        ({"i": "nonsense", "a": f"{STATE}/read"}, 400),
        ({"i": "1", "a": "nonsense"}, 400),
        ({"i": "1", "a": "user/-/label/X"}, 400),
        ({"i": ["1"] * 30_000, "a": f"{STATE}/read"}, 413),
    ],
)
def test_a_mark_that_cannot_be_made_is_refused(two: Two, fields: dict[str, Any], status: int) -> None:
    assert two.ann.post("edit-tag", fields).status_code == status


def test_stars_come_and_go(two: Two) -> None:
    for _ in range(2):
        assert two.ann.mark(two.a[:2], a="starred").text == "OK"
    assert set(two.ann.ids(f"{STATE}/starred")) == set(two.a[:2])
    assert two.ann.mark(two.a[:1], r="starred").text == "OK"
    assert two.ann.ids(f"{STATE}/starred") == [two.a[1]]
    assert two.ann.unread() == {*two.a, *two.shared}


def test_a_tag_that_no_item_has_is_ok_and_changes_nothing(two: Two) -> None:
    assert two.ann.mark(two.a, a="broadcast").text == "OK"
    assert two.ann.mark(two.a, r="like").text == "OK"
    assert two.ann.unread() == {*two.a, *two.shared}


@pytest.mark.parametrize(
    ("stream", "left"),
    [
        ("feed/a", "shared"),
        ("feed/https://a.example/a", "shared"),
        ("user/-/label/News", "shared"),
        (ALL, ""),
        (f"{STATE}/unread", ""),
        (f"{STATE}/read", "a shared"),
    ],
)
def test_a_stream_is_marked_read_up_to_what_was_listed(two: Two, stream: str, left: str) -> None:
    two.ann.ids()
    mark_all(two.ann, stream)
    expected = {number for feed in left.split() for number in getattr(two, feed)}
    assert two.ann.unread() == expected
    mark_all(two.ann, stream)
    assert two.ann.unread() == expected
    assert two.bob.unread() == {*two.b, *two.shared}


LISTINGS = {
    "ids of all": lambda phone: phone.ids(),
    "unread ids of all": lambda phone: phone.unread(),
    "ids of the feed": lambda phone: phone.ids("feed/a"),
    "ids of its folder": lambda phone: phone.ids("user/-/label/News"),
    "contents of all": lambda phone: phone.get("stream/contents"),
    "contents of the feed": lambda phone: phone.get("stream/contents/feed/a", n=1),
    "Atom of the feed": lambda phone: phone.client.get("/greader/reader/atom/feed/a"),
}


@pytest.mark.parametrize("listing", LISTINGS)
def test_what_comes_between_a_listing_and_a_mark_stays_unread(two: Two, listing: str) -> None:
    """newsboat and Fluent Reader send no time: what they saw is what this session was shown."""
    if listing == "contents of all":
        two.ann.client.get("/greader/reader/api/0/stream/contents", params={"s": ALL})
    else:
        LISTINGS[listing](two.ann)
    (late,) = arrive(two.database, "a", "late")
    two.bob.ids()
    mark_all(two.ann, "feed/a")
    assert two.ann.unread("feed/a") == {late}


def test_what_comes_in_the_second_of_the_time_that_a_client_sends_stays_unread(two: Two) -> None:
    other = two.ann.another()
    two.ann.ids()
    by_clock = str((max(two.shared) // 1_000_000 + 3_600) * 1_000_000)
    (late,) = arrive(two.database, "a", "late")
    mark_all(two.ann, "feed/a", ts=by_clock)
    assert other.unread() == {late, *two.shared}
    mark_all(two.ann, ALL, ts=by_clock)
    assert other.unread() == {late}


def test_what_was_shown_feed_by_feed_is_marked_with_all_by_a_time(two: Two) -> None:
    """The listing of all is older than those of the feeds, so only the time decides."""
    two.ann.ids()
    (late,) = arrive(two.database, "a", "late")
    two.ann.ids("feed/a")
    mark_all(two.ann, ALL, ts=str(late))
    assert two.ann.another().unread() == set()


@pytest.mark.parametrize("stream", [ALL, "user/-/label/News", f"{STATE}/unread"])
@pytest.mark.parametrize("lists", ["contents", "ids", "folder"])
def test_what_was_listed_feed_by_feed_since_is_marked_with_a_folder_or_all_too(
    two: Two, stream: str, lists: str
) -> None:
    two.ann.ids(stream)
    late = arrive(two.database, "a", *(f"late {n}" for n in range(8)))
    unseen = arrive(two.database, "shared", "unseen")
    match lists:
        case "contents":
            two.ann.get("stream/contents/feed/a", n=20)
        case "ids":
            two.ann.ids("feed/a")
        case _:
            two.ann.ids("user/-/label/News")
    mark_all(two.ann, stream)
    left = two.ann.another().unread()
    assert not left & {*two.a, *late}
    assert left >= set(unseen)


def test_a_feed_that_was_listed_before_another_one_is_marked_up_to_its_own_listing(two: Two) -> None:
    """The client never listed all: each feed is marked up to what was shown of it."""
    two.ann.ids("feed/a")
    late = arrive(two.database, "a", "late")
    two.ann.ids("feed/shared")
    mark_all(two.ann, ALL)
    assert two.ann.another().unread() == set(late)


def test_a_mark_of_an_app_can_be_undone_elsewhere(two: Two) -> None:
    two.ann.ids()
    mark_all(two.ann, ALL)
    [mark] = two.ann.caller.ask(undoable(two.ann.caller.user_id, now=two.ann.caller.clock()))
    assert undo_mark(two.ann.caller, mark.id) == 5
    assert two.ann.unread() == {*two.a, *two.shared}


def test_a_time_marks_what_came_until_then(two: Two) -> None:
    mark_all(two.ann, ALL, ts=str(two.a[0]))
    assert two.ann.unread() == {number for number in (*two.a, *two.shared) if number > two.a[0]}
    mark_all(two.ann, ALL, ts=str(max(two.shared) * 1_000))
    assert two.ann.unread() == set()


def test_without_a_listing_and_a_time_the_last_second_is_spared(two: Two) -> None:
    other, clock = two.ann.another(), two.ann.reader.clock
    clock.now = datetime.fromtimestamp(min(two.a) // 1_000_000, UTC)
    mark_all(two.ann, "feed/a")
    assert other.unread("feed/a") == set(two.a)
    clock.now = datetime.fromtimestamp(max(two.a) // 1_000_000 + 2, UTC)
    mark_all(two.ann, "feed/a")
    assert other.unread("feed/a") == set()


def test_a_kept_item_is_read_by_marking_all(two: Two) -> None:
    two.ann.mark(two.a, a="read")
    two.ann.mark(two.a[:1], a="kept-unread", r="read")
    assert two.ann.unread("feed/a") == {two.a[0]}
    two.ann.ids()
    mark_all(two.ann, "feed/a")
    assert two.ann.unread("feed/a") == set()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"s": "nonsense"}, 400),
        ({"s": f"{STATE}/starred"}, 400),
        ({"s": f"{STATE}/broadcast"}, 404),
        ({"s": "feed/a", "ts": "yesterday"}, 400),
        ({"s": "feed/https://b.example/b"}, 404),
    ],
)
def test_a_stream_that_cannot_be_marked_is_refused(two: Two, fields: dict[str, str], status: int) -> None:
    assert two.ann.post("mark-all-as-read", fields).status_code == status


def test_no_one_marks_anothers_feed(two: Two) -> None:
    for stream in ("feed/b", "feed/q"):
        assert two.ann.post("mark-all-as-read", {"s": stream}).text == "OK"
    assert two.bob.unread("feed/b") == set(two.b)


@pytest.mark.parametrize("call", ["edit-tag", "mark-all-as-read"])
def test_a_mark_is_by_post(two: Two, call: str) -> None:
    assert two.ann.get(call, s=ALL, i="1", a=f"{STATE}/read").status_code == 405
