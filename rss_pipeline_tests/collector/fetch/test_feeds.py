"""One feed requested over real HTTP: validators, statuses, what is kept and what is said."""

import hashlib
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotModified
from rss_pipeline.collector.parse.parser_version import parser_version
from rss_pipeline_tests.collector.fetch.rounds import NOW, RSS, feed, fetch
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


def hash_of(body: bytes, charset: str = "") -> str:
    return hashlib.sha256(body + b"\0" + charset.encode()).hexdigest()


def known(url: str, **fields: Any) -> Feed:
    """A feed with a document that was stored once."""
    return feed(
        url,
        **{
            "etag": '"1"',
            "last_modified": "Wed, 18 Feb 2026 08:00:00 GMT",
            "validators_url": url,
            "content_hash": hash_of(RSS),
            "last_body_at": NOW - timedelta(days=1),
            **fields,
        },
    )


def failure(outcome: FetchOutcome, kind: str, spool: Path) -> Failure:
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome
    assert outcome.message.endswith(".")
    assert list(spool.iterdir()) == []
    return outcome


class SearchedModules(MetaPathFinder):
    """Notes each module that Python searches for, and finds none."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        self.names.append(fullname)


def test_a_request_searches_for_no_module(
    server: FeedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A failed import is searched for anew each time, in every folder of sys.path.
    url = server.route(HOST, "/feed", Answer(status=304))
    assert isinstance(fetch(known(url), tmp_path), NotModified)
    searched = SearchedModules()
    monkeypatch.setattr(sys, "meta_path", [searched, *sys.meta_path])
    assert isinstance(fetch(known(url), tmp_path), NotModified)
    assert searched.names == []


def test_a_new_document_is_in_the_spool_as_served_with_all_a_visit_keeps(
    server: FeedServer, tmp_path: Path
) -> None:
    answer = Answer(
        headers={"Content-Type": 'text/xml; Charset="GBK"', "Cache-Control": "max-age=600", "Age": "60"},
        body=RSS,
        etag='W/"a-gzip"',
        last_modified="Wed, 18 Feb 2026 08:00:00 GMT",
        gzip=True,
    )
    url = server.route(HOST, "/feed", answer)

    document = fetch(feed(url), tmp_path)

    assert isinstance(document, Document)
    assert document.path.read_bytes() == RSS
    assert document.path.parent == tmp_path
    assert document.body_bytes == len(RSS)
    assert document.content_hash == hash_of(RSS, "gbk")
    response = document.response
    assert (response.status, response.requested_url, response.url) == (200, url, url)
    assert (response.etag, response.last_modified) == ('W/"a-gzip"', "Wed, 18 Feb 2026 08:00:00 GMT")
    assert (response.content_type, response.max_age) == ('text/xml; Charset="GBK"', 540)
    assert (response.fetched_at, response.conditional) == (NOW, False)
    assert 0 <= response.fetch_ms < 5000


def test_the_first_request_has_no_validators_and_is_exactly_what_we_promise(
    server: FeedServer, tmp_path: Path
) -> None:
    fetch(feed(server.route(HOST, "/feed", Answer(body=RSS))), tmp_path)
    [request] = server.requests
    assert set(request.headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert request.headers["user-agent"] == "rss_pipeline tests (tests@example.org)"
    assert request.headers["accept-encoding"] == "gzip"
    assert "application/atom+xml" in request.headers["accept"]
    assert request.method == "GET"


@pytest.mark.parametrize(
    "target",
    [
        "/a/../b//c/./feed.xml",
        "/feed?",
        "/feed?a=%41&b=[x]|{y}&c='\"<>^`",
        "/feed?q=%zz%",
        "/%E4%bd%a0?x=1&&y",
        "/@user:pass/feed;v=1?u=http://x.example/",
    ],
)
def test_the_registered_url_goes_out_as_registered(target: str, server: FeedServer, tmp_path: Path) -> None:
    url = server.route(HOST, target, Answer(body=RSS))
    document = fetch(feed(url), tmp_path)
    assert isinstance(document, Document)
    assert [request.target for request in server.requests] == [target]
    assert document.response.url == url


def test_a_url_without_a_path_requests_the_root(server: FeedServer, tmp_path: Path) -> None:
    server.route(HOST, "/?feed=rss2", Answer(body=RSS))
    url = server.url(HOST, "?feed=rss2")
    document = fetch(feed(url), tmp_path)
    assert isinstance(document, Document)
    assert document.response.url == url


def test_what_http_cannot_carry_is_percent_encoded(server: FeedServer, tmp_path: Path) -> None:
    url = server.route(HOST, "/%E4%BD%A0%20x", Answer(body=RSS))
    assert isinstance(fetch(feed(url.replace("%E4%BD%A0%20x", "你 x")), tmp_path), Document)


@pytest.mark.parametrize(
    ("etag", "last_modified"),
    [
        ('"1"', None),
        ('W/"abc-gzip"', "Wed, 18 Feb 2026 08:00:00 GMT"),
        ("unquoted, with comma", "yesterday-ish"),
        ('"caf\xe9"', None),
        (None, "Wed, 18 Feb 2026 08:00:00 GMT"),
    ],
)
def test_validators_come_back_byte_for_byte_and_a_304_is_not_modified(
    etag: str | None, last_modified: str | None, server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/feed", Answer(body=RSS, etag=etag, last_modified=last_modified))
    first = fetch(feed(url), tmp_path)
    assert isinstance(first, Document)
    stored = feed(url, etag=first.response.etag, last_modified=first.response.last_modified)

    second = fetch(stored, tmp_path)

    assert isinstance(second, NotModified)
    assert second.body_bytes == 0
    assert second.response.conditional
    assert server.requests[1].headers.get("if-none-match") == etag
    assert server.requests[1].headers.get("if-modified-since") == last_modified


def test_a_304_gives_its_new_validators_and_freshness(server: FeedServer, tmp_path: Path) -> None:
    answer = Answer(status=304, headers={"ETag": '"2"', "Cache-Control": "max-age=7200"})
    outcome = fetch(known(server.route(HOST, "/feed", answer)), tmp_path)
    assert isinstance(outcome, NotModified)
    assert (outcome.response.etag, outcome.response.max_age) == ('"2"', 7200)
    assert list(tmp_path.iterdir()) == []


def test_after_30_days_of_nothing_but_304_one_request_goes_without_validators(
    server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/feed", Answer(body=b"<rss>newer</rss>", etag='"1"'))
    long_ago = known(url, last_body_at=NOW - timedelta(days=30))
    assert isinstance(fetch(long_ago, tmp_path), Document)
    recent = known(url, last_body_at=NOW - timedelta(days=29, hours=23))
    assert isinstance(fetch(recent, tmp_path), NotModified)
    assert ["if-none-match" in request.headers for request in server.requests] == [False, True]


def test_the_same_bytes_and_charset_are_not_modified_and_bring_the_new_validators(
    server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/feed", Answer(body=RSS, etag='"2"'))
    outcome = fetch(known(url), tmp_path)
    assert isinstance(outcome, NotModified)
    assert (outcome.body_bytes, outcome.response.etag) == (len(RSS), '"2"')
    assert list(tmp_path.iterdir()) == []


def test_the_same_bytes_under_another_charset_are_a_document(server: FeedServer, tmp_path: Path) -> None:
    headers = {"Content-Type": "text/xml; charset=gbk"}
    url = server.route(HOST, "/feed", Answer(body=RSS, headers=headers))
    assert isinstance(fetch(known(url), tmp_path), Document)


@pytest.mark.parametrize(
    ("last_kind", "kind"),
    [("html", "html"), ("storage_rejected",) * 2, ("timeout", "not_a_feed"), (None,) * 2],
)
def test_the_document_that_could_not_be_read_is_the_same_failure_again(
    last_kind: str | None, kind: str | None, server: FeedServer, tmp_path: Path
) -> None:
    bad = b"<html></html>"
    url = server.route(HOST, "/feed", Answer(body=bad, etag='"bad"'))
    seen = {"failed_hash": hash_of(bad), "failed_version": parser_version()}
    broken = known(url, **seen, last_kind=last_kind, last_message="It is a web page.")
    outcome = failure(fetch(broken, tmp_path), kind or "not_a_feed", tmp_path)
    assert (outcome.document_hash, outcome.body_bytes) == (hash_of(bad), len(bad))
    assert (outcome.status, outcome.answered) == (200, True)
    if last_kind in {"html", "storage_rejected"}:
        assert outcome.message == "It is a web page.", "it does not grow at each visit"
    else:
        assert "sent the same document again" in outcome.message, "a time-out does not describe it"


@pytest.mark.parametrize("version", [None, "older"])
def test_a_document_that_other_parsers_could_not_read_is_a_new_one(
    version: str | None, server: FeedServer, tmp_path: Path
) -> None:
    bad = b"<html></html>"
    url = server.route(HOST, "/feed", Answer(body=bad))
    outcome = fetch(known(url, failed_hash=hash_of(bad), failed_version=version), tmp_path)
    assert isinstance(outcome, Document)


def test_the_bytes_of_a_cut_document_are_known_again(server: FeedServer, tmp_path: Path) -> None:
    url = server.route(HOST, "/feed", Answer(body=b"<rss>", etag='"cut"'))
    outcome = fetch(known(url, cut_hash=hash_of(b"<rss>")), tmp_path)
    assert isinstance(outcome, NotModified)
    assert (outcome.cut_off, outcome.body_bytes) == (True, 5)


def test_a_304_that_was_not_requested_is_a_failure(server: FeedServer, tmp_path: Path) -> None:
    url = server.route(HOST, "/feed", Answer(status=304))
    outcome = failure(fetch(feed(url), tmp_path), "unexpected_304", tmp_path)
    assert (outcome.status, outcome.answered) == (304, True)


def test_a_304_after_an_unreadable_document_says_that_the_stored_one_is_valid_again(
    server: FeedServer, tmp_path: Path
) -> None:
    """It answers the stored document's validators; to request it once more without them would be a whole
    document after every error page."""
    url = server.route(HOST, "/feed", Answer(status=304))
    outcome = fetch(known(url, failed_hash=hash_of(b"<html></html>"), in_a_row=2), tmp_path)
    assert isinstance(outcome, NotModified)
    assert outcome.response.conditional
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("days", "failures", "conditional"), [(29.9, 0, True), (30, 0, False), (30, 1, True), (99, 9, True)]
)
def test_a_feed_that_fails_for_30_days_is_requested_with_its_validators_all_the_same(
    days: float, failures: int, conditional: bool, server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/feed", Answer(body=RSS))
    last = NOW - timedelta(days=days)
    fetch(known(url, last_body_at=last, in_a_row=failures), tmp_path)
    [request] = server.requests
    assert ("if-none-match" in request.headers) is conditional


@pytest.mark.parametrize(
    ("headers", "max_age"), [({}, 43_200), ({"Cache-Control": "max-age=60"}, 60), ({"Expires": "0"}, 0)]
)
def test_a_304_that_says_nothing_of_freshness_leaves_what_the_stored_answer_said(
    headers: dict[str, str], max_age: int, server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/feed", Answer(status=304, headers=headers))
    outcome = fetch(known(url, max_age=43_200), tmp_path)
    assert isinstance(outcome, NotModified)
    assert outcome.response.max_age == max_age


def test_a_200_says_anew_how_long_it_is_fresh_and_any_answer_may_request_a_hold(
    server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/feed", Answer(body=b"<rss>2</rss>", headers={"Retry-After": "600"}))
    outcome = fetch(known(url, max_age=43_200), tmp_path)
    assert isinstance(outcome, Document)
    assert (outcome.response.max_age, outcome.response.retry_after) == (None, 600)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Answer(status=204), "no_content", "204 No Content"),
        (Answer(body=b""), "empty_body", "empty"),
        (Answer(body=b"", gzip=True), "empty_body", "empty"),
        (Answer(body=b"", chunked=True), "empty_body", "empty"),
        (Answer(status=410), "gone", "removed this feed for good; remove it"),
        (Answer(status=429), "rate_limited", "429 Too Many Requests"),
        (Answer(status=403, headers={"cf-mitigated": "challenge"}), "challenge", "Cloudflare"),
        (Answer(status=429, headers={"CF-Mitigated": "challenge"}), "challenge", "Cloudflare"),
        (Answer(status=503, headers={"cf-mitigated": "Challenge"}), "challenge", "Cloudflare"),
        (Answer(status=404, headers={"cf-mitigated": "challenge"}), "http_status", "404 Not Found: "),
        (Answer(status=404), "http_status", "404 Not Found: "),
        (Answer(status=401), "http_status", "the operator can set them for this feed"),
        (Answer(status=403), "http_status", "headers for this feed"),
        (Answer(status=500, body=b"<rss/>"), "http_status", "500 Internal Server Error: "),
        (Answer(status=206, body=RSS), "http_status", "206 Partial Content: "),
        (Answer(status=203, body=RSS), "http_status", "203"),
        (Answer(status=300, headers={"Location": "/x"}), "http_status", "300"),
        (Answer(status=599), "http_status", "599"),
    ],
)
def test_every_status_has_its_kind_and_a_sentence(
    answer: Answer, kind: str, says: str, server: FeedServer, tmp_path: Path
) -> None:
    outcome = failure(fetch(feed(server.route(HOST, "/feed", answer)), tmp_path), kind, tmp_path)
    assert says in outcome.message
    assert (outcome.status, outcome.answered, outcome.host) == (answer.status, True, HOST)
    assert outcome.fetched_at == NOW
    assert outcome.fetch_ms is not None
    assert outcome.retry_after is None


@pytest.mark.parametrize("status", [404, 410, 429, 500, 503])
def test_retry_after_counts_on_every_failure_and_a_day_is_the_most(
    status: int, server: FeedServer, tmp_path: Path
) -> None:
    def ask(value: str) -> int | None:
        answer = Answer(status=status, headers={"Retry-After": value})
        outcome = fetch(feed(server.route(HOST, "/feed", answer)), tmp_path)
        assert isinstance(outcome, Failure)
        return outcome.retry_after

    assert ask("120") == 120
    assert ask("999999") == 86_400
    assert ask("Wed, 18 Feb 2026 09:30:00 GMT") == 3600
    assert ask("soon") is None


def test_credentials_that_are_refused_are_named_as_such(server: FeedServer, tmp_path: Path) -> None:
    url = server.route(HOST, "/feed", Answer(status=401))
    outcome = fetch(feed(url), tmp_path, access=Access(username="me", password="hunter2"))
    assert "refuses the credentials" in failure(outcome, "http_status", tmp_path).message


def test_fetch_url_is_requested_in_place_of_url(server: FeedServer, tmp_path: Path) -> None:
    moved = server.route(HOST, "/moved", Answer(body=RSS))
    outcome = fetch(feed(server.url(HOST, "/feed"), fetch_url=moved), tmp_path)
    assert isinstance(outcome, Document)
    assert outcome.response.requested_url == moved


def test_html_is_left_to_the_parser(server: FeedServer, tmp_path: Path) -> None:
    answer = Answer(body=b"<!doctype html>", headers={"Content-Type": "text/html"})
    assert isinstance(fetch(feed(server.route(HOST, "/feed", answer)), tmp_path), Document)


def test_a_documents_cookie_does_not_come_back_and_nothing_is_kept_alive(
    server: FeedServer, tmp_path: Path
) -> None:
    answer = Answer(body=RSS, headers={"Set-Cookie": "a=1"}, keep_alive=True)
    hop = Answer(status=302, headers={"Location": "/feed"}, keep_alive=True)
    server.route(HOST, "/feed", answer)
    url = server.route(HOST, "/hop", hop)
    for _ in range(2):
        fetch(feed(url), tmp_path)
    assert all("cookie" not in request.headers for request in server.requests)
    assert len({request.connection for request in server.requests}) == 4
    assert "referer" not in server.requests[1].headers


def test_the_environment_changes_nothing(
    server: FeedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url("127.0.0.99", ""))
    monkeypatch.setenv("ALL_PROXY", server.url("127.0.0.99", ""))
    (tmp_path / "netrc").write_text(f"machine {HOST} login me password hunter2")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    spool = tmp_path / "spool"
    spool.mkdir()
    assert isinstance(fetch(feed(server.route(HOST, "/feed", Answer(body=RSS))), spool), Document)
    assert "authorization" not in server.requests[0].headers


def test_a_proxy_that_a_setting_names_is_used(server: FeedServer, tmp_path: Path) -> None:
    server.route("127.0.0.9", "http://feeds.example/a/../feed?", Answer(body=RSS))
    outcome = fetch(feed("http://feeds.example/a/../feed?"), tmp_path, proxy=server.url("127.0.0.9", ""))
    assert isinstance(outcome, Document)


def test_no_secret_is_said_or_logged(
    server: FeedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "hunter2"
    accesses = [
        Access(username="me", password=secret),
        Access(headers={"Authorization": f"Bearer {secret}", "X-Key": f"{secret}\n{secret}"}),
        Access(headers={"X-Bad\n": secret, "Cookie": f"{secret}\x00"}),
    ]
    answers = [
        Answer(status=401),
        Answer(status=302, headers={"Location": f"http://me:{secret}@127.0.0.77:1/{secret}?{secret}"}),
        Answer(status=302, headers={"Location": f"ftp://me:{secret}@x.example/{secret}"}),
        Answer(status=302, headers={"Location": f"http://me:{secret}@[/{secret}"}),
        Answer(raw=b"nonsense\r\n\r\n"),
    ]
    for access in accesses:
        for answer in answers:
            outcome = fetch(feed(server.route(HOST, "/feed", answer)), tmp_path, access=access)
            assert isinstance(outcome, Failure)
            assert secret not in repr(outcome)
            assert secret not in repr(access)
    assert secret not in caplog.text
    assert server.requests


def test_a_header_that_http_does_not_allow_is_a_failure_of_the_feed(
    server: FeedServer, tmp_path: Path
) -> None:
    url = server.route(HOST, "/feed", Answer(body=RSS))
    outcome = fetch(feed(url), tmp_path, access=Access(headers={"X-Key": "a\r\nX-Other: b"}))
    assert "A header that is set for this feed" in failure(outcome, "bad_url", tmp_path).message
    assert server.requests == []


def test_a_document_under_a_long_id_replaces_what_an_earlier_visit_left(
    server: FeedServer, tmp_path: Path
) -> None:
    long_id = "a" * 60 + "-0123456789"
    (tmp_path / long_id).write_bytes(b"left over" * 1000)
    document = fetch(replace(feed(server.route(HOST, "/f", Answer(body=RSS))), id=long_id), tmp_path)
    assert isinstance(document, Document)
    assert document.path.read_bytes() == RSS
