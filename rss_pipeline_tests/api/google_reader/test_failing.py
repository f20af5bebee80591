"""The feed "Feeds that fail": whoever wants it sees in an app which feeds fail, since when and why."""

import pytest

from rss_pipeline.reader.accounts.preferences import SomePreferences, change_preferences
from rss_pipeline_tests.api.google_reader.conftest import Two
from rss_pipeline_tests.api.google_reader.phone import Phone
from rss_pipeline_tests.api.google_reader.test_subscriptions import listed
from rss_pipeline_tests.storage.values import change

FAILING = "feed/-failing"
ALL = "user/-/state/com.google/reading-list"


@pytest.fixture
def ann(two: Two) -> Phone:
    """Ann wants the feed; `a` and `b` fail, of which she subscribes the first."""
    change_preferences(two.ann.caller, SomePreferences(show_failing_feed=True))
    change(
        two.database,
        """UPDATE feeds SET last_visited_at = '2026-03-02T12:00:00Z', consecutive_failures = 3,
        last_error_kind = 'timeout', last_error = 'no answer within 30 s <b>',
        failing_since = '2026-03-01T12:00:00Z'
        WHERE id IN ('a', 'b')""",
    )
    return two.ann


def test_it_is_off_by_preference(two: Two, ann: Phone) -> None:
    assert FAILING not in listed(two.bob)
    for call in ("stream/items/ids", "stream/contents"):
        assert two.bob.get(call, s=FAILING).status_code == 404
    assert set(two.bob.ids()) == {*two.b, *two.shared}


def test_it_is_a_feed_among_the_others(two: Two, ann: Phone) -> None:
    found = listed(ann)[FAILING]
    assert found["title"] == "Feeds that fail"
    assert found["categories"] == []
    assert found["url"].startswith("http://127.0.0.1")


def test_an_entry_says_since_when_and_why(two: Two, ann: Phone) -> None:
    (item,) = ann.get("stream/contents", s=FAILING).json()["items"]
    assert item["title"] == "A feed fails since 2026-03-01 12:00 UTC"
    assert "no answer within 30 s &lt;b&gt;" in item["summary"]["content"]
    assert item["origin"]["streamId"] == FAILING
    assert item["canonical"] == [{"href": "https://a.example/a"}]
    assert item["published"] == 1_772_366_400


def test_its_entries_are_in_every_listing_and_read_by_their_id(two: Two, ann: Phone) -> None:
    (number,) = ann.ids(FAILING)
    assert set(ann.ids()) == {number, *two.a, *two.shared}
    assert number not in two.a
    assert ann.ids(n=1) == sorted({number, *two.a, *two.shared}, reverse=True)
    assert ann.ids(n=2, r="o") == sorted({number, *two.a, *two.shared})
    assert ann.ids("feed/a") == sorted(two.a, reverse=True)
    items = ann.post("stream/items/contents", {"i": [str(two.a[0]), str(number)]}).json()["items"]
    assert [int(item["timestampUsec"]) for item in items] == [two.a[0], number]
    assert two.bob.post("stream/items/contents", {"i": str(number)}).json()["items"] == []
    atom = ann.client.get("/greader/reader/atom/feed%2F-failing")
    assert "A feed fails since" in atom.text
    counts = {each["id"]: each["count"] for each in ann.get("unread-count").json()["unreadcounts"]}
    assert counts[FAILING] == 1
    assert counts[ALL] == 6


def test_an_entry_is_marked_read_and_unread(two: Two, ann: Phone) -> None:
    (number,) = ann.ids(FAILING)
    for _ in range(2):
        assert ann.mark([number, two.a[0]], a="read").text == "OK"
        assert ann.unread() == {*two.a[1:], *two.shared}
        assert ann.ids(FAILING, xt="user/-/state/com.google/read") == []
    ann.mark([number], r="read")
    assert number in ann.unread()
    assert ann.post("mark-all-as-read", {"s": FAILING}).text == "OK"
    assert number not in ann.unread()


def test_it_is_marked_with_all(two: Two, ann: Phone) -> None:
    ann.ids()
    assert ann.post("mark-all-as-read", {"s": ALL}).text == "OK"
    assert ann.unread() == set()


def test_a_feed_that_fails_anew_is_a_new_entry(two: Two, ann: Phone) -> None:
    ann.mark(ann.ids(FAILING), a="read")
    change(two.database, "UPDATE feeds SET failing_since = '2026-04-01T12:00:00Z' WHERE id = 'a'")
    assert len(ann.unread(FAILING)) == 1
    change(two.database, "UPDATE feeds SET consecutive_failures = 0, last_error_kind = NULL WHERE id = 'a'")
    assert ann.ids(FAILING) == []


def test_it_is_not_unsubscribed_but_switched_off(two: Two, ann: Phone) -> None:
    answer = ann.post("subscription/edit", {"ac": "unsubscribe", "s": FAILING})
    assert answer.status_code == 400
    assert "preferences" in answer.text
