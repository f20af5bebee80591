"""The result of a replay as Dagster metadata: counts and tables.

The replay itself is in pipeline/replay.
"""

from typing import Any

import dagster as dg

from rss_pipeline.pipeline.replay.replay import FeedReplay
from rss_pipeline.pipeline.replay.store_backup import FINDINGS_KEPT


def findings_table(replay: FeedReplay) -> dg.TableMetadataValue:
    """A table of the new and differing items."""
    names = ("item", "title", "what", "fields")
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord(
                {
                    "item": each.item_id,
                    "title": (each.title or "")[:100],
                    "what": each.what,
                    "fields": ", ".join(each.fields),
                }
            )
            for each in replay.findings
        ],
        schema=dg.TableSchema(columns=[dg.TableColumn(name) for name in names]),
    )


def problems_table(replay: FeedReplay) -> dg.TableMetadataValue:
    """A table of the backups without items."""
    names = ("backup", "kind", "message")
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord({"backup": each.backup_key, "kind": each.kind, "message": each.message[:500]})
            for each in replay.problems[:FINDINGS_KEPT]
        ],
        schema=dg.TableSchema(columns=[dg.TableColumn(name) for name in names]),
    )


def metadata(replay: FeedReplay) -> dict[str, Any]:
    """The metadata of a feed's replay: counts, and the tables that have rows."""
    found: dict[str, Any] = dict(replay.counts)
    if replay.findings:
        found["items"] = findings_table(replay)
        found["items_listed"] = f"{len(replay.findings)} of {replay.findings_in_all}"
    if replay.problems:
        found["backups_without_items"] = problems_table(replay)
    return found
