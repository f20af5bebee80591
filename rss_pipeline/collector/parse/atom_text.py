"""Atom's text constructs (RFC 4287, 3.1 and 4.1.3; Atom 0.3) as HTML.

Nothing but the one element is looked at.
"""

import base64
import html
from xml.etree.ElementTree import Element

from rss_pipeline.collector.parse.xml_tree import inner_html, text_of, unwrapped

_HTML = ("html", "text/html", "xhtml", "application/xhtml+xml")


def atom_html(element: Element) -> str | None:
    """The content of a text construct as HTML; None where it is empty, elsewhere or not text.

    type="html": the character data as it is. type="xhtml": what stands inside the `<div>`, serialized.
    type="text", which is also the default: escaped, so that it is HTML. Markup that was not escaped is
    taken as markup whatever the type says.
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
        # Of characters beyond ASCII it says ValueError, of which the others are kinds.
        except ValueError:
            return None
    elif "/" in kind and not kind.startswith("text/") and not kind.endswith(("xml", "json")):
        # A media type that is not text is in base64 (RFC 4287, 4.1.3.3): a picture or sound, no content.
        return None
    return text if kind in _HTML else html.escape(text, quote=False)
