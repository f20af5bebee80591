"""Replay and restore: stored items are read again from the backups, lost ones come back from them.

service.py      replays of some feeds or all, and retired items brought back
steps.py        the steps of a backup: open, parse, store, extract images
sql.py          inserts without a lease, the items of a backup, repairs
restore.py      a lost database rebuilt, users included
restore_sql.py  its statements
model.py        a backup that is read again, and its outcome
dagster.py      the jobs `replay_backups` and `replay_all`
cli.py          the commands `replay` and `restore`
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="replay",
    commands={
        "replay": Part("replay.cli:replay"),
        "restore": Part("replay.cli:restore"),
    },
    dagster=Part("replay.dagster:dagster_parts"),
)
