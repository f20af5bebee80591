"""How long 50 streams take over the 500 items of a document, without reading it; and a hostile XPath.

`python -m benchmarks.streams`
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rss_pipeline.collector.models.item import ItemTree
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.features.streams.model import FieldMatcher, FieldSelector, StreamSpec
from rss_pipeline.features.streams.xpath import LIMIT_SECONDS, SelectableItems, selected_items

ITEMS = 500
MANY_ITEMS = 5_000
SELECTORS = 50
GOAL_MS = 2.0
XPATH_GOAL_MS = 60.0
HOSTILE = "//*[count(//*[count(//*)>1])>1]"
_REPEATS = 21


class _Item(NamedTuple):
    title: str
    link: str
    authors: tuple[str, ...]
    categories: tuple[str, ...]


def by_field() -> Iterator[tuple[str, float, int]]:
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
    some = list(_items(ITEMS))
    for name, selector in kinds.items():
        streams = [StreamSpec(name=f"s{n}", selector=selector(n)) for n in range(SELECTORS)]

        def match(streams: list[StreamSpec] = streams) -> int:
            matcher = FieldMatcher(streams)
            return sum(len(matcher.match(**each._asdict())) for each in some)

        yield name, *_median(match)


def by_xpath() -> Iterator[tuple[str, float, int]]:
    """The same for XPath: the document's tree is copied, the expressions compiled and evaluated each time."""
    tree = _tree(ITEMS)
    kinds: dict[str, Callable[[int], str]] = {
        "//item[dc:creator='name']": lambda n: f"//item[dc:creator='高橋 みなみ{n}']",
        "//item[contains(title, 'x')]": lambda n: f"//item[contains(title, 'Number {n} ')]",
        "//item[category='x']/enclosure": lambda n: f"//item[category='Topic {n}']/enclosure",
        "//rss1:item[dc:creator='x'][1]/*": lambda n: f"//rss1:item[dc:creator='高橋 みなみ{n}'][1]/*",
    }
    for name, expression in kinds.items():
        expressions = [expression(n) for n in range(SELECTORS)]

        def select(expressions: list[str] = expressions) -> int:
            items = SelectableItems(tree)
            return sum(len(items.select(each)) for each in expressions)

        yield name, *_median(select)
    expressions_by_name = {f"s{n}": kinds["//item[dc:creator='name']"](n) for n in range(SELECTORS)}
    yield (
        "the first of them, in a child process",
        *_median(lambda: _count(tree, expressions_by_name), timer=time.perf_counter),
    )


def hostile() -> tuple[float, str]:
    """Seconds until the hostile expression is ended on many items, and the sentence about it."""
    tree = _tree(MANY_ITEMS)
    begun = time.perf_counter()
    selection = selected_items(tree, {"hostile": HOSTILE}, feed_id="feed")
    return time.perf_counter() - begun, selection.errors["hostile"]


def _count(tree: ItemTree, expressions: dict[str, str]) -> int:
    return sum(map(len, selected_items(tree, expressions, feed_id="feed").items.values()))


def _median(
    measured: Callable[[], int], *, timer: Callable[[], float] = time.process_time
) -> tuple[float, int]:
    times = []
    for _ in range(_REPEATS):
        begun = timer()
        found = measured()
        times.append(1000 * (timer() - begun))
    return statistics.median(times), found


def _items(count: int) -> Iterator[_Item]:
    for n in range(count):
        yield _Item(
            title=f"Ｎｅｗｓ：　小嶋の Number {n % 60} and a Title of some Length",
            link=f"https://blog.example.jp/{n % 60}/entry-{n}.html",
            authors=(f"高橋　みなみ{n % 60}",),
            categories=(f"Topic {n % 30}", "スタッフ"),
        )


def _tree(count: int) -> ItemTree:
    """The tree of a document with these items and 1 KB of content each."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{n}</guid><title>{each.title}</title><link>{each.link}</link>"
        f"<dc:creator>{each.authors[0].replace('　', ' ')}</dc:creator>"
        + "".join(f"<category>{category}</category>" for category in each.categories)
        + f"<enclosure url='{each.link}.mp3' type='audio/mpeg' length='1'/>"
        + f"<description>{'&lt;p&gt;Text and words.&lt;/p&gt;' * 32}</description></item>\n"
        for n, each in enumerate(_items(count))
    )
    body = (
        '<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>Feed</title>'
        f"{items}</channel></rss>"
    )
    tree = parse_feed(body.encode(), url="https://blog.example.jp/feed", keep_tree=True).tree
    assert tree is not None
    return tree


def main() -> None:
    print(f"{SELECTORS} streams, {ITEMS} items, medians of {_REPEATS}")
    for kind, goal, measured in (("field", GOAL_MS, by_field()), ("XPath", XPATH_GOAL_MS, by_xpath())):
        print(f"\nby {kind}; goal {goal:g} ms")
        for name, median, found in measured:
            print(f"{name:38} {median:6.2f} ms  {found} matches")
    seconds, error = hostile()
    print(
        f"\n{HOSTILE} over {MANY_ITEMS:,} items; the limit is {LIMIT_SECONDS:g} s\n{seconds:.2f} s: {error}"
    )


if __name__ == "__main__":
    main()
