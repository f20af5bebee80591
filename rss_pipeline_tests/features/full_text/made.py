"""Pages made by a program: articles, hostile ones in their place, and feeds with whole texts or without."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

_WORDS = re.findall(
    r"\w+",
    """river council budget station teacher winter engine harbour festival museum bridge valley market signal
    forest garden village railway lantern orchard weather island captain journey letter window kitchen doctor
    minister committee report number summer evening history colour language science planet machine building
    concert painter student library morning company product service network mountain""",
)
_SMALL = re.findall(r"\w+", "the a of to and in for with on by from as at after before under over")


@dataclass(frozen=True, slots=True)
class MadePage:
    """A page as its server sends it."""

    name: str
    body: bytes
    content_type: str | None = "text/html; charset=utf-8"


def sentence(chance: random.Random, words: int = 14) -> str:
    """A sentence of invented prose."""
    chosen = [chance.choice(_SMALL if n % 3 == 1 else _WORDS) for n in range(words)]
    return " ".join(chosen).capitalize() + "."


def paragraph(chance: random.Random, sentences: int = 4) -> str:
    """Some sentences."""
    return " ".join(sentence(chance) for _ in range(sentences))


def around(body: str, *, title: str = "The harbour bridge", head: str = "") -> str:
    """A page with a menu and a foot around a text."""
    menu = "".join(f'<li><a href="/{name}">{name.title()}</a></li>' for name in ("news", "sport", "about"))
    return (
        f"<!doctype html><html><head><title>{title}</title>{head}</head><body>"
        f"<header><nav><ul>{menu}</ul></nav></header><main>{body}</main>"
        "<footer><p>© 2026 The Paper · <a href='/imprint'>Imprint</a></p></footer></body></html>"
    )


def paragraphs_of(seed: int = 1, paragraphs: int = 6) -> list[str]:
    """The paragraphs of `article` with this seed."""
    chance = random.Random(seed)
    return [paragraph(chance) for _ in range(paragraphs)]


def article(seed: int = 1, *, title: str = "The harbour bridge", paragraphs: int = 6, image: str = "") -> str:
    """A page with an article; `image` is the URL of a picture in it."""
    text = [f"<p>{each}</p>" for each in paragraphs_of(seed, paragraphs)]
    if image:
        text.insert(2, f'<figure><img src="{image}" alt="A bridge" width="800" height="600"></figure>')
    chance = random.Random(-seed)
    text.insert(1, f'<p>{sentence(chance)} <a href="/source">The source</a> {sentence(chance)}</p>')
    return around(f"<article><h1>{title}</h1>{''.join(text)}</article>", title=title)


_WALLS = {
    "login": "<h1>Please log in</h1><form><input type=password name=p><button>Log in</button></form>"
    "<p>You must sign in to read this. Forgot your password? Create a free account.</p>",
    "paywall": "<article><h1>The harbour bridge</h1><p>{one}</p></article><div class=paywall><h2>Subscribe"
    " to continue reading</h2><p>Already a subscriber? Log in. Start your free trial.</p></div>",
    "consent": "<h1>We value your privacy</h1><p>We and our 842 partners store cookies and process personal"
    " data such as identifiers. With your consent we and our partners use precise data. {cookies}</p>"
    "<button>Accept all</button><button>Manage preferences</button>",
    "robot_check": "<h1>Just a moment...</h1><p>Checking your browser before accessing the site. Verify"
    " you are human by completing the action below.</p><script src=/c.js></script>",
    "error_page": "<h1>404</h1><p>Sorry, this page could not be found. It may have moved or no longer"
    " exists. {one}</p>",
}
_COOKIES = (
    "Cookies are small files. Necessary cookies are needed for the site. Analytics and advertising cookies"
    " need your consent. You may withdraw consent at any time in the privacy preferences. Vendors use"
    " cookies for legitimate purposes. "
)


def hostile_pages(seed: int = 1) -> list[MadePage]:
    """Fifty pages in place of an article, of ten kinds, none of which has one."""
    return [page for n in range(5) for page in _hostile(random.Random(seed * 100 + n), n)]


def _hostile(chance: random.Random, n: int) -> Iterator[MadePage]:
    def page(name: str, body: str, head: str = "") -> MadePage:
        return MadePage(f"{name} {n}", around(body, head=head).encode())

    for name, wall in _WALLS.items():
        # Each longer than the last, up to a text as long as an article's.
        filled = wall.replace("{one}", paragraph(chance, 1 + n)).replace("{cookies}", _COOKIES * (1 + 3 * n))
        paid = '<script type="application/ld+json">{"isAccessibleForFree": false}</script>'
        yield page(name, filled, paid if name == "paywall" else "")
    teaser = "".join(
        f'<div class="card"><h2><a href="/2026/{k}">{sentence(chance, 7)}</a></h2>'
        f"<p>{sentence(chance)}</p></div>"
        for k in range(8 + 4 * n)
    )
    links = "".join(f'<li><a href="/{k}">{sentence(chance, 8)}</a></li>' for k in range(15 + 10 * n))
    yield page("list", teaser if n % 2 else f"<ul>{links}</ul>")
    few = sentence(chance, 6 + 2 * n)
    yield page("stub", f"<h1>The harbour bridge</h1><p>{few}</p><p>Read more in the app.</p>")
    scripts = f"<div id=root></div><script>window.s={{'t': '{paragraph(chance, 30)}'}}</script>"
    yield page("scripts", scripts + ("<noscript>Please enable JavaScript.</noscript>" if n % 2 else ""))
    text = article(n).encode()
    feed = b'<?xml version="1.0"?><rss><channel><title>x</title></channel></rss>'
    yield [
        MadePage("bytes", bytes(chance.randrange(256) for _ in range(5_000))),
        MadePage("a PDF", b"%PDF-1.7\n" + text, "application/pdf"),
        MadePage("a picture", b"\x89PNG\r\n\x1a\n" + text, "image/png"),
        MadePage("a charset of mainframes", text.decode().encode("cp037", "replace")),
        MadePage("nothing", b"  \n"),
    ][n]
    yield [
        MadePage("an overloaded tag", b"<p " + b"a b=c " * 5_000 + b">" + text),
        MadePage("many tags", b"<b><i>" * 40_000 + text),
        MadePage("JSON", b'{"text": "' + text.replace(b'"', b"'") + b'"}', "application/json"),
        MadePage("a feed", feed, "text/xml"),
        MadePage("zeros", b"<html><body>" + b"\0" * 20_000),
    ][n]


FeedKind = Literal["teasers", "first paragraphs", "whole texts", "whole texts without images"]


@dataclass(frozen=True, slots=True)
class MadeFeed:
    """A feed of five items: what it has of each, and the page behind it."""

    kind: FeedKind
    items: tuple[tuple[str, str], ...]

    @property
    def is_truncated(self) -> bool:
        return self.kind in ("teasers", "first paragraphs")


def made_feeds(seed: int) -> list[MadeFeed]:
    """A feed of each kind; its pages have other lengths, pictures and boxes with each seed."""
    return [_feed(kind, random.Random(f"{kind} {seed}")) for kind in get_args(FeedKind)]


def _feed(kind: FeedKind, chance: random.Random) -> MadeFeed:
    items = []
    boxes = "".join(_boxes(chance))
    for n in range(5):
        title = sentence(chance, 6).rstrip(".")
        text = [paragraph(chance, chance.randint(3, 6)) for _ in range(chance.randint(5, 12))]
        picture = f'<figure><img src="/{n}.jpg" alt="" width="800"><figcaption>{title}</figcaption></figure>'
        body = [f"<p>{each}</p>" for each in text]
        on_page = [body[0], picture, *body[1:]] if chance.random() < 0.7 else body
        first = text[0].split(". ")
        own = {
            "teasers": ". ".join(first[: chance.randint(1, 2)]) + chance.choice((" ...", "", " [&#8230;]")),
            "first paragraphs": "".join(body[: chance.randint(1, len(body) // 2)]),
            "whole texts": "".join(on_page),
            "whole texts without images": chance.choice(("", "\n")).join(body),
        }[kind]
        byline = f"<p class=by>By {sentence(chance, 3)}</p>" if chance.random() < 0.5 else ""
        article = f"<article><h1>{title}</h1>{byline}{''.join(on_page)}</article>{boxes}"
        items.append((own, around(article, title=title)))
    return MadeFeed(kind, tuple(items))


def _boxes(chance: random.Random) -> Iterator[str]:
    """Boxes below an article."""
    links = "".join(f'<li><a href="/{k}">{sentence(chance, 7)}</a></li>' for k in range(5))
    for box in (
        f"<section class=related><h2>More</h2><ul>{links}</ul></section>",
        f"<div class=author><p>{sentence(chance, 12)}</p></div>",
        "<div class=newsletter><h3>Our letter</h3><p>Every morning by mail.</p><form><input></form></div>",
        f"<div id=comments><h2>Comments</h2><p>{sentence(chance)}</p><p>{sentence(chance)}</p></div>",
    ):
        if chance.random() < 0.6:
            yield box
