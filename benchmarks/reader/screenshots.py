"""The picture of the reader in docs/, taken again: `python -m benchmarks.reader.screenshots` writes
docs/reader.png.

Invented feeds, in a home of their own, and headless Chromium. Look at the picture before it is committed; it
needs fonts for Chinese and Japanese.
"""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from playwright.sync_api import Page

from rss_pipeline.api.auth import COOKIE
from rss_pipeline.api.server import listening
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import item, register, spec, visit
from rss_pipeline_tests.support.clients.chromium import chromium, watched
from rss_pipeline_tests.support.reader import Reader, User, reader_settings, served

DOCS = Path(__file__).resolve().parents[2] / "docs"
FEEDS = {
    "gazette": ("Harbour Gazette", "News"),
    "planet": ("The Daily Planet", "News"),
    "tsukuba": ("つくば科学通信", "Science"),
    "kexue": ("科学新闻", "Science"),
    "kernel": ("Kernel Notes", "Technology"),
    "databases": ("Database Weekly", "Technology"),
    "type": ("Type & Lead", None),
    "garden": ("Winter Garden", None),
}
FAILING = "planet"
ITEMS = [
    ("kernel", "Three years of Rust in the kernel", "Lina Brandt"),
    ("gazette", "Why the bicycle lane at the harbour keeps flooding", "Jürgen Weiß"),
    ("tsukuba", "月面で水が見つかった：南極クレーターの新しい観測", None),
    ("type", "The typographer who hated hyphens", None),
    ("databases", "Incremental sort, skip scans and the long road to asynchronous reads", "A. Okafor"),
    ("kexue", "量子计算机的新进展：纠错码首次跨越阈值", None),
    ("garden", "Notes on a winter garden", None),
    ("planet", "How a small island runs on wind and patience", "Lois Lane"),
    ("gazette", "The forgotten cookbooks of the Hanseatic League", None),
    ("kernel", "Release notes, read aloud", None),
]
BODY = """<p>For forty years the instrument stood on a ridge above the town, and for most of those years it
was pointed at nothing new. Then a student chose the <a href="https://crater.example/">wrong crater</a>.</p>
<p>What came back was a line in a spectrum that should not have been there. It took three winters to believe
it.</p><blockquote><p>We had stopped expecting anything. That is when instruments are at their best.</p>
</blockquote><p>The paper is open, and so is the data.</p>"""


def main() -> None:
    with listening("127.0.0.1", 0) as socket:
        port = socket.getsockname()[1]
    with (
        tempfile.TemporaryDirectory(prefix="rss-pictures-") as folder,
        Reader.on(reader_settings(Path(folder) / "home", reader_port=port)) as reader,
    ):
        reader.clock.now = utc_now()
        user = _fill(reader, reader.clock.now)
        with served(reader.app, port=port), chromium() as program, watched(program) as window:
            _take(window.page(), f"http://127.0.0.1:{port}", browser(reader, user).cookies[COOKIE])


def _take(page: Page, address: str, cookie: str) -> None:
    page.context.add_cookies([{"name": COOKIE, "value": cookie, "url": address}])
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{address}/unread")
    for key in "jjjo":
        page.keyboard.press(key)
    page.wait_for_selector(".opened .foot")
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=DOCS / "reader.png")


def _fill(reader: Reader, now: datetime) -> User:
    database = reader.database
    register(database, *map(spec, FEEDS))
    user = reader.user("ada", password="a password of pictures")
    for number, (feed, title, author) in reversed(list(enumerate(ITEMS))):
        at = now - timedelta(minutes=17 + 47 * number)
        one = item(
            str(number),
            title=title,
            author=author,
            content_html=BODY,
            pub_date=at,
            link=f"https://{feed}.example/",
        )
        visit(database, [one], id=feed)
    subscribe(database, user.id, *FEEDS)
    for feed, (title, folder_name) in FEEDS.items():
        database.query("UPDATE feeds SET title = ? WHERE id = ?", [title, feed])
        database.query("UPDATE subscriptions SET folder = ? WHERE feed_id = ?", [folder_name, feed])
    database.query(
        """UPDATE feeds SET last_error_kind = 'timeout', consecutive_failures = 4, failing_since = ?2,
          last_error = 'planet.example did not answer within 30 s' WHERE id = ?1""",
        [FAILING, "2026-11-20T10:00:00Z"],
    )
    return user


if __name__ == "__main__":
    main()
