"""Entries with other addresses than before: each comes once, and two entries of one title are never one."""

import random
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta

from rss_pipeline.collector.models.identity import Known as Row
from rss_pipeline.collector.models.item import Moved
from rss_pipeline.features.pages.detect import detect
from rss_pipeline.features.pages.known import Known
from rss_pipeline.features.pages.links import guids_of
from rss_pipeline.features.pages.model import Entry
from rss_pipeline.pipeline.visits.identify import moved
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline_tests.features.pages.site import WORDS, page, rebuilt
from rss_pipeline_tests.features.pages.test_visits import command, days, shown
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST, OTHER = "127.0.0.2", "127.0.0.3"
DATE = '<time datetime="2026-01-{n:02}">{n}</time>'
CHANGES = {
    "prefix": ("/news/{n}-entry", "/blog/posts/{n}-entry", ""),
    "added": ("/{n}-entry.html", "/2026/01/{n}-entry/", ""),
    "dropped": ("/2026/{n}/{n}-entry", "/{n}-entry", ""),
    "ending": ("/news/{n}-entry.html", "/news/{n}-entry/", ""),
    "renamed": ("/episode-{n}-with-ann.html", "/episodes/{n}/", DATE),
}


def listed(path: str, *numbers: int, date: str = "") -> str:
    return page(
        "".join(
            f'<article class="post"><h2><a href="{path.format(n=n)}">The title of entry {n}</a></h2>'
            f"{date.format(n=n)}<p>{n} people: {WORDS}</p></article>"
            for n in numbers
        )
    )


def test_entries_at_other_addresses_are_the_known_ones_and_again_from_backups(
    pipeline: Pipeline, server: FeedServer
) -> None:
    old, new = range(20, 0, -1), (22, *range(20, 1, -1))
    newest = (23, *new)
    for name, (before, after, day) in CHANGES.items():
        bodies = [
            listed(before, *old, date=day),
            rebuilt(listed(after, *new, date=day), seed=3),
            rebuilt(listed(after, *newest, date=day), seed=3),
        ]
        url = server.route(HOST, f"/{name}/news", *(Answer(body=each.encode()) for each in bodies))
        pipeline.register(url, name, page="auto")
    # Nothing but the addresses changes, to those of another host: the texts are the same.
    there = server.route(OTHER, "/news", Answer(body=listed("/blog/{n}-entry", *newest).encode()))
    url = server.route(
        HOST,
        "/there/news",
        Answer(body=listed("/news/{n}-entry", *old).encode()),
        Answer(status=301, headers={"Location": there}),
    )
    pipeline.register(url, "there", page="auto")
    # Some of them stay where they are.
    some = listed("/news/{n}-entry", *newest)
    for n in newest[:-7]:
        some = some.replace(f"/news/{n}-", f"/blog/{n}-")
    url = server.route(
        HOST, "/some/news", *(Answer(body=each.encode()) for each in (listed("/news/{n}-entry", *old), some))
    )
    pipeline.register(url, "some", page="auto")
    days(pipeline, 3)
    ids = [*CHANGES, "there", "some"]
    assert {id: pipeline.feed(id)["last_error"] for id in ids} == dict.fromkeys(ids)
    numbers = {id: sorted(int(item["title"].split()[-1]) for item in pipeline.items(id)) for id in ids}
    assert {id: each for id, each in numbers.items() if each != [*range(1, 21), 22, 23]} == {}
    assert {pipeline.feed(id)["warning_kinds"] for id in ids} == {'["redesigned"]'}

    before_it = {id: (shown(pipeline, id), pipeline.feed(id)["page_known"]) for id in ids}
    pipeline.database.close()
    for path in pipeline.settings.home.glob("rss.sqlite*"):
        path.unlink()
    command(pipeline, "restore")
    pipeline.database = connect(pipeline.settings)
    assert {id: (shown(pipeline, id), pipeline.feed(id)["page_known"]) for id in ids} == before_it


def test_the_columns_of_a_magazine_are_other_entries_in_each_issue() -> None:
    def issue(number: int) -> list[Entry]:
        names = ("Editorial", "Letters", "Crossword", "Obituaries", "Weather")
        return [
            Entry(link=f"https://e.example/{number}/{name}", title=name, text=f"{name} of {number}")
            for name in names
        ]

    known = Known.of_list(guids_of(issue(1)), structure="a", entries=issue(1))
    assert known.moved_among(issue(2), "a") is None
    same = [
        Entry(link=f"{each.link}/".replace("/1/", "/x/"), title=each.title, text=each.text)
        for each in issue(1)
    ]
    assert known.moved_among(same, "a") == Moved(guids=frozenset(guids_of(same)))


def test_a_redesign_by_chance_is_known_by_its_entries() -> None:
    url, html = "https://e.example/news/", listed("/news/{n}-entry", 5, 4, 3, 2, 1)
    was = detect(html, url)
    known = Known.of_list(guids_of(was.entries), structure=was.structure, entries=was.entries)
    for seed in range(20):
        path = ("/news/{n}-entry", "/blog/{n}-entry")[seed % 2]
        now = detect(rebuilt(listed(path, 6, 5, 4, 3, 2), seed), url, known)
        assert (now.verdict, len(now.entries)) == ("certain", 5), seed
        assert [entry.title for entry in now.entries[1:]] == [entry.title for entry in was.entries[:4]]


class Blog:
    """A site that has titles more than once, and puts its entries elsewhere on one day."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.shown = chance.choice((4, 6, 10))
        self.shown_later = self.shown * chance.choice((1, 1, 3))
        self.is_dated = chance.random() < 0.5
        day, entries = date(2026, 1, 1), list[tuple[int, str, date]]()
        for number in range(chance.randrange(6, 40)):
            day += timedelta(days=chance.choice((0, 0, 1, 9)))
            title = chance.choice(("Weekly update", "Photo", "Order", *[f"Story {number}"] * 4))
            entries.insert(0, (number, title, day))
        self.moves_at = max(len(entries) - chance.choice((0, 1, 2, 3)), 4)
        self.entries = entries
        self.number_of: dict[str, int] = {}
        self.before = self._addresses("/{day:%Y/%m}/{name}", entries[::-1])
        # Which of two entries of one title keeps its name is open.
        order = entries[:: chance.choice((1, -1))]
        self.after = self._addresses("/blog/{name}", order)

    def _addresses(self, form: str, order: list[tuple[int, str, date]]) -> dict[int, str]:
        times = Counter[str]()
        found: dict[int, str] = {}
        for number, title, day in order:
            plain = form.format(day=day, name=title.lower().replace(" ", "-"))
            times[plain] += 1
            found[number] = f"https://e.example{plain}{'' if times[plain] == 1 else f'-{times[plain]}'}"
            self.number_of[f"//{found[number].partition('://')[2]}"] = number
        return found

    def listed(self, addresses: dict[int, str], count: int, most: int) -> list[Entry]:
        """The newest `most` of the first `count` entries."""
        return [
            Entry(link=addresses[number], title=title, date=day if self.is_dated else None)
            for number, title, day in self.entries[len(self.entries) - count :][:most]
        ]


def rows(entries: list[Entry]) -> dict[str, Row]:
    return {
        guid: Row(
            title=each.title,
            link=each.link,
            pub_date=None if each.date is None else datetime.combine(each.date, time(), UTC),
        )
        for guid, each in zip(guids_of(entries), entries, strict=True)
    }


def test_two_entries_of_one_title_are_never_one() -> None:
    moves = again = 0
    for seed in range(600):
        blog = Blog(seed)
        was = blog.listed(blog.before, blog.moves_at, blog.shown)
        stored = rows(blog.listed(blog.before, blog.moves_at, 1_000))
        now = blog.listed(blog.after, len(blog.entries), blog.shown_later)
        known = Known.of_list(guids_of(was), structure="a", entries=was)
        by = known.moved_among(now, "b")
        found = moved(rows(now), (), stored, by) if by else {}
        assert {blog.number_of[new] for new in found} == {blog.number_of[old] for old in found.values()}
        for new, old in found.items():
            assert blog.number_of[new] == blog.number_of[old], seed
        moves += by is not None
        again += len(found)
    assert (moves > 300, again > 1_500) == (True, True), (moves, again)


def test_of_two_entries_of_a_title_neither_is_a_stored_one_that_was_not_seen_to_move() -> None:
    photo = Row(title="Photo", pub_date=datetime(2026, 1, 1, tzinfo=UTC))
    stored, by = {"//e.example/2026/photo": photo}, Moved(guids=frozenset())
    assert moved({"//e.example/photo": photo}, (), stored, by) == {
        "//e.example/photo": "//e.example/2026/photo"
    }
    assert moved({"//e.example/photo": photo, "//e.example/photo-2": photo}, (), stored, by) == {}
