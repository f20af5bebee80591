"""A replay's result as Dagster metadata: counts and tables.

The replay itself is pipeline.replay's.
"""

from typing import Any

import dagster as dg

from rss_pipeline.pipeline.replay.replay import FeedReplay
from rss_pipeline.pipeline.replay.store_backup import FINDINGS_KEPT


def findings_table(replay: FeedReplay) -> dg.TableMetadataValue:
    """Its findings as Dagster shows them."""
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


def troubles_table(replay: FeedReplay) -> dg.TableMetadataValue:
    """The backups that gave no items, likewise."""
    names = ("backup", "kind", "message")
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord({"backup": each.backup_key, "kind": each.kind, "message": each.message[:500]})
            for each in replay.troubles[:FINDINGS_KEPT]
        ],
        schema=dg.TableSchema(columns=[dg.TableColumn(name) for name in names]),
    )


def metadata(replay: FeedReplay) -> dict[str, Any]:
    """What the UI shows of a feed's replay: counts, and the tables that have rows."""
    found: dict[str, Any] = dict(replay.counts)
    if replay.findings:
        found["items"] = findings_table(replay)
        found["items_listed"] = f"{len(replay.findings)} of {replay.findings_in_all}"
    if replay.troubles:
        found["backups_without_items"] = troubles_table(replay)
    return found
