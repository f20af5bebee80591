"""The parser beside four others on folders of documents: where they agree, and where two agree against it.

The peers are feedparser, feedsmith, @rowanmanning/feed-parser and rss-parser, each with its defaults. The
last three (`npm install --prefix benchmarks/peer_parsers`) read text, which is decoded for them by its
declaration. docs/parsing.md has the results, and the reason of each deviation.
"""

import argparse
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from benchmarks.peer_parsers.reading import FEED_FIELDS, ITEM_FIELDS, URL, Fields, ours, read_by_peers

PEERS = ("feedparser", "feedsmith", "feed-parser", "rss-parser")


@dataclass(slots=True)
class Tally:
    compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By peer and field."""
    agreed: Counter[tuple[str, str]] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    """Fields in which two peers agree, and those in which we agree with them."""
    agreed_by_two: Counter[str] = field(default_factory=Counter)
    against: list[tuple[str, str, str, Any, Any]] = field(default_factory=list)
    """Document, field, item, our value, the value of two peers."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true", help="list each deviation from two peers that agree")
    arguments = parser.parse_args()
    paths = [path for folder in arguments.folders for path in documents(folder)]
    tally = Tally()
    for path, peers in zip(paths, read_by_peers(paths), strict=True):
        compare(path.name, ours(path.read_bytes()), peers, tally)
    show(tally, len(paths))
    if arguments.list:
        for row in tally.against:
            print(json.dumps(row, ensure_ascii=False, default=str))


def documents(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix not in (".md", ".tsv"))


def plain(markup: object) -> str:
    """The text of a piece of HTML, once more unescaped, in one line."""
    text = html.unescape(re.sub(r"<[^>]*>", " ", html.unescape(str(markup or ""))))
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def letters(markup: object) -> str:
    return re.sub(r"[\W_]+", "", plain(markup)).lower()


def same(name: str, mine: Any, theirs: Any) -> bool:
    """True if a value of a field says the same, and of several everything that the other says."""
    match name:
        case "enclosures" | "images":
            return all(any(is_place(each, other) for each in mine) for other in theirs if other)
        case "categories":
            return {plain(each).lower() for each in theirs if plain(each)} <= {
                plain(each).lower() for each in mine
            }
        case "link":
            return is_place(mine, theirs)
        case "date":
            return moment(mine) == moment(theirs)
        case "content":
            texts = mine if isinstance(mine, list) else [mine]
            return letters(theirs) in {letters(each) for each in texts}
        case "author":
            one, other = letters(mine), letters(theirs)
            return other in one or (one != "" and one in other)
        case "title":
            return bool(titles(mine) & titles(theirs))
        case _:
            return str(mine or "").strip() == str(theirs or "").strip()


def titles(text: object) -> set[str]:
    """A title in one line: as it is, without tags, and with entities resolved before or after that."""
    line = " ".join(re.sub(r"[\x00-\x1f]", " ", str(text or "")).split())
    return {line, plain(line), " ".join(html.unescape(re.sub(r"<[^>]*>", " ", line)).split())}


def is_place(mine: object, theirs: object) -> bool:
    """True if both are one URL; a relative one of theirs is the end of ours."""
    if places(mine) & places(theirs):
        return True
    relative = str(theirs or "").strip().replace(" ", "%20")
    if relative in ("/", "./"):
        return str(mine or "").endswith("/")
    end = relative.strip("./")
    return ":" not in end and end != "" and str(mine or "").rstrip("/").endswith(end)


def places(reference: object) -> set[str]:
    text = re.sub(r"[\t\r\n]", "", str(reference or "").strip()).replace(" ", "%20")
    try:
        return {text, urljoin(URL, text)} - {""}
    except ValueError:
        return {text}


def moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value.replace(microsecond=0)
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).replace(microsecond=0)
    except ValueError:
        return None


def blank(name: str, value: Any) -> bool:
    match name:
        case "enclosures" | "categories" | "images":
            return not any(value or ())
        case "content":
            return not letters(
                value if not isinstance(value, list) else "".join(each or "" for each in value)
            )
        case "date":
            return moment(value) is None
        case _:
            return not str(value or "").strip()


def compare(document: str, mine: Fields | None, peers: Mapping[str, Fields], tally: Tally) -> None:
    """Compare one document: the number of its items, the fields of the feed, those of each item."""
    counts = {peer: len(feed["items"]) for peer, feed in peers.items() if feed["items"] or feed.get("title")}
    if mine is None:
        judge(document, "document", "", 0, {peer: count for peer, count in counts.items() if count}, tally)
        return
    judge(document, "items", "", mine["listed"], counts, tally)
    for name in FEED_FIELDS:
        judge(
            document,
            f"feed {name}",
            "",
            mine[name],
            {peer: feed.get(name) for peer, feed in peers.items()},
            tally,
        )
    matched: dict[int, dict[str, Fields]] = {}
    for peer, feed in peers.items():
        for number, item in aligned(mine["items"], feed["items"]):
            matched.setdefault(number, {}).setdefault(peer, item)
    for number, found in sorted(matched.items()):
        for name in ITEM_FIELDS:
            values = {peer: item.get(name) for peer, item in found.items()}
            item = mine["items"][number]
            judge(
                document,
                name,
                str(item["guid"] or item["link"] or item["title"])[:80],
                item[name],
                values,
                tally,
            )


def judge(document: str, name: str, item: str, mine: Any, theirs: Mapping[str, Any], tally: Tally) -> None:
    """Count a field: each peer that read something, and what two of them agree on."""
    kind = name.removeprefix("feed ")
    said = {peer: value for peer, value in theirs.items() if not blank(kind, value)}
    agrees = {peer: same(kind, mine, value) for peer, value in said.items()}
    for peer, agreed in agrees.items():
        tally.compared[peer, name] += 1
        tally.agreed[peer, name] += agreed
    pairs = [
        (one, other)
        for place, one in enumerate(said)
        for other in list(said)[place + 1 :]
        if same(kind, said[one], said[other]) and same(kind, said[other], said[one])
    ]
    if not pairs:
        return
    tally.fields[name] += 1
    against = [pair for pair in pairs if not agrees[pair[0]] and not agrees[pair[1]]]
    if not against:
        tally.agreed_by_two[name] += 1
        return
    tally.against.append((document, name, item, mine, {peer: said[peer] for peer in against[0]}))


def aligned(mine: Sequence[Fields], theirs: Sequence[Fields]) -> Iterator[tuple[int, Fields]]:
    """Their items, each with the number of ours that has its guid, else its link, else its title."""
    known: dict[tuple[str, str], int] = {}
    for number, item in enumerate(mine):
        for name in ("guid", "link", "title"):
            for key in keys(name, item.get(name)):
                known.setdefault(key, number)
    for place, item in enumerate(theirs):
        if place < len(mine) and len(mine) == len(theirs):
            yield place, item
            continue
        numbers = (
            known[key]
            for name in ("guid", "link", "title")
            for key in keys(name, item.get(name))
            if key in known
        )
        yield from ((number, item) for number in islice(numbers, 1))


def keys(name: str, value: Any) -> Iterable[tuple[str, str]]:
    texts = (
        places(value) if name == "link" else {str(value or "").strip() if name == "guid" else plain(value)}
    )
    return ((name, text) for text in texts if text)


def show(tally: Tally, documents: int) -> None:
    names = ["document", "items", *(f"feed {name}" for name in FEED_FIELDS), *ITEM_FIELDS]
    print(f"{documents} documents. Agreement with each peer that read something, and with two that agree:\n")
    print("| field | " + " | ".join(PEERS) + " | two peers | against us |")
    print("|---|" + "---|" * (len(PEERS) + 2))
    deviations = Counter(name for _, name, *_ in tally.against)
    for name in names:
        cells = [share(tally.agreed[peer, name], tally.compared[peer, name]) for peer in PEERS]
        print(
            f"| {name} | {' | '.join(cells)} | {share(tally.agreed_by_two[name], tally.fields[name])}"
            f" | {deviations[name]} |"
        )


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} % of {whole:,}" if whole else "-"


if __name__ == "__main__":
    main()
