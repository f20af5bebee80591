"""The rules of JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/), as a check of a document."""

import json
import re
from collections.abc import Iterator
from typing import Any

_URL = re.compile(r"[a-z][a-z0-9+.-]*:[^\s<>\"{}|\\^`]+", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_KEYS: dict[str, dict[str, Any]] = {
    "feed": {
        "version": str,
        "title": str,
        "home_page_url": _URL,
        "feed_url": _URL,
        "description": str,
        "user_comment": str,
        "next_url": _URL,
        "icon": _URL,
        "favicon": _URL,
        "language": str,
        "expired": bool,
        "authors": ["author"],
        "hubs": ["hub"],
        "items": ["item"],
    },
    "author": {"name": str, "url": _URL, "avatar": _URL},
    "hub": {"type": str, "url": _URL},
    "item": {
        "id": str,
        "url": _URL,
        "external_url": _URL,
        "title": str,
        "content_html": str,
        "content_text": str,
        "summary": str,
        "image": _URL,
        "banner_image": _URL,
        "date_published": _DATE,
        "date_modified": _DATE,
        "authors": ["author"],
        "tags": str,
        "language": str,
        "attachments": ["attachment"],
    },
    "attachment": {
        "url": _URL,
        "mime_type": str,
        "title": str,
        "size_in_bytes": int,
        "duration_in_seconds": int,
    },
}
_REQUIRED = {
    "feed": {"version", "title", "items"},
    "hub": {"type", "url"},
    "item": {"id"},
    "attachment": {"url", "mime_type"},
}


def violations(document: bytes) -> list[str]:
    """The rules that the document breaks, each with its place."""
    feed = json.loads(document.decode("utf-8"), object_pairs_hook=_without_doubles)
    found = list(_object("feed", feed, "feed"))
    if next(iter(feed)) != "version" or feed["version"] != "https://jsonfeed.org/version/1.1":
        found.append("feed: version is not first, or not 1.1")
    ids = [item.get("id") for item in feed["items"]]
    if len(ids) != len(set(ids)):
        found.append("items: an id comes twice")
    return found


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    assert len(keys) == len(pairs), "a key comes twice"
    return keys


def _object(kind: str, value: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place}: no object"
        return
    for name in _REQUIRED.get(kind, set()) - set(value):
        yield f"{place}: no {name}"
    if kind == "item" and not {"content_html", "content_text"} & set(value):
        yield f"{place}: no content"
    if kind == "author" and not value:
        yield f"{place}: an author without any key"
    for name, each in value.items():
        rule = _KEYS[kind].get(name)
        if name.startswith("_"):
            if "." in name or not isinstance(each, dict):
                yield f"{place}.{name}: no valid extension"
        elif rule is None:
            yield f"{place}.{name}: unknown key"
        elif isinstance(rule, list):
            for number, part in enumerate(each):
                yield from _object(rule[0], part, f"{place}.{name}[{number}]")
        elif name == "tags":
            if not isinstance(each, list) or not all(isinstance(tag, str) and tag for tag in each):
                yield f"{place}.tags: no list of texts"
        elif isinstance(rule, re.Pattern):
            if not isinstance(each, str) or not rule.fullmatch(each):
                yield f"{place}.{name}: {each!r}"
        elif type(each) is not rule:
            yield f"{place}.{name}: {each!r}"
