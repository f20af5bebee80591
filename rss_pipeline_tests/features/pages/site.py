"""Small pages as sites have them, with the kinds of structure that a detection has to see through."""

import random
import re
from collections.abc import Sequence

from lxml import etree, html

URL = "https://example.org/news/"
WORDS = "The council met on Tuesday and talked about the new bridge across the river, and what it will cost."
TITLES = (
    "A bridge across the river",
    "The library opens on Sundays",
    "New trees for the market square",
    "School kitchen wins a prize",
    "Night buses run again",
    "A walk through the old town",
)


def page(main: str, *, head: str = "", around: str = "", title: str = "News") -> str:
    """A page with a menu, a foot, and this main part."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}</head><body>
<header class="site-header"><nav><ul><li><a href="/">Home</a></li><li><a href="/news/">News</a></li>
<li><a href="/about/">About us</a></li><li><a href="/contact/">Contact</a></li></ul></nav></header>
<main>{main}</main>{around}
<footer><a href="/imprint/">Imprint</a> <a href="/privacy/">Privacy</a> <a href="/terms/">Terms</a></footer>
</body></html>"""


def link(number: int) -> str:
    """The path of an entry."""
    return f"/news/{number}-entry"


def links(count: int = len(TITLES)) -> list[str]:
    """The absolute links of entries."""
    return [f"https://example.org{link(number)}" for number in range(count)]


def entries(
    *,
    titles: Sequence[str] = TITLES,
    date: str = '<time datetime="2026-0{n}-11">{n} months</time>',
    kind: str = "post",
) -> str:
    """A list of entries, each an article with a heading, a date, a text and a second link."""
    return "".join(
        f'<article class="{kind} {kind}-{n}"><h2><a href="{link(n)}">{title}</a></h2>{date.format(n=n + 1)}'
        f'<p>{WORDS}</p><a class="more" href="{link(n)}">Read more</a></article>'
        for n, title in enumerate(titles)
    )


_DIGITS, _WORDS = re.compile(r"\d+"), re.compile(r"[^\d\s]+")
_BOXES = frozenset(("article", "div", "li", "main", "section", "td"))


def rebuilt(page: str, seed: int) -> str:
    """The page after a redesign by chance: its classes have other names, and boxes of one kind are wrapped
    anew, or not."""
    tree = html.document_fromstring(page)
    chance = random.Random(seed)
    names: dict[str, str] = {}
    wraps: dict[tuple[str, str], bool] = {}
    for element in list(tree.iterfind("body//*")):
        kind = _DIGITS.sub("", element.get("class") or "")
        if kind:
            renamed = [
                _WORDS.sub(lambda found: names.setdefault(found[0], f"k{chance.randrange(10**6)}"), word)
                for word in element.get("class", "").split()
            ]
            element.set("class", " ".join(renamed))
        if element.tag in _BOXES and wraps.setdefault((element.tag, kind), chance.random() < 0.5):
            box = etree.Element("div", {"class": f"w{len(wraps)}"})
            box.text, element.text = element.text, None
            box.extend(list(element))
            element.append(box)
    return html.tostring(tree, encoding="unicode", doctype="<!doctype html>")
