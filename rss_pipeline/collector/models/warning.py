"""Warnings that a feed carries: a kind for code, a sentence for people.

A warning lasts until the next stored document, which brings its own. Code decides by the kind alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

WarningKind = Literal[
    "unstable_guids",
    "reused_guids",
    "shared_guids",
    "too_many_items",
    "cut_off",
    "day_full",
    "too_many_images",
    "mislabelled",
    "charset_changed",
]
"""unstable_guids: known items come again under new guids. reused_guids: new items
come under known ones. shared_guids: items of one document have the same
guid or link. too_many_items: the document lists more items than are read. cut_off: it ends early. day_full:
the feed had its most new items of a day. too_many_images: an item has more images than are archived.
mislabelled: the charset is not the declared one. charset_changed: it is not that of the document before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedWarning:
    """One warning; `sentence` says what, where and what to do."""

    kind: WarningKind
    sentence: str


def sentences(warnings: Iterable[FeedWarning]) -> str | None:
    """The sentences in one text; None where there is no warning."""
    return "; ".join(warning.sentence for warning in warnings) or None
