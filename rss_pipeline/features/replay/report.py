"""The result of a replay as Dagster metadata: counts and tables.

The replay itself is in pipeline/replay.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from rss_pipeline.features.replay.backup_visit import FINDINGS_KEPT
from rss_pipeline.features.replay.replay import FeedReplay, ReplayProblem
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS


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


def problems_table(problems: Sequence[ReplayProblem]) -> dg.TableMetadataValue:
    """A table of the backups without items."""
    names = ("backup", "kind", "message")
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord({"backup": each.backup_key, "kind": each.kind, "message": each.message[:500]})
            for each in problems[:FINDINGS_KEPT]
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
        found["backups_without_items"] = problems_table(replay.problems)
    return found


@dataclass(slots=True, kw_only=True)
class PartReplay:
    """The result of a replay of many feeds; of most feeds it keeps their counts alone."""

    feeds: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    changed: list[tuple[str, int, int, int]] = field(default_factory=list)
    """The first feeds with other items than are stored, with their counts."""
    problems: list[ReplayProblem] = field(default_factory=list)
    """The first of them, those to fix only."""

    def add(self, replay: FeedReplay) -> dg.AssetObservation | None:
        """Take in the next feed; return its event, which most feeds need not have."""
        self.feeds += 1
        for name, count in replay.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.problems += replay.unread[: FINDINGS_KEPT - len(self.problems)]
        if not (replay.findings_in_all or replay.unread):
            return None
        if len(self.changed) < FINDINGS_KEPT:
            found = (replay.items_new, replay.items_differ, replay.items_gone)
            self.changed.append((replay.feed.id, *found))
        return dg.AssetObservation(asset_key=FEED_ITEMS, partition=replay.feed.id, metadata=replay.counts)

    def metadata(self) -> dict[str, Any]:
        """Counts, and the tables that have rows."""
        found: dict[str, Any] = {"feeds": self.feeds, **self.counts}
        if self.changed:
            names = ("items_new", "items_differ", "items_gone")
            columns = [dg.TableColumn("feed"), *(dg.TableColumn(name, type="int") for name in names)]
            records = [dg.TableRecord(dict(zip(("feed", *names), row, strict=True))) for row in self.changed]
            schema = dg.TableSchema(columns=columns)
            found["changed_feeds"] = dg.MetadataValue.table(records=records, schema=schema)
        if self.problems:
            found["backups_without_items"] = problems_table(self.problems)
        return found
