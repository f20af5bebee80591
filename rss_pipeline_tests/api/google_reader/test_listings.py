"""Ids and contents of streams: who sees what, in which order, and that no page loses an item."""

import json
from typing import Any

import pytest

from rss_pipeline.api.google_reader.parameters import long_id
from rss_pipeline_tests.api.google_reader.conftest import Two
from rss_pipeline_tests.api.google_reader.phone import Phone, arrive
from rss_pipeline_tests.storage.values import change

STATE = "user/-/state/com.google"
ALL = f"{STATE}/reading-list"


def contents(phone: Phone, path: str, **params: Any) -> list[int]:
    answer = phone.get(f"stream/contents/{path}", **params)
    assert answer.status_code == 200, answer.text
    return [int(item["id"].rpartition("/")[2], 16) for item in answer.json()["items"]]


def newest_first(*numbers: list[int]) -> list[int]:
    return sorted((one for some in numbers for one in some), reverse=True)


def test_every_stream_has_its_items_newest_first(two: Two) -> None:
    ann = two.ann
    ann.mark(two.a[:2], a="read")
    ann.mark([two.a[0], two.shared[0]], a="starred")
    cases = {
        ALL: newest_first(two.a, two.shared),
        "feed/a": newest_first(two.a),
        "feed/https://a.example/a": newest_first(two.a),
        "user/-/label/News": newest_first(two.a),
        f"user/{ann.user_id}/label/News": newest_first(two.a),
        f"{STATE}/read": newest_first(two.a[:2]),
        f"{STATE}/starred": newest_first([two.a[0], two.shared[0]]),
        f"{STATE}/kept-unread": newest_first(two.a[2:], two.shared),
        f"{STATE}/fresh": newest_first(two.a[2:], two.shared),
    }
    for stream, expected in cases.items():
        assert ann.ids(stream) == expected, stream
        assert contents(ann, stream) == expected, stream


@pytest.mark.parametrize("path", ["feed%2Fa", "feed/a", "", "user%2F-%2Flabel%2FNews", "user/-/label/News"])
def test_a_stream_is_named_in_the_path_escaped_or_not_or_by_s(two: Two, path: str) -> None:
    """newsboat 2.24 and later escape it, RSS Guard does not, Fluent Reader gives none or `s`."""
    params = {} if path else {"s": "feed/a"}
    answer = two.ann.client.get(f"/greader/reader/api/0/stream/contents/{path}", params=params)
    assert len(answer.json()["items"]) == 3


def test_oldest_first(two: Two) -> None:
    assert two.ann.ids("feed/a", r="o") == sorted(two.a)
    assert contents(two.ann, "feed/a", r="o") == sorted(two.a)


def test_filters_leave_out_and_demand(two: Two) -> None:
    ann = two.ann
    ann.mark([two.a[0]], a="read")
    ann.mark([two.a[1]], a="starred")
    assert set(ann.ids("feed/a", xt=f"{STATE}/read")) == set(two.a[1:])
    assert set(ann.ids("feed/a", xt=[f"{STATE}/read", f"{STATE}/starred"])) == {two.a[2]}
    assert set(ann.ids("feed/a", xt=f"{STATE}/unread")) == {two.a[0]}
    assert set(ann.ids("feed/a", it=f"{STATE}/read")) == {two.a[0]}
    assert ann.ids("feed/a", it=f"{STATE}/broadcast") == []


def test_marking_between_two_pages_of_unread_items_loses_none(two: Two) -> None:
    """By an offset, miniflux shows 5 of 8 and FreshRSS 7 of 8."""
    numbers = arrive(two.database, "a", *(f"p{n}" for n in range(8)))
    wanted = set(numbers) | set(two.a) | set(two.shared)
    seen: set[int] = set()
    params: dict[str, Any] = {"s": ALL, "xt": f"{STATE}/read", "n": 2}
    while True:
        answer = two.ann.get("stream/items/ids", **params).json()
        page = [int(each["id"]) for each in answer["itemRefs"]]
        assert not seen & set(page)
        seen |= set(page)
        two.ann.mark(page, a="read")
        if "continuation" not in answer:
            break
        params["c"] = answer["continuation"]
    assert seen == wanted


def test_a_page_ends_with_a_text_that_leads_on_and_the_last_with_none(two: Two) -> None:
    answer = two.ann.get("stream/items/ids", s="feed/a", n=2).json()
    assert isinstance(answer["continuation"], str)
    assert answer["continuation"].isdigit()
    last = two.ann.get("stream/items/ids", s="feed/a", n=3).json()
    assert last.keys() == {"itemRefs"}
    empty = two.ann.get("stream/items/ids", s=f"{STATE}/starred", n=3).json()
    assert empty == {"itemRefs": []}
    first = two.ann.get("stream/contents/feed/a", n=2).json()
    second = two.ann.get("stream/contents/feed/a", n=2, c=first["continuation"]).json()
    assert "continuation" not in second
    assert len({item["id"] for item in first["items"] + second["items"]}) == 3


def test_ot_is_the_time_of_arrival_and_not_of_publication(two: Two) -> None:
    """NetNewsWire sends the Date of its last request; by publication, miniflux answers 0 of 5."""
    change(two.database, "UPDATE items SET pub_date = '2019-01-01T00:00:00Z'")
    since = min(two.a)
    assert set(two.ann.ids(ot=str(since))) == set(two.a) | set(two.shared)
    assert set(two.ann.ids(ot=str(since // 1_000_000))) == set(two.a) | set(two.shared)
    last = max(two.shared)
    assert set(two.ann.ids(ot=str(last))) == {last}
    assert two.ann.ids(ot=str(last + 1)) == []
    assert two.ann.ids(ot=str(last // 1_000_000 + 3_600)) == []


def test_nt_is_the_newest_time_of_arrival(two: Two) -> None:
    assert set(two.ann.ids(nt=str(min(two.a)))) == {min(two.a)}


def test_rss_guard_requests_200_000_ids(two: Two) -> None:
    assert len(two.ann.get("stream/items/ids", s=ALL, n=200_000).json()["itemRefs"]) == 5


def test_ids_are_decimal_texts_alone_in_their_objects(two: Two) -> None:
    answer = two.ann.get("stream/items/ids", s="feed/a", n=10).json()
    assert answer["itemRefs"] == [{"id": str(number)} for number in newest_first(two.a)]


def test_readrops_and_liferea_name_other_fields(two: Two) -> None:
    query = "s=feed%2Fa&client=liferea&n=50&output=json&merge=true"
    answer = two.ann.client.get(f"/greader/reader/api/0/stream/items/ids?{query}")
    assert len(answer.json()["itemRefs"]) == 3


FORMS = {
    "decimal": str,
    "long": long_id,
    "16 hexadecimal digits": lambda number: f"{number:016x}",
    "hexadecimal, not padded": lambda number: f"{number:x}",
}


@pytest.mark.parametrize("form", FORMS)
def test_contents_are_read_by_every_form_of_an_id(two: Two, form: str) -> None:
    wanted = [FORMS[form](number) for number in (two.a[2], two.shared[0], two.a[0])]
    answer = two.ann.post("stream/items/contents", {"i": wanted, "output": "json"}).json()
    found = [item["id"] for item in answer["items"]]
    assert found == [long_id(number) for number in (two.a[2], two.shared[0], two.a[0])]
    assert isinstance(answer["updated"], int)
    assert answer["id"] == ALL


@pytest.mark.slow
def test_rss_guard_reads_10_000_items_by_one_request(two: Two) -> None:
    unknown = [str(1_700_000_000_000_000 + n) for n in range(9_990)]
    answer = two.ann.post("stream/items/contents", {"i": [*unknown, *map(str, two.a)]})
    assert answer.status_code == 200
    assert len(json.loads(answer.content)["items"]) == 3


@pytest.mark.slow
def test_contents_of_many_items_are_the_same_as_of_few(two: Two) -> None:
    numbers = arrive(two.database, "a", *(f"m{n}" for n in range(450)))
    answer = two.ann.post("stream/items/contents", {"i": list(map(str, numbers))}).json()
    assert [item["id"] for item in answer["items"]] == [long_id(number) for number in numbers]


def test_an_item_is_shown_as_it_is_stored(two: Two) -> None:
    (number,) = arrive(
        two.database,
        "a",
        "x",
        title="A &lt; B",
        link="https://a.example/x",
        author="Ann",
        content_html='<p onclick="x()">Text <a href="/y">y</a><script>z()</script></p>',
        categories=("tech", "user/-/state/com.google/read"),
    )
    (item,) = two.ann.post("stream/items/contents", {"i": str(number)}).json()["items"]
    assert item["title"] == "A &lt; B"
    assert item["canonical"] == [{"href": "https://a.example/x"}]
    assert 'href="https://a.example/y"' in item["summary"]["content"]
    assert "script" not in item["summary"]["content"]
    assert "onclick" not in item["summary"]["content"]
    assert item["categories"] == [ALL, "user/-/label/News", "tech"]
    assert item["origin"] == {"streamId": "feed/a", "title": "A feed", "htmlUrl": "https://a.example/"}
    assert item["author"] == "Ann"
    assert item["timestampUsec"] == str(number)


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        ("feed/nonexistent", 404),
        ("feed/https://nowhere.example/", 404),
        ("user/-/label/Nothing", 404),
        (f"{STATE}/broadcast", 404),
        ("nonsense", 400),
    ],
)
def test_a_stream_that_is_not_there_is_an_error_and_not_an_empty_list(
    two: Two, stream: str, status: int
) -> None:
    assert two.ann.get("stream/items/ids", s=stream, n=5).status_code == status
    assert two.ann.get("stream/contents", s=stream, n=5).status_code == status
    assert two.ann.client.get("/greader/reader/atom/", params={"s": stream}).status_code in (status, 404)


@pytest.mark.parametrize("fields", [{}, {"s": ""}, {"s": "  "}])
def test_a_listing_without_a_stream_is_the_reading_list(two: Two, fields: dict[str, str]) -> None:
    whole = two.ann.get("stream/contents", s=f"{STATE}/reading-list").json()
    for call in ("stream/contents", "stream/contents/"):
        found = two.ann.get(call, **fields)
        assert found.status_code == 200
        assert found.json() == {**whole, "updated": found.json()["updated"]}
    ids = two.ann.get("stream/items/ids", n=100, **fields).json()["itemRefs"]
    assert [int(each["id"]) for each in ids] == two.ann.ids()
    assert two.ann.post("mark-all-as-read", fields).status_code == 400


def test_no_one_reads_anothers_items(two: Two) -> None:
    ann, foreign = two.ann, two.b
    two.bob.mark(foreign, a="starred")
    assert ann.mark(foreign, a="starred").text == "OK"
    assert ann.mark(foreign, a="read").text == "OK"
    assert ann.ids(f"{STATE}/starred") == []
    answer = ann.post("stream/items/contents", {"i": [str(number) for number in foreign]}).json()
    unknown = ann.post("stream/items/contents", {"i": ["1700000000000000"]}).json()
    assert answer == unknown
    assert answer["items"] == []
    for stream in ("feed/b", "feed/https://b.example/b"):
        for call in ("stream/items/ids", "stream/contents"):
            theirs = ann.get(call, s=stream)
            nobodys = ann.get(call, s=stream.replace("b", "q"))
            assert theirs.status_code == nobodys.status_code == 404
            assert theirs.text.replace("b", "q") == nobodys.text.replace("b", "q")
    assert set(two.bob.ids(f"{STATE}/starred")) == set(foreign)
    assert two.bob.unread("feed/b") == set(foreign)


def test_a_shared_item_has_a_state_for_each_user(two: Two) -> None:
    two.ann.mark(two.shared, a="read")
    two.ann.mark(two.shared, a="starred")
    assert two.bob.unread("feed/shared") == set(two.shared)
    assert two.bob.ids(f"{STATE}/starred") == []


def test_newsboat_reads_a_feed_as_atom_and_again_only_if_something_changed(two: Two) -> None:
    path = "/greader/reader/atom/feed%2Fa"
    first = two.ann.client.get(path, params={"n": 20})
    assert first.headers["content-type"].startswith("application/atom+xml")
    assert [long_id(number) in first.text for number in two.a] == [True] * 3
    again = two.ann.client.get(path, params={"n": 20}, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    two.ann.mark(two.a[:1], a="read")
    changed = two.ann.client.get(path, params={"n": 20}, headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    assert 'label="read"' in changed.text


def test_a_private_answer_is_kept_by_no_cache(two: Two) -> None:
    for answer in (
        two.ann.get("stream/items/ids", s=ALL),
        two.ann.get("stream/contents", s=ALL),
        two.ann.client.get("/greader/reader/atom/feed/a"),
        two.ann.get("user-info"),
    ):
        assert "private" in answer.headers["cache-control"] or "no-store" in answer.headers["cache-control"]
        assert "Authorization" in answer.headers["vary"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_picture_beside_the_text_is_shown_above_it_and_is_no_enclosure(two: Two) -> None:
    files = [
        {"url": "https://a.example/1.mp3", "type": "audio/mpeg", "length": None},
        {"url": "https://img.example/thumb.jpg", "type": "image/*", "length": None},
    ]
    two.database.query("UPDATE items SET content_html = '<p>a</p>', enclosures = ?", [json.dumps(files)])
    [item, *_] = two.ann.get("stream/contents/feed/a").json()["items"]
    above = '<p><img src="https://img.example/thumb.jpg" alt=""></p><p>a</p>'
    assert item["summary"]["content"] == above
    assert [each["href"] for each in item["enclosure"]] == ["https://a.example/1.mp3"]
    atom = two.ann.client.get("/greader/reader/atom/feed/a").text
    assert atom.count('rel="enclosure"') == atom.count("<entry")
    assert "thumb.jpg" in atom
