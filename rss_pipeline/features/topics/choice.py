"""The items that a topic shows, in their order, each once.

Which rows are read is the storage's part: more candidates than needed do not change the choice.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, UUID, uuid5

from rss_pipeline.collector.parse.iri import is_absolute_iri
from rss_pipeline.collector.parse.links import MAX_LINK_CHARACTERS
from rss_pipeline.features.topics.model import Candidate, SourceFeed, TopicSpec

# The ids of topics, feeds and entries, and the form of links by which doubles are found.

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


FIRST_DOCUMENT_ITEMS = 5
"""Items that a feed's first document brings: a feed that is added does not fill a topic with old posts."""

DEPTH = 2
"""Factor: duplicates are searched in DEPTH x the topic's size. Where a copy has a later
date, the item would else come again as soon as it is too old to be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicItem:
    """An item of a topic."""

    candidate: Candidate
    """The item as its first member in `of` has it."""
    also_in: tuple[Candidate, ...] = ()
    """The same item in further members, one for each, in the order of `of`."""


def choose(topic: TopicSpec, candidates: Iterable[Candidate]) -> tuple[TopicItem, ...]:
    """The items of the topic, newest first, at most `topic.items`.

    Items that come after those of which `is_settled` is true do not change it.
    """
    first = counted(topic, candidates)
    if topic.each is not None:
        found = _distinct(_newest(first, topic.each))
    else:
        most = DEPTH * topic.items
        found = _distinct(first[:most])
        while len(found) < topic.items and most < len(first):
            most *= 2
            found = _distinct(first[:most])
    return tuple(sorted(found, key=lambda each: _order(each.candidate))[: topic.items])


def is_settled(topic: TopicSpec, candidates: Iterable[Candidate]) -> bool:
    """True if the choice stays the same with any items that come after all of these.

    For a topic that shows the newest of each, every member with items must have that many.
    """
    first = counted(topic, candidates)
    if topic.each is not None:
        items: defaultdict[int, set[str]] = defaultdict(set)
        for candidate in first:
            items[candidate.member].add(candidate.item_id)
        return all(len(some) >= topic.each for some in items.values())
    most = DEPTH * topic.items
    while most <= len(first):
        if len(_distinct(first[:most])) >= topic.items:
            return True
        most *= 2
    return False


def counted(topic: TopicSpec, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates newest first, without those of first documents that are too many."""
    return _without_flood(topic, sorted(candidates, key=_order))


def _order(candidate: Candidate) -> tuple[bool, float, str, int]:
    """Newest first; items of a first document that have no date are last, since theirs is only ours."""
    is_undated_start = candidate.is_of_first_document and not candidate.is_dated
    return is_undated_start, -candidate.sort_date.timestamp(), candidate.item_id, candidate.member


def _without_flood(topic: TopicSpec, candidates: Sequence[Candidate]) -> list[Candidate]:
    """All but the items of first documents beyond five.

    Five for each feed, however many of its streams are members. Where the topic shows the newest of each,
    five for each member; otherwise most streams of a new feed would be empty.
    """
    kept = []
    started: defaultdict[Hashable, set[str]] = defaultdict(set)
    for candidate in candidates:
        if candidate.is_of_first_document:
            items = started[candidate.feed.id if topic.each is None else candidate.member]
            if candidate.item_id not in items and len(items) == FIRST_DOCUMENT_ITEMS:
                continue
            items.add(candidate.item_id)
        kept.append(candidate)
    return kept


def _newest(candidates: Sequence[Candidate], each: int) -> list[Candidate]:
    kept = []
    items: defaultdict[int, set[str]] = defaultdict(set)
    for candidate in candidates:
        seen = items[candidate.member]
        if candidate.item_id not in seen and len(seen) < each:
            seen.add(candidate.item_id)
            kept.append(candidate)
    return kept


def _distinct(candidates: Sequence[Candidate]) -> list[TopicItem]:
    """Each item once: candidates with one id, or with one link in two feeds, are the same, and those that
    make a story with the first one of an entry, by the items of the topic alone. What only a third item ties
    to that is an entry of its own: nobody would see it otherwise."""
    links = {each.link: link_key(each.link) for each in candidates}
    vague = _vague_links(candidates, links)
    found: dict[str, list[Candidate]] = {}
    entries_by_id: dict[str, str] = {}
    entries_by_link: dict[str, str] = {}
    heads: defaultdict[str, list[Candidate]] = defaultdict(list)
    """By story, the first candidate of each entry."""
    ids = {each.item_id for each in candidates}
    for candidate in sorted(candidates, key=lambda each: (each.member, _order(each))):
        own = entry_id(candidate)
        link = links[candidate.link]
        if link in vague:
            link = None
        entry = (
            entries_by_id.get(own)
            or (entries_by_link.get(link) if link else None)
            or next(
                (entry_id(head) for head in _of_story(candidate, heads) if _are_one(candidate, head, ids)),
                None,
            )
            or own
        )
        if candidate.story and entry not in found:
            heads[candidate.story.id].append(candidate)
        found.setdefault(entry, []).append(candidate)
        entries_by_id.setdefault(own, entry)
        if link:
            entries_by_link.setdefault(link, entry)
    return [_chosen(*same) for same in found.values()]


def _of_story(candidate: Candidate, heads: Mapping[str, list[Candidate]]) -> Sequence[Candidate]:
    return [] if candidate.story is None else heads.get(candidate.story.id, ())


def _are_one(one: Candidate, other: Candidate, ids: Set[str]) -> bool:
    """True if two candidates of one story make it by themselves, with others of these items, or by the word
    of an operator."""
    if one.story is None or other.story is None:
        return False
    return (
        one.story.is_moved
        or other.story.is_moved
        or any(other.item_id in join and ids >= {*join} for join in one.story.joins)
        or any(one.item_id in join and ids >= {*join} for join in other.story.joins)
    )


def _vague_links(candidates: Iterable[Candidate], links: Mapping[str | None, str | None]) -> frozenset[str]:
    """The links that several items of one feed have, e.g. to a page of changes: they name no item."""
    items: dict[tuple[str, str], str] = {}
    vague = set()
    for candidate in candidates:
        link = links[candidate.link]
        if link and items.setdefault((candidate.feed.id, link), candidate.item_id) != candidate.item_id:
            vague.add(link)
    return frozenset(vague)


def _chosen(first: Candidate, *others: Candidate) -> TopicItem:
    further = {each.member: each for each in reversed(others) if each.member != first.member}
    return TopicItem(candidate=first, also_in=tuple(further[member] for member in sorted(further)))
