"""No one reads or changes what is another's: every address of the API, two users, and ids of all kinds.

The table has every operation of the OpenAPI document, so that none is added without a line here.
"""

from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from rss_pipeline.reader.bodies import IMAGES_PATH
from rss_pipeline_tests.api.two_users import FOREIGN_PAGE, UNKNOWN, Two, cookie_of, two
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.reader import HOST, Reader

__all__ = ["two"]

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, with a body that it takes, and the kind of the id in its path."""

    method: str
    path: str
    body: object = None
    id: str | None = None
    feature: str | None = None
    """The feature that adds it."""

    def send(self, client: httpx.Client, id: str = "", **headers: str) -> httpx.Response:
        path = self.path.replace("{id}", id).replace("{key}", id)
        content = {"content": self.body} if isinstance(self.body, bytes) else {"json": self.body}
        given: dict[str, Any] = {} if self.body is None else content
        return client.request(self.method, path, headers=headers, **given)


OPML = b'<opml version="2.0"><head/><body><outline text="x" xmlUrl="https://x.example/feed"/></body></opml>'
EVERY = (
    Operation("GET", "/api/feeds"),
    Operation("GET", "/api/feeds/updated"),
    Operation("POST", "/api/feeds", {"url": "https://new.example/feed"}),
    Operation("PATCH", "/api/feeds/{id}", {"title": "Mine"}, "feed"),
    Operation("DELETE", "/api/feeds/{id}", None, "feed"),
    Operation("GET", "/api/feeds/{id}/items", None, "feed"),
    Operation("POST", "/api/feeds/{id}/mark-read", {"up_to": 2**53 - 1}, "feed"),
    Operation("POST", "/api/feeds/{id}/refresh", None, "feed"),
    Operation("GET", "/api/items"),
    Operation("GET", "/api/items/{id}", None, "item"),
    Operation("GET", "/api/feeds/{id}/full-text", None, "feed", feature="full_text"),
    Operation("GET", "/api/items/{id}/full-text", None, "item", feature="full_text"),
    Operation("POST", "/api/items/{id}/full-text", None, "item", feature="full_text"),
    Operation("DELETE", "/api/items/{id}/full-text", None, "item", feature="full_text"),
    Operation("GET", "/api/search", feature="search"),
    Operation("GET", "/api/stories", feature="stories"),
    Operation("GET", "/api/stories/{id}", None, "item", feature="stories"),
    Operation("POST", "/api/stories/{id}/apart", None, "item", feature="stories"),
    Operation("POST", "/api/stories/together", {"items": ["0" * 32] * 2}, feature="stories"),
    Operation("POST", "/api/stories/lead", {"feed_id": "x", "leads": True}, feature="stories"),
    Operation("POST", "/api/stories/undo", feature="stories"),
    Operation("POST", "/api/mark-read", {"up_to": 2**53 - 1}),
    Operation("GET", "/api/mark-read"),
    Operation("POST", "/api/mark-read/{id}/undo", {}, "mark"),
    Operation("POST", "/api/items/mark", {"ids": ["0" * 32], "is_starred": True}),
    Operation("GET", "/api/images/{key}", None, "image"),
    Operation("GET", "/api/tasks/{id}", None, "task"),
    Operation("GET", "/api/collecting"),
    Operation("POST", "/api/import/opml", OPML, feature="opml"),
    Operation("GET", "/api/export/opml", feature="opml"),
    Operation("GET", "/api/user/preferences"),
    Operation("PUT", "/api/user/preferences", {"theme": "dark"}),
    Operation("PATCH", "/api/user/preferences", {"theme": "dark"}),
    Operation("GET", "/api/user/sessions"),
    Operation("DELETE", "/api/user/sessions"),
    Operation("DELETE", "/api/user/sessions/{id}", None, "session"),
    Operation("GET", "/api/user/app-passwords"),
    Operation("POST", "/api/user/app-passwords", {"name": "phone", "password": "correct-horse"}),
    Operation("DELETE", "/api/user/app-passwords/{id}", None, "app password"),
)
OPERATIONS = [each for each in EVERY if each.feature is None or each.feature in INSTALLED]
WITH_ID = [operation for operation in OPERATIONS if operation.id is not None]
PUBLIC = {("GET", "/api/about"), ("POST", "/api/auth/login"), ("POST", "/api/auth/renew")}
LOGOUT = ("POST", "/api/auth/logout")
"""It answers 401 without a session and 204 with a cookie that opens nothing: tested with the login."""


def name(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def test_the_table_has_every_operation(reader: Reader) -> None:
    documented = {
        (method.upper(), path)
        for path, operations in reader.app.openapi()["paths"].items()
        for method in operations
    }
    assert documented == {(each.method, each.path) for each in OPERATIONS} | PUBLIC | {LOGOUT}


@pytest.mark.parametrize("operation", OPERATIONS, ids=name)
def test_without_a_session_there_is_nothing(two: Two, operation: Operation) -> None:
    id = two.ids(operation.id)["hers"] if operation.id else ""
    before = two.seen_by(two.ann)
    ended = two.reader.signed_in(two.ann.id)
    ended.client.post("/api/auth/logout")
    for client in (
        two.reader.client(),
        two.reader.client(authorization="Bearer x.y.z"),
        two.reader.client(authorization=f"GoogleLogin auth={two.ann.token}"),
        two.reader.client(cookie=f"rss_session={two.ann.token}", origin=f"http://{HOST}"),
        ended.client,
    ):
        answer = operation.send(client, id)
        assert answer.status_code == 401
        assert answer.json()["kind"] == "not_signed_in"
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert two.seen_by(two.ann) == before


@pytest.mark.parametrize("operation", OPERATIONS, ids=name)
def test_a_page_of_another_site_gets_and_changes_nothing_with_a_cookie(
    two: Two, operation: Operation
) -> None:
    id = two.ids(operation.id)["hers"] if operation.id else ""
    cookie = cookie_of(two.reader, two.ann)
    before = two.seen_by(two.ann)
    answer = operation.send(two.reader.client(cookie=cookie), id, **FOREIGN_PAGE)
    assert answer.status_code == 403
    assert answer.json()["kind"] == "foreign_origin"
    if operation.method != "GET":
        # Nor does one that hides where it is from.
        assert operation.send(two.reader.client(cookie=cookie), id).status_code == 403
    assert two.seen_by(two.ann) == before


@pytest.mark.parametrize("operation", WITH_ID, ids=name)
def test_anothers_id_an_unknown_one_and_none_at_all_are_answered_alike(
    two: Two, operation: Operation
) -> None:
    assert operation.id is not None
    ids = two.ids(operation.id)
    before = two.seen_by(two.bob)[1:]
    foreign = operation.send(two.ann.client, ids["his"])
    assert foreign.status_code == 404
    assert foreign.json()["kind"] == "not_found"
    for unknown in UNKNOWN:
        answer = operation.send(two.ann.client, unknown)
        assert (answer.status_code, answer.content) == (404, foreign.content)
    assert two.seen_by(two.bob)[1:] == before
    assert operation.send(two.ann.client, ids["hers"]).status_code < 300
    assert operation.send(two.bob.client, ids["hers"]).status_code == 404


@pytest.mark.parametrize(
    "operation", [operation for operation in WITH_ID if operation.id == "feed"], ids=name
)
def test_what_one_does_to_a_shared_feed_is_not_seen_by_the_other(two: Two, operation: Operation) -> None:
    before = two.seen_by(two.bob)
    assert operation.send(two.ann.client, "both").status_code < 300
    assert two.seen_by(two.bob) == before


def test_what_one_reads_and_stars_of_a_shared_feed_is_the_users_own(two: Two) -> None:
    before = two.seen_by(two.bob)
    items = two.ann.client.get("/api/feeds/both/items").json()["items"]
    marks = {"ids": [each["id"] for each in items], "is_read": True, "is_starred": True}
    assert two.ann.client.post("/api/items/mark", json=marks).json()["marked"] == 2
    assert two.seen_by(two.bob) == before


def test_anothers_item_that_is_starred_is_in_no_list(two: Two) -> None:
    his, shared = two.ids("item")["his"], two.ann.client.get("/api/feeds/both/items").json()["items"][0]["id"]
    alone = two.ann.client.post("/api/items/mark", json={"ids": [his], "is_starred": True})
    assert alone.status_code == 404
    both = two.ann.client.post("/api/items/mark", json={"ids": [his, shared], "is_starred": True})
    assert both.json() == {"marked": 1, "unknown": [his]}
    starred = two.ann.client.get("/api/items", params={"starred_only": True}).json()["items"]
    assert [each["id"] for each in starred] == [shared]
    subscribe(two.reader.database, two.ann.id, "his")
    starred = two.ann.client.get("/api/items", params={"starred_only": True}).json()["items"]
    assert [each["id"] for each in starred] == [shared]


def test_a_feed_that_was_unsubscribed_is_a_strangers_again(two: Two) -> None:
    item = two.ids("item")["hers"]
    tag = two.ann.client.get("/api/feeds/hers/items").headers["etag"]
    assert two.ann.client.delete("/api/feeds/hers").status_code == 204
    for path in (f"/api/items/{item}", "/api/feeds/hers/items", f"{IMAGES_PATH}images/hers/0a1b2c3d/0.png"):
        assert two.ann.client.get(path, headers={"If-None-Match": tag}).status_code == 404
    assert "hers" not in {each["feed_id"] for each in two.ann.client.get("/api/items").json()["items"]}


def test_an_image_is_served_to_subscribers_as_an_image_and_as_nothing_else(two: Two) -> None:
    for type, shown in (("image/png", "image/png"), ("text/html", "application/octet-stream")):
        key = f"images/hers/0a1b2c3d/1.{type[:3]}"
        two.reader.stores.objects.put(key, b"<script>", content_type=type)
        answer = two.ann.client.get(IMAGES_PATH + key)
        assert (answer.status_code, answer.headers["content-type"]) == (200, shown)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        again = two.ann.client.get(IMAGES_PATH + key, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for each in (answer, again):
            assert each.headers["cache-control"] == "private, max-age=31536000, immutable"
            assert "Cookie" in each.headers["vary"]


@pytest.mark.parametrize(
    "key",
    ["backups/hers/x.xml", "images/hers/../his/0a1b2c3d/0.png", "images/hers", "images/hers//0.png", "hers"],
)
def test_no_key_leads_out_of_the_images_of_the_users_feeds(two: Two, key: str) -> None:
    two.reader.stores.objects.put("backups/hers/x.xml", b"<rss/>", content_type="text/xml")
    path = IMAGES_PATH + key.replace("..", "%2e%2e")
    assert two.ann.client.get(path).status_code == 404
