"""Replay and restore: stored items are read again from the backups, lost ones come back from them."""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="replay",
    commands={
        "replay": Part("replay.cli:replay"),
        "restore": Part("replay.cli:restore"),
    },
    dagster=Part("replay.dagster:dagster_parts"),
)
