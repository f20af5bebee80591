"""An item's text as it is shown: sanitized, below the item's picture where the text shows none.

Of an item's images, whose order is collector.images.find's, the first stands for it and is shown once. How
HTML is sanitized is html.py's; archived images are put in when the result is served (`with_images`).
"""

import re
from collections.abc import Iterator, Sequence
from html import escape, unescape

from rss_pipeline.collector.images.find import images_in_order, may_hold_images
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.image_references import is_tracker_url
from rss_pipeline.collector.parse.pictures import IMAGE, is_picture, picture_key
from rss_pipeline.collector.sanitize.html import safe_html

_SHOWN = re.compile(r'<img(?: (?!src=)[a-z-]++="[^"<>]*+")*+ src="([^"<>]*+)')
_ABOVE = re.compile(r'<p><img src="([^"<>]*+)" alt=""></p>')
_POSTER = re.compile(r'<video(?: (?!poster=)[a-z-]++="[^"<>]*+")*+ poster="([^"<>]*+)')


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
    return html if lead is None else picture_above(lead) + html


def picture_above(url: str) -> str:
    """The HTML of a picture above a text."""
    return f'<p><img src="{escape(url)}" alt=""></p>'


def lead_image(
    text: str | None, enclosures: Sequence[Enclosure], *, bases: Sequence[str | None]
) -> str | None:
    """The absolute URL of the picture that `shown_html` puts above the text; None if it puts none."""
    text = text or ""
    if not any(map(is_picture, enclosures)) and not may_hold_images(text):
        return None
    html = safe_html(text, bases=bases)
    return None if html is None else _lead(text, html, enclosures, bases)


def first_picture(html: str) -> str | None:
    """The URL of the picture that `shown_html`'s result begins with, as it puts one above a text."""
    found = _ABOVE.match(html)
    return found and unescape(found[1])


def files_beside(html: str, enclosures: Sequence[Enclosure]) -> list[Enclosure]:
    """The enclosures to be listed as files beside `shown_html`'s result: all but pictures that it shows.

    A thumbnail is no file either, where it shows another picture.
    """
    if not any(map(is_picture, enclosures)):
        return list(enclosures)
    shown = {picture_key(url) for url in _images(html)}
    return [
        each
        for each in enclosures
        if not is_picture(each) or (picture_key(each.url) not in shown and not (shown and each.type == IMAGE))
    ]


def _lead(text: str, html: str, enclosures: Sequence[Enclosure], bases: Sequence[str | None]) -> str | None:
    if not any(map(is_picture, enclosures)) and any(not is_tracker_url(each) for each in _images(html)):
        return None
    shown = set(_images(html))
    found = images_in_order(text, enclosures, bases=bases)
    # Trackers are not among those found, though they may be left in the text.
    if not found or not shown.isdisjoint(found):
        return None
    posters = (_url(each) for each in _POSTER.findall(html))
    return None if picture_key(found[0]) in map(picture_key, posters) else found[0]


def _images(html: str) -> Iterator[str]:
    """The URLs of the images in sanitized HTML, without fragments."""
    return (_url(each[1]) for each in _SHOWN.finditer(html))


def _url(value: str) -> str:
    return unescape(value).partition("#")[0]
