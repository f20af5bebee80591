"""Feeds to be served: made up for the benchmark, or the files of a folder.

How they are served is in server.py. What is made up is the same at every call, but for the dates, which end
a minute before the call.
"""

import csv
import mimetypes
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha256
from html import escape
from pathlib import Path

ITEMS_A_FEED = 30
INDEX = "index.tsv"

_LATIN = re.findall(
    r"\w+",
    "the of and to in a is that for it was on are as with they be at one have this from by hot word but"
    " what some we can out other were all there when up use your how said an each she which their time if"
    " will way about many then them write would like so these her long make thing see him two has look"
    " more day could go come did number sound no most people my over know water than call first who may"
    " down side been now find any new work part take get place made live where after back little only"
    " round man year came show every good me give our under naïve café déjà façade über Straße señor",
)
_HAN = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"
    "而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把"
)
_KANA = "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん"
_TYPES = {".xml": "application/xml", ".rss": "application/rss+xml", ".atom": "application/atom+xml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One feed as a server gives it. `items` and `images` are what it holds, None where nobody counted."""

    name: str
    """The last part of its URL."""
    content_type: str
    body: bytes
    etag: str
    last_modified: str
    items: int | None = None
    images: int | None = None


def made_up_feeds(count: int) -> list[Document]:
    """`count` documents of RSS 2.0, 30 items and some 55 KB each, no two alike."""
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    return [_made_up(number, now) for number in range(count)]


def _made_up(number: int, now: datetime) -> Document:
    dice = random.Random(number)
    items, images = [], 0
    for index in range(ITEMS_A_FEED):
        text, shown = _item(dice, number, index, now - timedelta(hours=7 * index, minutes=number % 400))
        items.append(text)
        images += shown
    body = f"""<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom">
<channel>
<title>{escape(_latin(dice, 4).title())} {_cjk(dice, 4)}</title>
<link>https://site-{number}.example/</link>
<atom:link href="https://site-{number}.example/feed.xml" rel="self" type="application/rss+xml"/>
<description>{escape(_latin(dice, 12))}</description>
<language>en</language>
<lastBuildDate>{format_datetime(now)}</lastBuildDate>
{"".join(items)}</channel>
</rss>
""".encode()
    return _document(
        "feed.xml", "application/rss+xml; charset=utf-8", body, now, items=ITEMS_A_FEED, images=images
    )


def _item(dice: random.Random, feed: int, index: int, published: datetime) -> tuple[str, int]:
    """An item's XML and how many images it shows."""
    link = f"https://site-{feed}.example/{published:%Y/%m}/{dice.getrandbits(40):010x}"
    guid = f"<guid>{link}</guid>" if feed % 2 else f'<guid isPermaLink="false">{feed}.{index}</guid>'
    images = dice.choice((0, 1, 1, 2, 3))
    html = _html(dice, link, images)
    content = escape(html) if feed % 4 == 3 else f"<![CDATA[{html}]]>"
    categories = "".join(f"<category>{escape(_latin(dice, 1))}</category>" for _ in range(3))
    return (
        f"""<item>
<title>{escape(_latin(dice, 6).capitalize())} {_cjk(dice, 8)}</title>
<link>{link}</link>
{guid}
<pubDate>{format_datetime(published)}</pubDate>
<dc:creator>{escape(_latin(dice, 2).title())}</dc:creator>
{categories}
<description>{escape(_latin(dice, 15))} &amp; {_cjk(dice, 10)}</description>
<content:encoded>{content}</content:encoded>
</item>
""",
        images,
    )


def _html(dice: random.Random, link: str, images: int) -> str:
    parts = [f"<h2>{_latin(dice, 5)}</h2>"]
    for number in range(4):
        parts.append(
            f'<p>{_latin(dice, 12)} <a href="{link}#{number}">{_latin(dice, 2)}</a>,'
            f" <em>{_cjk(dice, 22)}</em>。{_latin(dice, 7)}.</p>"
        )
        if number < images:
            source = f"{link}/{number}.jpg?w=800&amp;h=450"
            parts.append(f'<p><img src="{source}" alt="{_latin(dice, 3)}" width="800" height="450"/></p>')
    parts.append(f"<ul><li>{_latin(dice, 4)}</li><li>{_cjk(dice, 12)}</li></ul>")
    return "\n".join(parts)


def _latin(dice: random.Random, words: int) -> str:
    return " ".join(dice.choices(_LATIN, k=words))


def _cjk(dice: random.Random, characters: int) -> str:
    return "".join(dice.choices(_HAN if dice.random() < 0.7 else _KANA, k=characters))


def folder_feeds(folder: Path) -> list[Document]:
    """The files of a folder in the order of their names; content types and item counts from its index.tsv.

    The index has a head line; of its columns `file`, `content_type` and `items` are read. An empty count
    says that the file is no feed. Without an index every file is served but README and hidden ones.

    Raises:
        FileNotFoundError: the folder, or a file that the index names, is not there.
    """
    return list(_folder_feeds(folder))


def has_index(folder: Path) -> bool:
    """Whether the folder says what its documents hold."""
    return (folder / INDEX).exists()


def _folder_feeds(folder: Path) -> Iterator[Document]:
    if has_index(folder):
        with (folder / INDEX).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        for row in sorted(rows, key=lambda row: row["file"]):
            yield _of_file(folder / row["file"], row["content_type"], row.get("items") or "")
    else:
        for path in sorted(folder.iterdir()):
            if path.is_file() and not path.name.startswith((".", "README")):
                guessed = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
                yield _of_file(path, guessed or "application/octet-stream", "")


def _of_file(path: Path, content_type: str, items: str) -> Document:
    modified = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
    counted = int(items) if items.strip() else None
    return _document(path.name, content_type, path.read_bytes(), modified, items=counted)


def _document(
    name: str,
    content_type: str,
    body: bytes,
    modified: datetime,
    *,
    items: int | None,
    images: int | None = None,
) -> Document:
    return Document(
        name=name,
        content_type=content_type,
        body=body,
        etag=f'"{sha256(body).hexdigest()[:20]}"',
        last_modified=format_datetime(modified, usegmt=True),
        items=items,
        images=images,
    )
