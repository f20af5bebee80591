"""Another address for a feed, at the JSON API and on the page: who may, and what each answers."""

from datetime import timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.registry.feed_url import feed_id
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.pages.feeds.test_adding import words
from rss_pipeline_tests.api.pages.feeds.test_feed_edit import edit
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import change, feed_row, visit
from rss_pipeline_tests.support.reader import Reader, User

OLD = "https://a.example/a"
NEW = "https://new.example/feed"
A = feed_id(OLD, "a.example")


def brought(reader: Reader, *users: User, id: str = "a") -> None:
    """Let a feed be one that only these users have brought."""
    change(reader.database, "UPDATE feeds SET listed = 0 WHERE id = ?", id)
    for user in users:
        subscribe(reader.database, user.id, id)


def test_who_may_change_the_address_of_a_feed_and_to_which(reader: Reader) -> None:
    owner = ann(reader, a=1, b=1)
    reader.clock.pass_(seconds=1)
    bob, eve = reader.user("bob"), reader.user("eve")
    urls = {"url": NEW}

    def refused(user: User, url: str = NEW) -> str:
        answer = user.client.patch("/api/feeds/a", json={"url": url, "title": "Mine"})
        assert answer.json()["kind"] in ("conflict", "address_refused", "not_found")
        assert feed_row(reader.database)["url"] == OLD
        assert "Mine" not in user.client.get("/api/feeds").text, "nothing of a refused change is applied"
        return f"{answer.status_code} {answer.json()['detail']} {answer.json()['what_to_do']}"

    assert refused(bob).startswith("404")
    # A feed of feeds.yaml: its owner learns what to write there, and no one else of the file.
    subscribe(reader.database, bob.id, "a")
    assert "`id: a`" in refused(owner)
    assert "feeds.yaml" not in refused(bob)
    assert 'name="url"' not in browser(reader, bob).get("/feeds/a/edit").text
    brought(reader, bob)
    assert "owner of this server" in refused(bob), "others subscribe to it"
    assert refused(owner, "http://192.168.1.1/feed").startswith("422")
    assert refused(owner, "ftp://a.example/").startswith("422")
    assert refused(owner, "https://b.example/b").startswith("409 You subscribe to this address already")
    owner.client.delete("/api/feeds/a")
    assert refused(bob, "https://b.example/b").startswith("409 This is the address of another feed")

    # The page of who may has the field; the address that it has already changes nothing.
    client = browser(reader, bob)
    assert f'name="url" value="{OLD}"' in client.get("/feeds/a/edit").text
    assert edit(client, "a", url=OLD, title="Mine").headers["location"] == "/feeds/a"
    wrong = edit(client, "a", url="https://b.example/b")
    assert (wrong.status_code, 'value="https://b.example/b"' in wrong.text) == (422, True)
    # A feed that no one uses any more does not keep its address.
    brought(reader, id="b")
    owner.client.delete("/api/feeds/b")
    moved = edit(client, "a", url="https://b.example/b")
    assert moved.headers["location"].startswith("/tasks/")
    assert [(each["id"], each["url"]) for each in bob.client.get("/api/feeds").json()["feeds"]] == [
        ("a", "https://b.example/b")
    ]
    subscribe(reader.database, eve.id, "a", "b")
    assert owner.client.patch("/api/feeds/a", json=urls).status_code == 404, "it is not among the owner's"


def test_each_change_of_an_address_takes_a_turn_among_sixty_an_hour(reader: Reader) -> None:
    ann(reader, a=1)
    reader.clock.pass_(seconds=1)
    bob = reader.user("bob")
    change(reader.database, "DELETE FROM subscriptions")
    brought(reader, bob)
    visit(reader.database)
    begun = instant(reader.clock())
    for n in range(58):
        change(reader.database, "INSERT INTO new_addresses VALUES (?, ?, ?)", bob.id, str(n), begun)
    hold = "SELECT hold_until FROM feed_holds"
    for n in range(2):
        bob.client.patch("/api/feeds/a", json={"url": f"https://new.example/{n}"})
        assert reader.database.query(hold).rows == []
    change(reader.database, "UPDATE refresh_requests SET state = 'done', finished_at = requested_at")
    page = edit(browser(reader, bob), "a", url="https://new.example/2")
    assert "At most 60 new addresses" in words(page)
    waits = bob.client.patch("/api/feeds/a", json={"url": "https://new.example/3"}).json()
    hour = instant(reader.clock() + timedelta(hours=1))
    assert (waits["url"], waits["next_visit"]["at"]) == ("https://new.example/3", hour)
    [held] = reader.database.query(hold).rows
    assert held["hold_until"] == hour
    # The owner waits for no one's turn.
    owner = reader.signed_in(reader.database.query("SELECT id FROM users WHERE name = 'ann'").rows[0]["id"])
    assert owner.client.post("/api/feeds", json={"url": "https://new.example/3"}).json()["feed_id"] == "a"
    assert reader.database.query(hold).rows == []
