"""A list of feeds as OPML 2.0 (http://opml.org/spec2.opml), for other readers."""

from collections.abc import Iterable
from datetime import datetime
from email.utils import format_datetime
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from rss_pipeline.collector.registry.values import printable
from rss_pipeline.features.opml.outline import OpmlFeed, as_name


def write_opml(
    feeds: Iterable[OpmlFeed], *, title: str, created: datetime, empty_folders: Iterable[str] = ()
) -> bytes:
    """The feeds in their order, each folder at the place of its first feed, then folders without feeds, as
    UTF-8."""
    root = Element("opml", version="2.0")
    head = SubElement(root, "head")
    SubElement(head, "title").text = title
    SubElement(head, "dateCreated").text = format_datetime(created)
    body = SubElement(root, "body")
    folders: dict[tuple[str, ...], Element] = {(): body}
    for feed in feeds:
        outline = SubElement(
            _folder(folders, tuple(feed.folder.split("/")) if feed.folder else ()), "outline"
        )
        # XML cannot hold some characters that a JSON feed may have in its title.
        name = printable(feed.title or "") or feed.url
        # `text` is required and is what programs show; `title` is what most readers take (OPML 2.0).
        outline.attrib |= {"type": "rss", "text": name, "title": name, "xmlUrl": feed.url}
        if feed.html_url and (page := printable(feed.html_url)):
            outline.set("htmlUrl", page)
    for each in empty_folders:
        _folder(folders, tuple(each.split("/")))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _folder(folders: dict[tuple[str, ...], Element], path: tuple[str, ...]) -> Element:
    if path not in folders:
        name = printable(as_name(path[-1]))
        folders[path] = SubElement(_folder(folders, path[:-1]), "outline", text=name, title=name)
    return folders[path]
