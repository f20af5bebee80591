"""The address of a feed from now on: which redirects are believed, from when on, and what undoes it."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models.failure import Failure, FailureKind
from rss_pipeline.collector.models.feed import Feed, FeedAddress
from rss_pipeline.collector.models.outcome import Document, NotModified, Response
from rss_pipeline.collector.schedule.permanent_redirects import after_failure, after_success, hindrance
from rss_pipeline_tests.collector.fetch.rounds import NOW, RSS, feed, fetch
from rss_pipeline_tests.support.feeds import amend
from rss_pipeline_tests.support.server import Answer, FeedServer

OLD = "http://old.example/feed"
NEW = "http://new.example/rss"
SECURE = "https://old.example/feed"
DAY = timedelta(days=1)


def answer(moved_to: str | None, *, at: datetime = NOW) -> Response:
    return Response(
        status=200, requested_url=OLD, url=moved_to or OLD, fetched_at=at, fetch_ms=1, moved_to=moved_to
    )


def step(known: Feed, target: str | None, at: datetime) -> Feed:
    """The feed after a visit that ended well, at the end of permanent redirects to `target`."""
    return replace(known, address=after_success(known, answer(target), now=at))


def visited(known: Feed, *targets: str | None) -> Feed:
    """The feed after such visits, one a day."""
    for number, target in enumerate(targets):
        known = step(known, target, NOW + number * DAY)
    return known


def asked_at(known: Feed) -> str:
    return known.requested_url


class TestAPermanentRedirect:
    def test_is_believed_after_seven_days_of_it_and_not_before(self) -> None:
        assert asked_at(visited(feed(OLD), *[NEW] * 7)) == OLD
        moved = visited(feed(OLD), *[NEW] * 8)
        assert (moved.address.fetch_url, moved.address.host) == (NEW, "new.example")
        assert (moved.url, moved.address.move_url, moved.address.move_since) == (OLD, None, None)

    def test_is_shown_with_the_day_it_was_first_seen_until_then(self) -> None:
        waiting = visited(feed(OLD), NEW, NEW, NEW)
        assert (waiting.address.fetch_url, waiting.address.move_url, waiting.address.move_since) == (
            None,
            NEW,
            NOW,
        )

    def test_to_another_target_begins_anew(self) -> None:
        assert asked_at(visited(feed(OLD), *[NEW] * 6, f"{NEW}2", *[NEW] * 7)) == OLD

    def test_that_was_not_there_at_one_visit_begins_anew(self) -> None:
        assert asked_at(visited(feed(OLD), *[NEW] * 6, None, *[NEW] * 7)) == OLD
        assert visited(feed(OLD), NEW, None).address == feed(OLD).address

    def test_from_http_to_https_of_the_same_host_is_believed_at_once(self) -> None:
        assert asked_at(visited(feed(OLD), SECURE)) == SECURE
        assert asked_at(visited(feed(OLD), "https://www.old.example/feed")) == OLD

    def test_from_the_address_that_is_requested_by_now_leads_on(self) -> None:
        assert asked_at(visited(feed(OLD, fetch_url=SECURE), *["https://new.example/"] * 8)) == (
            "https://new.example/"
        )

    def test_back_to_the_registered_url_leaves_no_other(self) -> None:
        home = visited(feed(OLD, fetch_url=NEW, host="new.example"), *[OLD] * 8)
        assert (home.address.fetch_url, home.address.host) == (None, "old.example")

    def test_is_forgotten_where_the_url_could_not_be_registered(self) -> None:
        assert visited(feed(OLD), f"{NEW}?{'x' * 2000}").address == feed(OLD).address


class TestNeverAdopted:
    def test_is_what_would_give_up_https(self) -> None:
        secure = feed(SECURE)
        after = visited(secure, *["http://old.example/feed"] * 20)
        assert asked_at(after) == SECURE
        assert (after.address.move_url, after.address.move_since) == ("http://old.example/feed", NOW)
        assert asked_at(visited(feed(OLD, fetch_url=SECURE), *[NEW] * 20)) == SECURE

    @pytest.mark.parametrize("target", [NEW, SECURE, "http://old.example:8080/feed"])
    def test_is_another_server_for_a_feed_with_a_password(self, target: str) -> None:
        after = visited(feed(OLD, needs_access=True), *[target] * 20)
        assert asked_at(after) == OLD
        assert after.address.move_url == target

    def test_but_another_path_of_its_own_server_is_adopted(self) -> None:
        assert asked_at(visited(feed(OLD, needs_access=True), *["http://old.example/b"] * 8)) == (
            "http://old.example/b"
        )

    def test_and_what_a_server_hangs_onto_that_address_is_not_kept(self) -> None:
        after = visited(feed(OLD, needs_access=True), f"{NEW}?token=hunter2")
        assert after.address.move_url == NEW

    def test_says_why(self) -> None:
        def why(target: str, **fields: Any) -> str | None:
            return hindrance(url=OLD, **{"fetch_url": None, "needs_access": False, **fields}, target=target)

        assert why(NEW) is None
        assert why(NEW, needs_access=True) == (
            "its headers or password go to the server of the registered URL only"
        )
        assert why(NEW, fetch_url=SECURE) == "it would give up https"


def failure(kind: FailureKind, status: int | None = None) -> Failure:
    return Failure(kind=kind, message="x", status=status)


class TestAnAdoptedAddress:
    def moved(self, **fields: Any) -> Feed:
        known = {"fetch_url": NEW, "host": "new.example", "last_success_at": NOW - 3 * DAY}
        return feed(OLD, **{**known, "in_a_row": 2, **fields})

    @pytest.mark.parametrize(
        ("kind", "status"),
        [
            ("http_status", 404),
            ("gone", 410),
            ("html", 200),
            ("not_a_feed", 200),
            ("dns", None),
            ("tls", None),
        ],
    )
    def test_without_a_feed_for_three_days_and_visits_is_given_up(
        self, kind: FailureKind, status: int | None
    ) -> None:
        found = after_failure(self.moved(), failure(kind, status), now=NOW)
        assert found == FeedAddress(fetch_url=None, host="old.example")

    @pytest.mark.parametrize(
        ("kind", "status"),
        [
            ("http_status", 500),
            ("http_status", 503),
            ("rate_limited", 429),
            ("challenge", 403),
            ("parse_timeout", 200),
            ("crashed", None),
            ("storage_rejected", 200),
        ],
    )
    def test_stays_where_the_failure_says_nothing_of_the_address(
        self, kind: FailureKind, status: int | None
    ) -> None:
        known = self.moved(in_a_row=50, last_success_at=NOW - 60 * DAY)
        assert after_failure(known, failure(kind, status), now=NOW) == known.address

    @pytest.mark.parametrize(
        "fields", [{"in_a_row": 1}, {"last_success_at": NOW - 3 * DAY + timedelta(minutes=1)}]
    )
    def test_is_not_given_up_for_less(self, fields: dict[str, Any]) -> None:
        known = self.moved(**fields)
        assert after_failure(known, failure("gone", 410), now=NOW) == known.address

    def test_a_failure_leaves_a_redirect_that_is_being_watched_as_it_was(self) -> None:
        known = feed(OLD, move_url=NEW, move_since=NOW - 6 * DAY, in_a_row=9)
        assert after_failure(known, failure("dns"), now=NOW) == known.address
        assert asked_at(amend(known, fetch_url=None)) == OLD
        assert after_success(known, answer(NEW), now=NOW + DAY).fetch_url == NEW


@given(
    st.lists(st.sampled_from([None, OLD, NEW, SECURE, "https://third.example/", f"{OLD}/x"]), max_size=30),
    st.booleans(),
)
def test_whatever_the_answers_say_no_password_s_server_is_left_and_no_https_given_up(
    targets: list[str | None], needs_access: bool
) -> None:
    known = feed(OLD, needs_access=needs_access)
    for number, target in enumerate(targets):
        was_secure = asked_at(known).startswith("https:")
        known = step(known, target, NOW + number * DAY)
        assert known.url == OLD
        assert not needs_access or asked_at(known).startswith("http://old.example/")
        assert not was_secure or asked_at(known).startswith("https:")


class TestOverTheWire:
    """Which chains count as moves."""

    HOST = "127.0.0.2"

    def follow(self, server: FeedServer, spool: Path, *statuses: int) -> str | None:
        for number, status in enumerate(statuses):
            redirect = Answer(status=status, headers={"Location": f"/{number + 1}"})
            server.route(self.HOST, f"/{number}", redirect)
        end = server.route(self.HOST, f"/{len(statuses)}", Answer(body=RSS))
        outcome = fetch(feed(server.url(self.HOST, "/0")), spool)
        assert isinstance(outcome, Document)
        assert outcome.response.url == end
        assert outcome.response.moved_to in {None, end}
        return outcome.response.moved_to

    @pytest.mark.parametrize("statuses", [(301,), (308,), (301, 308, 301)])
    def test_one_that_is_permanent_throughout(
        self, statuses: tuple[int, ...], server: FeedServer, tmp_path: Path
    ) -> None:
        assert self.follow(server, tmp_path, *statuses) is not None

    @pytest.mark.parametrize(
        "statuses", [(), (302,), (303,), (307,), (302, 301), (307, 308), (301, 302), (308, 303, 301)]
    )
    def test_none_with_a_temporary_redirect_in_it(
        self, statuses: tuple[int, ...], server: FeedServer, tmp_path: Path
    ) -> None:
        assert self.follow(server, tmp_path, *statuses) is None

    def test_one_that_ends_in_a_304(self, server: FeedServer, tmp_path: Path) -> None:
        target = server.route(self.HOST, "/new", Answer(body=RSS, etag='"1"'))
        url = server.route(self.HOST, "/old", Answer(status=301, headers={"Location": "/new"}))
        outcome = fetch(feed(url, etag='"1"', validators_url=target), tmp_path)
        assert isinstance(outcome, NotModified)
        assert outcome.response.moved_to == target
