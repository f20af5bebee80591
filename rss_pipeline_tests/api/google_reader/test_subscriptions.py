"""Subscriptions and folders: what each client relies on, and edits that may be repeated."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from rss_pipeline.api.google_reader.call import Service
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.api.google_reader.conftest import Two
from rss_pipeline_tests.api.google_reader.phone import Phone, arrive
from rss_pipeline_tests.storage.values import change

STATE = "user/-/state/com.google"


def listed(phone: Phone) -> dict[str, dict[str, Any]]:
    found = phone.get("subscription/list", output="json").json()["subscriptions"]
    return {each["id"]: each for each in found}


def labels(phone: Phone) -> list[str]:
    return [each["id"] for each in phone.get("tag/list", output="json").json()["tags"][1:]]


def edit(phone: Phone, ac: str, s: Any, **fields: Any) -> int:
    answer = phone.post("subscription/edit", {"ac": ac, "s": s, **fields})
    assert answer.status_code != 200 or answer.content == b"OK"
    return answer.status_code


def test_a_subscription_has_every_field_that_clients_demand(two: Two) -> None:
    """newsboat ends without `categories`, Capy Reader with a null in `title` or `htmlUrl`."""
    found = listed(two.ann)
    assert list(found) == ["feed/a", "feed/shared"]
    assert found["feed/a"] == {
        "id": "feed/a",
        "title": "A feed",
        "categories": [{"id": "user/-/label/News", "label": "News"}],
        "url": "https://a.example/a",
        "htmlUrl": "https://a.example/",
        "iconUrl": "",
    }
    assert found["feed/shared"]["categories"] == []


@contextmanager
def all_places_taken(two: Two) -> Iterator[None]:
    """As many requests as may wait for a search do so: others are answered at once."""
    service: Service = two.ann.reader.app.state.google_reader
    with ExitStack() as taken:
        others = map(str, count())
        while taken.enter_context(service.waiting.one(next(others))):
            pass
        yield


def test_a_feed_that_was_never_visited_has_a_title_and_a_page(two: Two) -> None:
    change(two.database, "UPDATE feeds SET title = NULL, link = NULL WHERE id = 'a'")
    found = listed(two.ann)["feed/a"]
    assert found["title"] == found["htmlUrl"] == "https://a.example/a"


def test_a_page_that_is_not_watched_is_a_subscription_with_its_page(two: Two) -> None:
    change(two.database, "UPDATE feeds SET watched = 0, enabled = 0, link = url WHERE id = 'a'")
    found = listed(two.ann)["feed/a"]
    assert (found["title"], found["htmlUrl"]) == ("A feed", "https://a.example/a")


def test_the_types_of_tags_are_those_that_clients_know(two: Two) -> None:
    tags = two.ann.get("tag/list", output="json").json()["tags"]
    assert tags == [{"id": f"{STATE}/starred"}, {"id": "user/-/label/News", "type": "folder"}]


@pytest.mark.parametrize("call", ["subscription/list", "tag/list"])
def test_an_unchanged_list_is_304_with_an_empty_body(two: Two, call: str) -> None:
    first = two.ann.get(call)
    headers = {"If-None-Match": first.headers["etag"]}
    again = two.ann.client.get(f"/greader/reader/api/0/{call}", headers=headers)
    assert (again.status_code, again.content) == (304, b"")
    assert edit(two.ann, "edit", "feed/shared", a="user/-/label/New") == 200
    changed = two.ann.client.get(f"/greader/reader/api/0/{call}", headers=headers)
    assert changed.status_code == 200
    assert two.bob.get(call).headers["etag"] != changed.headers["etag"]


def test_a_list_changes_with_titles_and_subscriptions(two: Two) -> None:
    tags = [two.ann.get("subscription/list").headers["etag"]]
    for ac, stream, fields in (("edit", "feed/a", {"t": "Mine"}), ("unsubscribe", "feed/shared", {})):
        edit(two.ann, ac, stream, **fields)
        tags.append(two.ann.get("subscription/list").headers["etag"])
    assert len(set(tags)) == 3


def test_netnewswire_moves_a_feed_by_one_request(two: Two) -> None:
    for _ in range(2):
        assert edit(two.ann, "edit", "feed/a", a="user/-/label/New", r="user/-/label/News") == 200
        assert listed(two.ann)["feed/a"]["categories"] == [{"id": "user/-/label/New", "label": "New"}]
    assert listed(two.bob)["feed/shared"]["categories"] == []


def test_a_feed_leaves_its_folder_and_no_other(two: Two) -> None:
    edit(two.ann, "edit", "feed/a", r="user/-/label/Other")
    assert listed(two.ann)["feed/a"]["categories"] != []
    edit(two.ann, "edit", "feed/a", r="user/-/label/News")
    assert listed(two.ann)["feed/a"]["categories"] == []


def test_readrops_edits_and_deletes_by_the_address(two: Two) -> None:
    for _ in range(2):
        assert edit(two.ann, "edit", "feed/https://a.example/a", t="My title") == 200
        assert listed(two.ann)["feed/a"]["title"] == "My title"
    for _ in range(2):
        assert edit(two.ann, "unsubscribe", "feed/https://a.example/a") == 200
        assert list(listed(two.ann)) == ["feed/shared"]


def test_rss_guard_edits_by_the_address_of_a_post(two: Two) -> None:
    answer = two.ann.post("subscription/edit", None, ac="edit", s="feed/a", t="Title", a="user/-/label/X")
    assert answer.text == "OK"
    assert listed(two.ann)["feed/a"]["title"] == "Title"


def test_liferea_unsubscribes_with_an_item_that_means_nothing(two: Two) -> None:
    body = "s=feed%2Fa&i=null&ac=unsubscribe&T=x"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = "/greader/reader/api/0/subscription/edit?client=liferea"
    answer = two.ann.client.post(path, content=body, headers=headers)
    assert answer.content == b"OK"
    assert list(listed(two.ann)) == ["feed/shared"]


def test_several_feeds_are_unsubscribed_at_once(two: Two) -> None:
    assert edit(two.ann, "unsubscribe", ["feed/a", "feed/shared", "feed/unknown"]) == 200
    assert listed(two.ann) == {}
    assert set(listed(two.bob)) == {"feed/b", "feed/shared"}


@pytest.mark.parametrize(
    "stream", ["feed/b", "feed/q", "feed/https://b.example/b", "feed/https://q.example/"]
)
def test_a_feed_of_others_is_unknown(two: Two, stream: str) -> None:
    assert edit(two.ann, "edit", stream, t="Mine") == 404
    assert edit(two.ann, "unsubscribe", stream) == 200
    assert listed(two.bob)["feed/b"]["title"] == "A feed"


def test_an_edit_of_several_feeds_is_made_whole_or_not_at_all(two: Two) -> None:
    assert edit(two.ann, "edit", ["feed/a", "feed/b"], t=["X", "Y"]) == 404
    assert listed(two.ann)["feed/a"]["title"] == "A feed"


def test_a_known_feed_is_subscribed_at_once_with_title_and_folder(two: Two) -> None:
    fields = {"t": "B of mine", "a": "user/-/label/New"}
    for _ in range(2):
        assert edit(two.ann, "subscribe", "feed/https://b.example/b", **fields) == 200
    found = listed(two.ann)["feed/b"]
    assert (found["title"], found["categories"][0]["label"]) == ("B of mine", "New")
    assert listed(two.bob)["feed/b"]["title"] == "A feed"


def test_an_own_feed_is_subscribed_again_by_its_id_and_a_foreign_one_is_not(two: Two) -> None:
    assert edit(two.ann, "subscribe", "feed/a", a="user/-/label/Moved") == 200
    assert listed(two.ann)["feed/a"]["categories"][0]["label"] == "Moved"
    assert edit(two.ann, "subscribe", "feed/b") == 404
    assert edit(two.ann, "subscribe", "feed/q") == 404


def test_netnewswire_adds_a_feed_and_finds_it_at_once(two: Two) -> None:
    for _ in range(2):
        answer = two.ann.post("subscription/quickadd", {"quickadd": "https://b.example/b"}).json()
        assert answer["numResults"] == 1
        assert answer["streamId"] == "feed/b"
        assert "feed/b" in listed(two.ann)


def test_an_address_that_waits_for_its_turn_says_until_when_and_how_many_wait(two: Two) -> None:
    # Bob brings sixty, which is what an hour has; ann was here first, and the installation is hers.
    change(two.database, "UPDATE users SET created_at = '2020-01-01T00:00:00Z' WHERE name = 'ann'")
    ids, at = [f"id{n}" for n in range(60)], instant(datetime.now(UTC) - timedelta(minutes=30))
    change(
        two.database,
        "INSERT INTO new_addresses SELECT users.id, value, ? FROM users, json_each(?) WHERE name = 'bob'",
        *(at, compact(ids)),
    )
    for waiting in (1, 2):
        address = f"https://new{waiting}.example/"
        answer = two.bob.post("subscription/quickadd", {"quickadd": address})
        assert answer.status_code == 503
        assert f"Of yours {waiting} wait, and this one is requested at " in answer.text
        assert 1500 < int(answer.headers["Retry-After"]) < 2100


def test_read_you_adds_a_feed_torn_in_the_address_and_whole_in_the_form(two: Two) -> None:
    change(two.database, "UPDATE feeds SET url = 'https://b.example/?a=1&b=2' WHERE id = 'b'")
    answer = two.ann.client.post(
        "/greader/reader/api/0/subscription/quickadd?quickadd=https://b.example/?a=1&b=2",
        data={"quickadd": "https://b.example/?a=1&b=2"},
    )
    assert answer.json()["streamId"] == "feed/b"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nonsense with blanks",
        "ftp://a.example/",
        "http://127.0.0.1/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/latest",
        "https://ann:secret@a.example/",
        "https://a.example/" + "x" * 10_000,
    ],
)
def test_an_address_that_cannot_be_subscribed_is_refused(two: Two, address: str) -> None:
    answer = two.ann.post("subscription/quickadd", {"quickadd": address})
    assert answer.status_code == 400, answer.text
    assert edit(two.ann, "subscribe", f"feed/{address}") == 400
    assert "secret" not in answer.text


def test_a_private_feed_is_not_had_by_its_address(two: Two) -> None:
    change(two.database, "UPDATE feeds SET needs_access = 1 WHERE id = 'b'")
    with all_places_taken(two):
        private = two.ann.post("subscription/quickadd", {"quickadd": "https://b.example/b"})
        unknown = two.ann.post("subscription/quickadd", {"quickadd": "https://q.example/b"})
    assert private.status_code == unknown.status_code == 503
    assert private.text == unknown.text
    assert "feed/b" not in listed(two.ann)


def test_two_searches_of_a_user_wait_and_the_third_is_429(two: Two) -> None:
    service: Service = two.ann.reader.app.state.google_reader
    address = {"quickadd": "https://new.example/"}
    with service.waiting.one(two.ann.user_id), service.waiting.one(two.ann.user_id):
        third = two.ann.post("subscription/quickadd", address)
        assert (third.status_code, "ask again soon" in third.text) == (429, True)
        assert int(third.headers["Retry-After"]) > 0
        # What needs no search waits for nothing.
        assert two.ann.post("subscription/quickadd", {"quickadd": "https://a.example/a"}).status_code == 200
    with all_places_taken(two):
        assert two.ann.post("subscription/quickadd", address).status_code == 503, "it is searched meanwhile"


def test_folders_are_renamed_and_removed_and_their_feeds_stay(two: Two) -> None:
    ann = two.ann
    for _ in range(2):
        rename = {"s": "user/-/label/News", "dest": "user/-/label/Old news"}
        assert ann.post("rename-tag", rename).content == b"OK"
        assert labels(ann) == ["user/-/label/Old news"]
    assert listed(ann)["feed/a"]["categories"][0]["label"] == "Old news"
    for _ in range(2):
        assert ann.post("disable-tag", {"s": ["user/-/label/Old news", "user/-/label/X"]}).content == b"OK"
        assert labels(ann) == []
    assert listed(ann)["feed/a"]["categories"] == []


def test_readrops_makes_an_empty_folder(two: Two) -> None:
    assert two.ann.post("edit-tag", {"a": "user/-/label/Empty"}).content == b"OK"
    assert labels(two.ann) == ["user/-/label/Empty", "user/-/label/News"]
    assert labels(two.bob) == []
    assert two.ann.ids("user/-/label/Empty") == []


@pytest.mark.parametrize(
    ("call", "fields", "status"),
    [
        ("rename-tag", {"s": "user/-/label/Nothing", "dest": "user/-/label/New"}, 404),
        ("rename-tag", {"s": "user/-/label/News"}, 400),
        ("rename-tag", {"s": f"{STATE}/read", "dest": "user/-/label/X"}, 400),
        ("rename-tag", {"s": "user/-/label/News", "dest": "user/-/label/" + "x" * 501}, 400),
        ("disable-tag", {}, 400),
        ("disable-tag", {"s": "feed/a"}, 400),
        ("subscription/edit", {"ac": "edit"}, 400),
        ("subscription/edit", {"ac": "nonsense", "s": "feed/a"}, 400),
    ],
)
def test_what_cannot_be_done_is_refused(two: Two, call: str, fields: dict[str, str], status: int) -> None:
    assert two.ann.post(call, fields).status_code == status


def test_unread_items_are_counted_for_feeds_folders_and_all(two: Two) -> None:
    two.ann.mark(two.a[:1], a="read")
    found = two.ann.get("unread-count", output="json", all="true", client="liferea").json()
    counts = {each["id"]: each for each in found["unreadcounts"]}
    assert {id: each["count"] for id, each in counts.items()} == {
        f"{STATE}/reading-list": 4,
        "user/-/label/News": 2,
        "feed/a": 2,
        "feed/shared": 2,
    }
    assert counts["feed/a"]["newestItemTimestampUsec"] == str(max(two.a))
    assert counts["user/-/label/News"]["newestItemTimestampUsec"] == str(max(two.a))
    assert counts[f"{STATE}/reading-list"]["newestItemTimestampUsec"] == str(max(*two.a, *two.shared))
    assert found["max"] >= 4


def test_what_was_counted_was_shown(two: Two) -> None:
    """EasyRSS counts, then marks all up to the time of the newest item that was counted."""
    two.ann.ids()
    (late,) = arrive(two.database, "a", "late")
    two.ann.get("unread-count")
    (later,) = arrive(two.database, "a", "later")
    two.ann.post("mark-all-as-read", {"s": f"{STATE}/reading-list", "ts": str(late)})
    assert two.ann.another().unread() == {later}


@pytest.mark.parametrize(
    "call",
    ["subscription/edit", "subscription/quickadd", "rename-tag", "disable-tag"],
)
def test_a_change_is_by_post(two: Two, call: str) -> None:
    assert two.ann.get(call, ac="edit", s="feed/a").status_code == 405
