"""Contents that nobody has read, by a cold process, beside FreshRSS; peers.py prints it.

An app loads each item once, so this is its usual request. The bodies have 1 to 200 KB, half of them less
than 14 KB (the mean is 38 KB), with links, lists, tables and pictures; ours are archived at a public address,
which is put in when an item is served. Both servers are filled, and their user logs in; then each run starts
a process of each, and its first request is the measured one, for items that no other run reads.
"""

import asyncio
import json
import math
import random
import re
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.reader import peer
from benchmarks.reader.http_client import Client, Request
from benchmarks.reader.peer import Peer, Server
from benchmarks.reader.peer_store import FIRST, Item, fill_freshrss, fill_ours
from benchmarks.run import Verdict

RUNS, AT_ONCE = 5, 100
"""Runs, and items of each."""
CLIENTS = 50
OF_A_CLIENT = RUNS * AT_ONCE // CLIENTS
"""Items that each reads, one after the other."""
_FEEDS = 10
_LEAST, _MOST = 1_000, 200_000
_IMAGES = {
    # Never asked: only the public address counts.
    "S3_ENDPOINT_URL": "http://127.0.0.1:9",
    "S3_BUCKET": "benchmark",
    "S3_ACCESS_KEY_ID": "none",
    "S3_SECRET_ACCESS_KEY": "none",
    "S3_PUBLIC_URL": "https://images.example",
}
_WORDS = re.findall(
    r"\w+",
    "the of and to in a is that for it was on are as with they be at one have this from by hot word but what"
    " some we can out other were all there when up use your how said an each which their time if will way"
    " about many then them write would like so these her long make thing naïve café über façade 設想 Москва",
)


def items(count: int) -> Iterator[Item]:
    """So many items, no two alike, the oldest first."""
    for number in range(count):
        dice = random.Random(number)
        size = math.exp(dice.uniform(math.log(_LEAST), math.log(_MOST)))
        link = f"https://f{number % _FEEDS:04}.example/{number}"
        parts, length = list[str](), 0
        while length < size:
            parts.append(_part(dice, link, len(parts)))
            length += len(parts[-1])
        yield Item(
            number=FIRST + number * 1000,
            feed=number % _FEEDS,
            title=f"Item {number}",
            html="\n".join(parts),
            is_read=False,
        )


def _part(dice: random.Random, link: str, place: int) -> str:
    def words(count: int) -> str:
        return " ".join(dice.choices(_WORDS, k=count))

    match dice.randrange(12):
        case 0:
            return (
                f'<figure><img src="{link}/{place}.jpg?w=800&amp;h=450" alt="{words(4)}" width="800"'
                f' height="450"><figcaption>{words(8)}</figcaption></figure>'
            )
        case 1:
            return f"<h2>{words(5)}</h2>"
        case 2:
            return f"<ul>{''.join(f'<li>{words(6)}</li>' for _ in range(dice.randint(2, 6)))}</ul>"
        case 3:
            return f"<blockquote><p>{words(30)}</p></blockquote>"
        case 4 if place % 4 == 0:
            row = f"<tr><td>{words(2)}</td><td>{words(2)}</td><td>{dice.randrange(10_000)}</td></tr>"
            return f"<table><tbody>{row * 4}</tbody></table>"
        case _:
            return (
                f'<p>{words(25)} <a href="https://example.org/{dice.getrandbits(30):x}">{words(3)}</a>, <em>'
                f"{words(4)}</em> &amp; <strong>{words(2)}</strong>: {words(20)}.</p>"
            )


def measure(source: Path, port: int) -> list[Verdict]:
    """Both in turns, then ours with many clients. Prints the runs."""
    with tempfile.TemporaryDirectory(prefix="rss-bench-") as name:
        some = list(items(RUNS * AT_ONCE))
        theirs = peer.freshrss(
            source, Path(name), port, lambda database: fill_freshrss(database, some, feeds=_FEEDS)
        )
        ours = peer.ours(
            Path(name),
            port + 1,
            lambda database: fill_ours(database, some, feeds=_FEEDS, read_up_to=0),
            _IMAGES,
        )
        return [_alternating(theirs, ours), asyncio.run(_many(ours))]


def _alternating(theirs: Server, ours: Server) -> Verdict:
    for server in (theirs, ours):
        with server.started():
            """Its user logs in."""
    took: dict[str, list[float]] = {theirs.peer.name: [], ours.peer.name: []}
    for run in range(RUNS):
        for server in (theirs, ours) if run % 2 else (ours, theirs):
            with server.started() as one:
                took[one.name].append(1000 * _contents(one, run))
    for name, each in took.items():
        print(f"{AT_ONCE} items of 1 to 200 KB, {name}, ms: {', '.join(f'{ms:.1f}' for ms in each)}")
    ratio = statistics.median(took[ours.peer.name]) / statistics.median(took[theirs.peer.name])
    return Verdict(name="100 of 1 to 200 KB that nobody has read, cold", value=ratio, goal=1.0)


def _contents(one: Peer, run: int) -> float:
    numbers = [FIRST + (run * AT_ONCE + n) * 1000 for n in range(AT_ONCE)]
    took, read = one.edit("stream/items/contents", i=numbers)
    found = json.loads(read)["items"]
    bodies = [each["summary"]["content"] for each in found]
    if len(found) != AT_ONCE or min(map(len, bodies)) < _LEAST // 2:
        raise SystemExit(
            f"{one.name}: {len(found)} items, the shortest of {min(map(len, bodies))} characters"
        )
    if one.name == "ours" and not any(_IMAGES["S3_PUBLIC_URL"] in body for body in bodies):
        raise SystemExit("ours: no archived image was put in")
    return took


async def _many(ours: Server) -> Verdict:
    """Clients that wait for nothing, from the first request of a process on. Each reads what an app reads:
    the feeds, the unread ids, and contents of items that no other client has."""
    with ours.started() as one:
        headers = tuple((name, value) for name, _, value in (line.partition(": ") for line in one.headers))

        def request(method: str, call: str, body: str = "") -> Request:
            form = (("Content-Type", "application/x-www-form-urlencoded"),) if body else ()
            return Request(
                method=method,
                path=f"{one.prefix}{peer.CALLS}{call}",
                headers=(*headers, *form),
                body=body.encode(),
            )

        async def client(nth: int) -> list[float]:
            connection, took = await Client.to(one.port), list[float]()
            for number in range(nth * OF_A_CLIENT, (nth + 1) * OF_A_CLIENT):
                for each in (
                    request("GET", "subscription/list?output=json"),
                    request("GET", "stream/items/ids?s=user/-/state/com.google/reading-list&n=1000"),
                    request("POST", "stream/items/contents", urlencode({"i": FIRST + number * 1000})),
                ):
                    answer = await connection.send(each)
                    if answer.status != 200:
                        raise SystemExit(f"{each.path}: {answer.status} {answer.body[:300]!r}")
                    took.append(answer.seconds)
            await connection.close()
            return took

        took = sorted(one for each in await asyncio.gather(*map(client, range(CLIENTS))) for one in each)
    p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
    print(f"{CLIENTS} clients, cold: p50 {1000 * p50:.1f} ms, p99 {1000 * p99:.1f} ms")
    return Verdict(name=f"{CLIENTS} clients first, cold, p99 / p50", value=p99 / p50, goal=10)
