"""Runs on several machines: a broker hands shards of the feeds to workers, whose leases are watched.

settings.py     its variables
model.py        the machines and their runs as values, and which runs are lost
sql.py          the tables `workers` and `worker_runs`
membership.py   joining, and the beat of a machine
launcher.py     Dagster's launcher, which sends runs to the broker, and Celery's app
dagster.py      Dagster's queue for the places of the workers, and the runs of dead ones
worker.py       the processes of a worker
consumer.py     one of these, which takes runs from a queue
execute_run.py  a run in a process of its own
checks.py       the health check of the machines, and what to add where feeds wait
output.py       the section of `status`
cli.py          the command `worker`, and the main machine's part of `up`
"""

from rss_pipeline.extras import FLEET
from rss_pipeline.features.feature import Feature, NeededPackages, OwnSettings, Part, UpFlag

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
        "broker": Part("fleet.cli:broker"),
        "dagster's database": Part("fleet.cli:dagster_tables"),
    },
    end_lost_runs=(Part("fleet.dagster:end_lost"),),
    packages=NeededPackages(FLEET, Part("fleet.settings:is_fleet")),
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
