"""The pictures of a page as a browser shows them, each as one plain `<img>` where it is.

trafilatura takes an `<img>` whose `src` has the name of an image file, and none that is in a button. Pages
have others: loaded late, in a `<picture>`, in a `<noscript>`, by an element of the site's own. Which URL an
element shows is decided by the rules for items (collector/images/find.py).
"""

from functools import partial
from html import unescape

from lxml import etree

from rss_pipeline.collector.images.find import attribute, may_hold_images, shown_images, tree
from rss_pipeline.collector.images.urls import resolver
from rss_pipeline.collector.parse.image_references import by_size, image_references, may_be_reference
from rss_pipeline.collector.parse.pictures import has_picture_name, picture_key

_PLACE = "https://picture.invalid/{}.jpg"
"""The `src` of a picture while trafilatura has it, which takes it for that of an image file."""
_NEW = "new-picture"
_REPLACED = ("img", "amp-img", "amp-anim", "picture", "source")
_AROUND = frozenset(("button", "label", "legend", "map", "noscript", "object"))
"""Elements that trafilatura removes with what they show."""
_NEED_WORDS = frozenset(("ul", "ol", "dl", "h1", "h2", "h3", "h4", "h5", "h6"))
"""Elements that trafilatura removes where they have no words."""
_OWN_NAMES = ("image", "image-src", "image-url", "img", "img-src", "url")
"""Attributes of sites' own elements that name a picture, besides those of an `<img>`."""
_MOST_CHARACTERS = 20_000
"""Characters of a `<noscript>` that is read as HTML."""


def place_pictures(page: etree._Element, base: str) -> dict[str, str]:
    """Put a plain `<img>` in the place of each picture of a page. Return their URLs by the `src` that these
    have."""
    _read_noscripts(page)
    _name_pictures(page)
    shown = [
        (each.element, each.url)
        for each in shown_images(page, resolver([base]))
        if each.url is not None and (each.is_picture or each.picture is None)
    ]
    unseen = {each for template in page.iter("template") for each in template.iter(*_REPLACED)}
    without_scripts = {each for around in page.iter("noscript") for each in around.iter(*_REPLACED)}
    urls: dict[str, str] = {}
    places: dict[str, str] = {}
    lifted_from = {each for each in page.iter(*_NEED_WORDS) if _is_of_pictures(each)}
    for element, url in sorted(shown, key=lambda each: each[0] in without_scripts):
        if element in unseen:
            continue
        key = picture_key(url)
        if element in without_scripts and key in places:
            # A script loads it in its full size.
            urls[places[key]] = url
            continue
        places[key] = _PLACE.format(len(urls))
        urls[places[key]] = url
        around = [each for each in element.iterancestors() if each.tag in _AROUND or each in lifted_from]
        (around[-1] if around else element).addprevious(
            etree.Element(_NEW, src=places[key], alt=_alt(element))
        )
    etree.strip_tags(page, *_REPLACED)
    for new in page.iter(_NEW):
        new.tag = "img"
    return urls


def name_placed(body: etree._Element, urls: dict[str, str]) -> None:
    """Give the pictures of an article their URLs; one that is none of these, or the same again, goes."""
    left = dict(urls)
    named: set[str] = set()
    for each in list(body.iter("img")):
        url = left.pop(each.get("src") or "", None)
        if url is None or url in named:
            each.tag = _NEW
        else:
            named.add(url)
            each.set("src", url)
    etree.strip_tags(body, _NEW)


def _read_noscripts(page: etree._Element) -> None:
    """Make elements of HTML that is written as a text, as a site's script does."""
    for each in list(page.iter("noscript")):
        text = unescape(each.text or "")
        if len(each) or len(text) > _MOST_CHARACTERS or not may_hold_images(text):
            continue
        root = tree(text)
        if root is not None:
            each.text = None
            each.extend(list(root))


def _name_pictures(page: etree._Element) -> None:
    """Give an `<img>` to each element of the site's own that names a picture and shows no other; and a known
    attribute to each `<img>` of which only the site's script knows what it shows."""
    for each in page.iter("img"):
        if _reference(each) is None and (late := _late_reference(each)) is not None:
            each.set("data-src", late)
    for each in list(page.iter()):
        # A name of HTML has no hyphen (HTML 4.13.3).
        if not isinstance(each.tag, str) or "-" not in each.tag or each.tag in _REPLACED:
            continue
        named = (_reference(each), *(each.get(name) for name in _OWN_NAMES))
        found = next((each for each in named if each and has_picture_name(each)), None)
        if found is not None and all(_reference(inner) is None for inner in each.iter(*_REPLACED)):
            each.addprevious(etree.Element("img", src=found, alt=_alt(each)))


def _reference(element: etree._Element) -> str | None:
    return next(image_references(partial(attribute, element)), None)


def _late_reference(image: etree._Element) -> str | None:
    for name in map(str, image.keys()):
        value = image.get(name) or ""
        if not name.startswith("data-"):
            continue
        if "srcset" in name and (sizes := by_size(value)):
            return sizes[0][0]
        if has_picture_name(value) and may_be_reference(value):
            return value
    return None


def _alt(element: etree._Element) -> str:
    return next((alt for each in element.iter() if (alt := each.get("alt"))), "")


def _is_of_pictures(element: etree._Element) -> bool:
    """True for a heading or a list with pictures and nothing else. One of links leads on, or shares."""
    return not any(str(text).strip() for text in element.itertext()) and all(
        has_picture_name(each.get("href") or "") for each in element.iter("a")
    )
