"""The feeds of a user that fail: since when, why, what to do, and when they are visited next.

Such a feed stays subscribed, and the back-off goes to a day.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.reader.accounts.preferences import stored_preferences
from rss_pipeline.reader.feed_queries import FeedRow
from rss_pipeline.reader.query import Query
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingFeed:
    """A subscribed feed with a failed last visit."""

    feed_id: str
    title: str
    """The URL where it has none."""
    url: str
    since: datetime
    """The first of these failures."""
    error_kind: str
    error: str
    """The error of the last visit. It does not say what is in a private network."""
    full_error: str | None
    """For the owner, where it says more. Nor does it say what is in a private network."""
    what_to_do: str
    next_visit: datetime


def failing_feeds(rows: Iterable[FeedRow]) -> list[FailingFeed]:
    """The feeds of a user that fail; the one that began to fail last comes first."""
    found = [_failing(row) for row in rows if row.last_visit_failed]
    return sorted(found, key=lambda feed: (feed.since, feed.feed_id), reverse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class InApps:
    """The wishes of a user for apps."""

    read_failures: frozenset[int] | None
    """The numbers of the failures that the user has read; None for a user who does not want them shown as
    entries of a feed."""
    is_folded: bool
    """Items that belong together are one entry."""


def in_apps(user_id: str) -> Query[InApps]:
    """The user's wishes for apps."""

    def read(found: Result) -> InApps:
        text = found.values[0][0]
        preferences = stored_preferences(text)
        is_folded = preferences.stories and preferences.stories_in_apps
        return InApps(read_failures=read_failures_of(text), is_folded=is_folded)

    return Query.of(users.preferences(user_id), read)


def read_failures(user_id: str) -> Query[frozenset[int] | None]:
    """The failures of `InApps` alone."""
    return in_apps(user_id).then(lambda found: found.read_failures)


def read_failures_of(text: str) -> frozenset[int] | None:
    """The same, from the preferences as they are stored."""
    if not stored_preferences(text).show_failing_feed:
        return None
    stored = json.loads(text).get(users.READ_FAILURES)
    return frozenset(stored) if isinstance(stored, list) else frozenset()


def _failing(row: FeedRow) -> FailingFeed:
    kind = row.error_kind or "unknown"
    error = shown_error(kind, row.error) or "The last visit failed."
    return FailingFeed(
        feed_id=row.feed_id,
        title=row.title or row.url,
        url=row.url,
        since=row.failing_since or row.added_at,
        error_kind=shown_kind(kind),
        error=error,
        full_error=None if error in (row.error, PRIVATE) else row.error,
        what_to_do=what_to_do(kind),
        next_visit=row.next_visit,
    )


# The error of a feed as its readers may see it, and what they can do about it: a sentence each.
# For users, who have no registry and no logs, and are told no internal names. What an operator can do is in
# the messages of the kinds in `_SHOWN`; those of all other kinds are written for users as well.

PRIVATE = (
    "This address cannot be requested here: its host is unknown or in a private network, or its port is not"
    " open."
)
"""The one sentence for addresses that a user may not know anything of: with another one for names that are
unknown, whoever adds feeds or publishes links would learn which hosts the private network has."""

_WAIT = "Nothing: it is tried again by itself."
_ADDRESS = "Look for the feed's address on the site, and subscribe to that instead."
_OPERATOR = "Write to the operator of this server."

_ADVICE = {
    "timeout": _WAIT,
    "connect": _WAIT,
    "tls": "The site's certificate is not valid; its owner can renew it. It is tried again by itself.",
    "bad_url": _ADDRESS,
    "blocked_address": "Check the spelling. If the site has a new name, subscribe to its feed there.",
    "redirect": _ADDRESS,
    "http_status": "If this lasts, look on the site for a new address of the feed.",
    "gone": "The site has removed this feed for good: unsubscribe from it, or look there for a new one.",
    "rate_limited": "Wait: the site wants fewer requests.",
    "host_on_hold": "Try again later: the site wants fewer requests, or another run requests from it now.",
    "challenge": "The site answers programs with a test for people; its owner can let feed readers through.",
    "html": _ADDRESS,
    "no_list": "Edit the feed to see what would be collected of the page now.",
    "list_lost": "Edit the feed to see what would be collected of the page now, and confirm it.",
    "robots": "The site keeps programs from this page. Look for a feed of the site.",
    "not_a_feed": _ADDRESS,
    "empty_body": _WAIT,
    "no_content": _WAIT,
    "truncated": _WAIT,
    "refused": "Subscribe to the feed again if you want it.",
    "not_polled": "Subscribe to the feed again if you want it.",
    "storage_rejected": _OPERATOR,
    "crashed": _OPERATOR,
    "our_network": "Nothing: this server's own network was down. It is tried again by itself.",
    "too_many": "Unsubscribe from what you no longer read.",
}


_SHOWN = {
    "no_list": "The page has no list of entries that is certain.",
    "list_lost": "The page does not show the entries that it had.",
    "blocked_address": PRIVATE,
    "connect": "There is no connection to the site.",
    "our_network": "The network of this server was down.",
    "crashed": "The reader failed at the document of this feed.",
    "storage_rejected": "The items of this feed could not be stored.",
    "too_large": "The document of this feed is larger than what is read here.",
    "tls": "There is no trustworthy connection to the site: its certificate is not valid.",
}
"""Instead of the messages, which are for the operator: they name parts of the program, its settings and
files, hosts of the private network, or a feed of somebody else's."""


def shown_kind(kind: str) -> str:
    """The kind of a failure, for users: that of a name that is unknown is that of a private address."""
    return "blocked_address" if kind == "dns" else kind


def shown_error(kind: str | None, error: str | None) -> str | None:
    """The words of a failure of this kind, for users."""
    return error if kind is None else _SHOWN.get(shown_kind(kind), error)


def what_to_do(kind: str) -> str:
    """The sentence for this kind of failure."""
    advice = _ADVICE.get(shown_kind(kind))
    return advice or "The document of this feed has a mistake; its owner can correct it."
