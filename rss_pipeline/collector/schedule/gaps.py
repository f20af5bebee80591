"""Items that were probably missed: whether a document can show it, and how much sooner to come back for it.

Whether the document's items were all unknown is found where they are stored (storage.closings). Pure
functions.
"""

from datetime import datetime, timedelta

from rss_pipeline.collector.models.feed import Feed

LATE = timedelta(minutes=15)
"""Within which a visit still counts as in time: a poll starts some minutes after a feed is due."""
MOST_HALVINGS = 3
RECOVERY = timedelta(days=7)
"""After which one halving is taken back."""
VISITS_BETWEEN = 12


def may_show_gap(feed: Feed, *, items: int, now: datetime) -> bool:
    """Whether a document of so many items, all of them new, would mean that items were missed for want of a
    visit.

    Not the first document, nor one beside a document that is empty or of unknown length. Nor one of a single
    item, or after one: a feed that lists only its latest tells nothing of those between. And not after
    failures or a pause of ours: that the interval was too long is not what they show.
    """
    before = feed.items_listed
    if before is None or before < 2 or items < 2:
        return False
    if feed.consecutive_failures or feed.last_success_at is None or feed.planned_at is None:
        return False
    planned = max(feed.planned_at - feed.last_success_at, timedelta(0))
    return now - feed.last_success_at <= 2 * planned + LATE


def halvings(feed: Feed, *, now: datetime) -> int:
    """How often the interval is to be halved at `now`."""
    if feed.halved_at is None:
        return 0
    return max(feed.gap_halvings - max(now - feed.halved_at, timedelta(0)) // RECOVERY, 0)


def after_gap(feed: Feed, *, now: datetime) -> tuple[int, datetime | None]:
    """`gap_halvings` and `halved_at` of a feed that shows a gap now.

    One halving more, but not where a dozen visits went by without a gap: they were near enough, and this
    publisher replaces its whole document at once, as a daily edition does.
    """
    standing = halvings(feed, now=now)
    if standing and feed.last_gap_at is not None and feed.last_success_at is not None:
        since_visit = max(now - feed.last_success_at, timedelta(minutes=1))
        if now - feed.last_gap_at > VISITS_BETWEEN * since_visit:
            return feed.gap_halvings, feed.halved_at
    return min(standing + 1, MOST_HALVINGS), now
