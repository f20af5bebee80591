"""Runs on several machines: a broker hands shards of the feeds to workers, whose leases are watched."""

from rss_pipeline.features.feature import Feature, OwnSettings, Part, UpFlag

FEATURE = Feature(
    name="fleet",
    needs=("health",),
    automations=lambda settings: ["watch_workers"] if settings.runs_elsewhere else [],
    backlog_advice=(Part("fleet.checks:backlog_advice"),),
    checks=(Part("fleet.checks:CHECKS"),),
    commands={
        "worker": Part("fleet.cli:worker"),
    },
    doctor={
        "broker": Part("fleet.broker:broker"),
        "dagster's database": Part("fleet.broker:dagster_tables"),
    },
    end_lost_runs=(Part("fleet.dead_workers:end_lost"),),
    settings=OwnSettings(Part("fleet.settings:read"), servers=("RSS_BROKER_URL", "DAGSTER_DATABASE_URL")),
    status=(Part("fleet.output:status_section"),),
    up_flags={
        "fleet": UpFlag(
            "As the main machine of several: runs go to workers (RSS_BROKER_URL). Without it all runs are"
            " here.",
            check=Part("fleet.cli:check_flag"),
            within=Part("fleet.cli:main_machine"),
        )
    },
)
