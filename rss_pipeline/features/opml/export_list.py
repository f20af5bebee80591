"""A user's subscriptions as OPML, which other readers and `opml_in` read back equal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.features.opml.outline import OpmlFeed
from rss_pipeline.features.opml.write import write_opml
from rss_pipeline.storage.database import Result
from rss_pipeline.storage.subscriptions.listing import feed_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """A subscription, as far as other readers take it."""

    url: str
    """The feed's address, without a password."""
    title: str | None
    """The user's own, or else the feed's."""
    folder: str | None
    html_url: str | None


def export_opml(subscriptions: Sequence[Subscribed], folders: Iterable[str] = (), *, now: datetime) -> bytes:
    """The subscriptions in their order, each folder at the place of its first feed; `folders` are all of the
    user's, also those without feeds."""
    full = {each.folder for each in subscriptions}
    return write_opml(
        (
            OpmlFeed(url=each.url, title=each.title, folder=each.folder, html_url=each.html_url)
            for each in subscriptions
        ),
        title="Subscriptions in rss_pipeline",
        created=now,
        empty_folders=[name for name in folders if name not in full],
    )


def subscribed(result: Result) -> list[Subscribed]:
    """The results of `storage.subscriptions.listing.list_names`."""
    return [
        Subscribed(url=each.url, title=each.title, folder=each.folder, html_url=each.link)
        for each in feed_names(result)
    ]
