"""Atom's text constructs (RFC 4287, 3.1 and 4.1.3; Atom 0.3) as HTML.

Only the one element is read.
"""

import base64
import html
from xml.etree.ElementTree import Element

from rss_pipeline.collector.parse.xml_tree import inner_html, text_of, unwrapped

_HTML = ("html", "text/html", "xhtml", "application/xhtml+xml")


def atom_html(element: Element) -> str | None:
    """The content of a text construct as HTML; None if it is empty, at another URL or not text.

    type="html": the character data as it is. type="xhtml": the inside of the `<div>`, serialized.
    type="text", which is also the default: escaped, so that it is HTML. Markup that was not escaped is
    read as markup with every type.
    """
    kind = (element.get("type") or "text").split(";")[0].strip().lower()
    if len(element):
        markup = inner_html(unwrapped(element))
        return markup if markup.strip() else None
    text = text_of(element)
    if not text.strip():
        return None
    if (element.get("mode") or "").strip() == "base64":
        try:
            text = base64.b64decode(text, validate=False).decode("utf-8")
        # ValueError for characters above ASCII; its other exceptions are subclasses of it.
        except ValueError:
            return None
    elif "/" in kind and not kind.startswith("text/") and not kind.endswith(("xml", "json")):
        # A media type that is not text is in base64 (RFC 4287, 4.1.3.3): a picture or sound, not content.
        return None
    return text if kind in _HTML else html.escape(text, quote=False)
