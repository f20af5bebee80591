"""The pages of statistics: of all feeds of a user, and of one."""

import re
from datetime import timedelta

import pytest

from rss_pipeline.features.statistics.pages import Timed
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import item, register, spec, visit
from rss_pipeline_tests.support.reader import Reader, User


@pytest.fixture
def ann(reader: Reader) -> User:
    """The owner, with the feeds a and b; `a` had three items today, after those of its first document."""
    register(reader.database, *map(spec, ("a", "b", "other")))
    user = reader.user("ann")
    subscribe(reader.database, user.id, "a", "b")
    now = reader.clock()
    old = [item(str(number), pub_date=now - timedelta(days=number)) for number in range(4, 9)]
    visit(reader.database, old, id="a", at=now - timedelta(days=3), title="Feed <i>a</i>")
    new = [item(f"new {number}", pub_date=now - timedelta(minutes=1)) for number in range(3)]
    visit(reader.database, [*old, *new], id="a", at=now, title="Feed <i>a</i>")
    visit(reader.database, [item("secret")], id="other", at=now, title="Other's")
    return user


def figure(html: str, name: str) -> str:
    found = re.search(rf"<dt>{name}</dt><dd>([^<]*)", html)
    assert found is not None
    return found[1].strip()


def test_items_of_the_user_s_feeds_are_counted(reader: Reader, ann: User) -> None:
    html = browser(reader, ann).get("/statistics").text
    assert figure(html, "Items") == "8"
    assert figure(html, "Feeds with items") == "1"
    assert figure(html, "Stored items") == "8"
    assert "Feed &lt;i&gt;a&lt;/i&gt;" in html
    assert "Other" not in html


def test_a_feed_without_items_is_silent(reader: Reader, ann: User) -> None:
    html = browser(reader, ann).get("/statistics").text
    assert html.count("1 of your feeds had no item") == 1
    assert '<a href="/feeds/b/statistics"' in html[html.index("Silent feeds") :]


def test_each_plot_has_its_numbers_in_a_table(reader: Reader, ann: User) -> None:
    html = browser(reader, ann).get("/statistics").text
    assert html.count('role="img"') == html.count("The numbers as a table") == 3


@pytest.mark.parametrize("days", ["30", "90", "365", "", "x", "-1", "9" * 400])
def test_every_span_is_answered(reader: Reader, ann: User, days: str) -> None:
    for path in ("/statistics", "/feeds/a/statistics"):
        answer = browser(reader, ann).get(path, params={"days": days})
        assert answer.status_code == 200
        assert figure(answer.text, "Items") == "8"


def test_days_are_those_of_the_zone_that_the_browser_names(reader: Reader, ann: User) -> None:
    client = browser(reader, ann)
    assert "those of UTC" in client.get("/statistics").text
    client.cookies.set("zone", "Asia/Kathmandu")
    assert "those of Asia/Kathmandu" in client.get("/statistics").text
    assert "those of Europe/Berlin" in client.get("/statistics?zone=Europe/Berlin").text
    assert "those of UTC" in client.get("/statistics?zone=<script>").text


def test_the_statistics_of_a_feed_are_its_own(reader: Reader, ann: User) -> None:
    html = browser(reader, ann).get("/feeds/a/statistics").text
    assert figure(html, "Items") == "8"
    assert "with new items: 2" in html
    assert figure(browser(reader, ann).get("/feeds/b/statistics").text, "Items") == "0"


@pytest.mark.parametrize("feed", ["other", "unknown", "%E2%80%AE", "a%2Fb"])
def test_a_feed_that_is_not_the_user_s_has_no_statistics(reader: Reader, ann: User, feed: str) -> None:
    answer = browser(reader, ann).get(f"/feeds/{feed}/statistics")
    assert answer.status_code == 404
    assert "Other" not in answer.text


def test_the_owner_alone_sees_what_the_whole_installation_takes(reader: Reader, ann: User) -> None:
    reader.clock.pass_(seconds=5)
    bob = reader.user("bob")
    subscribe(reader.database, bob.id, "other")
    owners, others = (browser(reader, user).get("/statistics").text for user in (ann, bob))
    assert "The whole installation" in owners
    assert "The whole installation" not in others
    assert "Feed &lt;i&gt;" not in others


def test_who_has_no_feed_is_shown_what_to_do(reader: Reader) -> None:
    html = browser(reader, reader.user("new")).get("/statistics").text
    assert '<a href="/feeds/add">' in html


def test_statistics_need_a_login(reader: Reader, ann: User) -> None:
    for path in ("/statistics", "/feeds/a/statistics"):
        answer = browser(reader).get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path}")


def test_with_a_remote_store_figures_are_kept_for_a_time_for_their_user_alone(
    reader: Reader, ann: User
) -> None:
    seconds = [0.0]
    reader.stores.objects_of_features[Timed] = Timed(lifetime=3600, seconds=lambda: seconds[0])
    client = browser(reader, ann)
    assert figure(client.get("/statistics").text, "Items") == "8"
    visit(reader.database, [item("later")], id="a", at=reader.clock())
    assert figure(client.get("/statistics").text, "Items") == "8"
    assert figure(client.get("/statistics?days=90").text, "Items") == "9"
    bob = reader.user("bob")
    subscribe(reader.database, bob.id, "a", "b")
    assert figure(browser(reader, bob).get("/statistics").text, "Items") == "9"
    seconds[0] = 3601
    assert figure(client.get("/statistics").text, "Items") == "9"


def test_a_change_of_the_user_s_feeds_shows_at_once(reader: Reader, ann: User) -> None:
    reader.stores.objects_of_features[Timed] = Timed(lifetime=3600, seconds=lambda: 0.0)
    client = browser(reader, ann)
    client.get("/statistics")
    subscribe(reader.database, ann.id, "other")
    assert figure(client.get("/statistics").text, "Items") == "9"


def test_what_is_kept_is_bounded() -> None:
    kept = Timed(lifetime=10, seconds=lambda: 0.0, most=3)
    for number in range(5):
        kept.put(number, str(number))
    assert [kept.get(number) for number in range(5)] == [None, None, "2", "3", "4"]
