"""Candidates and topics for tests, and the check of documents that are built from them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from lxml import etree

from rss_pipeline.collector.models.feed import Member
from rss_pipeline.collector.models.item import item_id
from rss_pipeline.features.topics.documents import Documents, build
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.features.topics.values import Candidate, PublicUrls, SourceFeed
from rss_pipeline_tests.features.topics.json_feed_rules import violations

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
INSTALLATION = UUID("0b5c4f6e-6d0f-4d6e-9d39-5b0c6f0a7d11")
ATOM = {"a": "http://www.w3.org/2005/Atom"}
URLS = PublicUrls(
    atom="https://topics.example/topics/no3b.atom", json="https://topics.example/topics/no3b.json"
)
_SCHEMA = etree.RelaxNG(etree.parse(Path(__file__).parents[2] / "support" / "rfc4287.rng"))


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def feed(name: str, **fields: Any) -> SourceFeed:
    known: dict[str, Any] = {
        "url": f"https://{name}.example/feed.xml",
        "title": f"Feed {name}",
        "link": f"https://{name}.example/",
    }
    return SourceFeed(**{"id": name, **known, **fields})


def candidate(number: int, *, of: str | SourceFeed = "a", member: int = 0, **fields: Any) -> Candidate:
    """Item `number` of a feed, published and collected so many hours ago."""
    source = feed(of) if isinstance(of, str) else of
    known: dict[str, Any] = {
        "guid": f"{number}",
        "link": f"https://{source.id}.example/{number}",
        "title": f"Item {number} of {source.id}",
        "pub_date": ago(number),
        "created_at": ago(number),
        "content_html": f"<p>Text of {number}</p>",
    } | fields
    return Candidate(member=member, feed=source, item_id=item_id(source.id, known["guid"]), **known)


def topic(*of: str, **fields: Any) -> TopicSpec:
    return TopicSpec(id="no3b", of=tuple(map(Member.of, of or ("a", "b", "c"))), **fields)


def built(spec: TopicSpec, *candidates: Candidate, **options: Any) -> Documents:
    """The documents, both valid."""
    known: dict[str, Any] = {"installation": INSTALLATION, "urls": URLS} | options
    documents = build(spec, candidates, **known)
    assert_valid(documents)
    return documents


def _found(element: etree._Element, path: str) -> Any:
    return element.xpath(path, namespaces=ATOM)


def assert_valid(documents: Documents) -> None:
    ids = assert_valid_bytes(documents.atom, documents.json)
    assert len(ids) == documents.entries


def assert_valid_bytes(atom: bytes, json: bytes) -> list[str]:
    """Check both documents; return the ids of the entries."""
    root = etree.fromstring(atom)
    assert _SCHEMA.validate(root), _SCHEMA.error_log
    ids: list[str] = _found(root, "a:entry/a:id/text()")
    assert len(ids) == len(set(ids))
    for entry in _found(root, "a:entry"):
        # What the RFC says in words only: 4.1.2, 4.2.6.
        assert _found(entry, "a:author/a:name/text()[normalize-space()]")
        assert _found(entry, "a:title[normalize-space()]")
        assert _found(entry, "a:content or a:link[@rel='alternate']")
        assert len(_found(entry, "a:link[@rel='alternate']")) <= 1
    assert violations(json) == []
    return ids
