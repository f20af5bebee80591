"""The reader beside FreshRSS in one run: `python -m benchmarks.reader.peers --freshrss FOLDER`.

FOLDER is a clone of https://github.com/FreshRSS/FreshRSS; nothing is written into it. It needs `php` 8.1 with
extensions (Debian: php-cli php-sqlite3 php-mbstring php-xml php-curl php-gmp php-zip).
Both get the same: one user, 100 feeds of 100 items of 4.8 KB, of which half are unread. Then both answer the
same requests of the Google Reader API in turns, so that a busy machine slows both. FreshRSS has SQLite and
PHP's own server with OPcache, ours is `rss-pipeline reader`. A ratio is ours to theirs, of medians; the tenth
percentiles (p10) say more on a busy machine.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.reader import never_read, peer
from benchmarks.reader.peer import Peer
from benchmarks.reader.peer_store import FIRST, Item, feed_id, fill_freshrss, fill_ours
from benchmarks.run import Verdict

FEEDS, ITEMS, READ = 100, 100, 50
"""Feeds, items of each, and how many of them, the oldest, are read."""

_PARAGRAPH = (
    "<p>A sentence with <b>some</b> <a href='https://example.org/page'>links</a> &amp; marks, as people write"
    " it in their pages. It has another one behind it, which has no picture and is a little longer.</p>"
)
_PARAGRAPHS = 23
_READING_LIST = "user/-/state/com.google/reading-list"
_READ = "user/-/state/com.google/read"


def items() -> Iterator[Item]:
    """All items, the oldest first."""
    for number in range(FEEDS * ITEMS):
        nth, feed = divmod(number, FEEDS)
        yield Item(
            number=FIRST + number * 1000,
            feed=feed,
            title=f"Item {number}",
            html=f"<h1>{number}</h1>" + _PARAGRAPH * _PARAGRAPHS,
            is_read=nth < READ,
        )


Ask = Callable[[Peer, int], tuple[float, int]]
"""The request of one round: its seconds, and how many feeds, ids or items its answer has."""


def _feed_list(peer: Peer, _: int) -> tuple[float, int]:
    took, read = peer.call("subscription/list")
    return took, len(json.loads(read)["subscriptions"])


def _unread_count(peer: Peer, _: int) -> tuple[float, int]:
    took, read = peer.call("unread-count")
    return took, int(json.loads(read)["max"])


def _unread_ids(peer: Peer, _: int) -> tuple[float, int]:
    took, read = peer.call("stream/items/ids", s=_READING_LIST, xt=_READ, n=1_000)
    return took, len(json.loads(read)["itemRefs"])


def _contents_of(peer: Peer, first: int) -> tuple[float, int]:
    numbers = [FIRST + (first + n) * 1000 for n in range(100)]
    took, read = peer.edit("stream/items/contents", i=numbers)
    return took, len(json.loads(read)["items"])


def _contents(peer: Peer, _: int) -> tuple[float, int]:
    return _contents_of(peer, 0)


def _new_contents(peer: Peer, round: int) -> tuple[float, int]:
    # Each round has items of its own, and none of `_contents`.
    return _contents_of(peer, 100 * (1 + round))


def _mark_item(peer: Peer, round: int) -> tuple[float, int]:
    took, read = peer.edit("edit-tag", i=FIRST + (FEEDS * ITEMS - 1 - round) * 1000, a=_READ)
    return took, len(read.strip())


def _mark_feed(peer: Peer, round: int) -> tuple[float, int]:
    took, read = peer.edit("mark-all-as-read", s=f"feed/{_feed_name(peer, round % FEEDS)}")
    return took, len(read.strip())


def _feed_name(one: Peer, feed: int) -> str:
    return feed_id(feed) if one.name == "ours" else str(feed + 1)


COMPARED: tuple[tuple[str, Ask, int, float], ...] = (
    ("list of 100 feeds", _feed_list, 100, 0.35),
    ("unread counts of 100 feeds", _unread_count, FEEDS * (ITEMS - READ), 0.25),
    ("ids of 1,000 unread items", _unread_ids, 1_000, 0.5),
    ("contents of 100 items", _contents, 100, 0.5),
    ("contents of 100 items that nobody has read", _new_contents, 100, float("inf")),
    ("an item marked read", _mark_item, 2, 1.0),
    ("a feed marked read", _mark_feed, 2, 1.0),
)
"""Name, request, what its answer must count, and the most that ours may take of FreshRSS's time. What our
server makes of an item when it is read for the first time, FreshRSS makes when it collects it: no goal."""


def compare(theirs: Peer, ours: Peer, *, rounds: int) -> list[Verdict]:
    """The ratios of medians, each request by both in turns."""
    verdicts = []
    print(f"{'ms':<46}{'FreshRSS p10':>14}{'p50':>8}{'ours p10':>12}{'p50':>8}{'p10 ratio':>12}")
    for name, ask, expected, goal in COMPARED:
        took: dict[str, list[float]] = {theirs.name: [], ours.name: []}
        if ask is not _new_contents:
            for peer in (theirs, ours):
                ask(peer, rounds)
        for round in range(rounds):
            for peer in (theirs, ours) if round % 2 else (ours, theirs):
                seconds, count = ask(peer, round)
                if count != expected:
                    raise SystemExit(f"{peer.name}, {name}: {count} and not {expected}")
                took[peer.name].append(1000 * seconds)
        their, our = (statistics.median(took[peer.name]) for peer in (theirs, ours))
        their_least, our_least = (
            sorted(took[peer.name])[len(took[peer.name]) // 10] for peer in (theirs, ours)
        )
        print(
            f"{name:<46}{their_least:>14.2f}{their:>8.2f}{our_least:>12.2f}{our:>8.2f}"
            f"{our_least / their_least:>12.2f}",
            flush=True,
        )
        verdicts.append(Verdict(name=name, value=our / their, goal=goal))
    return verdicts


def main() -> None:
    """Measure and print; a missed goal is only said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--freshrss", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=40, help="at most 90: each reads 100 new items")
    parser.add_argument("--port", type=int, default=3911, help="and the next one")
    parser.add_argument("--cold", action="store_true", help="only what never_read.py measures")
    arguments = parser.parse_args()
    source = peer.checked(arguments.freshrss)
    peer.php()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    verdicts = never_read.measure(source, arguments.port)
    if not arguments.cold:
        verdicts += _warm(source, arguments.port, rounds=arguments.rounds)
    print()
    for one in verdicts:
        goal = (
            "" if one.goal == float("inf") else f"   goal {one.goal:g}: {'met' if one.is_met else 'MISSED'}"
        )
        print(f"{one.name:<46}{one.value:>8.2f}{goal}")
    print(f"load {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)


def _warm(source: Path, port: int, *, rounds: int) -> list[Verdict]:
    with tempfile.TemporaryDirectory(prefix="rss-bench-") as name:
        theirs = peer.freshrss(
            source, Path(name), port, lambda database: fill_freshrss(database, items(), feeds=FEEDS)
        )
        read_up_to = FIRST + (READ * FEEDS - 1) * 1000
        ours = peer.ours(
            Path(name),
            port + 1,
            lambda database: fill_ours(database, items(), feeds=FEEDS, read_up_to=read_up_to),
        )
        with theirs.started() as their, ours.started() as our:
            return compare(their, our, rounds=rounds)


if __name__ == "__main__":
    main()
