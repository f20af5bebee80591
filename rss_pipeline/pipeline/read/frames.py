"""Pages and frames that show the HTML of publishers in a browser, so that it can do nothing but be read.

The archived images are put into the HTML in archived.py. Three things hold, each where another does not:

- the sandbox of the frame: no scripts, no forms, no refresh to another page;
- the Content-Security-Policy: images and media over https, nothing else is loaded;
- tags and attributes that are renamed: a browser connects to the server of an `<iframe>` or a `<link
  rel="preconnect">` before it applies a policy, and `<meta name="referrer">` would send a Referer again.
"""

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any
from urllib.parse import urlsplit

from rss_pipeline.collector.models.author import author_name
from rss_pipeline.collector.parse.links import is_web, web_base
from rss_pipeline.collector.sanitize.replace import replaced
from rss_pipeline.collector.sanitize.text import without_markup
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.items.items import stored_authors
from rss_pipeline.storage.objects import ObjectStore

_RENAMED_TAGS = re.compile(
    r"<(?=(?:link|meta|base|iframe|frame|frameset|portal)(?:[\t\n\f\r />]|$))", re.IGNORECASE
)
_FRAME = re.compile(
    r"""<(iframe|embed|object)(?=[\s/>])"""
    r"""[^>"']*+(?:"[^"]*+(?:"|\Z)[^>"']*+|'[^']*+(?:'|\Z)[^>"']*+)*+(?:>|\Z)""",
    re.IGNORECASE,
)
_RENAMED_ATTRIBUTE = re.compile("(referrer)(policy)", re.IGNORECASE)
_STYLE = (
    "body{margin:0;display:flex;flex-direction:column;height:100vh;font:1rem/1.5 sans-serif}"
    "header{padding:0 1rem;border-bottom:1px solid #ccc}h1{font-size:1.3rem;margin:.5rem 0 0}"
    "p{margin:.2rem 0 .5rem;color:#555}iframe{flex:1;border:0;width:100%}"
)
_FRAME_STYLE = (
    "body{font:1rem/1.5 sans-serif;max-width:45rem;margin:1rem auto;padding:0 1rem}img{max-width:100%}"
)


def image_sources(objects: ObjectStore) -> tuple[str, ...]:
    """The sources from which a page of ours may load archived images, besides https: for `content_policy`."""
    url = objects.url("images/x")
    if url is None:
        return ()
    parts = urlsplit(url)
    match parts.scheme:
        case "https":
            return ()
        case "http":
            return (f"http://{parts.netloc}",)
        case scheme:
            return (f"{scheme}:",)


def content_policy(sources: Sequence[str] = ()) -> str:
    """The Content-Security-Policy for HTML of publishers: images and media over https, and nothing else.

    `sources` are further ones of images and media, as `image_sources` gives them.
    """
    images = " ".join(("https:", "data:", *sources))
    return (
        f"default-src 'none'; img-src {images}; media-src {images}; style-src 'unsafe-inline';"
        " form-action 'none'"
    )


def page_head(sources: Sequence[str] = ()) -> str:
    """The first elements of a page: before any other, so that they hold for all of it."""
    return (
        f'<meta http-equiv="Content-Security-Policy" content="{escape(content_policy(sources))}">'
        '<meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    )


def frame(html: str, *, base: str | None = None, sources: Sequence[str] = ()) -> str:
    """An `<iframe>` that shows the HTML of a publisher. References in it are relative to `base`.

    A link opens in a tab of its own.
    """
    href = f' href="{escape(base)}"' if (base := web_base(base)) else ""
    document = (
        f'<!doctype html>{page_head(sources)}<base{href} target="_blank"><style>{_FRAME_STYLE}</style>'
        + _inert(_with_links(html, base))
    )
    sandbox = "allow-popups allow-popups-to-escape-sandbox"
    if "file:" in sources:
        # A frame with an origin of its own loads no files. No script can use the one of the page.
        sandbox += " allow-same-origin"
    return (
        f'<iframe sandbox="{sandbox}" referrerpolicy="no-referrer" loading="lazy"'
        f' srcdoc="{escape(document)}"></iframe>'
    )


def _with_links(html: str, base: str | None) -> str:
    """The HTML with the link of each frame before it, for frames are not loaded."""
    known: set[str] = set()

    def linked(tag: re.Match[str]) -> str:
        link = replaced(f"{tag[0]}</{tag[1]}>", (base,))
        is_new = link not in known
        known.add(link)
        return (link if is_new else "") + tag[0]

    return _FRAME.sub(linked, html)


def _inert(html: str) -> str:
    # In the name of an attribute a character reference is only text, so it is another attribute. In a text it
    # is a space of no width, so that an article about this attribute reads as before.
    return _RENAMED_ATTRIBUTE.sub(r"\1&#8203;\2", _RENAMED_TAGS.sub("<no-", html))


def item_page(item: Row, html: str, *, sources: Sequence[str] = ()) -> str:
    """A whole page of one item: title, link, date, and its content in a frame.

    `item` is a row of `storage.items.item`, `html` its content.
    """
    title = escape(without_markup(item["title"] or "") or "(no title)")
    link = item["link"]
    heading = (
        f'<a href="{escape(link)}" rel="noopener noreferrer">{title}</a>' if link and is_web(link) else title
    )
    date = escape(item["pub_date"])
    said = " · ".join(
        [
            *(escape(text) for text in (item["feed_title"], ", ".join(stored_authors(item))) if text),
            f'<time datetime="{date}">{date}</time>',
        ]
    )
    base = item["base_url"] or link or item["feed_link"] or item["feed_url"]
    return (
        f"<!doctype html>\n<html><head>{page_head(sources)}<title>{title}</title>"
        f"<style>{_STYLE}</style></head>\n"
        f"<body><header><h1>{heading}</h1><p>{said}</p></header>\n"
        f"{frame(html, base=base, sources=sources)}\n</body></html>\n"
    )


# Rows of items as JSON objects, in the words of all JSON that the command prints.
#
# An object's own id is `id`, and a feed's elsewhere `feed_id`; instants end in `_at`; flags are true or
# false. The fields that an export has too (storage.items.stored_items.StoredItem) have the same names there.

_NAMES = {"pub_date": "published_at", "pub_date_raw": "published_raw", "created_at": "collected_at"}
_LISTS = frozenset({"categories", "enclosures"})


def item_as_json(row: Row) -> dict[str, Any]:
    """A row of `storage.items.items`, of one item or of a list."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name == "pub_date_source":
            found["is_dated"] = value == "feed"
        elif name == "authors":
            found[name] = list(stored_authors(row))
        elif name == "author":
            found[name] = value and author_name(value)
        elif name in _LISTS:
            found[name] = json.loads(value)
        else:
            whole = isinstance(value, float) and value.is_integer()
            found[_NAMES.get(name, name)] = int(value) if whole else value
    return found
