"""The page of one item, what opens inside a list, and the forms that mark."""

import re
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.storage.database import Value
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import subscribe, unread
from rss_pipeline_tests.storage.values import item, register, spec, visit
from rss_pipeline_tests.support.installed import there
from rss_pipeline_tests.support.reader import Reader, User
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT, soon


def ids(reader: Reader) -> list[str]:
    """All items in the order of their arrival."""
    rows = reader.database.query("SELECT id FROM items ORDER BY arrived", []).rows
    return [row["id"] for row in rows]


def reading(reader: Reader, **fields: object) -> tuple[User, httpx.Client, str]:
    """Ann with one item, which has these fields."""
    register(reader.database, spec("a"))
    visit(reader.database, [item("1", **fields)], id="a")
    user = reader.user("ann")
    subscribe(reader.database, user.id, "a")
    return user, browser(reader, user), ids(reader)[0]


def test_an_item_that_is_opened_is_read_unless_the_user_prefers_otherwise(reader: Reader) -> None:
    user, client, id = reading(reader)
    user.client.put("/api/user/preferences", json={"mark_read_on_open": False})
    assert "Mark read" in client.get(f"/items/{id}").text
    assert unread(reader.database, user.id) == {"a": 1}
    user.client.put("/api/user/preferences", json={"mark_read_on_open": True})
    assert client.get(f"/items/{id}", headers={"Sec-Purpose": "prefetch"}).status_code == 200
    assert client.get(f"/items/{id}/body").status_code == 200
    assert unread(reader.database, user.id) == {"a": 1}
    page = client.get(f"/items/{id}").text
    assert "Mark unread" in page
    assert "<title>Title 1 - rss_pipeline</title>" in page
    assert unread(reader.database, user.id) == {"a": 0}


def test_no_page_waits_for_a_lock_and_what_it_writes_by_the_way_is_written_after_it(
    reader: Reader,
) -> None:
    """Another process holds the lock; so many wait for it that no thread would be left."""
    user, client, id = reading(reader)
    reader.clock.pass_(days=1)

    def used() -> object:
        return reader.database.query("SELECT max(last_used_at) AS at FROM sessions").rows

    before = used()
    with (
        closing(sqlite3.connect(reader.settings.database_path, isolation_level=None)) as other,
        ThreadPoolExecutor(50) as threads,
    ):
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        opened = client.get(f"/items/{id}")
        assert (opened.status_code, "Mark unread" in opened.text) == (200, True)
        assert (unread(reader.database, user.id), used()) == ({"a": 1}, before)
        other.execute("ROLLBACK")
        soon(lambda: unread(reader.database, user.id) == {"a": 0} and used() != before)
        other.execute("BEGIN IMMEDIATE")
        marks = [threads.submit(client.post, f"/items/{id}/star") for _ in range(50)]
        soon(lambda: reader.stores.writing.locked())
        for path in there(
            "/unread", "/all", f"/items/{id}", f"/items/{id}/body", "/statistics", "/search?q=x"
        ):
            assert client.get(path).status_code == 200
        assert client.get("/api/feeds").status_code == 200
        assert time.monotonic() - began < PROMPT
        other.execute("ROLLBACK")
        assert {mark.result(PATIENCE).status_code for mark in marks} <= {303, 503}
    assert client.post(f"/items/{id}/star").status_code == 303


def test_an_item_leads_to_its_neighbours_in_the_list_it_was_opened_from_and_back(reader: Reader) -> None:
    user = ann(reader, a=3, b=1)
    first, second, third, _ = ids(reader)
    client = browser(reader, user)
    page = client.get(f"/items/{second}?from=/feeds/a%3Fshow=all").text
    assert f'data-before href="/items/{third}?from=/feeds/a%3Fshow%3Dall"' in page
    assert f'data-behind href="/items/{first}?from=/feeds/a%3Fshow%3Dall"' in page
    assert f'href="/feeds/a?show=all#i-{second}"' in page
    assert "data-behind" not in client.get(f"/items/{first}?from=/feeds/a").text


def test_marks_by_forms_lead_back_to_the_item_in_its_list(reader: Reader) -> None:
    user, client, id = reading(reader)

    def post(mark: str, back: str = "/all?order=oldest") -> str:
        done = client.post(f"/items/{id}/{mark}", data={"back": back})
        assert done.status_code == 303
        return str(done.headers["location"])

    assert post("read") == f"/all?order=oldest#i-{id}"
    assert unread(reader.database, user.id) == {"a": 0}
    post("unread")
    assert unread(reader.database, user.id) == {"a": 1}
    post("star")
    assert id in client.get("/starred").text
    post("unstar")
    assert id not in client.get("/starred").text
    assert post("read", back="//evil.example/") == f"/unread#i-{id}"


def test_a_form_of_another_site_marks_nothing_and_neither_does_a_stranger(reader: Reader) -> None:
    user, client, id = reading(reader)
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    for path in (f"/items/{id}/read", "/mark-read"):
        refused = client.post(path, data={"up_to": str(2**52)}, headers=foreign)
        assert refused.status_code == 403
        assert refused.headers["content-type"].startswith("text/html")
        nobody = browser(reader).post(path, data={"up_to": str(2**52)})
        assert (nobody.status_code, nobody.headers["location"]) == (303, "/login")
    assert unread(reader.database, user.id) == {"a": 1}


def test_another_s_item_is_not_found_by_any_address(reader: Reader) -> None:
    _, client, id = reading(reader)
    eve = browser(reader, reader.user("eve"))
    for path in (f"/items/{id}", f"/items/{id}/body", f"/items/{id}/versions", "/feeds/a", "/folders/News"):
        refused = eve.get(path)
        assert refused.status_code == 404
        assert "Title 1" not in refused.text
    assert eve.post(f"/items/{id}/star", data={}).status_code == 404
    assert client.get(f"/items/{id}").status_code == 200


def test_audio_plays_on_the_page_and_is_not_requested_before(reader: Reader) -> None:
    sound = Enclosure(url="https://a.example/show/ep%201.mp3", type="audio/mpeg", length=24_500_000)
    paper = Enclosure(url="https://a.example/paper.pdf", type="application/pdf")
    _, client, id = reading(reader, enclosures=(sound, paper))
    page = client.get(f"/items/{id}").text
    assert re.search(r'<audio controls preload="none" src="https://a.example/show/ep%201.mp3"', page)
    assert "ep 1.mp3" in page
    assert "audio/mpeg, 24 MB" in page or "audio/mpeg, 25 MB" in page
    assert page.count("<audio") == 1
    assert 'href="https://a.example/paper.pdf" rel="noopener noreferrer"' in page


def test_a_picture_beside_the_text_is_shown_above_it_and_is_no_file(reader: Reader) -> None:
    sound = Enclosure(url="https://a.example/1.mp3", type="audio/mpeg")
    picture = Enclosure(url="https://img.example/thumb.jpg", type="image/*")
    user, client, id = reading(reader, content_html="<p>Text</p>", enclosures=(sound, picture))
    page = client.get(f"/items/{id}").text
    assert page.index('href="https://img.example/thumb.jpg"') < page.index("<p>Text</p>")
    assert page.count("thumb.jpg") == 1
    assert page.count('class="file"') == 1
    assert ">1 file<" in client.get("/all").text
    above = '<p><img src="https://img.example/thumb.jpg" alt=""></p><p>Text</p>'
    found = user.client.get(f"/api/items/{id}").json()
    assert found["html"] == above
    assert [each["url"] for each in found["enclosures"]] == [sound.url]


def test_earlier_versions_of_an_item_are_shown_safely(reader: Reader) -> None:
    _, client, id = reading(reader, content_html="<p>now</p>")
    assert "Earlier versions" not in client.get(f"/items/{id}").text
    reader.database.query(
        """INSERT INTO item_versions (item_id, replaced_at, title, pub_date, content_html, categories,
          enclosures, guid_source, pub_date_source)
        SELECT id, '2026-03-01T10:00:00Z', 'Before', pub_date, '<p>then</p><script>alert(1)</script>', '[]',
          '[]', guid_source, pub_date_source FROM items WHERE id = ?""",
        [id],
    )
    assert "Earlier versions" in client.get(f"/items/{id}").text
    page = client.get(f"/items/{id}/versions").text
    assert "<p>then</p>" in page
    assert "Before" in page
    assert "alert(1)" not in page


def test_pages_say_what_they_load_and_send_nothing_to_publishers(reader: Reader) -> None:
    _, client, id = reading(reader)
    for path in ("/unread", f"/items/{id}", f"/items/{id}/body", "/login", "/nothing-here"):
        headers = client.get(path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert "private" in headers["cache-control"]


def test_files_of_pages_are_kept_for_ever_and_change_their_address_with_their_bytes(reader: Reader) -> None:
    reader.user("ann")
    page = browser(reader).get("/login").text
    [address] = re.findall(r'href="(/static/[^"]*reader.css)"', page)
    found = browser(reader).get(address)
    assert found.status_code == 200
    assert "immutable" in found.headers["cache-control"]
    old = browser(reader).get("/static/0000/reader.css")
    assert (old.text, old.headers["cache-control"]) == (found.text, "no-cache")
    assert browser(reader).get("/static/0000/render.py").status_code == 404
    assert browser(reader).get("/static/0000/..%2frender.py").status_code == 404


def test_the_original_page_and_the_comments_are_at_the_head_and_next_and_the_star_at_the_end(
    reader: Reader,
) -> None:
    user = ann(reader, a=1)
    talked = {"link": "https://a.example/1", "comments_url": "https://a.example/1#comments"}
    visit(reader.database, [item("2", content_html="<p>text</p>", **talked)], id="a")
    id = ids(reader)[-1]
    for path in (f"/items/{id}", f"/items/{id}/body"):
        head, _, rest = browser(reader, user).get(path).text.partition('<div class="body"')
        _, _, end = rest.partition('class="foot"')
        for part in (head, end):
            assert 'href="https://a.example/1" rel="noopener noreferrer"' in part
            assert 'href="https://a.example/1#comments" rel="noopener noreferrer"' in part
        assert ">Next" in end
        assert f'formaction="/items/{id}/star"' in end
    assert user.client.get(f"/api/items/{id}").json()["comments_url"] == "https://a.example/1#comments"


def test_comments_that_are_the_page_itself_or_none_are_no_further_link(reader: Reader) -> None:
    _, client, id = reading(reader, link="https://a.example/1", comments_url="https://a.example/1")
    assert "Comments" not in client.get(f"/items/{id}").text


def test_escaped_markup_in_a_title_is_shown_nowhere(reader: Reader) -> None:
    user, client, id = reading(reader, title="A <b>bold</b> move", link="https://a.example/1")
    for path in (f"/items/{id}", f"/items/{id}/body", "/unread"):
        page = client.get(path).text
        assert "&lt;b&gt;" not in page, path
    assert user.client.get(f"/api/items/{id}").json()["title"] == "A bold move"


def image_task(reader: Reader, item_id: str, url: str, **values: Value) -> None:
    row: dict[str, Value] = {
        "id": url[-32:], "item_id": item_id, "original_url": url, "status": "pending", "attempts": 0,
        "created_at": "2026-03-02T12:00:00Z", "updated_at": "2026-03-02T12:00:00Z", "host": "h.example",
        "position": 0, **values,
    }  # fmt: skip
    marks = ", ".join("?" * len(row))
    reader.database.query(f"INSERT INTO image_tasks ({', '.join(row)}) VALUES ({marks})", [*row.values()])


def test_images_that_are_missing_are_requested_at_the_item(reader: Reader) -> None:
    _, client, id = reading(reader)
    assert "missing image" not in client.get(f"/items/{id}").text
    image_task(reader, id, "https://h.example/1.png")
    image_task(reader, id, "https://h.example/2.png", status="failed", attempts=3)
    image_task(reader, id, "https://h.example/3.png", status="success", r2_key="images/a/x/3.png")
    assert "Load 2 missing images" in client.get(f"/items/{id}").text
    assert "Load 2 missing images" in client.get(f"/items/{id}/body").text
    done = client.post(f"/items/{id}/images", data={"back": f"/items/{id}?from=/all"})
    assert (done.status_code, done.headers["location"]) == (303, f"/items/{id}?from=/all")
    page = client.get(f"/items/{id}").text
    assert "2 images will be loaded in a moment" in page
    assert "missing image" not in page
    tasks = reader.database.query("SELECT status, attempts FROM image_tasks WHERE status <> 'success'").rows
    assert [(row["status"], row["attempts"]) for row in tasks] == [("pending", 0), ("pending", 2)]
    eve = browser(reader, reader.user("eve"))
    assert eve.post(f"/items/{id}/images", data={}).status_code == 404


def test_a_list_is_never_shown_from_a_browsers_cache_and_an_item_is_not_marked_again_by_going_back(
    reader: Reader,
) -> None:
    _, client, id = reading(reader)
    for path in there(
        "/unread", "/all", "/starred", "/feeds/a", "/feeds", "/search?q=x", "/entries", "/state"
    ):
        assert client.get(path).headers["cache-control"] == "private, no-store", path
    assert client.get(f"/items/{id}").headers["cache-control"] == "private, no-cache"
