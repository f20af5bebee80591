"""Answers with HTML that is kept: to the byte those of an item with HTML that is made when it is read."""

from pathlib import Path

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.pipeline.session.renew_html import renew
from rss_pipeline_tests.api.google_reader.phone import Phone, arrive
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.storage.values import NOW, register, spec
from rss_pipeline_tests.support.reader import Reader, reader_settings

TEXTS = (
    "<p>Text",
    '<p>"quoted" \\ é 設想 <a href="/b">b</a></p><img src="/a.png">',
    '<iframe src="https://www.youtube.com/embed/x"></iframe><img src="b.png?x&y" alt=\'"\'>',
    '<video poster="/a.png"></video><table><td>cell',
    "<div>" * 1_000 + "deep",
)


def answers(home: Path, name: str) -> list[bytes]:
    """The bodies of all answers with HTML, by a new reader on these stores."""
    with Reader.on(reader_settings(home)) as reader:
        reader.clock.now = NOW
        phone = Phone.of_new_user(reader, name)
        phone.subscribe("a")
        user = reader.signed_in(phone.user_id)
        numbers, client = phone.ids(), browser(reader, user)
        found = [phone.post("stream/items/contents", {"i": [str(n) for n in numbers]})]
        found.append(phone.get("stream/contents/feed/a", n=100))
        found.append(phone.client.get("/greader/reader/atom/feed/a"))
        found.append(user.client.get("/api/items"))
        for row in reader.database.query("SELECT id FROM items ORDER BY id").rows:
            found.append(user.client.get(f"/api/items/{row['id']}"))
            found.append(client.get(f"/items/{row['id']}/body"))
        assert {answer.status_code for answer in found} == {200}
        assert all("deep" in answer.text for answer in found[:4])
        assert len(found[0].json()["items"]) == len(TEXTS)
        return [answer.content for answer in found]


def test_answers_with_html_that_is_kept_and_with_html_that_is_made_are_the_same(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Reader.on(reader_settings(home)) as reader:
        database = reader.database
        register(database, spec("a"))
        picture = Enclosure(url="https://img.example/lead.jpg", type="image/jpeg", length=None)
        for n, text in enumerate(TEXTS):
            files = (picture,) if n % 2 else ()
            arrive(database, "a", str(n), content_html=text, summary=None, enclosures=files)
        database.query(
            """INSERT INTO image_tasks
              (id, item_id, original_url, r2_key, status, attempts, created_at, updated_at, host, position)
            SELECT id, id, 'https://a.example/a.png', 'images/a/' || id || '/0.png', 'success', 0, ?, ?,
              'h', 0 FROM items""",
            [NOW.isoformat()] * 2,
        )
    made = answers(home, "ann")
    with Reader.on(reader_settings(home)) as reader:
        assert renew(reader.database, is_over=lambda: False) == len(TEXTS)
        # What is stored as text is not read any more.
        reader.database.query("UPDATE items SET content_html = 'another text'")
    assert answers(home, "bob") == made
