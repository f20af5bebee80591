"""Full text at the reader's doors: the switch, a feed's state, the reason why an item has the feed's text."""

import json

import pytest

from rss_pipeline.features.full_text.model import REASONS
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann, subscribed
from rss_pipeline_tests.support.reader import Reader

LATER = "2026-03-02T13:00:00Z"


def ids(reader: Reader) -> list[str]:
    return [row["id"] for row in reader.database.query("SELECT id FROM items ORDER BY arrived").rows]


def end(reader: Reader, item_id: str, status: str, verdict: str | None, reason: str | None) -> None:
    """The end of the request for an article."""
    reader.database.query(
        """INSERT INTO articles (item_id, feed_id, status, verdict, reason, host, attempts, next_attempt_at,
          requested_at, html) SELECT id, feed_id, ?, ?, ?, 'a.example', 1, ?, ?, ? FROM items WHERE id = ?""",
        [status, verdict, reason, LATER, LATER, "<p>long</p>" if status == "shown" else None, item_id],
    )


def test_a_user_switches_full_text_of_a_feed_on_and_off(reader: Reader) -> None:
    user = ann(reader, a=1)
    other = subscribed(reader, reader.user("bob"), a=0)
    client = user.client
    assert client.get("/api/feeds").json()["feeds"][0]["full_text"] is False
    assert client.patch("/api/feeds/a", json={"full_text": True}).json()["full_text"] is True
    assert client.get("/api/feeds/a/full-text").json()["switched"] is True
    assert other.client.get("/api/feeds").json()["feeds"][0]["full_text"] is False
    for refused in ({"full_text": None}, {"full_text": "maybe"}):
        assert client.patch("/api/feeds/a", json=refused).status_code == 422
    page = browser(reader, user)
    assert 'name="full_text" value="yes" checked' in page.get("/feeds/a/edit").text
    page.post("/feeds/a/edit", data={"title": "", "has_full_text": "yes"})
    assert client.get("/api/feeds").json()["feeds"][0]["full_text"] is False
    page.post("/feeds/a/full-text", data={"on": "yes"})
    assert "You have switched it on" in page.get("/feeds/a/full-text").text
    # A form without the field changes nothing of it.
    page.post("/feeds/a/edit", data={"title": "Mine"})
    assert client.get("/api/feeds").json()["feeds"][0]["full_text"] is True


@pytest.mark.parametrize(
    ("status", "verdict", "reason"),
    [
        ("none", "consent", REASONS["consent"]),
        ("none", "login", REASONS["login"]),
        ("none", "stub", REASONS["stub"]),
        ("none", "list", REASONS["list"]),
        ("none", "robots", "robots.txt of a.example keeps programs from it"),
        ("pending", None, "a.example had 200 requests for articles within 24 hours, the most of a day"),
        ("pending", None, None),
    ],
)
def test_an_item_s_page_says_why_it_has_the_feed_s_own_text(
    reader: Reader, status: str, verdict: str | None, reason: str | None
) -> None:
    user = ann(reader, a=1)
    [id] = ids(reader)
    reader.database.query("UPDATE items SET link = 'https://a.example/1'")
    assert user.client.get(f"/api/items/{id}/full-text").json()["status"] == "off"
    page = browser(reader, user)
    assert "own text" not in page.get(f"/items/{id}").text
    end(reader, id, status, verdict, reason)
    said = reason or "not requested yet"
    for path in (f"/items/{id}", f"/items/{id}/body"):
        assert said in page.get(path).text
    found = user.client.get(f"/api/items/{id}/full-text").json()
    assert (found["status"], found["verdict"]) == (status, verdict)
    assert said in found["reason"]
    assert reader.user("bob").client.get(f"/api/items/{id}/full-text").status_code == 404


def test_the_state_of_a_feed_has_the_decision_its_figures_and_the_limit_of_hosts(reader: Reader) -> None:
    user = ann(reader, a=4)
    for id, (status, verdict, reason) in zip(
        ids(reader),
        [
            ("shown", "article", "x"),
            ("none", "consent", REASONS["consent"]),
            ("none", "consent", REASONS["consent"]),
            ("pending", None, None),
        ],
        strict=True,
    ):
        end(reader, id, status, verdict, reason)
    decided = {
        "is_truncated": True,
        "compared": 5,
        "longer": 4,
        "own_characters": 120,
        "page_characters": 4_000,
    }
    reader.database.query(
        "UPDATE feeds SET full_text = 'auto', full_text_decision = ? WHERE id = 'a'", [json.dumps(decided)]
    )
    reader.database.query("UPDATE articles SET requested_at = '2099-01-01T00:00:00Z'")
    found = user.client.get("/api/feeds/a/full-text").json()
    assert {name: found["decision"][name] for name in decided} == decided
    assert (found["in_registry"], found["shown"], found["waiting"]) == ("auto", 1, 1)
    assert found["reasons"] == [{"verdict": "consent", "items": 2, "example": REASONS["consent"]}]
    assert found["hosts"] == [{"host": "a.example", "requests": 4, "most": 200}]
    text = browser(reader, user).get("/feeds/a/full-text").text
    for said in (
        "4 of 5 pages have more",
        "to a.example within 24 hours: 4 of 200",
        "wait for their request: 1, the last of them until 2 March 2026, 13:00 UTC",
        REASONS["consent"],
    ):
        assert said in text
    assert reader.user("bob").client.get("/api/feeds/a/full-text").status_code == 404


def test_the_article_of_an_item_is_requested_once_and_again_after_a_failure(reader: Reader) -> None:
    user = ann(reader, a=1)
    [id] = ids(reader)
    reader.database.query("UPDATE items SET link = 'https://a.example/1'")
    page, path = browser(reader, user), f"/api/items/{id}/full-text"
    button = "Show the article"
    assert button in page.get(f"/items/{id}").text
    page.post(f"/full-text/{id}")
    assert user.client.get(path).json()["status"] == "pending"
    assert button not in page.get(f"/items/{id}").text
    reader.database.query(
        "UPDATE articles SET attempts = 1, reason = 'no answer', next_attempt_at = ?",
        ["2099-01-01T00:00:00Z"],
    )
    shown = page.get(f"/items/{id}").text
    assert (button in shown, "no answer" in shown) == (True, True)
    assert user.client.post(path).json()["until"] < "2099"
    shown = page.get(f"/items/{id}").text
    assert (button in shown, "in a moment" in shown) == (False, True)
    reader.database.query(
        "UPDATE articles SET status = 'none', verdict = 'interrupted', reason = 'it is lost'"
    )
    shown = page.get(f"/items/{id}").text
    assert (button in shown, "it is lost" in shown) == (True, True)
    assert user.client.post(path).json()["status"] == "pending"
    assert reader.user("bob").client.post(path).status_code == 404


def test_a_feed_is_added_with_its_articles(reader: Reader) -> None:
    ann(reader, a=1)
    other = reader.user("bob")
    page = browser(reader, other)
    assert 'name="full_text" value="yes"' in page.get("/feeds/add").text
    assert 'name="full_text" value="yes" checked' in page.get("/feeds/add?full_text=yes").text
    url = reader.database.query("SELECT url FROM feeds WHERE id = 'a'").rows[0]["url"]
    page.post("/feeds/add", data={"url": url, "full_text": "yes"})
    [feed] = other.client.get("/api/feeds").json()["feeds"]
    assert feed["full_text"] is True
    carl = reader.user("carl")
    carl.client.post("/api/feeds", json={"url": url, "full_text": True})
    assert carl.client.get("/api/feeds").json()["feeds"][0]["full_text"] is True
