"""Five thousand feeds in one installation: its pages, its ticks and its command still answer at once.

In a real `rss-pipeline up`, after a real visit to each of them; the figures are printed. With `-s` they are
seen though all is well.
"""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rss_pipeline_tests.orchestration.desk import Desk, browser
from rss_pipeline_tests.support.clients.chromium import CHROMIUM
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import Up, location, started
from rss_pipeline_tests.support.waiting import soon, times_as_long

FEEDS = [f"feed-{n:04}" for n in range(5_000)]
HOSTS = 50
ROUNDS = 3
PAGE_SECONDS = 2.0
TICK_SECONDS = 1.0
STATUS_SECONDS = 1.0
PATIENCE = 120_000
"""Milliseconds that a page may take before the test ends; how long it took is judged afterwards."""
TICKS = """query($selector: RepositorySelector!) { sensorsOrError(repositorySelector: $selector) {
    ... on Sensors { results { name sensorState { status ticks(limit: 20) {
    status timestamp endTimestamp } } } } } }"""


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_five_thousand_feeds_leave_pages_ticks_and_status_quick(tmp_path: Path, server: FeedServer) -> None:
    urls = {
        id: server.route(f"127.0.1.{1 + n % HOSTS}", f"/{id}.xml", Answer(body=rss(f"{id}-a", f"{id}-b")))
        for n, id in enumerate(FEEDS)
    }
    entries = (f"- url: {url}\n  id: {id}\n  allow_private: true\n" for id, url in urls.items())
    (tmp_path / "feeds.yaml").write_text("feeds:\n" + "".join(entries), "utf-8")
    with started(tmp_path, RSS_BATCH_SIZE="2500") as up, browser(up, server) as ui:
        soon(up.answers)
        soon(lambda: up.rows("SELECT count(*) FROM feeds WHERE reported_count = 0") == [(0,)])
        soon(lambda: len(up.statuses()["green"]) == len(FEEDS))
        # A person's browser has the UI's scripts in its cache.
        the_graph(ui)
        quiet_since = time.time()
        slow = []
        for name, allowed, once in (
            ("partitions page", PAGE_SECONDS, lambda: the_partitions_page(ui)),
            ("asset page", PAGE_SECONDS, lambda: the_assets_page(ui)),
            ("graph", PAGE_SECONDS, lambda: the_graph(ui)),
            ("status", STATUS_SECONDS, lambda: status(up)),
        ):
            slow += report(name, [timed(once) for _ in range(ROUNDS)], allowed)
        # A sensor that is not woken ticks each five minutes.
        soon(lambda: min(map(len, ticks(up, quiet_since).values())) >= 1, seconds=900)
        for name, took in sorted(ticks(up, quiet_since).items()):
            slow += report(f"tick of {name}", took, TICK_SECONDS)
    assert slow == []


def timed(once: Callable[[], None]) -> float:
    """The seconds that it takes."""
    began = time.perf_counter()
    once()
    return time.perf_counter() - began


def report(name: str, took: Sequence[float], allowed: float) -> list[str]:
    """Print the figures; again those that are too long, also for a machine with other work."""
    allowed *= times_as_long()
    print(f"{name}: {', '.join(f'{each:.2f}' for each in took)} s")  # noqa: T201
    return [f"{name}: {each:.2f} s" for each in took if each > allowed]


def the_partitions_page(ui: Desk) -> None:
    page = ui.open(f"/assets/feed_items?view=partitions&partition={FEEDS[2_500]}")
    expect(page.get_by_text("View all historical events")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text(re.compile("^5,?000 Partitions Selected"))).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("items_seen", exact=True).first).to_be_visible(timeout=PATIENCE)


def the_assets_page(ui: Desk) -> None:
    page = ui.open("/assets/feed_items?view=overview")
    expect(page.get_by_text("Latest materialization")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text("items_seen", exact=True).first).to_be_visible(timeout=PATIENCE)


def the_graph(ui: Desk) -> None:
    page = ui.open("/asset-groups")
    expect(page.get_by_text(re.compile("^5,?000 partitions")).first).to_be_visible(timeout=PATIENCE)


def status(up: Up) -> None:
    assert up.command("status").returncode == 0


def ticks(up: Up, since: float) -> dict[str, list[float]]:
    """Seconds of the newest ticks of each sensor that is on."""
    selector = {"repositoryName": "__repository__", "repositoryLocationName": location(up)}
    found = up.ask(TICKS, selector=selector)["sensorsOrError"]["results"]
    return {
        sensor["name"]: [
            tick["endTimestamp"] - tick["timestamp"]
            for tick in sensor["sensorState"]["ticks"]
            if tick["status"] in ("SUCCESS", "SKIPPED") and tick["timestamp"] > since
        ]
        for sensor in found
        if sensor["sensorState"]["status"] == "RUNNING"
    }
