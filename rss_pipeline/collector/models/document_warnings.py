"""The warnings that a document alone gives rise to: what of it did not become items.

Those that need the stored items too (unstable guids) are found where it is stored.
"""

from collections.abc import Iterator

from rss_pipeline.collector.models.feed import ItemKey
from rss_pipeline.collector.models.item import ParsedFeed
from rss_pipeline.collector.models.warning import FeedWarning


def document_warnings(parsed: ParsedFeed, *, key: ItemKey) -> Iterator[FeedWarning]:
    """The warnings of a document. `key` is the identity of its items."""
    items = len(parsed.items)
    listed = items + len(parsed.duplicate_guids)
    if parsed.cut_off:
        yield FeedWarning(
            kind="cut_off",
            sentence=f"the document was cut off after {items:,} items: the rest is missing until a whole"
            " document comes; each visit requests it again",
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
