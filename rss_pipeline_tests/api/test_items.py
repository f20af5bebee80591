"""Pages of items in the JSON API: by key, with their bodies, and 304."""

from typing import Any

import pytest

from rss_pipeline.api.routers.items import KEPT_SECONDS, ItemPages
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import arrive
from rss_pipeline_tests.storage.values import DAY, change, item, register, spec, visit
from rss_pipeline_tests.support.counted import as_on_d1
from rss_pipeline_tests.support.reader import Reader, User

ITEMS = "/api/items"


def page(user: User, path: str = ITEMS, **params: Any) -> dict[str, Any]:
    answer = user.client.get(path, params=params)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def titles(found: dict[str, Any]) -> list[str]:
    """The guids of a page's items: their titles without the word."""
    return [each["title"].removeprefix("Title ") for each in found["items"]]


def all_of(user: User, path: str = ITEMS, **params: Any) -> list[str]:
    """A whole list, read page by page."""
    found = page(user, path, **params)
    read = titles(found)
    while found["next_cursor"] is not None:
        found = page(user, path, **params, cursor=found["next_cursor"])
        read += titles(found)
    return read


@pytest.mark.parametrize("path", [ITEMS, "/api/feeds/a/items"])
@pytest.mark.parametrize("limit", [2, 5])
def test_pages_by_key_have_each_item_once_in_either_order(reader: Reader, path: str, limit: int) -> None:
    user = ann(reader, a=5)
    assert all_of(user, path, limit=limit) == ["5", "4", "3", "2", "1"]
    assert all_of(user, path, limit=limit, order="oldest") == ["1", "2", "3", "4", "5"]


def test_lists_are_of_unread_items_of_starred_ones_and_of_a_folder(reader: Reader) -> None:
    user = ann(reader, a=3, b=2)
    items = {each["feed_id"] + each["title"][-1]: each["id"] for each in page(user)["items"]}
    user.client.post(f"{ITEMS}/mark", json={"ids": [items["a1"], items["b2"]], "is_starred": True})
    user.client.post(f"{ITEMS}/mark", json={"ids": [items["a1"], items["a3"]], "is_read": True})
    user.client.patch("/api/feeds/b", json={"folder": "News"})

    def listed(**params: Any) -> set[str]:
        return {each["feed_id"] + each["title"][-1] for each in page(user, **params)["items"]}

    assert listed(unread_only=True) == {"a2", "b1", "b2"}
    assert listed(starred_only=True) == {"a1", "b2"}
    assert listed(starred_only=True, unread_only=True) == {"b2"}
    assert listed(folder="News") == {"b1", "b2"}
    assert listed(folder="None of the user's") == set()
    (starred,) = page(user, "/api/feeds/a/items", starred_only=True)["items"]
    assert (starred["id"], starred["is_read"], starred["is_starred"]) == (items["a1"], True, True)


def test_a_page_of_a_feed_says_which_feed_it_is_and_how_much_of_it_there_is(reader: Reader) -> None:
    user = ann(reader, a=5, b=1)
    path = "/api/feeds/a/items"
    visit(reader.database, description="Of towns")
    first = page(user, path, limit=2)
    assert first["feed"] == {
        "id": "a",
        "title": "A feed",
        "own_title": None,
        "description": "Of towns",
        "url": "https://a.example/a",
        "site_url": "https://a.example/",
        "folder": None,
    }
    told = ("total", "has_unread", "last_read_at")
    assert [first[name] for name in told] == [5, True, None]
    assert page(user, path, limit=2, cursor=first["next_cursor"])["total"] == 5
    assert not {*told, "feed"} & page(user).keys()

    ids = [each["id"] for each in first["items"]]
    user.client.post(f"{ITEMS}/mark", json={"ids": ids, "is_starred": True, "is_read": True})
    assert page(user, path, limit=1, unread_only=True)["total"] == 3
    assert page(user, path, limit=1, starred_only=True)["total"] == 2
    assert page(user, path, limit=1, starred_only=True, unread_only=True)["total"] == 0
    last = page(user, path, limit=2, order="oldest")
    user.client.post("/api/feeds/a/mark-read", json={"up_to": 2**52})
    read = page(user, path, limit=2, unread_only=True)
    assert [read[name] for name in told] == [0, False, instant(reader.clock())]
    assert (read["items"], read["feed"]["id"]) == ([], "a")
    arrive(reader.database, "a", "new")
    visit(reader.database, title="Another")
    changed = page(user, path, limit=2, order="oldest")
    assert titles(changed) == titles(last), "the same items, of which more is said"
    assert [changed[name] for name in told] == [6, True, instant(reader.clock())]
    assert changed["feed"]["title"] == "Another"


def test_an_item_has_what_the_feed_said_and_sanitized_html(reader: Reader) -> None:
    user = ann(reader, a=0)
    content = '<p onclick="x()">Hi <a href="/there">there</a><script>x()</script></p>'
    visit(
        reader.database,
        [item("1", link="https://a.example/1", content_html=content, authors=("Lois",), categories=("x",))],
    )
    (found,) = page(user)["items"]
    assert found["html"] == '<p>Hi <a href="https://a.example/there" rel="noopener noreferrer">there</a></p>'
    assert (found["url"], found["authors"], found["categories"]) == ("https://a.example/1", ["Lois"], ["x"])
    alone = user.client.get(f"{ITEMS}/{found['id']}")
    assert alone.json() == found
    same = user.client.get(f"{ITEMS}/{found['id']}", headers={"If-None-Match": alone.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


@pytest.mark.slow
@pytest.mark.parametrize("path", [ITEMS, "/api/feeds/a/items"])
def test_a_page_that_has_not_changed_is_answered_with_304(reader: Reader, path: str) -> None:
    user = ann(reader, a=40)

    def tag(**headers: str) -> str:
        found: str = user.client.get(path, headers=headers).headers["etag"]
        return found

    first = tag()
    assert first.endswith('-gzip"')
    plain = tag(**{"Accept-Encoding": "identity"})
    assert plain == first.replace("-gzip", "")
    for known in (first, plain):
        again = user.client.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", known)
    newest = page(user)["items"][0]["id"]
    for happens in (
        lambda: arrive(reader.database, "a", "new"),
        lambda: user.client.post(f"{ITEMS}/mark", json={"ids": [newest], "is_starred": True}),
        lambda: change(reader.database, "UPDATE feeds SET title = 'Another'"),
        # As a replay that finds other content.
        lambda: change(
            reader.database,
            """INSERT INTO item_versions (item_id, replaced_at, title, pub_date, categories, enclosures,
              guid_source, pub_date_source)
            SELECT id, '2026-03-01T00:00:00Z', title, pub_date, categories, enclosures, guid_source,
              pub_date_source FROM items WHERE id = ?""",
            newest,
        ),
    ):
        before = tag()
        happens()
        assert tag() != before


@pytest.mark.slow
def test_the_same_page_is_the_same_with_gzip_and_without(reader: Reader) -> None:
    user = ann(reader, a=40)
    for _ in range(2):
        plain = user.client.get(ITEMS, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        packed = user.client.get(ITEMS)
        assert packed.headers["content-encoding"] == "gzip"
        assert plain.json() == packed.json()
        assert plain.headers["etag"] != packed.headers["etag"]


@pytest.mark.parametrize(
    ("path", "params"),
    [
        (ITEMS, {"limit": 0}),
        (ITEMS, {"limit": 201}),
        (ITEMS, {"limit": "many"}),
        (ITEMS, {"cursor": -1}),
        (ITEMS, {"cursor": 2**53}),
        (ITEMS, {"cursor": "x"}),
        (ITEMS, {"order": "random"}),
        (ITEMS, {"unread_only": "perhaps"}),
        (ITEMS, {"folder": ""}),
        ("/api/feeds/a/items", {"limit": 1_000}),
    ],
)
def test_a_page_that_cannot_be_is_refused_with_the_name_of_the_value(
    reader: Reader, path: str, params: dict[str, Any]
) -> None:
    answer = ann(reader, a=1).client.get(path, params=params)
    assert answer.status_code == 422
    assert [mistake["where"] for mistake in answer.json()["errors"]] == [f"query.{next(iter(params))}"]


@pytest.mark.slow
def test_very_large_items_make_a_page_shorter_and_lose_none(reader: Reader) -> None:
    user = ann(reader, a=0)
    for n in range(1, 8):
        visit(reader.database, [item(str(n), content_html=f"<p>{'x' * 900_000}</p>")])
    first = page(user, limit=7)
    assert 1 <= len(first["items"]) < 7
    assert all_of(user, limit=7) == list("7654321")
    assert all_of(user, limit=7, order="oldest") == list("1234567")


@pytest.mark.slow
def test_on_d1_a_page_of_items_is_two_requests_and_one_where_its_bodies_are_cached(reader: Reader) -> None:
    user = ann(reader, a=0)
    for n in range(1, 8):
        visit(reader.database, [item(str(n), content_html=f"<p>{'x' * 900_000}</p>")])
    remote, database = as_on_d1(reader)
    client = remote.client(authorization=f"Bearer {user.token}")
    counts = []
    for path in (f"{ITEMS}?limit=7", "/api/feeds/a/items?limit=2", f"{ITEMS}/{page(user)['items'][0]['id']}"):
        for _ in range(2):
            database.requests = 0
            assert client.get(path).status_code == 200
            counts.append(database.requests)
    assert counts == [2, 1, 1, 1, 1, 1]


@pytest.mark.slow
def test_kept_pages_stay_within_their_limit_and_are_read_again_after_an_hour(reader: Reader) -> None:
    user = ann(reader, a=20, b=20)
    seconds = [0.0]
    bodies = Bodies(reader.stores.objects, seconds=lambda: seconds[0], lasts=1.0)
    pages = reader.app.state.item_pages = ItemPages(bodies, seconds=lambda: seconds[0], most_bytes=200_000)
    for limit in range(1, 41):
        page(user, limit=limit)
    assert 100_000 < pages.size <= 200_000
    page(user, limit=3)
    # Nothing of ours changes a row like this: the version does not say so.
    change(reader.database, "UPDATE items SET content_html = '<p>other</p>'")
    seconds[0] = KEPT_SECONDS - 1
    assert "other" not in str(page(user, limit=3))
    seconds[0] = KEPT_SECONDS + 1
    assert "other" in str(page(user, limit=3))


def test_each_user_has_pages_of_their_own(reader: Reader) -> None:
    user = ann(reader, a=2)
    other = reader.user("bob")
    register(reader.database, spec("a"), spec("b"))
    assert len(page(user)["items"]) == 2
    assert page(other)["items"] == []
    assert other.client.get("/api/feeds/a/items").status_code == 404


def test_items_are_listed_by_date_of_publication_where_that_is_wanted(reader: Reader) -> None:
    user = ann(reader, a=1)
    now = reader.clock()
    dates = {"x": 3, "y": 1, "z": 2}
    some = [item(guid, title=guid, pub_date=now - days * DAY) for guid, days in dates.items()]
    visit(reader.database, some, id="a", at=now)
    found: list[str] = []
    cursor: dict[str, Any] = {}
    for _ in range(4):
        page = user.client.get(ITEMS, params={"order": "published", "limit": 1, **cursor}).json()
        found += [each["title"] for each in page["items"]]
        cursor = {"cursor": page["next_cursor"]}
    assert found[:3] == ["y", "z", "x"]
    assert cursor == {"cursor": None}
    newest = user.client.get(ITEMS, params={"limit": 1}).json()
    assert isinstance(newest["next_cursor"], int)
    # A client that changes the order in the middle goes on near its place.
    other = user.client.get(ITEMS, params={"order": "published", "cursor": newest["next_cursor"]})
    assert other.status_code == 200
