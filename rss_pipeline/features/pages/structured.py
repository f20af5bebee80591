"""The JSON-LD of a page about its entries: dates, titles, images and authors that it does not show.

It is rare, and often of the page itself; so it completes a list and finds none.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from rss_pipeline.collector.parse.links import absolute
from rss_pipeline.features.pages.links import identity
from rss_pipeline.features.pages.model import Entry
from rss_pipeline.features.pages.page import Page

_MOST_CHARACTERS = 500_000
_MOST_OBJECTS = 5_000
_DAY = re.compile(r"\A((?:19|20)\d\d)-(\d\d)-(\d\d)")


def with_structured_data(page: Page, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Entries, with what is missing filled in from the page's JSON-LD."""
    if not page.structured or not entries:
        return tuple(entries)
    known = {key: value for value in _objects(page) if (key := _link(page, value))}
    return tuple(
        _completed(page, entry, found) if entry.link and (found := known.get(identity(entry.link))) else entry
        for entry in entries
    )


def _objects(page: Page) -> Iterator[Mapping[str, Any]]:
    left = _MOST_OBJECTS
    for text in page.structured:
        if len(text) > _MOST_CHARACTERS:
            continue
        try:
            waiting = [json.loads(text)]
        # RecursionError: brackets nested deeper than Python's stack.
        except (ValueError, RecursionError):
            continue
        while waiting and left:
            left -= 1
            match waiting.pop():
                case dict() as value:
                    yield value
                    waiting.extend(value.values())
                case list() as values:
                    waiting.extend(values)


def _link(page: Page, value: Mapping[str, Any]) -> str | None:
    for name in ("url", "@id", "mainEntityOfPage"):
        link = value.get(name)
        if isinstance(link, dict):
            link = link.get("@id")
        if isinstance(link, str) and ("headline" in value or "datePublished" in value):
            url = absolute(link, (page.base, page.url))
            if url is not None and url.startswith("http"):
                return identity(url)
    return None


def _completed(page: Page, entry: Entry, value: Mapping[str, Any]) -> Entry:
    image = absolute(_text(value.get("image"), "url"), (page.base, page.url))
    return replace(
        entry,
        title=entry.title or _text(value.get("headline"), "@value"),
        date=entry.date or _date(value.get("datePublished")),
        author=entry.author or _text(value.get("author"), "name"),
        image=entry.image or (image if image and image.startswith("http") else None),
    )


def _text(value: Any, name: str) -> str | None:
    while isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get(name)
    return " ".join(value.split()) or None if isinstance(value, str) else None


def _date(value: Any) -> date | None:
    if not isinstance(value, str) or not (found := _DAY.match(value)):
        return None
    try:
        return date(*map(int, found.groups()))
    except ValueError:
        return None
