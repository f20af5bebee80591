"""The main job on real input: serve a folder of documents, and check what a poll makes of them.

    python -m benchmarks.serve_folder FOLDER                 serve until Ctrl-C, with a feeds.yaml for it
    python -m benchmarks.serve_folder FOLDER --check         poll twice in a home of its own, and judge

Each document is served from a 127.x.y.z address of its own, with ETag and Last-Modified. What is judged, and
by what index, is in acceptance.py and documents.py.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.acceptance import accept
from benchmarks.documents import folder_feeds, has_index
from benchmarks.feeds_file import write_feeds_file
from benchmarks.server import Feed, serving


def main() -> None:
    """Serve, and with `--check` poll and exit with 1 where anything is not as it must be."""
    parser = argparse.ArgumentParser(description="Serve a folder of feed documents on loopback.")
    parser.add_argument(
        "folder", type=Path, help="documents, and an index.tsv of what they hold if there is one"
    )
    parser.add_argument(
        "--feeds-file", type=Path, metavar="OUT.yaml", help="where to register them; else a temporary file"
    )
    parser.add_argument("--port", type=int, default=0, help="else one that is free")
    parser.add_argument("--check", action="store_true", help="poll twice, compare, and end")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        parser.error(f"{arguments.folder} is not a folder")
    with (
        tempfile.TemporaryDirectory(prefix="rss-folder-") as scratch,
        serving(partial(folder_feeds, arguments.folder), port=arguments.port) as server,
    ):
        feeds_file = arguments.feeds_file or Path(scratch) / "feeds.yaml"
        write_feeds_file(feeds_file, server.feeds)
        if arguments.check:
            is_right = accept(server, Path(scratch), feeds_file.absolute(), arguments.folder)
            sys.exit(0 if is_right else 1)
        _summarise(server.feeds, indexed=has_index(arguments.folder))
        print(f"Registered in {feeds_file}; Ctrl-C ends it.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()


def _summarise(feeds: Sequence[Feed], *, indexed: bool) -> None:
    for feed in feeds:
        count = "" if not indexed else "no feed" if feed.items is None else f"{feed.items} items"
        print(f"{feed.bytes:>10,} bytes  {count:>10}  {feed.url}")
    held = f", {sum(feed.items or 0 for feed in feeds):,} items" if indexed else ""
    print(f"{len(feeds)} documents, {sum(feed.bytes for feed in feeds):,} bytes{held}")


if __name__ == "__main__":
    main()
