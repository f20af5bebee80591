"""The room that items take in D1, and so the feeds of the free plan, measured on real workerd.

    python -m benchmarks.cloudflare_size FOLDER [--items 5] [--without-images]

FOLDER has feed documents as sites serve them, `*.xml`. Each is polled once from loopback; then its image
tasks get the keys of archived images. The room is what D1 says, `meta.size_after`, less that of the empty
schema. `--items` are those of a feed and day. The figures of docs/cloudflare.md come from here.
"""

import argparse
import tempfile
from pathlib import Path

from rss_pipeline_tests.support.pipeline import Pipeline, on_cloudflare
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import local_cloudflare

FREE_BYTES, PAID_BYTES = 500_000_000, 10_000_000_000


def main() -> None:
    """Store all documents, and print bytes an item and feeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, default=5)
    parser.add_argument("--without-images", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, local_cloudflare() as cloudflare, FeedServer() as server:
        pipeline = Pipeline(Path(home), **on_cloudflare(cloudflare))
        for number, path in enumerate(sorted(wanted.folder.glob("*.xml"))):
            url = server.route(f"127.0.1.{number + 1}", "/feed", Answer(body=path.read_bytes()))
            pipeline.register(url, f"feed-{number:03}", images=not wanted.without_images)
        pipeline.sync()
        empty = _bytes(pipeline)
        pipeline.poll()
        pipeline.database.query(
            """UPDATE image_tasks SET status = 'success', bytes = 40000, width = 800, height = 600,
              r2_key = 'images/feed-000/' || substr(item_id, 1, 8) || '/' || position || '.jpg'"""
        )
        size = _bytes(pipeline) - empty
        [row] = pipeline.database.query(
            """SELECT count(*) AS items, (SELECT count(*) FROM image_tasks) AS images,
              sum(length(CAST(coalesce(content_html, '') AS BLOB))
                + length(CAST(coalesce(summary, '') AS BLOB))) AS text FROM items"""
        ).rows
        pipeline.close()
    items = int(row["items"])
    each = size / items
    print(
        f"{items:,} items of {row['text'] / items / 1000:.1f} KB of text, {row['images'] / items:.1f} images"
    )
    print(f"{each / 1000:.1f} KB an item with its image tasks and its share of its feed")
    for days in (30, 60, 90, 180, 365):
        of_feed = wanted.items * days * each
        feeds = f"{FREE_BYTES / of_feed:,.0f} feeds in 500 MB, {PAID_BYTES / of_feed:,.0f} in 10 GB"
        print(f"{days:4} days: {of_feed / 1e6:5.1f} MB a feed of {wanted.items} items a day, {feeds}")


def _bytes(pipeline: Pipeline) -> int:
    settings = pipeline.settings
    assert settings.pays_by_row
    size = settings.database.size()
    assert size is not None
    return size


if __name__ == "__main__":
    main()
