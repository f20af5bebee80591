"""The address of a feed: permanent redirects adopted, and given up again. Pure functions.

Redirects are followed in collector.fetch.feed_visit; the registered URL never changes, and so the id does
not.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit, urlunsplit

from rss_pipeline.collector.http.request_url import RequestUrl, request_url
from rss_pipeline.collector.models.failure import Failure, FailureKind
from rss_pipeline.collector.models.feed import MAX_URL_CHARACTERS, Feed, FeedAddress
from rss_pipeline.collector.models.outcome import Response

SEEN_FOR = timedelta(days=7)
"""Time for which each answer must have led to the same URL before that URL is requested directly."""

GIVEN_UP_AFTER = timedelta(days=3)
GIVEN_UP_FAILURES = 3

_NO_FEED_THERE: frozenset[FailureKind] = frozenset(
    {
        "timeout",
        "dns",
        "connect",
        "tls",
        "bad_url",
        "blocked_address",
        "redirect",
        "gone",
        "unexpected_304",
        "no_content",
        "empty_body",
        "html",
        "not_a_feed",
    }
)
"""Failures which may mean that the feed has left an address. Not those that demand a wait, for another way to
the same server would get around it, and not those of reading or storing."""


def after_success(feed: Feed, response: Response, *, now: datetime) -> FeedAddress:
    """The address after a document was stored or confirmed, at the end of any redirects.

    A target is adopted once every such answer of seven days has led there by permanent redirects alone; from
    http to https on the same host at once. `hindrance` has the targets that are never adopted.
    """
    as_it_is = replace(feed.address, move_url=None, move_since=None)
    if response.moved_to is None:
        return as_it_is
    requested, target = request_url(feed.requested_url), request_url(response.moved_to)
    hindered = hindrance(
        url=feed.url, fetch_url=feed.address.fetch_url, needs_access=feed.needs_access, target=target.url
    )
    shown = target.url
    if feed.needs_access and hindered:
        # A request with a password may have been redirected to an address that holds another.
        shown = urlunsplit(urlsplit(target.url)._replace(query="", fragment=""))
    if not shown.isprintable() or len(shown) > MAX_URL_CHARACTERS:
        return as_it_is
    before = feed.address
    since = before.move_since if before.move_url == shown and before.move_since is not None else now
    if hindered is None and (now - since >= SEEN_FOR or _is_upgrade(requested, target)):
        back_home = target.url == request_url(feed.url).url
        return FeedAddress(fetch_url=None if back_home else target.url, host=target.host)
    return replace(as_it_is, move_url=shown, move_since=since)


def after_failure(feed: Feed, failure: Failure, *, now: datetime) -> FeedAddress:
    """The address after a failed visit. An adopted address without a feed for three days and three visits in
    a row is given up: the registered URL is requested again, and may redirect to the feed's new address."""
    failures = feed.failures.in_a_row + 1
    last = feed.schedule.last_success_at
    if (
        feed.address.fetch_url is None
        or not _says_no_feed_there(failure)
        or failures < GIVEN_UP_FAILURES
        or (last is not None and now - last < GIVEN_UP_AFTER)
    ):
        return feed.address
    return FeedAddress(fetch_url=None, host=request_url(feed.url).host)


def hindrance(*, url: str, fetch_url: str | None, needs_access: bool, target: str) -> str | None:
    """The reason why `target` is never adopted, as a clause; None if it may be adopted."""
    registered, there = request_url(url), request_url(target)
    if needs_access and there.origin != registered.origin:
        return "its headers or password go to the server of the registered URL only"
    if there.scheme == "http" and "https" in (registered.scheme, request_url(fetch_url or url).scheme):
        return "it would give up https"
    return None


def _is_upgrade(requested: RequestUrl, target: RequestUrl) -> bool:
    return (requested.scheme, target.scheme) == ("http", "https") and requested.host == target.host


def _says_no_feed_there(failure: Failure) -> bool:
    if failure.kind == "http_status":
        return failure.status is not None and failure.status < 500
    return failure.kind in _NO_FEED_THERE
