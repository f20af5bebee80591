"""Lists of items as pages: what is on them, in which order, and what leads on from them."""

import re
from html import unescape
from urllib.parse import unquote

import httpx

from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import arrive, mark, subscribe
from rss_pipeline_tests.storage.values import DAY, HOUR, item, register, spec, visit
from rss_pipeline_tests.support.counted import as_on_d1
from rss_pipeline_tests.support.reader import Reader


def titles(answer: httpx.Response) -> list[str]:
    """The titles of the items in a list."""
    assert answer.status_code == 200
    found = re.findall(r'<a class="title"[^>]*>([^<]*)</a>', answer.text)
    return [unescape(title) for title in found]


def link(answer: httpx.Response, label: str) -> str:
    """The address of the link with this text."""
    found = re.search(rf'<a [^>]*href="([^"]*)"[^>]*>{label}</a>', answer.text)
    assert found is not None, label
    return unescape(found[1])


def test_unread_items_are_newest_first_and_read_ones_are_left_out(reader: Reader) -> None:
    user = ann(reader, a=2, b=1)
    mark(reader.database, user.id, "a", ["2"], is_read=True)
    page = browser(reader, user).get("/unread")
    assert titles(page) == ["Title 1", "Title 1"]
    assert "<title>(2) Unread - rss_pipeline</title>" in page.text
    assert titles(browser(reader, user).get("/all")) == ["Title 1", "Title 2", "Title 1"]


def test_every_item_of_a_list_is_reached_by_its_links_in_either_order(reader: Reader) -> None:
    user = ann(reader, a=25)
    user.client.put("/api/user/preferences", json={"entries_per_page": 10})
    client = browser(reader, user)
    for order, label in (("newest", "Older items"), ("oldest", "Newer items")):
        page = client.get(f"/feeds/a?order={order}")
        found = titles(page)
        # What is read meanwhile moves nothing.
        mark(reader.database, user.id, "a", ["20", "10"], is_read=True)
        for _ in range(2):
            page = client.get(link(page, label))
            found += titles(page)
        mark(reader.database, user.id, "a", ["20", "10"], is_read=False)
        every = [f"Title {n}" for n in range(1, 26)]
        left_out = {"Title 10", "Title 20"} - set(found)
        assert len(found) == len(set(found))
        assert {*found, *left_out} == set(every)
        assert (found == sorted(found, key=every.index)) is (order == "oldest")
        assert label not in page.text


def test_a_feed_shows_unread_items_or_all_as_the_user_prefers_or_the_address_says(reader: Reader) -> None:
    user = ann(reader, a=2)
    mark(reader.database, user.id, "a", ["1"], is_read=True)
    client = browser(reader, user)
    assert titles(client.get("/feeds/a")) == ["Title 2"]
    assert titles(client.get("/feeds/a?show=all")) == ["Title 2", "Title 1"]
    user.client.put("/api/user/preferences", json={"show_read": True})
    assert titles(client.get("/feeds/a")) == ["Title 2", "Title 1"]
    assert titles(client.get("/feeds/a?show=unread")) == ["Title 2"]


def test_folders_with_any_name_are_reached_from_the_column(reader: Reader) -> None:
    names = ["News", "a/b", "..", "日本語", "100 % & <more>?", "#1", "a/../b", "//x"]
    register(reader.database, *(spec(f"f{n}") for n in range(len(names))))
    user = reader.user("ann")
    for n, name in enumerate(names):
        arrive(reader.database, f"f{n}", str(n))
        subscribe(reader.database, user.id, f"f{n}", folder=name)
    client = browser(reader, user)
    column = client.get("/unread").text
    addresses = re.findall(r'<a class="of-folder" href="([^"]*)"', column)
    assert len(addresses) == len(names)
    shown = set[str]()
    for address in map(unescape, addresses):
        found = client.get(address).text
        # What the page's forms lead back to is the same page, and the column says which one it is.
        backs = re.findall(r'<form id="marks".*?name="back" value="([^"]*)"', found)
        current = re.findall(r'href="([^"]*)" aria-current="page"', found)
        assert [list(map(unescape, each)) for each in (backs, current)] == [[address], [address]]
        shown |= {unescape(name) for name in re.findall(r"<h1[^>]*>(.*?)</h1>", found)}
        stranger = browser(reader).get(address).headers["location"]
        assert unquote(stranger) == f"/login?next={address}"
    assert shown == set(names)


def test_what_arrives_after_a_list_was_shown_stays_unread_when_all_of_it_is_marked(reader: Reader) -> None:
    user = ann(reader, a=2)
    client = browser(reader, user)
    shown = client.get("/feeds/a").text
    version = re.search(r'name="up_to" value="(\d+)"', shown)
    assert version is not None
    arrive(reader.database, "a", "3")
    done = client.post("/mark-read", data={"up_to": version[1], "feed": "a", "back": "/feeds/a"})
    assert (done.status_code, done.headers["location"]) == (303, "/feeds/a")
    assert titles(client.get("/feeds/a")) == ["Title 3"]


def test_the_next_unread_feed_is_the_next_in_the_column_and_behind_the_last_the_first(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    mark(reader.database, user.id, "b", ["1"], is_read=True)
    client = browser(reader, user)
    assert client.get("/next-unread?after=a").headers["location"] == "/feeds/c"
    assert client.get("/next-unread?after=c").headers["location"] == "/feeds/a"
    mark(reader.database, user.id, "a", ["1"], is_read=True)
    mark(reader.database, user.id, "c", ["1"], is_read=True)
    assert client.get("/next-unread").headers["location"] == "/unread"


def test_titles_and_first_words_of_publishers_are_text(reader: Reader) -> None:
    user = ann(reader)
    register(reader.database, spec("a"))
    evil, image = "<script>alert(1)</script>", "<img src=x onerror=alert(1)>"
    both = evil + image
    visit(reader.database, [item("1", title=both, content_html=f"<p>First</p>{both}")], id="a")
    visit(reader.database, [item("2", title=None, content_html="<p>No <b>title</b></p>")], id="a")
    subscribe(reader.database, user.id, "a", title='"><script>alert(2)</script>')
    page = browser(reader, user).get("/unread")
    assert titles(page) == ["No title", evil]
    assert "<script>alert" not in page.text
    assert "<img" not in page.text


def test_with_very_many_subscriptions_a_page_says_what_its_column_leaves_out(reader: Reader) -> None:
    register(reader.database, *(spec(f"f{n}") for n in range(400)))
    arrive(reader.database, "f7", "1")
    user = reader.user("ann")
    subscribe(reader.database, user.id, *(f"f{n}" for n in range(400)))
    client = browser(reader, user)
    page = client.get("/unread").text
    assert "Of your 400 feeds, only those with unread items are shown." in page
    assert page.count("data-feed=") == 1
    assert client.get("/feeds/f9").text.count("data-feed=") == 2
    assert client.get("/feeds/f9/edit").text.count("data-feed=") == 1
    assert client.get("/feeds").text.count('data-feed="f9"') == 1


def test_a_new_feed_s_first_document_never_buries_today_s_news(reader: Reader) -> None:
    """By date of publication, which is the order of a new user, and by arrival, which older users keep."""
    now = reader.clock()
    register(reader.database, spec("a"), spec("b"))
    user = reader.user("ann")
    visit(reader.database, [item("old", title="Old", pub_date=now - 9 * DAY)], id="a", at=now - DAY)
    visit(reader.database, [item("news", title="News", pub_date=now - 2 * HOUR)], id="a", at=now - HOUR)
    archive = [item(f"{n}", title=f"Archive {n}", pub_date=now - n * DAY) for n in range(1, 21)]
    visit(reader.database, [*archive, item("undated", title="Undated")], id="b", at=now)
    subscribe(reader.database, user.id, "a", "b")
    client = browser(reader, user)
    assert user.client.get("/api/user/preferences").json()["order"] == "published"
    for path in ("/unread", "/unread?order=newest", "/all", "/all?order=newest"):
        found = titles(client.get(path))
        assert found[0] == "News"
        assert found[3:10] == [f"Archive {n}" for n in range(2, 9)]
        assert len(found) == 23
    assert titles(client.get("/feeds/b?order=newest"))[0] in ("Undated", "Archive 20")


def test_a_list_by_date_is_reached_page_by_page_and_leads_from_item_to_item(reader: Reader) -> None:
    now = reader.clock()
    register(reader.database, spec("a"))
    user = reader.user("ann")
    user.client.patch("/api/user/preferences", json={"entries_per_page": 10})
    visit(reader.database, [item("first", title="First", pub_date=now - 99 * DAY)], id="a", at=now - DAY)
    # They arrive in another order than that of their dates.
    some = [item(f"{n}", title=f"Of {n % 7} and {n}", pub_date=now - (n % 7) * DAY) for n in range(24)]
    visit(reader.database, some, id="a", at=now)
    subscribe(reader.database, user.id, "a")
    client = browser(reader, user)
    page = client.get("/all")
    found, seen = titles(page), page
    for _ in range(2):
        seen = client.get(link(seen, "Older items"))
        found += titles(seen)
    days = [int(title.split()[1]) for title in found[:-1]]
    assert days == sorted(days)
    assert (len(set(found)), found[-1]) == (25, "First")
    assert "Older items" not in seen.text
    address = re.search(r'<a class="title" href="([^"]*)"', page.text)
    assert address is not None
    opened, walked = client.get(unescape(address[1])), []
    for _ in range(24):
        opened = client.get(link(opened, "Next"))
        heading = re.search(r"<h1[^>]*>([^<]*)</h1>", opened.text)
        assert heading is not None
        walked.append(heading[1])
    assert walked == found[1:]


def test_an_address_with_a_key_of_another_order_or_of_none_is_no_error_of_ours(reader: Reader) -> None:
    client = browser(reader, ann(reader, a=1))
    for after in ("1795339112000017", "1795339112~1795339112000017"):
        for order in ("published", "newest", "oldest"):
            assert client.get(f"/all?order={order}&after={after}").status_code == 200
    assert client.get("/all?after=x").status_code == 422


def test_a_list_before_the_first_visits_says_that_items_will_come(reader: Reader) -> None:
    user = ann(reader, a=1)
    register(reader.database, spec("a"), spec("b"))
    subscribe(reader.database, user.id, "b")
    mark(reader.database, user.id, "a", ["1"], is_read=True)
    page = browser(reader, user).get("/unread")
    assert "1 feed waits for its first visit" in page.text
    assert "Nothing here is unread" not in page.text


def counts(page: httpx.Response) -> dict[str, int]:
    """The numbers beside the lists in the column."""
    lists = page.text.partition('class="views"')[2].partition("</ul>")[0]
    return {key: int(n) for key, n in re.findall(r'data-view="(\w+)".*?data-count="(\d+)"', lists)}


def test_all_items_and_starred_ones_are_counted_like_the_unread(reader: Reader) -> None:
    user = ann(reader, a=3, b=2)
    client = browser(reader, user)
    mark(reader.database, user.id, "a", ["1"], is_read=True)
    ids = [each["id"] for each in user.client.get("/api/items").json()["items"]]
    user.client.post("/api/items/mark", json={"ids": ids[:2], "is_starred": True})
    assert counts(client.get("/unread")) == {"unread": 4, "all": 5, "starred": 2}
    arrive(reader.database, "b", "3")
    assert counts(client.get("/settings")) == {"unread": 5, "all": 6, "starred": 2}
    user.client.delete("/api/feeds/a")
    assert counts(client.get("/all"))["all"] == 3


def test_all_items_are_counted_again_only_where_something_came_in(reader: Reader) -> None:
    user = ann(reader, a=2)
    away, counted = as_on_d1(reader)
    client = browser(away, user)
    client.get("/unread")
    before = counted.requests
    client.get("/unread")
    again = counted.requests - before
    arrive(reader.database, "a", "3")
    # A number that is some minutes old is shown rather than paid for at each arrival.
    assert counts(client.get("/unread")) == {"unread": 3, "all": 2, "starred": 0}
    assert counted.requests - before - again == again


def test_what_a_page_shows_is_requested_again_by_its_ids(reader: Reader) -> None:
    user = ann(reader, a=3)
    client = browser(reader, user)
    shown = {each["title"]: each["id"] for each in user.client.get("/api/items").json()["items"]}
    mark(reader.database, user.id, "a", ["2"], is_read=True)
    wanted = [shown["Title 2"], shown["Title 3"], "f" * 32]
    page = client.get(f"/entries?ids={','.join(wanted)}&from=/feeds/a")
    assert titles(page) == ["Title 2", "Title 3"]
    assert page.text.count('class="entry read"') == 1
    assert f'href="/items/{shown["Title 2"]}?from=/feeds/a"' in page.text
    state = client.get(f"/state?ids={','.join(wanted)}").json()
    assert state["items"] == {shown["Title 2"]: [True, False], shown["Title 3"]: [False, False]}
    assert (state["unread"], state["all"], state["starred"]) == ({"a": 2}, 3, 0)
    for path in ("/entries", "/state"):
        assert client.get(path).status_code == 200
        for ids in ("x", "f" * 31, ",".join(["f" * 32] * 101), f"{'f' * 32},"):
            assert client.get(path, params={"ids": ids}).status_code == 422
    eve = browser(reader, reader.user("eve"))
    assert titles(eve.get(f"/entries?ids={wanted[0]}")) == []
    assert eve.get(f"/state?ids={wanted[0]}").json()["items"] == {}
