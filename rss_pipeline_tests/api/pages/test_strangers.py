"""No one reads or changes what is another's by a page or a form, and no page of another site does.

The table has every route of pages, so that none is added without a line here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from rss_pipeline.api import app as application
from rss_pipeline.api.auth import COOKIE
from rss_pipeline.reader.kept_documents import kept_documents
from rss_pipeline.storage.backups.backups import put_backup
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.test_strangers import OPML
from rss_pipeline_tests.api.two_users import FOREIGN_PAGE, UNKNOWN, Two, stored, two, two_on, without_versions
from rss_pipeline_tests.storage.values import document
from rss_pipeline_tests.support.feeds import make_feed
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.reader import HOST, URL, Reader, reader_settings

__all__ = ["two"]

pytestmark = pytest.mark.slow

FILE = {"file": ("feeds.opml", OPML, "text/x-opml")}


@dataclass(frozen=True, slots=True)
class Page:
    """A page or a form, with what it takes, and the kind of the id in its path or in one of its fields."""

    method: str
    path: str
    form: dict[str, str] = field(default_factory=dict)
    id: str | None = None
    field: str | None = None
    """The form's field that names a thing of this kind; None: the path does."""
    files: dict[str, tuple[str, bytes, str]] | None = None
    mark: str = ""
    feature: str | None = None
    """The feature that adds it."""

    def send(self, client: httpx.Client, id: str = "", **headers: str) -> httpx.Response:
        # A backup is named by its feed and its time.
        feed, _, name = id.partition("|")
        path = self.path.replace("{id}", feed).replace("{name}", name).replace("{mark}", self.mark)
        path = path.replace("{name:path}", id)
        form = {**self.form, self.field: id} if self.field else self.form
        if self.method == "GET":
            return client.get(path, headers=headers)
        return client.request(self.method, path, headers=headers, data=form, files=self.files)


EVERY = (
    Page("GET", "/unread"),
    Page("GET", "/all"),
    Page("GET", "/starred"),
    Page("GET", "/feeds"),
    Page("GET", "/feeds/{id}", id="feed"),
    Page("GET", "/folders/{name:path}", id="folder"),
    Page("GET", "/next-unread"),
    Page("GET", "/state"),
    Page("GET", "/entries"),
    Page("GET", "/items/{id}", id="item"),
    Page("GET", "/items/{id}/body", id="item"),
    Page("GET", "/items/{id}/versions", id="item"),
    Page("POST", "/items/{id}/images", id="item"),
    *(
        Page("POST", "/items/{id}/{mark}", id="item", mark=each)
        for each in ("read", "star", "unstar", "unread")
    ),
    Page("POST", "/mark-read", {"up_to": "9007199254740991"}),
    Page("POST", "/mark-read", {"up_to": "9007199254740991"}, "feed", "feed"),
    Page("POST", "/mark-read", {"up_to": "9007199254740991"}, "folder", "folder"),
    Page("POST", "/mark-read/undo", {}, "mark", "id"),
    Page("GET", "/search", feature="search"),
    Page("GET", "/stories/{id}", id="item", feature="stories"),
    Page("POST", "/stories/apart", {}, "item", "item", feature="stories"),
    Page("POST", "/stories/together", {"other": "0" * 32}, "item", "item", feature="stories"),
    Page("POST", "/stories/undo", feature="stories"),
    Page("POST", "/stories/lead", {}, "feed", "leads", feature="stories"),
    Page("POST", "/stories/switch", {"on": "yes"}, feature="stories"),
    Page("GET", "/statistics", feature="statistics"),
    Page("GET", "/feeds/{id}/statistics", id="feed", feature="statistics"),
    Page("GET", "/feeds/{id}/full-text", id="feed", feature="full_text"),
    Page("POST", "/feeds/{id}/full-text", {"on": "yes"}, "feed", feature="full_text"),
    Page("POST", "/full-text/{id}", {}, "item", feature="full_text"),
    Page("GET", "/settings"),
    Page("POST", "/settings", {"theme": "dark"}),
    Page("GET", "/settings/sessions"),
    Page("POST", "/settings/sessions/{id}/end", id="session"),
    Page("POST", "/settings/sessions/end-others"),
    Page("POST", "/settings/password", {"current": "x" * 8, "new": "y" * 8, "again": "y" * 8}),
    Page("GET", "/settings/apps"),
    Page("POST", "/settings/apps", {"name": "phone"}),
    Page("POST", "/settings/apps/{id}/revoke", id="app password"),
    Page("GET", "/settings/opml", feature="opml"),
    Page("POST", "/settings/opml", files=FILE, feature="opml"),
    Page("GET", "/settings/folders"),
    Page("GET", "/settings/folders/one"),
    Page("POST", "/settings/folders/add", {"name": "News"}),
    Page("POST", "/settings/folders/rename", {"name": "Own", "new": "News"}),
    Page("POST", "/settings/folders/remove", {"name": "Own"}),
    Page("POST", "/settings/folders/order", {"name": ""}, "feed", "up"),
    Page("GET", "/feeds/add"),
    Page("POST", "/feeds/add", {"url": "https://new.example/feed"}),
    Page("GET", "/feeds/{id}/edit", id="feed"),
    Page("POST", "/feeds/{id}/edit", {"title": "Mine"}, "feed"),
    Page("GET", "/feeds/{id}/unsubscribe", id="feed"),
    Page("POST", "/feeds/{id}/unsubscribe", id="feed"),
    Page("POST", "/feeds/{id}/refresh", id="feed"),
    Page("POST", "/refresh"),
    Page("GET", "/feeds/{id}/backups", id="feed"),
    Page("GET", "/feeds/{id}/backups/{name}", id="backup"),
    Page("GET", "/tasks"),
    Page("GET", "/tasks/{id}", id="task"),
    Page("GET", "/failing"),
)
PAGES = [page for page in EVERY if page.feature is None or page.feature in INSTALLED]
FORMS = [page for page in PAGES if page.method != "GET"]
WITH_ID = [page for page in PAGES if page.id is not None and page.field is None]
WITH_FIELD = [page for page in PAGES if page.field is not None]
PUBLIC = {
    ("GET", "/"),
    ("GET", "/folders"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("POST", "/logout"),
    ("GET", "/first-user"),
    ("POST", "/first-user"),
    ("GET", "/static/{version}/{name}"),
}
"""The same for everybody; what the forms refuse is tested with the login and with the first user."""


def name(page: Page) -> str:
    return (
        f"{page.method} {page.path}{page.mark and '='}{page.mark}{f' of a {page.id}' if page.field else ''}"
    )


def ids(two: Two, page: Page, folder: Path) -> dict[str, str]:
    """The things of this kind: `hers` Ann's, `his` Bob's."""
    if page.id is None:
        return {"hers": "", "his": ""}
    if page.id in ("feed", "backup"):
        path = folder / "document"
        path.write_bytes(b"<rss/>")
        names = {}
        for of in ("hers", "his", "both"):
            feed = make_feed(of, f"https://{of}.example/{of}", f"{of}.example")
            put_backup(two.reader.stores.objects, feed, document(path, at=two.reader.clock()))
            [kept] = kept_documents(two.reader.stores.objects, of, limit=2).documents
            names[of] = f"{of}|{kept.name}"
        if page.id == "backup":
            return names
    if page.id == "folder":
        for user, of in ((two.ann, "hers"), (two.bob, "his")):
            client = browser(two.reader, user)
            client.post(f"/feeds/{of}/edit", data={"folder": f"Folder of {of}"})
        return {of: f"Folder of {of}" for of in ("hers", "his")}
    return two.ids(page.id)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A reader in which no test changes anything, with a thing of each kind; browsers of both users."""

    two: Two
    ann: httpx.Client
    bob: httpx.Client
    ended: httpx.Client
    """The token of a session that Ann has ended."""
    ids: dict[str | None, dict[str, str]]

    @contextmanager
    def stays(self) -> Iterator[None]:
        """Fail if anything is written, be it the users' or not."""
        before = stored(self.two.reader)
        yield
        assert stored(self.two.reader) == before

    @contextmanager
    def stays_but_versions(self) -> Iterator[None]:
        before = without_versions(stored(self.two.reader))
        yield
        assert without_versions(stored(self.two.reader)) == before


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unchanged]:
    home = tmp_path_factory.mktemp("unchanged")
    with Reader.on(reader_settings(home / "home")) as reader:
        two = two_on(reader)
        # A page of each kind; feeds have their backups from one of their own.
        pages = {page.id: page for page in PAGES if page.id != "feed"}
        found = {id: ids(two, page, home) for id, page in pages.items()}
        found["feed"] = two.ids("feed")
        ann, bob, ended = (browser(reader, user) for user in (two.ann, two.bob, two.ann))
        ended.post("/logout")
        bob.post("/settings/folders/add", data={"name": "Folder of Bob"})
        bob.post("/settings/apps", data={"name": "Phone of Bob"})
        bob.post("/feeds/his/refresh")
        yield Unchanged(two, ann, bob, ended, found)


def test_the_table_has_every_route_of_pages(reader: Reader) -> None:
    routes = {
        (method, route.path)  # type: ignore[attr-defined]
        for router in application.PAGES
        for route in router.routes
        for method in route.methods  # type: ignore[attr-defined]
    }
    assert routes == {(page.method, page.path) for page in PAGES} | PUBLIC


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_without_a_session_every_page_leads_to_the_login(unchanged: Unchanged, page: Page) -> None:
    reader, token = unchanged.two.reader, unchanged.two.ann.token
    with unchanged.stays():
        for client in (
            browser(reader),
            reader.client(origin=URL, authorization="Bearer x.y.z"),
            reader.client(origin=URL, authorization=f"GoogleLogin auth={token}"),
            reader.client(origin=URL, cookie=f"{COOKIE}={token}"),
            unchanged.ended,
        ):
            answer = page.send(client, unchanged.ids[page.id]["hers"])
            assert answer.status_code == 303
            assert answer.headers["location"].partition("?")[0] == "/login"
            assert answer.content == b""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_of_another_site_changes_nothing_and_reads_nothing(unchanged: Unchanged, page: Page) -> None:
    id = unchanged.ids[page.id]["hers"]
    client = unchanged.two.reader.client(cookie=f"{COOKIE}={unchanged.ann.cookies[COOKIE]}")
    with unchanged.stays():
        refused = page.send(client, id, **FOREIGN_PAGE)
        assert refused.status_code == 403
        assert refused.headers["content-type"].startswith("text/html")
        assert "hers.example" not in refused.text
        if page.method == "GET":
            # A link on it may be followed, which is what Sec-Fetch-Mode says.
            assert page.send(client, id, **FOREIGN_PAGE, **{"Sec-Fetch-Mode": "navigate"}).status_code < 400
        else:
            # Nor does a form that hides where it is from, or one that a page of another port sends.
            for hidden in ({}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:3002"}):
                assert page.send(client, id, **hidden).status_code == 403


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_under_another_name_of_this_machine_there_is_nothing(unchanged: Unchanged, page: Page) -> None:
    with unchanged.stays():
        for host in ("evil.example", "127.0.0.1", f"{HOST}.evil.example", "127.0.0.1:3002"):
            id = unchanged.ids[page.id]["hers"]
            refused = page.send(unchanged.ann, id, Host=host, Origin=f"http://{host}")
            assert refused.status_code == 421
            assert "hers.example" not in refused.text


@pytest.mark.parametrize("page", WITH_ID, ids=name)
def test_anothers_id_an_unknown_one_and_none_at_all_are_answered_alike(
    unchanged: Unchanged, page: Page
) -> None:
    found = unchanged.ids[page.id]
    with unchanged.stays_but_versions():
        foreign = page.send(unchanged.ann, found["his"])
        assert foreign.status_code == 404
        for unknown in UNKNOWN:
            id = unknown + found["his"][len("his") :] if page.id == "backup" else unknown
            answer = page.send(unchanged.ann, id)
            assert (answer.status_code, answer.content) == (404, foreign.content)
        assert page.send(unchanged.bob, found["hers"]).status_code == 404


@pytest.mark.parametrize("page", WITH_FIELD, ids=name)
def test_a_form_that_names_anothers_thing_changes_nothing(unchanged: Unchanged, page: Page) -> None:
    with unchanged.stays_but_versions():
        for id in (unchanged.ids[page.id]["his"], *UNKNOWN):
            assert "his.example" not in page.send(unchanged.ann, id).text


@pytest.mark.parametrize("page", [page for page in WITH_ID if page.id == "feed"], ids=name)
def test_what_one_does_to_a_shared_feed_is_not_seen_by_the_other(
    two: Two, page: Page, tmp_path: Path
) -> None:
    ids(two, page, tmp_path)
    before = two.seen_by(two.bob)
    assert page.send(browser(two.reader, two.ann), "both").status_code < 400
    assert two.seen_by(two.bob) == before


@pytest.mark.parametrize("page", [page for page in PAGES if page in FORMS or page in WITH_ID], ids=name)
def test_what_one_sends_or_opens_is_not_seen_by_the_other(two: Two, page: Page, tmp_path: Path) -> None:
    id = ids(two, page, tmp_path)["hers"]
    before = two.seen_by(two.bob)
    answer = page.send(browser(two.reader, two.ann), id)
    if page in WITH_ID:
        assert answer.status_code < 400
    assert two.seen_by(two.bob) == before


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.method == "GET" and page.id is None], ids=name
)
def test_no_page_shows_what_is_another_user_s(unchanged: Unchanged, page: Page) -> None:
    assert page.send(unchanged.bob).status_code < 400
    shown = page.send(unchanged.ann).text
    for word in ("his.example", "/feeds/his", "Bob", "bob"):
        assert word not in shown
