"""Stories among many: unrelated items by the thousand, and copies, both made from the feeds of a folder.

    python -m benchmarks.stories_among FOLDER [--labelled FILE.jsonl] [--items 20000] [--json]

FOLDER has an index.tsv with the columns file and content_type. An unrelated item has the title of one item of
a feed and paragraphs of others of that feed, so that it reads as the feed does; the feed counts as many, for
each round is a feed of its own. Of the labelled items that are strewn among them, the pairs are counted that
join an unrelated one. A copy is an item with another title, address, length or writing of its characters; it
is judged against its neighbours in the feed, which are none. Time and memory are those of the last tenth.
"""

import argparse
import csv
import json
import random
import re
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.stories import entry as labelled_entry
from benchmarks.stories import read as read_labelled
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.collector.sanitize.html import plain_text
from rss_pipeline.collector.sanitize.text import without_markup
from rss_pipeline.errors import NotAFeed
from rss_pipeline.features.stories.copies import keys, kind_of_copy
from rss_pipeline.features.stories.model import WINDOW, Entry
from rss_pipeline.features.stories.window import Window
from rss_pipeline.features.stories.window_file import save

NOW = 1_780_000_000.0
COPIES, OTHERS = 2_000, 20_000
_PARAGRAPH = re.compile(r"(?<=[.!?。！？])\s*|\n+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labelled", type=Path, help="labelled items to strew among the others")
    parser.add_argument("--items", type=int, default=20_000, help="unrelated items")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    items = real_items(options.folder)
    labelled = (
        [labelled_entry(row) for row in read_labelled(options.labelled, needs_story=False)]
        if options.labelled
        else []
    )
    figures = {
        "real": of_real(items),
        "copies": of_copies(items),
        "among": among(unrelated(items, options.items), labelled),
    }
    print(json.dumps(figures, indent=None if options.json else 2))


def real_items(folder: Path) -> list[Entry]:
    found: list[Entry] = []
    with (folder / "index.tsv").open(encoding="utf-8", newline="") as index:
        rows = list(csv.DictReader(index, delimiter="\t"))
    for row in rows:
        try:
            feed = parse_feed((folder / row["file"]).read_bytes(), content_type=row["content_type"])
        except NotAFeed:
            continue
        for item in feed.items:
            published = item.pub_date.timestamp() if item.pub_date else None
            found.append(
                Entry(
                    id=f"real {len(found)}",
                    feed=row["file"],
                    title=without_markup(item.title or ""),
                    text=plain_text(item.content_html or item.summary or "")[:4_000],
                    link=item.link,
                    time=published,
                    published=published,
                )
            )
    return found


def unrelated(items: Sequence[Entry], count: int) -> Iterator[Entry]:
    """So many items with a title and paragraphs of one feed, recombined; each round is of other feeds."""
    dice = random.Random(1)
    feeds: dict[str, list[Entry]] = defaultdict(list)
    for item in items:
        if item.title and len(item.text) > 200:
            feeds[item.feed].append(item)
    names = sorted(name for name, found in feeds.items() if len(found) > 3)
    paragraphs = {
        name: [
            part for item in feeds[name] for part in _PARAGRAPH.split(item.text) if part and len(part) > 20
        ]
        for name in names
    }
    for number in range(count):
        name = names[number % len(names)]
        yield Entry(
            id=f"unrelated {number}",
            # A feed repeats its own paragraphs here as none does: it is judged as a feed of its own.
            feed=f"{name} {number // len(names) % 50}",
            title=dice.choice(feeds[name]).title,
            text=" ".join(dice.sample(paragraphs[name], min(6, len(paragraphs[name])))),
            link=f"https://unrelated.example/{number}",
            time=NOW + dice.random() * 3 * 86_400,
        )


def among(made: Iterable[Entry], labelled: Sequence[Entry]) -> dict[str, Any]:
    """Decide all of them in one order, and count what joins what."""
    dice = random.Random(2)
    known = {each.id for each in labelled}
    entries = [*made, *(replace(each, time=NOW + dice.random() * 3 * 86_400) for each in labelled)]
    dice.shuffle(entries)
    window = Window()
    story: dict[str, str] = {}
    tenth = len(entries) // 10
    before = time.thread_time()
    for at, each in enumerate(entries):
        if at == len(entries) - tenth:
            before = time.thread_time()
        story[each.id] = window.decide(each).story
    spent = time.thread_time() - before
    members: dict[str, list[str]] = defaultdict(list)
    for id, name in story.items():
        members[name].append(id)
    pairs: Counter[str] = Counter()
    for found in members.values():
        mine = sum(id in known for id in found)
        pairs["labelled"] += mine * (mine - 1) // 2
        pairs["mixed"] += mine * (len(found) - mine)
        pairs["unrelated"] += (len(found) - mine) * (len(found) - mine - 1) // 2
    with TemporaryDirectory() as folder:
        path = Path(folder) / "window"
        save(window, path, database="benchmark")
        size = sum(each.stat().st_size for each in Path(folder).iterdir())
    return {
        "items": len(entries),
        "pairs": dict(pairs),
        "ms_an_item_of_the_last_tenth": 1_000 * spent / tenth,
        "bytes_on_disk_an_item": size / len(window),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def of_real(items: Sequence[Entry], runs: int = 3) -> dict[str, Any]:
    """The real items as they are, but within one week."""
    dice = random.Random(3)
    entries = [replace(each, time=NOW + dice.random() * WINDOW) for each in items]
    milliseconds = []
    for _ in range(runs):
        window = Window()
        before = time.thread_time()
        decisions = [window.decide(each) for each in entries]
        milliseconds.append(1_000 * (time.thread_time() - before) / len(entries))
    return {
        "items": len(entries),
        "kinds": dict(Counter(str(each.kind) for each in decisions)),
        "ms_an_item": min(milliseconds),
    }


def of_copies(items: Sequence[Entry]) -> dict[str, Any]:
    """Recall and precision of copies, on pairs that are some and neighbours that are none."""
    dice = random.Random(4)
    usable = [each for each in items if len(each.text) >= 200 and len(each.title) >= 4]
    found = missed = wrong = 0
    by_kind: Counter[str] = Counter()
    for number in range(COPIES):
        original = usable[number % len(usable)]
        way = number % len(WAYS)
        copy = WAYS[way](original, dice)
        if not set(keys(copy)).isdisjoint(keys(original)) and kind_of_copy(copy, original):
            found += 1
        else:
            missed += 1
            by_kind[WAYS[way].__name__] += 1
    feeds: dict[str, list[Entry]] = defaultdict(list)
    for each in items:
        feeds[each.feed].append(each)
    neighbours = [found for found in feeds.values() if len(found) > 1]
    examples = []
    for _ in range(OTHERS):
        one, other = dice.sample(dice.choice(neighbours), 2)
        if _is_one_article(one, other):
            continue
        if kind_of_copy(one, other):
            wrong += 1
            examples.append((one.title[:40], other.title[:40]))
    return {
        "recall": found / (found + missed),
        "precision": found / (found + wrong),
        "missed": dict(by_kind),
        "wrong": sorted(set(examples))[:5],
    }


def _is_one_article(one: Entry, other: Entry) -> bool:
    """True for what the publisher gives twice: the same text to the letter."""
    return one.text[:400] == other.text[:400] or one.link == other.link


def retitled(item: Entry, dice: random.Random) -> Entry:
    title = f"{dice.choice(['Update', 'News', 'Read'])}: {item.title[: len(item.title) // 2]}"
    return replace(item, id="copy", feed="other", title=title, link="https://other.example/1")


def readdressed(item: Entry, dice: random.Random) -> Entry:
    return replace(item, id="copy", feed="other", link=f"https://other.example/{dice.random()}")


def tracked(item: Entry, dice: random.Random) -> Entry:
    mark = "&" if "?" in (item.link or "") else "?"
    return replace(
        item, id="copy", feed="other", link=f"{item.link}{mark}utm_source={dice.random()}&fbclid=x"
    )


def truncated(item: Entry, dice: random.Random) -> Entry:
    return replace(
        item,
        id="copy",
        feed="other",
        text=item.text[: dice.randint(150, 190)] + "…",
        link="https://other.example/2",
    )


def written_otherwise(item: Entry, dice: random.Random) -> Entry:
    text = "".join(f"&#{ord(each)};" if dice.random() < 0.05 else escape(each) for each in item.text)
    return replace(
        item, id="copy", feed="other", text=text.replace(" ", "  "), link="https://other.example/3"
    )


def with_its_title(item: Entry, _dice: random.Random) -> Entry:
    return replace(item, id="copy", feed="other", text=f"{item.title}\n{item.text}", link=None)


WAYS = (retitled, readdressed, tracked, truncated, written_otherwise, with_its_title)


if __name__ == "__main__":
    main()
