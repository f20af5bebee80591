"""Stories on the reader's page and in its API: one entry, read as a whole, with reasons, and no."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from rss_pipeline.storage.feeds import forget
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann, subscribed
from rss_pipeline_tests.features.stories.stored import ids, one_story
from rss_pipeline_tests.storage.subscriptions.readers import arrive, subscribe, unread
from rss_pipeline_tests.support.reader import Reader, User


def lines(text: str) -> list[str]:
    return re.findall(r'<li class="entry [^"]*" id="i-(\w+)"', text)


def total(text: str) -> int:
    found = re.search(r'<body[^>]* data-unread="(\d+)"', text)
    assert found is not None
    return int(found[1])


def folder_of(user: User, feed: str, folder: str) -> None:
    assert user.client.patch(f"/api/feeds/{feed}", json={"folder": folder}).status_code == 200


def test_a_story_is_one_entry_that_names_the_others_and_is_read_as_a_whole(reader: Reader) -> None:
    user = ann(reader, a=2, b=2, c=1)
    members = one_story(reader.database, "a1", "b1", "c1")
    client = browser(reader, user)
    page = client.get("/unread")
    assert len(lines(page.text)) == 3
    assert total(page.text) == 3
    assert members[0] in lines(page.text)
    assert "and 2 more" in page.text
    [listed] = re.findall(r'data-with="([^"]*)"', page.text)
    assert set(listed.split(",")) == set(members)
    # In a list of its feed alone each is there, and counted.
    assert len(lines(client.get("/feeds/b").text)) == 2
    assert unread(reader.database, user.id) == {"a": 2, "b": 2, "c": 1}
    # What comes while somebody reads was in no list: it is not marked, and the story is updated.
    arrive(reader.database, "c", "late")
    late = ids(reader.database, "clate")
    reader.database.query(
        """INSERT INTO story_members (item_id, story_id, feed_id, arrived, article, lead, decided_at, version)
        SELECT id, ?, feed_id, arrived, id, arrived, '2026-03-02T12:00:00Z', 1 FROM items WHERE id = ?""",
        [members[0], late[0]],
    )
    client.post(f"/items/{members[0]}/read", data={"with": listed, "back": "/unread"})
    assert unread(reader.database, user.id) == {"a": 1, "b": 1, "c": 1}
    page = client.get("/unread")
    assert late[0] in lines(page.text)
    assert total(page.text) == 3
    assert '<span class="updated">' in page.text


def test_a_copy_that_comes_after_its_story_was_read_is_counted_in_its_feed_alone(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    members = one_story(reader.database, "a1", "b1")
    reader.database.query("UPDATE story_members SET article = story_id")
    client = browser(reader, user)
    client.post(f"/items/{members[0]}/read", data={"back": "/unread"})
    page = client.get("/unread")
    assert lines(page.text) == []
    assert total(page.text) == 0
    assert unread(reader.database, user.id) == {"a": 0, "b": 1}
    assert lines(client.get("/feeds/b").text) == [members[1]]


def test_a_later_copy_with_a_full_text_leads_each_list_and_is_made_unread_with_the_first(
    reader: Reader,
) -> None:
    user = ann(reader, a=1, b=1, c=1)
    first, second, _ = one_story(reader.database, "a1", "b1", "c1")
    reader.database.query("UPDATE story_members SET article = story_id, lead = 0 WHERE item_id = ?", [second])
    client = browser(reader, user)
    page = client.get("/unread")
    assert lines(page.text) == lines(client.get("/all").text) == [second]
    assert total(page.text) == 1
    client.post(f"/items/{second}/read", data=fields_of(page.text, "read"))
    assert unread(reader.database, user.id) == {"a": 0, "b": 0, "c": 0}
    page = client.get("/all")
    assert fields_of(page.text, "unread") == {"copied": first}
    client.post(f"/items/{second}/unread", data=fields_of(page.text, "unread"))
    assert unread(reader.database, user.id) == {"a": 1, "b": 1, "c": 0}
    assert lines(client.get("/unread").text) == [second]
    # So do the buttons on its own page.
    user.client.patch("/api/user/preferences", json={"mark_read_on_open": False})
    for act, left in (("read", {"a": 0, "b": 0, "c": 0}), ("unread", {"a": 1, "b": 1, "c": 0})):
        page = client.get(f"/items/{second}")
        hidden = dict(re.findall(r'<input type="hidden" name="(with|copied)" value="([^"]*)">', page.text))
        assert f'formaction="/items/{second}/{act}"' in page.text
        client.post(f"/items/{second}/{act}", data=hidden)
        assert unread(reader.database, user.id) == left


def fields_of(text: str, act: str) -> dict[str, str]:
    """The fields that the button of that act sends, of the one entry of a list."""
    [(name, value)] = re.findall(rf'formaction="/items/\w+/{act}" name="(\w+)" value="([^"]*)"', text)
    return {name: value}


def test_a_folder_shows_a_story_by_its_own_feeds(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    folder_of(user, "b", "News")
    folder_of(user, "c", "News")
    members = one_story(reader.database, "a1", "b1", "c1")
    page = browser(reader, user).get("/folders/News")
    assert lines(page.text) == [members[1]]
    assert "and 1 more" in page.text
    state = browser(reader, user).get("/state").json()
    assert state["hidden"] == {"all": 2, "folders": {"News": 1}}


def test_no_one_sees_a_title_of_a_feed_that_they_do_not_read(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    members = one_story(reader.database, "a1", "b1", "c1")
    other = subscribed(reader, reader.user("bob"))
    reader.database.query(
        "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at)"
        " VALUES (?, 'b', 0, '2026-03-02T12:00:00Z'), (?, 'c', 0, '2026-03-02T12:00:00Z')",
        [other.id, other.id],
    )
    page = browser(reader, other).get("/unread")
    assert lines(page.text) == [members[1]]
    for address in (f"/stories/{members[1]}", f"/api/stories/{members[1]}"):
        found = browser(reader, other).get(address)
        assert found.status_code == 200
        assert members[0] not in found.text
    # The one that decided is in a feed of others: what both have is not what it has.
    assert "ravensdale" not in browser(reader, other).get(f"/stories/{members[2]}").text
    assert browser(reader, other).get(f"/stories/{members[0]}").status_code == 404
    assert "ravensdale" in browser(reader, user).get(f"/stories/{members[1]}").text


def test_a_user_says_no_and_takes_it_back_for_themselves_alone(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    members = one_story(reader.database, "a1", "b1")
    other = subscribed(reader, reader.user("bob"))
    reader.database.query(
        "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at)"
        " SELECT ?, id, 0, created_at FROM feeds",
        [other.id],
    )
    client = browser(reader, user)
    done = client.post("/stories/apart", data={"item": members[1]})
    assert done.headers["location"].endswith(f"/stories/{members[1]}?said=apart")
    assert len(lines(client.get("/unread").text)) == 3
    assert len(lines(browser(reader, other).get("/unread").text)) == 2
    third = ids(reader.database, "c1")[0]
    client.post(
        "/stories/together", data={"item": members[1], "other": f"http://reader.example/items/{third}"}
    )
    assert len(lines(client.get("/unread").text)) == 2
    # The user alone has put these together.
    assert "You put it here." in client.get(f"/stories/{third}").text
    said = user.client.get(f"/api/stories/{third}").json()["items"]
    assert [each["reason"]["kind"] for each in said] == ["first", "chosen"]
    assert client.post("/api/stories/undo").status_code == 204
    assert client.post("/stories/undo").status_code == 303
    assert len(lines(client.get("/unread").text)) == 2
    assert client.post("/stories/undo").status_code == 404
    said = user.client.post(f"/api/stories/{members[0]}/apart")
    assert said.status_code == 204
    assert len(user.client.get(f"/api/stories/{members[0]}").json()["items"]) == 1


def test_who_has_it_off_sees_each_item_and_is_offered_it_once(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    one_story(reader.database, "a1", "b1")
    reader.database.query("UPDATE users SET preferences = '{}' WHERE id = ?", [user.id])
    client = browser(reader, user)
    page = client.get("/unread")
    assert len(lines(page.text)) == total(page.text) == 2
    assert "Show it once" in page.text
    client.post("/stories/switch", data={"on": "no", "back": "/unread"})
    page = client.get("/unread")
    assert "Show it once" not in page.text
    assert len(lines(page.text)) == 2
    client.post("/stories/switch", data={"on": "yes", "back": "/unread"})
    assert len(lines(client.get("/unread").text)) == 1


def test_an_opened_story_is_read_with_what_its_page_lists(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    members = one_story(reader.database, "a1", "b1")
    client = browser(reader, user)
    page = client.get(f"/items/{members[0]}")
    assert "Others on it" in page.text
    assert unread(reader.database, user.id) == {"a": 0, "b": 0, "c": 1}
    assert total(page.text) == 1


def test_programs_list_stories_and_find_them_in_items(reader: Reader) -> None:
    user = ann(reader, a=2, b=2, c=2)
    first = one_story(reader.database, "a1", "b1")
    second = one_story(reader.database, "a2", "b2", "c2")
    found = user.client.get("/api/stories").json()
    assert [[each["id"] for each in one["items"]] for one in found["stories"]] == [second, first]
    assert found["stories"][1]["items"][1]["reason"]["names"] == ["ravensdale"]
    reader.database.query(
        "UPDATE items SET content_html = '<p>Forty people wait for a ferry.</p>' WHERE id = ?", [first[1]]
    )
    assert "Forty people wait for a ferry." in browser(reader, user).get(f"/stories/{first[0]}").text
    one = user.client.get(f"/api/stories/{first[0]}").json()["items"]
    assert [each["adds"] for each in one] == [None, "Forty people wait for a ferry."]
    page = user.client.get("/api/stories", params={"limit": 1}).json()
    rest = user.client.get("/api/stories", params={"limit": 1, "cursor": page["next_cursor"]}).json()
    assert page["stories"] + rest["stories"] == found["stories"]
    assert rest["next_cursor"] is None
    # An item names its story once it is in one: the tag of its page is another one then.
    before = user.client.get("/api/items")
    story = {each["id"]: each["story"] for each in before.json()["items"]}
    assert story[first[1]] == {"id": first[0], "items": first}
    [alone] = ids(reader.database, "c1")
    assert story[alone] is None
    other = subscribed(reader, reader.user("bob"))
    subscribe(reader.database, other.id, "c")
    assert [each["story"] for each in other.client.get("/api/items").json()["items"]] == [None, None]
    assert other.client.get("/api/stories").json() == {"stories": [], "next_cursor": None}
    reader.database.query("DELETE FROM story_members WHERE item_id = ?", [first[1]])
    after = user.client.get("/api/items", headers={"If-None-Match": before.headers["etag"]})
    assert after.status_code == 200
    assert {each["id"]: each["story"] for each in after.json()["items"]}[first[0]] is None


def test_a_search_shows_a_story_once(reader: Reader) -> None:
    search = pytest.importorskip("rss_pipeline_tests.features.search.test_api")
    user = ann(reader, a=1, b=1, c=1)
    members = one_story(reader.database, "a1", "b1")
    search.index(reader)
    client = browser(reader, user)
    page = client.get("/search?q=title").text
    assert len(lines(page)) == 2
    assert "and 1 more" in page
    assert all(f"/items/{id}" in page for id in members)
    client.post("/stories/switch", data={"on": "no", "back": "/unread"})
    assert len(lines(client.get("/search?q=title").text)) == 3


def test_a_feed_that_a_user_prefers_leads_its_stories_for_them_alone(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    members = one_story(reader.database, "a1", "b1")
    other = subscribed(reader, reader.user("bob"))
    subscribe(reader.database, other.id, "a", "b")
    reader.database.query("UPDATE users SET preferences = '{\"stories\":true}'")
    client = browser(reader, user)
    page = client.get(f"/stories/{members[0]}").text
    assert page.count("Let this feed lead") == 2
    client.post("/stories/lead", data={"leads": "b", "back": f"/stories/{members[0]}"})
    assert "This feed need not lead" in client.get(f"/stories/{members[0]}").text
    for address in ("/unread", "/all"):
        assert lines(client.get(address).text) == [members[1]]
        assert lines(browser(reader, other).get(address).text) == [members[0]]
    assert user.client.get(f"/api/items/{members[0]}").json()["story"]["id"] == members[1]
    assert user.client.post("/api/stories/lead", json={"feed_id": "b", "leads": False}).status_code == 204
    assert lines(client.get("/unread").text) == [members[0]]
    assert client.post("/stories/lead", data={"follows": "c"}).status_code == 404


def test_a_story_of_500_items_is_one_entry_and_is_read_at_once(reader: Reader) -> None:
    user = ann(reader, **dict.fromkeys("abcde", 100))
    members = one_story(reader.database, *(f"{feed}{guid}" for feed in "abcde" for guid in range(1, 101)))
    client = browser(reader, user)
    page = client.get("/unread").text
    assert lines(page) == [members[0]]
    assert "and 499 more" in page
    assert client.get(f"/stories/{members[499]}").text.count("Not the same") == 500
    [listed] = re.findall(r'data-with="([^"]*)"', page)
    done = client.post(f"/items/{members[0]}/read", data={"with": listed, "back": "/unread"})
    assert done.status_code == 303
    assert unread(reader.database, user.id) == dict.fromkeys("abcde", 0)


def test_a_page_of_a_story_still_works_after_its_feed_was_forgotten(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    members = one_story(reader.database, "a1", "b1", "c1")
    client = browser(reader, user)
    [listed] = re.findall(r'data-with="([^"]*)"', client.get("/unread").text)
    assert user.client.delete("/api/feeds/b").status_code == 204
    forget.begin_forget(reader.database, "b")
    forget.end_forget(reader.database, "b")
    # The page that is still open names the item that went.
    client.post(f"/items/{members[0]}/read", data={"with": listed, "back": "/unread"})
    assert unread(reader.database, user.id) == {"a": 0, "c": 0}
    for address in (f"/stories/{members[1]}", f"/items/{members[1]}"):
        assert client.get(address).status_code == 404
    for act in ("apart", "together"):
        said = client.post(f"/stories/{act}", data={"item": members[1], "other": members[0]})
        assert said.status_code == 404
    assert client.post("/stories/lead", data={"leads": "b"}).status_code == 404
    page = client.get(f"/stories/{members[0]}").text
    assert page.count("Not the same") == 2
    assert members[1] not in page


def test_two_tabs_that_mark_and_split_at_once_lose_nothing(reader: Reader) -> None:
    user = ann(reader, a=8, b=8, c=8)
    tabs = [browser(reader, user) for _ in range(3)]
    for number in range(1, 9):
        members = one_story(reader.database, f"a{number}", f"b{number}", f"c{number}")
        listed = ",".join(members)
        forms = [
            (f"/items/{members[0]}/read", {"with": listed, "back": "/unread"}),
            ("/stories/apart", {"item": members[1]}),
            ("/stories/apart", {"item": members[2]}),
        ]
        with ThreadPoolExecutor(len(tabs)) as threads:
            done = threads.map(lambda tab, form: tab.post(form[0], data=form[1]), tabs, forms)
            assert [each.status_code for each in done] == [303, 303, 303]
        assert len(user.client.get(f"/api/stories/{members[0]}").json()["items"]) == 1
    assert unread(reader.database, user.id) == {"a": 0, "b": 0, "c": 0}
    # Each is undone by itself.
    assert [tabs[0].post("/stories/undo").status_code for _ in range(17)] == [*[303] * 16, 404]
    assert len(user.client.get("/api/stories").json()["stories"]) == 8
