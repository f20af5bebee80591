"""Selectors of a page's list: XPath or CSS for the entries and for the parts of each, relative to it.

Evaluated in a child of the parser process: libxml2 cannot be interrupted, and some axes are quadratic.
"""

import gc
import json
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from lxml import etree

from rss_pipeline.collector.parse.dates.read import parse_date
from rss_pipeline.collector.parse.links import absolute
from rss_pipeline.errors import NotAFeed
from rss_pipeline.features.pages.dates import PageDates, date_in
from rss_pipeline.features.pages.entries import entries_of
from rss_pipeline.features.pages.links import identity
from rss_pipeline.features.pages.lists import Box
from rss_pipeline.features.pages.model import Detected, Entry
from rss_pipeline.features.pages.page import Anchor, Page, read_page
from rss_pipeline.features.pages.titles import titles_of

PARTS = ("title", "link", "date", "text", "image", "author")
LIMIT_SECONDS = 2.0
"""Processor time for all selectors of a page together."""
_PATIENCE = 5
"""The child may take that many times its limit by the clock."""
_MOST_ENTRIES = 5_000
_LONGEST = 8_000
_SPACES = re.compile(r"\s+")
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.:-]*")
_FUNCTION = re.compile(r"[a-z][a-z-]{0,30}\(")
_XPATH_STARTS = ("/", "./", "(", "..", "@")
_DEFAULT_ATTRIBUTES = {"link": ("href",), "image": ("src", "data-src"), "date": ("datetime",)}


def is_xpath(selector: str) -> bool:
    """True for what begins with /, ./, (, @ or a function; everything else is CSS."""
    return selector.startswith(_XPATH_STARTS) or selector == "." or bool(_FUNCTION.match(selector))


def to_xpath(selector: str) -> str:
    """The XPath of a selector, relative to an element.

    At the end of CSS `@name` stands for an attribute. Raises ValueError with a sentence for CSS that is none.
    """
    text = selector.strip()
    if is_xpath(text):
        return text
    from cssselect import HTMLTranslator, SelectorError

    css, at, attribute = text.rpartition("@")
    if not (at and _ATTRIBUTE.fullmatch(attribute.rstrip())):
        css, attribute = text, ""
    css, attribute = css.strip(), attribute.rstrip()
    if not css:
        return f"./@{attribute}"
    try:
        xpath = HTMLTranslator().css_to_xpath(css, prefix="descendant::")
    except SelectorError as error:
        raise ValueError(f"is no CSS selector ({error})") from None
    except RecursionError:
        raise ValueError("is CSS with too many parts; shorten it") from None
    return f"{_grouped(xpath)}/@{attribute}" if attribute else xpath


def _grouped(xpath: str) -> str:
    return f"({xpath})" if " | " in xpath else xpath


@dataclass(slots=True)
class _Selected:
    """The result of the child."""

    nodes: list[int] = field(default_factory=list)
    values: dict[str, list[str | None]] = field(default_factory=dict)
    at: str = "item"
    """The selector that is evaluated."""
    error: str | None = None
    is_whole: bool = False


def select(html: str, url: str, text: str, *, now: datetime) -> Detected:
    """The entries of a page by the selectors in the text of its key. `now` limits the years of dates.

    Raises:
        NotAFeed: `list_lost`, where a selector cannot be evaluated.
    """
    page = read_page(html, url)
    if page is None:
        return Detected(verdict="none", evidence=("There is no text that could be read as a page.",))
    selectors: Mapping[str, str] = json.loads(text)
    found = _evaluated(page, {name: to_xpath(each) for name, each in selectors.items()})
    if not found.is_whole:
        why = found.error or f"took longer than {LIMIT_SECONDS:g} s"
        raise NotAFeed(f"The selector `{found.at}` of the page {why}: {selectors[found.at]}", "list_lost")
    boxes = [_box(page, node, found.values, number) for number, node in enumerate(found.nodes)]
    dates = PageDates(page)
    entries = _entries(page, dates, boxes, found.values, now)
    counts = tuple(_counts(found.values, selectors, without=_entries(page, dates, boxes, {}, now)))
    is_dead = any(not any(found.values.get(name, (True,))) for name in ("title", "link"))
    return Detected(
        verdict="certain" if entries and not is_dead else "none",
        entries=entries,
        evidence=counts if boxes else (f"item: 0 ({selectors['item']}).",),
        title=page.title,
        feeds=page.feeds,
    )


def _counts(
    values: Mapping[str, Sequence[str | None]], selectors: Mapping[str, str], *, without: Sequence[Entry]
) -> Iterator[str]:
    """The selectors that give nothing for some entries: `title: 0 of 12`; and what is found without them."""
    for name, found in values.items():
        if (count := sum(each is not None for each in found)) < len(found):
            instead = next(filter(None, (getattr(each, name) for each in without)), None)
            hint = (
                "" if count or instead is None else f'; without it the first would be "{str(instead)[:60]}"'
            )
            yield f"{name}: {count} of {len(found)} ({selectors[name]}){hint}."


def _box(page: Page, node: int, values: Mapping[str, Sequence[str | None]], number: int) -> Box:
    end = page.ends[node]
    inside = page.anchors_in(node, end)
    wanted = values.get("link")
    link = (
        None if wanted is None or wanted[number] is None else absolute(wanted[number], (page.base, page.url))
    )
    anchor = next((each for each in inside if each.url == link), None)
    if anchor is None:
        headed = (each for each in inside if page.is_heading[each.node])
        anchor = next(headed, None) or next(iter(inside), None)
    if anchor is None:
        anchor = Anchor(node, link or "", identity(link or ""))
    return Box(anchor, node, end, page.begins[node], page.stops[node])


def _entries(
    page: Page,
    dates: PageDates,
    boxes: Sequence[Box],
    values: Mapping[str, Sequence[str | None]],
    now: datetime,
) -> tuple[Entry, ...]:
    if not boxes:
        return ()
    detected = entries_of(page, dates, boxes, titles_of(page, dates, boxes))
    bases = (page.base, page.url)
    entries = []
    for number, entry in enumerate(detected):
        part = {name: values[name][number] for name in values}
        own: dict[str, Any] = {name: part[name] for name in ("title", "text", "author") if name in part}
        if "date" in part:
            own["date"] = _date(part["date"], now)
        if "image" in part:
            own["image"] = _web(absolute(part["image"], bases))
        own["link"] = _web(absolute(part["link"], bases)) if "link" in part else entry.link or None
        entries.append(replace(entry, **own))
    return tuple(each for each in entries if each.link is not None or each.title is not None)


def _web(url: str | None) -> str | None:
    return url if url is not None and url.startswith(("http://", "https://")) else None


def _date(text: str | None, now: datetime) -> date | None:
    if text is None:
        return None
    if (found := date_in(text)) is not None:
        return found
    moment = parse_date(text, now=now)
    return None if moment is None else moment.date()


def _evaluated(page: Page, xpaths: Mapping[str, str]) -> _Selected:
    """The nodes of the entries and the text of each part, from a child with a limit of time."""
    result = _Selected()
    reader, writer = Pipe(duplex=False)
    with reader:
        with writer:
            child = os.fork()
            if child == 0:
                _evaluate_and_exit(page, xpaths, writer)
        try:
            # EOFError: the child has ended; OSError: within a message.
            with suppress(EOFError, OSError):
                while reader.poll(LIMIT_SECONDS * _PATIENCE):
                    match reader.recv():
                        case ("at", name):
                            result.at = name
                        case ("error", sentence):
                            result.error = sentence
                        case ("item", nodes):
                            result.nodes = nodes
                        case ("end", _):
                            result.is_whole = True
                        case (name, found):
                            result.values[name] = found
        finally:
            # Of a child that has ended by itself, the status remains.
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return result


def _evaluate_and_exit(page: Page, xpaths: Mapping[str, str], writer: Connection) -> NoReturn:
    """The child; the kernel ends it after its time. Nothing of this copy of the process may run after it."""
    code = 1
    try:
        for number in (signal.SIGPROF, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
        os.closerange(3, writer.fileno())
        os.closerange(writer.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        gc.disable()
        places = {element: number for number, element in enumerate(page.elements)}
        try:
            writer.send(("at", "item"))
            found = _items(page.elements[0], xpaths["item"])
            nodes = sorted({places[each] for each in found if each in places})[:_MOST_ENTRIES]
            writer.send(("item", nodes))
            for name in xpaths:
                if name == "item":
                    continue
                writer.send(("at", name))
                find = etree.XPath(xpaths[name], smart_strings=False)
                attributes = _DEFAULT_ATTRIBUTES.get(name, ())
                writer.send((name, [_first(find(page.elements[node]), attributes) for node in nodes]))
        except etree.XPathError as error:
            writer.send(("error", f"cannot be evaluated ({error})"))
        else:
            writer.send(("end", None))
        code = 0
    finally:
        os._exit(code)


def _items(root: etree._Element, xpath: str) -> list[etree._Element]:
    found = etree.XPath(xpath, smart_strings=False)(root)
    return [each for each in found if isinstance(each, etree._Element)] if isinstance(found, list) else []


def _first(found: object, attributes: Sequence[str]) -> str | None:
    """The first text that is not blank of what an expression gives; of an element one of these attributes."""
    for each in found if isinstance(found, list) else [found]:
        if isinstance(each, etree._Element):
            named = next(filter(None, (each.get(name) for name in attributes)), None)
            text = named or " ".join(map(str, each.itertext()))
        else:
            text = each if isinstance(each, str) else ""
        if text := _SPACES.sub(" ", text).strip():
            return text[:_LONGEST]
    return None
