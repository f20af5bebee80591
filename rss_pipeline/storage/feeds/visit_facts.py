"""Facts of a visit: what the closing statement keeps of it in `last_change`, and an event shows.

The fields have the names and the order of the keys in the stored JSON. `items_new` and `gap` are added by
the closing statement, which alone knows them.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from rss_pipeline.collector.models.outcome import NotModified, Parsed
from rss_pipeline.storage.database import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitFacts:
    """The facts of one visit; None is not known."""

    items_seen: int | None = None
    duplicate_guids: int | None = None
    body_bytes: int | None = None
    fetch_ms: int | None = None
    http_status: int | None = None
    charset: str | None = None
    """The codec, and the rule that chose it: `cp932 (declaration)`."""
    format: str | None = None
    backup_key: str | None = None
    repairs: str | None = None
    items_new: int | None = None
    gap: str | None = None
    """A sentence, if items were probably missed."""


def facts_of_document(parsed: Parsed) -> VisitFacts:
    """The facts of a document that is stored."""
    document, header = parsed.document, parsed.header
    return VisitFacts(
        items_seen=parsed.items_seen,
        duplicate_guids=parsed.duplicate_guids,
        body_bytes=document.body_bytes,
        fetch_ms=document.response.fetch_ms,
        http_status=document.response.status,
        charset=f"{header.charset} ({header.charset_rule})",
        format=header.format,
        backup_key=document.backup_key,
        repairs="; ".join(header.repairs) or None,
    )


def facts_after(facts: VisitFacts, outcome: NotModified) -> VisitFacts:
    """The facts of the stored document after a visit that confirmed it."""
    return replace(
        facts,
        items_new=0,
        http_status=outcome.response.status,
        fetch_ms=outcome.response.fetch_ms,
        body_bytes=outcome.body_bytes,
        gap=None,
    )


def known_facts(facts: VisitFacts) -> dict[str, Any]:
    """The facts that are known, by name: the stored JSON, and the metadata of an event."""
    return {field.name: value for field in fields(facts) if (value := getattr(facts, field.name)) is not None}


def confirmed_patch(outcome: NotModified) -> Row:
    """The merge patch (RFC 7396) by which a visit that confirmed a document changes the stored facts."""
    facts = facts_after(VisitFacts(), outcome)
    return {
        "items_new": facts.items_new,
        "http_status": facts.http_status,
        "fetch_ms": facts.fetch_ms,
        "body_bytes": facts.body_bytes,
        "gap": None,
    }


def facts_from(stored: Row) -> VisitFacts:
    """The facts of a stored JSON. Keys of other versions are left out."""
    names = {field.name for field in fields(VisitFacts)}
    return VisitFacts(**{name: value for name, value in stored.items() if name in names})
