"""Placeholders for the texts of a document while feedparser reads it, and its values with the texts put back.

Which values an item is made of is decided in `feedparser_fallback.py`.
"""

import html
import re
from collections.abc import Mapping
from typing import Any

from rss_pipeline.collector.parse.raw_feed import trimmed
from rss_pipeline.collector.parse.sections import Sections

# Two characters of a private plane replace a text while feedparser works: it strips, translates, resolves
# and re-decodes the texts it finds, and "corrects" `Ã©`.
_OPEN, _CLOSE = "\U0010ff70", "\U0010ff71"
_STAND_IN = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_CDATA_OPEN, _CDATA_CLOSE = "<![CDATA[", "]]>"
_CDATA = Sections((re.escape(_CDATA_OPEN), _CDATA_CLOSE))
_LEAF = re.compile(
    r"<(guid|id|title|link|pubDate|dc:date|description|content:encoded|content|summary|published|updated"
    r"|issued|modified|(?:\w+:)?(?:author|creator|name|email)|category|x-[a-z]+-[a-z]+)"
    r"((?:\s[^<>]*)?(?<!/))>([^<]*)</\1\s*>"
)
_LONG_TEXT = re.compile(r">[^<>]{1000,}+")
_LONG_PIECE = re.compile(r"[^>&;]{1000,}+")
"""Without a reference, which feedparser reads in some places only."""
_STAND_INS = re.compile(f"[{_OPEN}{_CLOSE}]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Shield:
    """Takes texts out of a document, and puts them back into the values that were read from it."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._elements: dict[int, tuple[str, str]] = {}

    def over_sections(self, text: str) -> str:
        """The text with a placeholder for each CDATA section."""

        def kept(section: str) -> str:
            return self._kept(section[len(_CDATA_OPEN) : -len(_CDATA_CLOSE)])

        # The publisher's own characters would be taken for ours, each for a text as long as the document.
        return _CDATA.sub(kept, _STAND_INS.sub("\ufffd", text))

    def over_leaves(self, text: str) -> str:
        """The text with a placeholder for the text of each element that an item is read from."""
        return _LEAF.sub(self._leaf, text)

    def over_long_texts(self, text: str) -> str:
        """The text with a placeholder for each long piece of text between tags: feedparser looks for mail
        addresses in names, in time by the square of their length."""
        return _LONG_TEXT.sub(lambda found: _LONG_PIECE.sub(self._piece, found[0]), text)

    def _piece(self, found: re.Match[str]) -> str:
        return self._kept(self.restored(found[0]))

    def _leaf(self, found: re.Match[str]) -> str:
        name, attributes, text = found.groups()
        if not text.strip():
            return found[0]
        self._elements[len(self._texts)] = name, attributes
        return f"<{name}{attributes}>{self._kept(self.restored(html.unescape(text)))}</{name}>"

    def restored(self, text: str) -> str:
        return _STAND_IN.sub(self._restored_one, text)

    def tag(self, value: str) -> tuple[str | None, str]:
        """The name and the attributes of the element that a value was the text of, as the document writes
        them."""
        found = _STAND_IN.search(value)
        return (found and self._elements.get(int(found[1][:9]))) or (None, "")

    def _kept(self, text: str) -> str:
        self._texts.append(text)
        return f"{_OPEN}{len(self._texts) - 1}{_CLOSE}"

    def _restored_one(self, found: re.Match[str]) -> str:
        number = int(found[1][:9])
        return self._texts[number] if number < len(self._texts) else ""


class Values:
    """A feedparser dict, read by its own keys: its `get` returns other keys' values for missing ones."""

    def __init__(self, values: Mapping[str, Any], shield: Shield) -> None:
        self._values = values
        self._shield = shield

    def raw(self, key: str) -> str | None:
        value = dict.get(self._values, key) if isinstance(self._values, dict) else None
        if not isinstance(value, str):
            return None
        return _UNSTORABLE.sub(
            lambda found: "" if found[0] == "\x00" else "\ufffd", self._shield.restored(value)
        )

    def text(self, key: str) -> str | None:
        return trimmed(self.raw(key))

    def tag(self, key: str) -> tuple[str | None, str]:
        """The name and the attributes of the element with the value as its text, as the document writes
        them."""
        value = dict.get(self._values, key) if isinstance(self._values, dict) else None
        return self._shield.tag(value) if isinstance(value, str) else (None, "")

    def denies(self, key: str) -> bool:
        """Return True if a flag is there and is not set."""
        return isinstance(self._values, dict) and not dict.get(self._values, key, True)

    def each(self, key: str) -> "list[Values]":
        values = dict.get(self._values, key) if isinstance(self._values, dict) else None
        if isinstance(values, dict):
            values = [values]
        return [Values(each, self._shield) for each in values or () if isinstance(each, dict)]
