"""The sentence about a first start without network, for commands that find it later."""

from rss_pipeline.collector.schedule.our_outage import nothing_reached
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.reports.unreached import unreached


def nothing_reached_yet(database: Database) -> str | None:
    """The sentence, with the time of the next attempt; None if a feed was answered, or none was tried."""
    found = unreached(database)
    if found is None:
        return None
    return (
        f"{nothing_reached(found.hosts)} The next attempt is at {found.next_fetch_at};"
        " `rss-pipeline poll --all` tries at once."
    )
