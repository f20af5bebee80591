"""Texts of a document as a codec that decoded its feed before would have read the same bytes.

No document is parsed twice: a text is encoded again and decoded by the other codec.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial

from rss_pipeline.collector.parse.characters.charsets import codecs_for_hint

Reading = Callable[[str], str]

_REFERENCE = re.compile(r"&#(\d+);")


def former_readings(codec: str, formers: Iterable[str | None]) -> list[Reading]:
    """A reading by each of these codecs that is not the document's; none for UTF-16 and UTF-32."""
    if not codecs_for_hint(codec):
        return []
    others = dict.fromkeys(name for former in formers for name in codecs_for_hint(former)[:1])
    return [partial(_read, codec, former) for former in others if former != codec]


def _read(codec: str, former: str, text: str) -> str:
    """The text by the former codec; unchanged where that cannot decode it.

    Undecodable bytes are not replaced: two items that differ in them only would be taken for one.
    """
    if text.isascii():
        return text
    try:
        # A character that the codec does not have was a reference, which is the same in each of them.
        read = text.replace("&", "&#38;").encode(codec, "xmlcharrefreplace").decode(former)
    except UnicodeError:
        return text
    return _REFERENCE.sub(lambda found: chr(int(found[1])), read).strip()
