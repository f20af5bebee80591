"""A check that a worker keeps objects where the main machine does, so that they are not on several machines.

The main machine leaves a mark in its store; a worker looks for it in its own.
"""

from rss_pipeline.storage.fleet.machines import Member
from rss_pipeline.storage.objects import ObjectStore

KEY = "probe/main-machine"
"""Below a prefix that is in no copy and no backup."""


def mark(store: ObjectStore, main: Member) -> None:
    """Leave the mark of this start of the main machine."""
    store.put(KEY, main.incarnation.encode(), content_type="text/plain")


def has_mark(store: ObjectStore, main: Member) -> bool:
    """True if it is there."""
    found = store.get(KEY)
    return found is not None and found[0] == main.incarnation.encode()
