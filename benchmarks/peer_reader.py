"""lemon24/reader as the benchmark runs it: `add` registers feeds, `update` is the run that is measured.

Each is a process of its own. Everything is reader's default: its HTTP client, its parser (feedparser with
sanitizing and links made absolute), its storage. It has nothing against addresses of loopback.
"""

import argparse
import sys

from reader import make_reader


def main() -> None:
    """`add DATABASE`, feed URLs on standard input; or `update DATABASE`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["add", "update"])
    parser.add_argument("database")
    parser.add_argument("--workers", type=int, default=10)
    arguments = parser.parse_args()
    with make_reader(arguments.database) as reader:
        if arguments.what == "add":
            for url in sys.stdin.read().split():
                reader.add_feed(url)
        else:
            reader.update_feeds(workers=arguments.workers, scheduled=False)


if __name__ == "__main__":
    main()
