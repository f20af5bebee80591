"""The cost of an idle day, with all looks of alerts and checks, where each request and each row is paid."""

from collections import Counter
from dataclasses import replace

from rss_pipeline.features.health.alerts import LOOK_SECONDS_PAID, look
from rss_pipeline.features.health.checks import health_checks
from rss_pipeline.features.health.model import Look, evaluate
from rss_pipeline_tests.orchestration.conftest import away, environ
from rss_pipeline_tests.orchestration.test_looks import minute, spent, wait_in
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline

__all__ = ["away", "environ", "spent"]


def test_an_idle_day_in_cloudflare_is_cheap_whatever_waits(
    away: DagsterPipeline, spent: Counter[str]
) -> None:
    wait_in(away, feeds=50, images=5_000)
    spent.clear()
    minute(away)
    # The decision of the day reads a row for each image that waits.
    assert spent["rows"] <= 5_000 + 300
    spent.clear()
    for _ in range(20):
        minute(away)
    sensors = Counter(spent)
    assert 72 * sensors["requests"] <= 2_000
    assert 72 * sensors["rows"] <= 14_000
    # Hours later the images count as late. All checks are evaluated each hour, and for alerts, each time that
    # a sensor looks, those that are quick.
    away.clock.turn(hours=7)
    settings = replace(away.settings, alert_webhook="http://127.0.0.1:9/")
    place = Look(database=away.database, objects=lambda: away.objects, settings=settings, now=away.clock())
    spent.clear()
    for check in health_checks(settings):
        if check.asset is not None:
            evaluate(check, place)
    checks = Counter(spent)
    look(away.database, settings, now=away.clock())
    spent.clear()
    away.clock.turn(minutes=10)
    look(away.database, settings, now=away.clock())
    # The search index is the rest of 6,000 and 50,000.
    looks = 24 * 3600 / LOOK_SECONDS_PAID
    for what, most in (("requests", 4_400), ("rows", 40_000)):
        assert 72 * sensors[what] + 24 * checks[what] + looks * spent[what] <= most, what
