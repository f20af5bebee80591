"""Runs on several machines: a broker hands shards of the feeds to workers, whose leases are watched."""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="fleet",
    needs=("health",),
    backlog_advice=(Part("fleet.checks:backlog_advice"),),
    checks=(Part("fleet.checks:CHECKS"),),
    commands={
        "worker": Part("fleet.cli:worker"),
    },
    doctor={
        "broker": Part("fleet.broker:broker"),
        "dagster's database": Part("fleet.broker:dagster_tables"),
    },
    status=(Part("fleet.output:status_section"),),
)
