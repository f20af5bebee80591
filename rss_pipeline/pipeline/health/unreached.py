"""The sentence about an installation that reaches no feed, for commands that find it later."""

from rss_pipeline.collector.schedule.our_outage import nothing_reached
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.reports.unreached import unreached, without_answer


def none_reached(database: Database) -> str | None:
    """The sentence, where a first start was without network, or the last visit of no feed had an answer."""
    found = unreached(database)
    if found is not None:
        return (
            f"{nothing_reached(found.hosts)} The next attempt is at {found.next_fetch_at};"
            " `rss-pipeline poll --all` tries at once."
        )
    kinds = without_answer(database)
    if not kinds:
        return None
    counts = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.items())
    return f"No feed could be reached at its last visit: {counts}. `rss-pipeline status` says what to do."
