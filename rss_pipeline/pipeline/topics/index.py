"""The list of all topics, as JSON and as OPML for other readers.

It depends on definitions only, so that it is written when these change and not with each item.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from lxml import etree

from rss_pipeline.collector.models.topic import TopicSpec
from rss_pipeline.pipeline.topics.feed_head import topic_title
from rss_pipeline.pipeline.topics.iri import published_url
from rss_pipeline.pipeline.topics.values import PublicUrls

_TITLE = "Topics of rss_pipeline"


def index_json(
    topics: Iterable[TopicSpec], urls: Callable[[str], PublicUrls | None], *, installation: UUID
) -> bytes:
    """The topics by id. `urls` gives the public URLs of a topic; without them the file names are given, which
    are relative to the index.

    `installation` is the base of the topics' ids: a new database continues with that of the old one.
    """
    listed = [_topic(each, urls(each.id)) for each in _by_id(topics)]
    keys = {"installation": str(installation), "topics": listed}
    return f"{json.dumps(keys, ensure_ascii=False, indent=1)}\n".encode()


def _topic(topic: TopicSpec, urls: PublicUrls | None) -> dict[str, Any]:
    keys = {"id": topic.id, "title": topic_title(topic), **_files(topic, urls)}
    if link := published_url(topic.link):
        keys["home_page_url"] = link
    return keys


def index_opml(topics: Iterable[TopicSpec], urls: Callable[[str], PublicUrls | None]) -> bytes:
    """The topics by id as OPML 2.0, with the Atom document of each."""
    root = etree.Element("opml", version="2.0")
    etree.SubElement(etree.SubElement(root, "head"), "title").text = _TITLE
    body = etree.SubElement(root, "body")
    for topic in _by_id(topics):
        title = topic_title(topic)
        outline = etree.SubElement(body, "outline", type="rss", text=title, title=title)
        outline.set("xmlUrl", _files(topic, urls(topic.id))["atom"])
        if link := published_url(topic.link):
            outline.set("htmlUrl", link)
    etree.indent(root)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _files(topic: TopicSpec, urls: PublicUrls | None) -> dict[str, str]:
    if urls is None:
        return {"atom": f"{topic.id}.atom", "json": f"{topic.id}.json"}
    return {"atom": urls.atom, "json": urls.json}


def _by_id(topics: Iterable[TopicSpec]) -> list[TopicSpec]:
    return sorted(topics, key=lambda topic: topic.id)
