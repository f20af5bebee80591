"""The ids of topics, feeds and entries, and the form of links by which doubles are found."""

import re
from functools import lru_cache
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, UUID, uuid5

from rss_pipeline.collector.parse.iri import is_absolute_iri
from rss_pipeline.collector.parse.links import MAX_LINK_CHARACTERS
from rss_pipeline.features.topics.values import Candidate, SourceFeed

_TRACKERS = re.compile(
    r"(?:utm|pk|mtm)_\w*|(?:fbc|gc|dc|yc|ttc|twc)lid|msclkid|[wg]braid|gad_source|mc_[ce]id|igshid|igsh|mkt_tok"
    r"|_ga|_gl|_hs(?:enc|mi)|ref_src|at_(?:medium|campaign)|oly_(?:anon|enc)_id|vero_id|cmpid",
    re.IGNORECASE,
)
"""Parameters of a query that say by which way a reader came, not which page it is."""
_DEFAULT_PORT = re.compile(r":(?:80|443)?\Z")

_REMEMBERED = 1_000
"""The items of a topic are compared several times while it is built."""


def topic_urn(installation: UUID, topic_id: str) -> str:
    """The id of a topic's feed: the same after a move to another URL, another one in each installation."""
    return uuid5(installation, f"topic:{topic_id}").urn


def feed_urn(feed: SourceFeed) -> str:
    """The id of an entry's source. The URL itself is not published: it may hold a token."""
    return _urn(feed.url)


@lru_cache(maxsize=_REMEMBERED)
def _urn(url: str) -> str:
    return uuid5(NAMESPACE_URL, url).urn


def entry_id(candidate: Candidate) -> str:
    """The item's own id where RFC 4287 4.2.6 allows it, else a UUID of its feed's URL and its guid."""
    return _entry_id(candidate.feed.url, candidate.guid)


@lru_cache(maxsize=_REMEMBERED)
def _entry_id(feed_url: str, guid: str) -> str:
    if len(guid) <= MAX_LINK_CHARACTERS and is_absolute_iri(guid):
        return guid
    return uuid5(NAMESPACE_URL, f"{feed_url}\0{guid}").urn


@lru_cache(maxsize=_REMEMBERED)
def link_key(link: str | None) -> str | None:
    """The page that a link leads to, whatever the way there: equal keys are the same page.

    Scheme, user, default port, fragment and parameters of trackers are dropped. None for what is not http(s),
    and for a front page: it is no item's own.
    """
    if not link:
        return None
    try:
        parts = urlsplit(link.strip())
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return None
    host = _DEFAULT_PORT.sub("", parts.netloc.rpartition("@")[2].lower())
    kept = [each for each in parts.query.split("&") if each and not _is_tracker(each)]
    if parts.path in ("", "/") and not kept:
        return None
    return f"{host}{parts.path or '/'}{'?' if kept else ''}{'&'.join(kept)}"


def _is_tracker(parameter: str) -> bool:
    return _TRACKERS.fullmatch(parameter.partition("=")[0]) is not None
