"""Warnings that a feed carries: a kind for code, a sentence for people.

A warning lasts until the next stored document, which brings its own. Code decides by the kind alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.item import ParsedFeed

WarningKind = Literal[
    "unstable_guids",
    "reused_guids",
    "shared_guids",
    "impossible_zone",
    "too_many_items",
    "cut_off",
    "day_full",
    "too_many_images",
    "mislabelled",
    "charset_changed",
    "redesigned",
    "unmatched_selectors",
    "false_validators",
]
"""unstable_guids: known items come again under new guids. reused_guids: new items
come under known ones. shared_guids: items of one document have the same
guid or link. impossible_zone: dates have an offset that no place on Earth has.
too_many_items: the document lists more items than are read. cut_off: it ends early. day_full:
the feed had its most new items of a day. too_many_images: an item has more images than are archived.
mislabelled: the charset is not the declared one. charset_changed: it is not that of the document before.
redesigned: a page was rebuilt, and its list found again. unmatched_selectors:
of a page, some give nothing for some entries. false_validators: the server said
that nothing had changed although it had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedWarning:
    """One warning; `sentence` says what, where and what to do."""

    kind: WarningKind
    sentence: str


def false_validators(count: int) -> FeedWarning:
    """The warning of the last of so many documents in a row that came under the same validators."""
    new = "a new document" if count == 1 else f"{count:,} new documents"
    return FeedWarning(
        kind="false_validators",
        sentence=f"false validators: {new} came with the same ETag and Last-Modified as the one before, so"
        " that a 304 may hide items; neither is sent until one of them changes",
    )


def sentences(warnings: Iterable[FeedWarning]) -> str | None:
    """The sentences in one text; None where there is no warning."""
    return "; ".join(warning.sentence for warning in warnings) or None


# The warnings that a document alone gives rise to: what of it did not become items.
# Those that need the stored items too (unstable guids) are found where it is stored.

_LONGEST_LABEL = 40


def document_warnings(parsed: ParsedFeed, *, feed: Feed) -> Iterator[FeedWarning]:
    """The warnings of a document of this feed, as the feed was before."""
    key, header, before = feed.key, parsed.header, feed.http.charset
    items = len(parsed.items)
    listed = items + len(parsed.duplicate_guids)
    if parsed.cut_off:
        yield FeedWarning(
            kind="cut_off",
            sentence=f"the document was cut off after {items:,} items: the rest is missing until a whole"
            " document comes; it is requested again, from the third time on less and less often",
        )
    if parsed.dropped_items:
        yield FeedWarning(
            kind="too_many_items",
            sentence=f"{parsed.dropped_items:,} items were left out: of a document that lists more than"
            f" {listed:,}, only the newest are read",
        )
    if parsed.shared_guids:
        same = "title and date" if key == "title+date" else "guid or link"
        advice = "" if key == "title+date" else "; `key: title+date` for this feed may distinguish them"
        yield FeedWarning(
            kind="shared_guids",
            sentence=f"{parsed.shared_guids:,} of {listed:,} items were left out,"
            f" because another item of the document has the same {same}{advice}",
        )
    if parsed.impossible_zones:
        yield FeedWarning(
            kind="impossible_zone",
            sentence=f"{parsed.impossible_zones:,} of {items:,} items have a date with an offset that no zone"
            " has, such as -4400; its clock was taken for UTC, so it may be wrong by some hours",
        )
    if header.mislabelled:
        yield FeedWarning(
            kind="mislabelled",
            sentence=f'the document is labelled "{header.mislabelled[:_LONGEST_LABEL]}", but its bytes are'
            f" {header.charset}, and it is read as that; only its publisher can correct the label",
        )
    if before is not None and header.charset != before and not header.is_ascii:
        yield FeedWarning(
            kind="charset_changed",
            sentence=f"its charset is {header.charset} now, and was {before}; if stored items have wrong"
            f" characters, `rss-pipeline replay --repair {feed.id}` reads them again",
        )
