"""The pages that change a subscription, that end it, and those of folders and their order."""

from typing import Any

import httpx
import pytest

from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.pages.feeds.test_adding import of, words
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import change
from rss_pipeline_tests.support.reader import Reader

FOLDERS = "/settings/folders"


def edit(client: httpx.Client, id: str, **fields: str) -> httpx.Response:
    return client.post(f"/feeds/{id}/edit", data={"title": "", "folder": "", "interval": "", **fields})


def test_title_folder_and_interval_are_changed_and_taken_back(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    client = browser(reader, user)
    sent = edit(client, "a", title=" Mine ", folder="News", interval="3600")
    assert (sent.status_code, sent.headers["location"]) == (303, "/feeds/a")

    def now() -> list[Any]:
        [feed] = [each for each in of(user) if each["id"] == "a"]
        return [feed[name] for name in ("title", "folder", "interval")]

    assert now() == ["Mine", "News", 3600]
    form = client.get("/feeds/a/edit").text
    assert 'name="title" value="Mine"' in form
    assert '<option value="News">' in form
    assert '<option value="3600" selected>' in form
    assert '<option value="News">' in client.get("/feeds/b/edit").text, "existing folders are offered"
    edit(client, "a")
    assert now() == ["A feed", None, None]


def test_an_interval_that_a_program_wished_stays_chosen_in_the_form(reader: Reader) -> None:
    user = ann(reader, a=1)
    user.client.patch("/api/feeds/a", json={"interval": 1500})
    form = browser(reader, user).get("/feeds/a/edit").text
    assert '<option value="1500" selected>every 25 minutes</option>' in form


def test_a_value_that_cannot_be_is_refused_and_changes_nothing(reader: Reader) -> None:
    user = ann(reader, a=1)
    refused = edit(browser(reader, user), "a", title="Mine", interval="1")
    assert refused.status_code == 422
    assert "The interval is between 15 minutes and a day." in words(refused)
    assert of(user)[0]["title"] == "A feed"


def test_unsubscribing_prompts_first_and_says_what_goes(reader: Reader) -> None:
    user = ann(reader, a=2, b=1)
    ids = [each["id"] for each in user.client.get("/api/feeds/a/items").json()["items"]]
    user.client.post("/api/items/mark", json={"ids": ids, "is_starred": True})
    client = browser(reader, user)
    asked = client.get("/feeds/a/unsubscribe")
    assert "the stars of 2 items" in words(asked)
    assert len(of(user)) == 2
    sent = client.post("/feeds/a/unsubscribe", data={})
    assert (sent.status_code, sent.headers["location"]) == (303, "/unread")
    assert [each["id"] for each in of(user)] == ["b"]
    assert client.post("/feeds/a/unsubscribe", data={}).status_code == 404


@pytest.mark.parametrize("way", ["edit", "unsubscribe"])
def test_another_s_feed_is_not_found(reader: Reader, way: str) -> None:
    user = ann(reader, a=1)
    stranger = browser(reader, reader.user("bob"))
    assert stranger.get(f"/feeds/a/{way}").status_code == 404
    assert stranger.post(f"/feeds/a/{way}", data={"title": "Mine"}).status_code == 404
    assert of(user)[0]["title"] == "A feed"


@pytest.mark.parametrize(
    "path",
    [
        "/feeds/add",
        "/feeds/a/edit",
        "/feeds/a/unsubscribe",
        "/feeds/a/refresh",
        "/refresh",
        f"{FOLDERS}/add",
        f"{FOLDERS}/rename",
        f"{FOLDERS}/remove",
        f"{FOLDERS}/order",
    ],
)
def test_a_page_of_another_site_changes_nothing(reader: Reader, path: str) -> None:
    user = ann(reader, a=1)
    change(reader.database, "UPDATE subscriptions SET folder = 'News'")
    client = browser(reader, user)
    before = user.client.get("/api/feeds").content
    fields = {"url": "https://new.example/", "title": "Evil", "name": "News", "new": "Evil"}
    foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    assert client.post(path, data=fields, headers=foreign).status_code == 403
    nobody = browser(reader).post(path, data=fields)
    assert (nobody.status_code, nobody.headers["location"]) == (303, "/login")
    assert user.client.get("/api/feeds").content == before
    assert reader.database.query("SELECT count(*) AS n FROM refresh_requests").rows[0]["n"] == 0


def test_folders_are_made_renamed_joined_and_removed(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    client = browser(reader, user)

    def folders() -> list[str]:
        found: list[str] = user.client.get("/api/feeds").json()["folders"]
        return found

    client.post(f"{FOLDERS}/add", data={"name": "Empty"})
    edit(client, "a", folder="News")
    assert folders() == ["Empty", "News"]
    sent = client.post(f"{FOLDERS}/rename", data={"name": "News", "new": "A & B/C?"})
    assert folders() == ["A & B/C?", "Empty"]
    assert "A &amp; B/C?" in client.get(sent.headers["location"]).text
    client.post(f"{FOLDERS}/rename", data={"name": "Empty", "new": "A & B/C?"})
    assert folders() == ["A & B/C?"]
    client.post(f"{FOLDERS}/remove", data={"name": "A & B/C?"})
    assert folders() == []
    assert len(of(user)) == 2
    assert client.post(f"{FOLDERS}/add", data={"name": " "}).status_code == 422
    assert client.get(f"{FOLDERS}/one?name=None").status_code == 404


def test_a_feed_moves_within_its_folder(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    subscribe(reader.database, reader.user("bob").id, "c", "b", "a")
    client = browser(reader, user)
    change(reader.database, "UPDATE subscriptions SET folder = 'News' WHERE feed_id <> 'b'")
    client.post(f"{FOLDERS}/order", data={"name": "News", "up": "c"})
    assert [each["id"] for each in of(user)] == ["c", "b", "a"]
    client.post(f"{FOLDERS}/order", data={"name": "News", "up": "c"})
    client.post(f"{FOLDERS}/order", data={"name": "News", "down": "x"})
    assert [each["id"] for each in of(user)] == ["c", "b", "a"]
    client.post(f"{FOLDERS}/order", data={"name": "News", "down": "c"})
    assert [each["id"] for each in of(user)] == ["a", "b", "c"]
    rows = reader.database.query("SELECT count(DISTINCT position) AS n FROM subscriptions").rows
    assert rows[0]["n"] == 3, "another's order stays"
