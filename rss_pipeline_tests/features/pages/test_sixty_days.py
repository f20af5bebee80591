"""A page served for sixty days, with all that happens to pages; then its items from its backups alone."""

import random
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline_tests.features.pages.site import WORDS, page
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

HOST, MOVED = "127.0.0.2", "127.0.0.3"
ROBOTS = "/robots.txt"
ELSEWHERE, REDESIGN, EMPTY, LOGIN, MOVE = 10, 20, {33}, {41, 42}, 50
"""Days on which the entries have other addresses, the page is rebuilt and they have others again, it has no
entry, wants a password, and has moved to another host."""
SHOWN = 12


class Site:
    """A site that publishes up to three entries a day; `day` is the day of its page."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.day = 0
        self.published: list[tuple[str, str]] = []
        """The last part of its address, and its title, of each entry, the newest first."""
        self._chance = random.Random(34)
        self._publish(SHOWN)

    def next_day(self) -> None:
        self.day += 1
        self._publish(self._chance.choice((0, 0, 1, 1, 2, 3)))

    def _publish(self, count: int) -> None:
        for _ in range(count):
            number = len(self.published)
            self.published.insert(0, (f"{number}-story", f"The story with number {number}"))

    def html(self) -> str:
        if self.day in LOGIN:
            return page('<form><input type="password" name="p"></form>', title="Log in")
        entries = "" if self.day in EMPTY else "".join(self._entries())
        around = "".join(
            f'<aside class="ads"><a href="https://ads.example/{self._chance.random()}">Buy {n}</a></aside>'
            for n in range(3)
        )
        nonce = self._chance.randbytes(8).hex()
        kind = "section" if self.day >= REDESIGN else "div"
        main = f'<{kind} class="list" data-nonce="{nonce}">{entries}</{kind}><p>{self.day * 37} visitors</p>'
        return page(main, head=f'<meta name="csrf" content="{nonce}">', around=around)

    def _entries(self) -> Iterator[str]:
        pinned = self.published[-1]
        shown = [pinned, *(each for each in self.published[:SHOWN] if each != pinned)]
        folder = "news" if self.day < ELSEWHERE else "town/stories" if self.day < REDESIGN else "2026/03"
        for place, (name, title) in enumerate(shown):
            if place == 4:
                yield f'<li class="post ad"><a href="https://ads.example/{self.day}"><b>Cars</b></a></li>'
                yield f'<li class="post"><a rel="sponsored" href="/buy/{self.day}"><b>Buy a boat</b></a></li>'
            link = f"/{folder}/{name}?utm_source=page&utm_campaign={self.day}"
            mark = " pinned" if place == 0 else ""
            if self.day >= REDESIGN:
                yield (
                    f'<article class="card{mark}"><header><h3><a href="{link}">{title}</a></h3></header>'
                    f"<p>{WORDS}</p><small>{self.day} days</small></article>"
                )
            else:
                yield f'<li class="post{mark}"><a href="{link}"><b>{title}</b></a><p>{WORDS}</p></li>'


@pytest.mark.slow
def test_every_entry_comes_once_each_error_is_said_and_backups_bring_all_back(
    pipeline: Pipeline, server: FeedServer
) -> None:
    site = Site(server.url(HOST, ""))

    def answer(request: Request) -> Answer:
        if site.day >= MOVE and request.host == HOST:
            return Answer(status=301, headers={"Location": server.url(MOVED, "/news/")})
        return Answer(body=site.html().encode())

    url = server.route(HOST, "/news/", answer)
    server.route(MOVED, "/news/", answer)
    id = pipeline.register(url, "news", page="confirmed")
    said: dict[int, str | None] = {}
    for _ in range(60):
        pipeline.poll(id)
        feed = pipeline.feed(id)
        said[site.day] = feed["last_error_kind"] or feed["warning_kinds"]
        pipeline.clock.turn(days=1)
        site.next_day()

    names = {name for name, _ in site.published}
    last = {name for name, _ in site.published[:3]}
    links = sorted(item["link"].rpartition("/")[2].partition("?")[0] for item in pipeline.items(id))
    known = set(links)
    assert len(links) == len(known), "an entry came twice"
    assert known <= names, "an entry that is none"
    assert not names - known - last
    assert {day for day, what in said.items() if what == "list_lost"} == EMPTY | LOGIN
    assert (said[ELSEWHERE], said[REDESIGN]) == ('["redesigned"]', '["redesigned"]')
    assert said[REDESIGN - 1] is None

    before = shown(pipeline, id)
    pipeline.database.close()
    for path in pipeline.settings.home.glob("rss.sqlite*"):
        path.unlink()
    home, file = str(pipeline.settings.home), str(pipeline.settings.feeds_file)
    done = CliRunner().invoke(main, ["restore"], env={"RSS_PIPELINE_HOME": home, "RSS_FEEDS_FILE": file})
    assert done.exit_code == 0, done.output
    pipeline.database = connect(pipeline.settings)
    assert shown(pipeline, id) == before


def shown(pipeline: Pipeline, id: str) -> list[dict[str, object]]:
    """All that readers see of the items."""
    own = {"arrived", "images_extracted_at"}
    return [{name: value for name, value in row.items() if name not in own} for row in pipeline.items(id)]
