"""A user who subscribes feeds with items, for the tests of the routers."""

from rss_pipeline_tests.storage.subscriptions.readers import arrive, subscribe
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.reader import Reader, User


def ann(reader: Reader, **feeds: int) -> User:
    """Ann, who subscribes these feeds with so many items each: their guids are 1, 2, ..."""
    return subscribed(reader, reader.user("ann"), **feeds)


def subscribed(reader: Reader, user: User, **feeds: int) -> User:
    """A user who now subscribes these feeds, as Ann does."""
    register(reader.database, *map(spec, feeds))
    for feed, items in feeds.items():
        # A document a guid: the order of arrival is that of the guids.
        for guid in range(1, items + 1):
            arrive(reader.database, feed, str(guid))
    if feeds:
        subscribe(reader.database, user.id, *feeds)
    return user
