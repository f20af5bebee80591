"""The health of an installation: what is checked, who sees the result, and how a person hears of it.

A `Check` (model.py) is one function from a `Look` to a `Finding`: how bad it is, what was found, how to fix
it. All stand in one table, `CHECKS` (checks.py). `doctor`, the asset checks of Dagster's UI, the metrics and
the alerts read it; fields of a check say which of them show it, and from which state on it alerts.

model.py         Check, Finding, Look
checks.py        the table, and the checks of feeds, images, streams and topics
stores.py        the database, the object store, Dagster's folder, their disk
public_objects.py  what everybody can read
../fleet/checks.py  several machines, and their broker
network.py       a first look at the network, for `doctor`
cli.py           the command `doctor`
doctor.py        all of it for a person: what the table has, and what must be right before it can be asked
alerts.py        the one `alert` with its cursor and back-off, and the looks that find what to report
webhook.py       a message as Slack and Discord take it
metrics.py       figures for Prometheus

Queries are in health_rows.py and storage/reports; asset_checks.py and alert_sensor.py are Dagster's.
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="health",
    commands={
        "doctor": Part("health.cli:doctor"),
        "metrics": Part("health.metrics_command:metrics"),
    },
)
