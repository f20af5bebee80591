"""Runs on several machines: a broker hands shards of the feeds to workers, whose leases are watched."""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="fleet",
    commands={
        "worker": Part("fleet.cli:worker"),
    },
    status=(Part("fleet.output:status_section"),),
)
