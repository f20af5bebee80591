"""The document of a page: its entries as the items of a feed, in the parser process.

A list that is lost is an error of the page and never an empty success. What it had before is in known.py.
"""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.item import Enclosure, FeedHeader, Item, Moved, ParsedFeed, PublisherHints
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.collector.parse.characters.decode import Decoded
from rss_pipeline.collector.parse.document import MAX_FEED_TITLE_CHARACTERS, parse_feed, plain_tree
from rss_pipeline.collector.parse.pictures import IMAGE, with_pictures
from rss_pipeline.collector.parse.raw_feed import RawFeed, RawItem
from rss_pipeline.errors import NotAFeed
from rss_pipeline.features.pages import CONFIRMED
from rss_pipeline.features.pages.detect import detect
from rss_pipeline.features.pages.known import MOST_MARKS, Known, PageOfDocument, home_of, mark, page_in
from rss_pipeline.features.pages.links import guids_of, identity
from rss_pipeline.features.pages.model import Detected, Entry, is_selectors
from rss_pipeline.features.pages.page import decode_page
from rss_pipeline.features.pages.selectors import select
from rss_pipeline.pipeline.session.parser_tasks import ParseTask

_FEED = re.compile(
    r"\A[\ufeff\s]{0,99}+(?:\{|(?:<[?!][^>]{0,999}>\s{0,99}){0,9}<(?:rss|feed|rdf:RDF)[\s>])", re.I
)
_UPDATES = 20
_WARNED_FOR = timedelta(days=7)
_SHOWN = 3


def first_memory(feed: Feed, parsed: Parsed) -> str | None:
    """The memory of a page after its first document with a list, None after any other."""
    found = page_in(parsed)
    if found is None or known_of(feed, parsed.document.response.url) is not None:
        return None
    return found.known.to_text()


def known_of(feed: Feed, url: str) -> Known | None:
    """The memory of a page that is at `url` now; None before its first list, and after a change of its
    settings."""
    known = Known.of_text(feed.memories.get("page"))
    if known is None or known.settings != mark(feed.feature_keys["page"]):
        return None
    return replace(known, here=home_of(url))


def _taken(feed: Feed, url: str) -> Known | None:
    """The memory after a document that is read again, if its list was taken then: whatever the detection of
    now says of it."""
    later = known_of(replace(feed, memories=feed.later_memories), url)
    return None if later is None or later.is_confirmed else later


def _homes(feed: Feed, url: str) -> Known:
    """A memory of nothing but where the page was and is."""
    kept = Known.of_text(feed.memories.get("page")) or Known()
    here = home_of(url)
    return Known(home=kept.home or here, here=here)


def read_document(task: ParseTask, body: bytes, *, keep_tree: bool) -> ParsedFeed:
    """The entries of a page as items.

    Raises:
        NotAFeed: `no_list` before the first list, `list_lost` after it, or the document is empty.
    """
    response, feed = task.document.response, task.feed
    decoded = decode_page(body, response.content_type, hint=feed.http.charset)
    if not decoded.text.strip("\x00 \t\r\n\ufeff"):
        raise NotAFeed(
            "The server sent an empty page. If this continues, its publisher has to fix it.", "empty_body"
        )
    known, homes = known_of(feed, response.url), _homes(feed, response.url)
    if _FEED.match(decoded.text):
        return _of_feed(task, body, known, homes, keep_tree=keep_tree)
    settings = feed.feature_keys["page"]
    if is_selectors(settings):
        found = select(decoded.text, response.url, settings, now=response.fetched_at)
        _refuse_dead(found, decoded.text, response.url, known)
    else:
        taken = _taken(feed, response.url)
        found = detect(decoded.text, response.url, taken or known, was_taken=taken is not None)
        if taken is not None:
            found = _as_taken(found, taken, known)
    if known is None:
        _refuse_unsure(found, feed)
    elif found.verdict != "certain":
        raise NotAFeed(_lost(found, known, feed), "list_lost")
    guids = list(map(homes.at_home, guids_of(found.entries)))
    if known is not None:
        _refuse_collapsed(guids, known, feed)
    now = Known.of_list(guids, structure=found.structure, home=homes.home, entries=found.entries)
    moved = _moved(found, known, feed)
    part = _part(now, known, task, has_moved=moved is not None and not moved.is_confirmed)
    if is_selectors(settings) and found.evidence:
        sentence = f"selectors of the page give nothing for some entries: {' '.join(found.evidence)}"
        warning = FeedWarning(kind="unmatched_selectors", sentence=sentence)
        part = replace(part, warnings=(*part.warnings, warning))
    parsed = _parsed(found, guids, part, decoded, response.url, response.fetched_at, keep_tree=keep_tree)
    return replace(parsed, moved=moved)


def _as_taken(found: Detected, taken: Known, known: Known | None) -> Detected:
    """The list without entries that nobody has seen until the memory `taken`.

    All stay where it may be too short for the entries of the document, and where the document had no list
    then: it is the memory from before.
    """
    guids = [taken.at_home(guid) for guid in guids_of(found.entries)]
    are_known = taken.among(guids)
    is_whole = taken.has_last_list(are_known)
    if len(taken.marks) >= MOST_MARKS or not (is_whole or known is None or taken.marks != known.marks):
        return found
    kept = tuple(entry for entry, guid in zip(found.entries, guids, strict=True) if guid in are_known)
    return replace(found, entries=kept)


def _refuse_dead(found: Detected, html: str, url: str, known: Known | None) -> None:
    """Raise NotAFeed where selectors give no entry, or none with a title or link; with what they would be."""
    if found.verdict == "certain":
        return
    counts = " ".join(found.evidence)
    now = detect(html, url, known)
    hint = ""
    if now.verdict != "none" and not found.entries:
        hint = (
            f" The page's list is now {now.item} ({len(now.entries)} entries): {_titles(now.entries)}."
            f' If these are its entries, write item: "{now.item}".'
        )
    raise NotAFeed(
        f"The selectors find no entries of the page. {counts}{hint}",
        "no_list" if known is None else "list_lost",
    )


def _refuse_unsure(found: Detected, feed: Feed) -> None:
    if found.verdict == "certain" or (found.verdict == "ask" and feed.feature_keys["page"] == CONFIRMED):
        return
    if found.verdict == "none":
        raise NotAFeed(f"The page has no list of entries. {' '.join(found.evidence)}", "no_list")
    raise NotAFeed(
        f"The page has a list of {len(found.entries)} entries that may be something else:"
        f" {' '.join(found.evidence)} The first: {_titles(found.entries)}. If these are what you want, set"
        f" `page: {CONFIRMED}` for this feed, or name its parts with selectors.",
        "no_list",
    )


def _lost(found: Detected, known: Known, feed: Feed) -> str:
    had = f"The page has no list of the entries that it had ({known.count} of them)"
    if found.verdict == "none":
        return f"{had}. {' '.join(found.evidence)} Open {feed.url} in a browser to see what it shows."
    count = sum(known.has(guid) for guid in guids_of(found.entries))
    return (
        f"{had}: its best list has {len(found.entries)} entries, {count} of them known. The first:"
        f" {_titles(found.entries)}. If these are its entries now, confirm it: rss-pipeline add {feed.url}"
    )


def _titles(entries: Sequence[Entry]) -> str:
    return "; ".join(f'"{(each.title or each.link or "")[:60]}"' for each in entries[:_SHOWN])


def _refuse_collapsed(guids: Sequence[str], known: Known, feed: Feed) -> None:
    """Raise NotAFeed where most entries of the last list are missing, and none is new."""
    still = sum(map(known.has, guids[:MOST_MARKS]))
    if still == len(guids[:MOST_MARKS]) and still * 2 < known.count:
        raise NotAFeed(
            f"The page lists {still} of the {known.count} entries that it had, and no new one. If the list is"
            f" that short now, confirm it: rss-pipeline add {feed.url}",
            "list_lost",
        )


def _moved(found: Detected, known: Known | None, feed: Feed) -> Moved | None:
    """The entries that are stored ones at other addresses. With other settings, any may be one by its title:
    a person has confirmed the list."""
    if known is None or known.is_confirmed:
        return Moved(guids=frozenset(), is_confirmed=True) if feed.memories.get("page") else None
    return known.moved_among(found.entries, found.structure)


def _part(now: Known, known: Known | None, task: ParseTask, *, has_moved: bool) -> PageOfDocument:
    fetched_on = task.document.response.fetched_at.date()
    is_other = has_moved or (
        known is not None and known.structure not in ("", now.structure) and now.structure != ""
    )
    now = replace(
        now.after(known),
        redesigned_on=fetched_on if is_other else known.redesigned_on if known else None,
        settings=mark(task.feed.feature_keys["page"]),
    )
    warnings: tuple[FeedWarning, ...] = ()
    if (day := now.redesigned_on) is not None and fetched_on - day < _WARNED_FOR:
        sentence = f"the page was rebuilt on {day}; its list was found again by the entries that it had"
        warnings = (FeedWarning(kind="redesigned", sentence=sentence),)
    return PageOfDocument(known=now, settings=task.feed.feature_keys["page"], warnings=warnings)


def _parsed(
    found: Detected,
    guids: Sequence[str],
    part: PageOfDocument,
    decoded: Decoded,
    url: str,
    fetched_at: datetime,
    *,
    keep_tree: bool,
) -> ParsedFeed:
    entries: dict[str, Entry] = {}
    for guid, entry in zip(guids, found.entries, strict=True):
        entries.setdefault(guid, entry)
    items = tuple(_item(guid, entry) for guid, entry in entries.items())
    return ParsedFeed(
        header=FeedHeader(
            format="page",
            title=found.title[:MAX_FEED_TITLE_CHARACTERS] or None,
            link=url,
            charset=decoded.charset,
            charset_rule=decoded.rule,
            is_ascii=decoded.text.isascii(),
            mislabelled=decoded.mislabelled,
            hints=PublisherHints(updates=_updates(items, fetched_at)),
        ),
        items=items,
        tree=plain_tree(_raw(found.title, url, items)) if keep_tree else None,
        part=part,
    )


def _item(guid: str, entry: Entry) -> Item:
    content = f"<p>{html.escape(entry.text, quote=False)}</p>" if entry.text else None
    picture = () if entry.image is None else (Enclosure(url=entry.image, type=IMAGE),)
    return Item(
        guid=guid,
        guid_source="hash" if entry.link is None else "link",
        link=entry.link,
        title=entry.title,
        author=entry.author,
        authors=() if entry.author is None else (entry.author,),
        pub_date=_instant(entry.date),
        pub_date_raw=None if entry.date is None else entry.date.isoformat(),
        enclosures=with_pictures((), picture),
        content_html=content,
    )


def _instant(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)


def _updates(items: Iterable[Item], now: datetime) -> tuple[datetime, ...]:
    dates = {item.pub_date for item in items if item.pub_date is not None and item.pub_date <= now}
    return tuple(sorted(dates, reverse=True)[:_UPDATES])


def _raw(title: str, url: str, items: Sequence[Item]) -> RawFeed:
    """The entries as a feed, for the XPath of streams."""
    return RawFeed(
        format="page",
        title=title,
        link=url,
        items=tuple(
            RawItem(
                guid=item.guid,
                url=item.link,
                title=item.title,
                author=item.author,
                authors=item.authors,
                dates=() if item.pub_date_raw is None else (item.pub_date_raw,),
                enclosures=item.enclosures,
                content_html=item.content_html,
            )
            for item in items
        ),
    )


def _of_feed(
    task: ParseTask, body: bytes, known: Known | None, homes: Known, *, keep_tree: bool
) -> ParsedFeed:
    """The items of a feed that is at the page's address now, by their links: no known entry comes again."""
    response = task.document.response
    parsed = parse_feed(
        body,
        content_type=response.content_type,
        url=response.url,
        hint=task.feed.http.charset,
        now=response.fetched_at,
        keep_tree=keep_tree,
    )
    items: dict[str, Item] = {}
    places: list[int] = []
    for place, item in enumerate(parsed.items):
        guid = item.guid if item.link is None else homes.at_home(identity(item.link))
        if guid not in items:
            items[guid] = replace(item, guid=guid, former_guids=(), identities=None)
            places.append(place)
    guids = list(items)
    now = Known.of_list(guids, home=homes.home)
    now = replace(now.after(known), settings=mark(task.feed.feature_keys["page"]))
    sentence = "a feed is at the address of the page now: remove `page` of this feed in feeds.yaml"
    warnings = (FeedWarning(kind="redesigned", sentence=sentence),)
    tree = parsed.tree and replace(parsed.tree, items=tuple(parsed.tree.items[place] for place in places))
    return replace(
        parsed,
        items=tuple(items.values()),
        tree=tree,
        part=PageOfDocument(known=now, settings=task.feed.feature_keys["page"], warnings=warnings),
    )


def part_of(_task: ParseTask, read: ParsedFeed, _parsed: ParsedFeed) -> PageOfDocument:
    """The findings of `read_document` besides the items."""
    assert isinstance(read.part, PageOfDocument)
    return read.part
