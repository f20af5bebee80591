"""What the bodies of a page of items cost the reader: sanitized, made of kept HTML, and taken from the cache.

    python -m benchmarks.reader.bodies [--items 100] [--characters 4800]

CPU of this process for one page, the least and the median of many. Each item has paragraphs, links and two
images, of which one is archived. The last line makes 64 threads miss one page at once.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rss_pipeline.pipeline.session.renew_html import renew
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.items import body_parts as stored_bodies
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.stored import FIRST, add_feeds, add_items, item

PARAGRAPH = "<p>A sentence with <b>some</b> <a href='/page'>links</a> &amp; marks, as people write it. </p>"
IMAGES = '<img src="/a.png" srcset="/a.png 1x, /a2.png 2x"><img src="/b.png" alt="B">'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--characters", type=int, default=4_800)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), items=arguments.items, characters=arguments.characters)


def _measure(folder: Path, *, items: int, characters: int) -> None:
    database = migrated(folder / "rss.sqlite")
    add_feeds(database, "news")
    html = IMAGES + PARAGRAPH * (characters // len(PARAGRAPH))
    rows = [
        item("news", str(number), FIRST, arrived=number + 1, content_html=html) for number in range(items)
    ]
    add_items(database, rows)
    ids = [row["id"] for row in rows]
    for id in ids:
        database.query(
            """INSERT INTO image_tasks
              (id, item_id, original_url, r2_key, status, attempts, created_at, updated_at, host, position)
            VALUES (?, ?, 'https://news.example/a.png', ?, 'success', 0, ?, ?, 'h', 0)""",
            [id, id, f"images/news/{id}/0.png", FIRST, FIRST],
        )

    def fresh() -> Bodies:
        return Bodies(FolderStore(folder / "objects"), seconds=time.monotonic)

    keys = list(stored_bodies.keys_of(database.batch([stored_bodies.versions(ids)])[0]).values())
    versions = {key.id: key.version for key in keys}
    warm = fresh()
    _line("versions, read", 50, lambda: database.batch([stored_bodies.versions(ids)]))
    _line("sanitized", 10, lambda: fresh().all_of(database, keys))
    renew(database, is_over=lambda: False)
    _line("from kept HTML", 50, lambda: fresh().all_of(database, keys))
    warm.all_of(database, keys)
    _line("cached", 200, lambda: warm.known(versions))
    shared = fresh()
    threads = [threading.Thread(target=shared.all_of, args=(database, keys)) for _ in range(64)]
    started = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{'64 threads miss it':22} {1000 * (time.process_time() - started):9.2f} ms")
    database.close()


def _line(name: str, times: int, work: Callable[[], object]) -> None:
    spent = []
    for _ in range(times):
        started = time.process_time()
        work()
        spent.append(1000 * (time.process_time() - started))
    print(f"{name:22} {min(spent):9.2f} ms at least, median {statistics.median(spent):.2f}")


if __name__ == "__main__":
    main()
