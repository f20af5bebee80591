"""An item's text as it is shown: sanitized, below the item's picture where the text shows none.

How HTML is sanitized is html.py's; archived images are put in when the result is served (`with_images`).
"""

import re
from collections.abc import Iterator, Sequence
from html import escape, unescape

from rss_pipeline.collector.images.find import find_images
from rss_pipeline.collector.images.urls import image_url, usable_base
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.pictures import is_picture, picture_key
from rss_pipeline.collector.sanitize.html import safe_html

_SHOWN = re.compile(r'<img(?: (?!src=)[a-z-]++="[^"<>]*+")*+ src="([^"<>]*+)')


def shown_html(
    text: str | None, enclosures: Sequence[Enclosure], *, bases: Sequence[str | None]
) -> str | None:
    """The HTML that is shown of an item: of its text (the content, or else the summary) and its enclosures.

    It begins with the item's picture if the text shows none. Empty for an item without either; None for a
    text that cannot be read safely. References are resolved against the first usable of `bases`.
    """
    html = safe_html(text or "", bases=bases)
    if html is None:
        return None
    lead = _lead(text or "", html, enclosures, bases)
    return html if lead is None else f'<p><img src="{escape(lead)}" alt=""></p>{html}'


def lead_image(
    text: str | None, enclosures: Sequence[Enclosure], *, bases: Sequence[str | None]
) -> str | None:
    """The absolute URL of the picture that `shown_html` puts above the text; None if it puts none."""
    html = safe_html(text or "", bases=bases)
    return None if html is None else _lead(text or "", html, enclosures, bases)


def files_beside(html: str, enclosures: Sequence[Enclosure]) -> list[Enclosure]:
    """The enclosures to be listed as files beside `shown_html`'s result: all but pictures that it shows."""
    pictures = [each for each in enclosures if is_picture(each)]
    if not pictures:
        return list(enclosures)
    shown = {picture_key(url) for url in _images(html)}
    return [each for each in enclosures if not (is_picture(each) and picture_key(each.url) in shown)]


def _lead(text: str, html: str, enclosures: Sequence[Enclosure], bases: Sequence[str | None]) -> str | None:
    if not any(map(is_picture, enclosures)) and "<img" in html:
        return None
    in_text = find_images(text, bases=bases)
    if any(url in in_text for url in _images(html)):
        return None
    if in_text:
        # In an element that is not shown.
        return in_text[0]
    base = usable_base(bases)
    urls = (image_url(each.url, base) for each in enclosures if is_picture(each))
    return next(filter(None, urls), None)


def _images(html: str) -> Iterator[str]:
    """The URLs of the images in sanitized HTML, without fragments."""
    return (unescape(found[1]).partition("#")[0] for found in _SHOWN.finditer(html))
