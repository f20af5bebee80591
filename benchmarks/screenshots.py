"""The pictures of the UI in docs/, taken again: `python -m benchmarks.screenshots` writes docs/ui*.png.

`rss-pipeline up` collects invented feeds from loopback, and headless Chromium opens five pages. Look at each
picture before it is committed; the tests of the UI are in rss_pipeline_tests/cli/up/up_in_chromium.py.
"""

import re
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import count
from pathlib import Path

from playwright.sync_api import expect

from rss_pipeline_tests.orchestration.desk import Desk, browser
from rss_pipeline_tests.support.server import Answer, FeedServer, Request
from rss_pipeline_tests.support.up import started
from rss_pipeline_tests.support.waiting import soon

DOCS = Path(__file__).resolve().parent.parent / "docs"
FEEDS = [
    "astronomy",
    "bicycles",
    "cinema",
    "dialects",
    "economy",
    "forests",
    "gardening",
    "harbours",
    "islands",
    "jazz",
    "kitchens",
    "lighthouses",
    "mountains",
    "novels",
    "orchards",
    "politics",
    "quilts",
    "railways",
    "sailing",
    "theatre",
    "universities",
    "volcanoes",
    "weather",
    "zoos",
]
BROKEN, GONE, SHOWN = "kitchens", "lighthouses", "politics"
STREAMS = "  streams:\n    even: {title: ['*0', '*2', '*4', '*6', '*8']}\n    first: {title: '*number 1'}\n"
TOPICS = {
    "arts": ["cinema", "jazz", "novels", "theatre"],
    "world": [f"{SHOWN}/even", "economy", "weather"],
    "travel": ["railways", "sailing", "mountains"],
}
POLLS = 7
RUN_MS = 120_000


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rss-pictures-"))
    with FeedServer() as server:
        _serve(server, folder)
        with started(folder) as up, browser(up, server) as ui:
            soon(up.answers)
            soon(lambda: len(up.statuses()["green"]) == len(FEEDS) - 2)
            for _ in range(POLLS):
                up.command("poll", "--all")
            _take(ui)
    shutil.rmtree(folder)


def _take(ui: Desk) -> None:
    page = ui.open("/assets/feed_items?view=checks")
    page.get_by_role("button", name="Execute all").click()
    page.get_by_text("feeds_not_gone", exact=True).first.click()
    expect(page.get_by_role("row").filter(has_text=GONE).last).to_be_visible(timeout=RUN_MS)
    page.get_by_text("no_gaps", exact=True).first.click()
    expect(page.get_by_text("Passed", exact=True).first).to_be_visible(timeout=RUN_MS)
    page.get_by_text("feeds_not_gone", exact=True).first.click()
    expect(page.get_by_text("In Progress")).to_have_count(0, timeout=RUN_MS)
    _save(ui, "ui-checks.png")
    page = ui.open(f"/assets/feed_items?view=partitions&partition={SHOWN}")
    expect(page.get_by_text("next_visit_reason")).to_be_visible()
    _save(ui, "ui.png")
    ui.open("/assets/topics?view=partitions&partition=world")
    expect(page.get_by_text("topics/world.json").first).to_be_visible()
    _save(ui, "ui-topics.png")
    ui.open("/assets/polls?view=overview")
    page.get_by_role("button", name="Plots").click()
    expect(page.get_by_text("lag_seconds", exact=True).first).to_be_visible()
    _save(ui, "ui-polls.png")
    ui.open("/asset-groups")
    expect(page.get_by_text(re.compile(f"{len(FEEDS)} partitions")).first).to_be_visible()
    _save(ui, "ui-graph.png")


def _save(ui: Desk, name: str) -> None:
    ui.page.wait_for_timeout(3_000)  # Plots and the graph are drawn with a transition.
    ui.page.screenshot(path=DOCS / name)


def _serve(server: FeedServer, folder: Path) -> None:
    """Publish the feeds, each on a host of its own, and write the feeds.yaml that lists them."""
    entries = []
    for number, id in enumerate(FEEDS, start=2):
        url = server.route(f"127.0.0.{number}", f"/{id}.xml", _publisher(id, number))
        streams = STREAMS if id == SHOWN else ""
        entries.append(f"- url: {url}\n  id: {id}\n  allow_private: [127.0.0.0/8]\n{streams}")
    topics = (f"  {id}: {{of: [{', '.join(of)}], public: true}}\n" for id, of in TOPICS.items())
    listed = f"feeds:\n{''.join(entries)}topics:\n{''.join(topics)}"
    (folder / "feeds.yaml").write_text(listed, "utf-8")


def _publisher(id: str, number: int) -> Answer | Callable[[Request], Answer]:
    """A feed with a new item at every second, third or tenth visit; two publishers answer with an error."""
    if id in (BROKEN, GONE):
        return Answer(status=404 if id == BROKEN else 410)
    visits = count()

    def answer(_: Request) -> Answer:
        items = 12 + next(visits) // (2, 3, 10)[number % 3]
        return Answer(body=_document(id, items), etag=f'"{items}"')

    return answer


def _document(id: str, items: int) -> bytes:
    now = datetime.now(UTC)
    entries = "".join(
        f"<item><guid isPermaLink='false'>{id}-{n}</guid><title>News of {id}, number {n}</title>"
        f"<link>https://{id}.example/{n}</link>"
        f"<pubDate>{format_datetime(now - timedelta(hours=3 * (items - n)))}</pubDate>"
        f"<description>Text of {id}-{n}</description></item>"
        for n in range(items)
    )
    return (
        f"<?xml version='1.0' encoding='utf-8'?><rss version='2.0'><channel><title>{id.title()}</title>"
        f"<link>https://{id}.example/</link>{entries}</channel></rss>"
    ).encode()


if __name__ == "__main__":
    main()
