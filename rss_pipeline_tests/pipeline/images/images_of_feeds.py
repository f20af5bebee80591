"""Feeds that show images, collected by a real poll, and the rows of their image tasks.

No test is in here.
"""

from typing import Any

from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

FEED_HOST = "127.0.0.2"


def document(*images: str, guid: str = "item") -> bytes:
    """A feed of one item that shows these images."""
    shown = "".join(f'&lt;img src="{url}"&gt;' for url in images)
    return (
        '<?xml version="1.0"?><rss version="2.0"><channel><title>A feed</title>'
        f"<link>http://{FEED_HOST}/</link><item><guid>{guid}</guid>"
        f"<link>http://{FEED_HOST}/page-of-{guid}</link><description>{shown}</description></item>"
        "</channel></rss>"
    ).encode()


def collect(home: Pipeline, server: FeedServer, *images: str, id: str = "feed", guid: str = "item") -> None:
    url = server.route(FEED_HOST, f"/{id}", Answer(body=document(*images, guid=guid)))
    home.register(url, id)
    home.poll()


def image_rows(home: Pipeline) -> dict[str, dict[str, Any]]:
    """Task rows by the last part of their URL."""
    rows = home.rows("SELECT * FROM image_tasks ORDER BY position")
    return {row["original_url"].rpartition("/")[2]: row for row in rows}
