"""A feed as people are told of it: its name in a sentence, and the address of its events in Dagster's UI."""

from urllib.parse import quote

from rss_pipeline.collector.models.plain_text import one_line

_LONGEST_TITLE = 80


def short_title(title: str | None) -> str:
    """A title on one line of at most 80 characters; empty where there is none."""
    words = " ".join(one_line(title or "").split())
    return words if len(words) <= _LONGEST_TITLE else f"{words[: _LONGEST_TITLE - 1]}…"


def feed_name(id: str, title: str | None) -> str:
    """The title of a feed, or of a stream's feed, with its id; the id alone where it has no title."""
    words = short_title(title)
    return f"{words} [{id}]" if words else id


def events_path(feed_id: str) -> str:
    """The page of Dagster's UI with the events of a feed's partition, the newest one open.

    The page of the partition itself shows materializations, and nothing of a feed that never had one.
    """
    return f"/assets/feed_items?view=events&partitions%5B0%5D={quote(feed_id, safe='')}"
