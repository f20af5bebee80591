"""The event of a poll as a whole: a materialization of the asset `polls` with numbers that plot.

The events of single feeds are in feeds.py.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.orchestration.reporting.asset_keys import POLLS
from rss_pipeline.orchestration.reporting.failure_table import failure_table
from rss_pipeline.pipeline.visits.summary import failures, poll_sentence, summary
from rss_pipeline.pipeline.visits.visit import Visit

_ROWS = 50
"""An outage of many feeds is reported at each poll."""


def poll_event(
    visits: Sequence[Visit],
    *,
    started_at: datetime,
    now: datetime,
    pauses: Mapping[str, datetime],
    shard: Shard | None = None,
) -> dg.AssetMaterialization:
    """The event of a poll of these visits, of all feeds or of one shard.

    `due` feeds were claimed; `fetched` of them answered with a document or a 304 (`changed`, `not_modified`),
    `failed` did not, `given_back` and `on_hold` were not requested; `gaps` are documents before which items
    were probably missed; `lag_seconds` is the longest time that a due feed had waited, counted from the end
    of its host's hold if `pauses` has one. A shard's `due` and `lag_seconds` have names of their own as well,
    for a plot of each shard.
    """
    counts = summary(visits)
    waited = [
        now - max(due_at, pauses.get(visit.feed.address.host, due_at))
        for visit in visits
        if (due_at := visit.feed.schedule.next_fetch_at) is not None
        and visit.feed.schedule.last_visited_at is not None
    ]
    lag = max([each.total_seconds() for each in waited], default=0.0)
    metadata: dict[str, Any] = {
        "due": len(visits),
        "fetched": counts["stored"] + counts["unchanged"],
        "not_modified": counts["unchanged"],
        "changed": counts["stored"],
        "failed": counts["failed"],
        "given_back": counts["given_back"],
        "on_hold": counts["on_hold"],
        "gaps": counts["gaps"],
        "items_new": counts["items_new"],
        "seconds": round((now - started_at).total_seconds(), 1),
        "lag_seconds": max(0, round(lag)),
    }
    if shard is not None:
        metadata["shard"] = str(shard)
        for name in ("due", "lag_seconds"):
            metadata[f"shard_{shard.number}_{name}"] = metadata[name]
    if failed := failures(visits):
        rest = "more are in the table of the op `report`."
        metadata["failures"] = failure_table(failed, rows=_ROWS, rest=rest)
    return dg.AssetMaterialization(asset_key=POLLS, description=poll_sentence(visits), metadata=metadata)
