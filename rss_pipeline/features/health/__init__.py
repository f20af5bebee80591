"""The health of an installation: what is checked, who sees the result, and how a person hears of it.

A `Check` (model.py) is one function from a `Look` to a `Finding`: how bad it is, what was found, how to fix
it. The table of checks.py and the lists of other features have all. `doctor`, the asset checks of Dagster's
UI, the metrics and the alerts read them; fields of a check say which of these show it, and from which state
on it alerts.

model.py    Check, Finding, Look
checks.py   the table, and the checks of feeds and images
store_checks.py the database, the object store, Dagster's folder, their disk, what everybody can read
sql.py      the queries; others are in storage/reports
doctor.py   all of it for a person: what the tables have, and what must be right before they can be asked
alerts.py   the one `alert` with its cursor and back-off, and the looks that find what to report
webhook.py  a message as Slack and Discord take it
metrics.py  figures for Prometheus
dagster.py  asset checks with their job, schedule and sensors, and the sensors of alerts
cli.py      the commands `doctor` and `metrics`; the last runs and the daemon, from Dagster's tables
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="health",
    automations=lambda settings: [
        "check_health_hourly",
        *(["alert_run_failed", "alert_check_failed"] if settings.alert_webhook else []),
    ],
    beside_reader=(Part("health.alerts:watching"),),
    commands={"doctor": Part("health.cli:doctor"), "metrics": Part("health.cli:metrics")},
    dagster=Part("health.dagster:parts"),
)
