"""Retention: what is older than a feed keeps is removed daily, with all that hangs on it.

service.py  one clean, from backups to the file of the database
sql.py      items past their age with their rows and objects, and how much cleans removed
refusal.py  the decision that a clean removes nothing until a person confirms it
listed.py   the items that a feed still lists, for a clean of a full database
model.py    the result
dagster.py  the job `clean_store` and its schedules
cli.py      the command `clean`

An item that a user starred stays. What a clean removed leaves a tombstone (storage/items/tombstones.py), so
that it does not come back; `forget` removes all rows of one feed, and is the core's.
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="retention",
    automations=lambda _: ["clean_daily", "clean_again"],
    commands={"clean": Part("retention.cli:clean")},
    dagster=Part("retention.dagster:parts"),
)
