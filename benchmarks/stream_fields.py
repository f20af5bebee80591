"""How long 50 selectors by field take over the 500 items of a document, without reading the document.

`python -m benchmarks.stream_fields`
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rss_pipeline.collector.models.stream import FieldSelector, StreamSpec
from rss_pipeline.collector.streams.fields import FieldMatcher

ITEMS = 500
SELECTORS = 50
GOAL_MS = 2.0
_REPEATS = 21


class _Item(NamedTuple):
    title: str
    link: str
    authors: tuple[str, ...]
    categories: tuple[str, ...]


def measure() -> Iterator[tuple[str, float, int]]:
    """Name, median in milliseconds and matches of each kind of selector; the matcher is new each time."""
    kinds: dict[str, Callable[[int], FieldSelector]] = {
        "author: name": lambda n: FieldSelector(author=(f"高橋 みなみ{n}",)),
        'author: "*name*"': lambda n: FieldSelector(author=(f"*みなみ{n}*",)),
        "category and not title": lambda n: FieldSelector(
            category=(f"Topic {n % 20}",), negated=FieldSelector(title=("*notice*",))
        ),
        'title: "*word*"': lambda n: FieldSelector(title=(f"*number {n} *",)),
        'link: "https://...*"': lambda n: FieldSelector(link=(f"https://blog.example.jp/{n}/*",)),
    }
    some = list(_items())
    for name, selector in kinds.items():
        streams = [StreamSpec(name=f"s{n}", selector=selector(n)) for n in range(SELECTORS)]
        times = []
        for _ in range(_REPEATS):
            begun = time.process_time()
            matcher = FieldMatcher(streams)
            found = sum(len(matcher.match(**each._asdict())) for each in some)
            times.append(1000 * (time.process_time() - begun))
        yield name, statistics.median(times), found


def _items() -> Iterator[_Item]:
    for n in range(ITEMS):
        yield _Item(
            title=f"Ｎｅｗｓ：　小嶋の Number {n % 60} and a Title of some Length",
            link=f"https://blog.example.jp/{n % 60}/entry-{n}.html",
            authors=(f"高橋　みなみ{n % 60}",),
            categories=(f"Topic {n % 30}", "スタッフ"),
        )


def main() -> None:
    print(f"{SELECTORS} selectors, {ITEMS} items, median of {_REPEATS}; goal {GOAL_MS} ms")
    for name, median, found in measure():
        print(f"{name:26} {median:6.2f} ms  {found} matches")


if __name__ == "__main__":
    main()
