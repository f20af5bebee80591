"""Items made to attack, in Chromium on the reader's pages: nothing runs, leaves its article or is requested.

What a body is made of is tested in rss_pipeline_tests/reader; here it is the browser that reads it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Route

from rss_pipeline.api.auth import COOKIE
from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.collector.sanitize import item_body as sanitized
from rss_pipeline.reader import bodies
from rss_pipeline_tests.api.browser.attacks import ATTACKS, DRAWINGS, FAR, MUTATIONS, PAGES, SCRIPTS
from rss_pipeline_tests.api.pages.browsing import browser as client_of
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.clients.chromium import CHROMIUM, PATIENCE_MS, Watched, watched
from rss_pipeline_tests.support.reader import Reader, User, reader_settings, served
from rss_pipeline_tests.support.stored import FIRST, add_feeds, add_items, item
from rss_pipeline_tests.support.up import free_port
from rss_pipeline_tests.support.waiting import soon

pytestmark = [
    pytest.mark.slow,
    pytest.mark.minutes,
    pytest.mark.timeout(900),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]

FORBIDDEN = (
    "script,style,link,meta,base,iframe,frame,frameset,object,embed,applet,form,input,button,select,textarea,"
    "foreignObject,image,feImage,animate,set,animateMotion,animateTransform,annotation-xml,mglyph,"
    "template,noscript,dialog,slot,title,body,html,head,map,area,main,nav"
)
INSPECTION = Path(__file__).with_name("inspection.js").read_text("utf-8")
OPEN_EACH = f"""async ([ids, forbidden, patience]) => {{
  const inspect = {INSPECTION};
  const drawn = () => new Promise(requestAnimationFrame);
  const found = {{}};
  for (const [name, id] of Object.entries(ids)) {{
    const entry = document.getElementById(`i-${{id}}`), until = performance.now() + patience;
    entry.querySelector('.title').click();
    while (!entry.querySelector('.foot')) {{
      if (performance.now() > until) throw new Error(`${{name}} does not open`);
      await drawn();
    }}
    entry.scrollIntoView();
    await drawn();
    found[name] = inspect(forbidden);
  }}
  return found;
}}"""
"""Opens items in their list, one after the other, and inspects the page with each."""


@dataclass(slots=True)
class Seen:
    """The acts of the pages of one context."""

    foreign: list[str] = field(default_factory=list)
    """Requests for another origin than the reader's, those that the policy stopped before the network too."""
    requests: int = 0
    dialogs: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """Errors and warnings on the console: a resource that the policy refuses is one."""
    opened: int = 0


@dataclass(frozen=True, slots=True)
class Attacked:
    """A reader whose only feed attacks, its user, and a browser of that user."""

    reader: Reader
    user: User
    port: int
    page: Page
    seen: Seen
    watched: Watched

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def inspect(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate(INSPECTION, FORBIDDEN)
        return found

    def prefer(self, **preferences: Any) -> None:
        [row] = self.reader.database.query("SELECT preferences FROM users").rows
        wanted = json.dumps({**json.loads(row["preferences"]), **preferences})
        self.reader.database.query("UPDATE users SET preferences = ?", [wanted])


def item_ids(reader: Reader) -> dict[str, str]:
    return {row["guid"]: row["id"] for row in reader.database.query("SELECT id, guid FROM items").rows}


@contextmanager
def attacked(home: Path, running: Browser) -> Iterator[Attacked]:
    port = free_port()
    with Reader.on(reader_settings(home, reader_port=port)) as reader:
        add_feeds(reader.database, "news")
        rows = [
            item("news", name, FIRST, arrived=n, title=name, content_html=f"<p>first</p>{html}<p>last</p>")
            for n, (name, html) in enumerate(ATTACKS.items(), start=1)
        ]
        for row in rows:
            add_items(reader.database, [row])
        user = reader.user("ann")
        subscribe(reader.database, user.id, "news")
        cookie = client_of(reader, user).cookies[COOKIE]
        with served(reader.app, port=port), watched(running) as found:
            found.context.add_cookies([{"name": COOKIE, "value": cookie, "url": f"http://127.0.0.1:{port}"}])
            page, seen = found.page(), Seen()
            watch(page, seen, port)
            found.context.on("page", lambda _: setattr(seen, "opened", seen.opened + 1))
            yield Attacked(reader, user, port, page, seen, found)


def watch(page: Page, seen: Seen, port: int) -> None:
    def request(url: str) -> None:
        seen.requests += 1
        if urlsplit(url).netloc != f"127.0.0.1:{port}":
            seen.foreign.append(url)

    def console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            seen.said.append(message.text)

    def dialog(each: Any) -> None:
        seen.dialogs.append(each.message)
        each.dismiss()

    page.on("request", lambda each: request(each.url))
    page.on("console", console)
    page.on("dialog", dialog)


@pytest.fixture(scope="module")
def under_attack(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Attacked]:
    with attacked(tmp_path_factory.mktemp("attacked"), browser) as found:
        yield found


def harmless(under: Attacked, address: str) -> None:
    """Fail if the page that is open is not the one at this address with one body that stays in its place."""
    found = under.inspect()
    assert found["wrong"] == []
    assert not found["ran"]
    assert found["bodies"] >= 1
    assert found["footers"] == found["bodies"], "the item swallowed the page behind it"
    assert found["says"] == 1
    assert found["points"] > 400
    assert urlsplit(under.page.url).path == address
    # Above it may be the picture of an item whose text does not show it.
    assert "first" in under.page.locator(".body").first.inner_text()
    seen = under.seen
    assert (seen.dialogs, seen.said, seen.foreign, seen.opened) == ([], [], [], 0)
    assert under.watched.elsewhere == []
    assert under.watched.errors == []


def is_shown_and_does_nothing(under: Attacked, name: str) -> None:
    address = f"/items/{item_ids(under.reader)[name]}"
    try:
        under.page.goto(under.url + address, wait_until="load")
        harmless(under, address)
        # What comes into view later is loaded later.
        under.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        harmless(under, address)
    except AssertionError as error:
        error.add_note(f"the item: {name}")
        raise
    finally:
        forget(under)


@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.soak), 2], ids=["all of them", "every second"]
)
def test_items_that_attack_the_page_are_shown_and_do_nothing(under_attack: Attacked, step: int) -> None:
    for name in list(PAGES)[::step]:
        is_shown_and_does_nothing(under_attack, name)


@pytest.mark.soak
@pytest.mark.parametrize("name", [*SCRIPTS, *MUTATIONS, *DRAWINGS])
def test_an_item_that_attacks_is_shown_and_does_nothing(under_attack: Attacked, name: str) -> None:
    """Among the ones that the test of lists opens in their list."""
    is_shown_and_does_nothing(under_attack, name)


def forget(under: Attacked) -> None:
    """The fault of one item is not held against the next one."""
    for each in (under.seen.dialogs, under.seen.said, under.seen.foreign, under.watched.elsewhere):
        each.clear()
    under.watched.errors.clear()
    under.seen.opened = 0


@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.soak), 4], ids=["all of them", "every fourth"]
)
def test_items_that_attack_open_in_their_list_and_do_nothing(under_attack: Attacked, step: int) -> None:
    page, ids = under_attack.page, item_ids(under_attack.reader)
    under_attack.prefer(entries_per_page=200)
    try:
        page.goto(f"{under_attack.url}/feeds/news?show=all", wait_until="load")
        opened = {name: ids[name] for name in (*SCRIPTS, *MUTATIONS, *DRAWINGS)[::step]}
        found = page.evaluate(OPEN_EACH, [opened, FORBIDDEN, PATIENCE_MS])
        seen = {name: (each["wrong"], each["ran"], each["bodies"]) for name, each in found.items()}
        assert seen == dict.fromkeys(opened, ([], False, 1))
        harmless(under_attack, "/feeds/news")
    finally:
        under_attack.prefer(entries_per_page=50)
        forget(under_attack)


def test_nothing_moves_while_images_load(under_attack: Attacked) -> None:
    page, reader = under_attack.page, under_attack.reader
    shown = {
        "own.png": (pictures.png(300, 200), ImageSize(300, 200), ""),
        "wide.png": (pictures.png(4_000, 100), ImageSize(4_000, 100), ""),
        "distorted.png": (pictures.png(300, 200), ImageSize(300, 200), "width=90 height=500"),
        "unknown.png": (pictures.png(50, 700), None, "width=100"),
    }
    row = item(
        "news", "images", FIRST, arrived=len(ATTACKS) + 1,
        content_html="".join(f"<p><img src=/{name} {said}> x</p>" for name, (_, _, said) in shown.items()),
    )  # fmt: skip
    add_items(reader.database, [row])
    for name, (body, size, _) in shown.items():
        key = f"images/news/0a1b2c3d/{name}"
        reader.stores.objects.put(key, body, content_type="image/png")
        reader.database.query(
            """INSERT INTO image_tasks (id, item_id, original_url, r2_key, status, attempts, created_at,
              updated_at, host, position, width, height)
              VALUES (?, ?, ?, ?, 'success', 0, ?, ?, 'h', 0, ?, ?)""",
            [
                name, row["id"], f"https://news.example/{name}", key, FIRST, FIRST,
                *((size.width, size.height) if size else (None, None)),
            ],
        )  # fmt: skip
    places = (
        "[...document.querySelectorAll('.body p, .foot')].map(each => each.getBoundingClientRect().toJSON())"
    )
    loaded = "[...document.querySelectorAll('.body img')].every(each => each.naturalWidth > 1)"
    waiting: list[Route] = []
    page.route("**/api/images/**", lambda route: waiting.append(route))
    try:
        page.goto(f"{under_attack.url}/items/{row['id']}", wait_until="domcontentloaded")
        soon(lambda: page.evaluate("1") and len(waiting) == 4)
        before = page.evaluate(places)
        for each in waiting:
            each.fallback()
        soon(lambda: page.evaluate(loaded))
        assert page.evaluate(places) == before
        assert len(before) == 5
    finally:
        page.unroute("**/api/images/**")
        reader.database.query("DELETE FROM image_tasks")
        reader.database.query("DELETE FROM items WHERE guid = 'images'")
        forget(under_attack)


@pytest.mark.parametrize("address", ["/items/{id}", "/feeds/news?show=all"])
def test_a_player_of_another_site_is_requested_once_somebody_plays_it(
    under_attack: Attacked, address: str
) -> None:
    page, reader = under_attack.page, under_attack.reader
    row = item(
        "news", "players", FIRST, arrived=len(ATTACKS) + 1, title="players",
        content_html="<iframe src=https://www.youtube.com/embed/abcDEF123_- title=Waves></iframe>"
        "<iframe src=https://open.spotify.com/embed/track/4uLU6hM></iframe>",
    )  # fmt: skip
    add_items(reader.database, [row])
    try:
        page.goto(under_attack.url + address.format(id=row["id"]), wait_until="load")
        if "feeds" in address:
            page.locator(f"#i-{row['id']} .title").click()
        video, audio = (page.locator(f".body a.embedded.{kind}") for kind in ("video", "audio"))
        assert video.inner_text() == "Video at YouTube: Waves"
        assert video.get_attribute("href") == "https://www.youtube.com/watch?v=abcDEF123_-"
        assert audio.get_attribute("href") == "https://open.spotify.com/track/4uLU6hM"
        before = video.bounding_box()
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        assert page.locator("iframe").count() == 0
        assert under_attack.watched.elsewhere == []
        assert under_attack.inspect()["wrong"] == []

        video.click()
        frame = "https://www.youtube-nocookie.com/embed/abcDEF123_-?autoplay=1"
        soon(lambda: page.evaluate("1") and under_attack.watched.elsewhere == [frame])
        played = page.locator("iframe.embedded.video")
        assert played.get_attribute("referrerpolicy") == "strict-origin"
        assert "allow-top-navigation" not in (played.get_attribute("sandbox") or "")
        # It has the place of the link, which is below it now.
        after = played.bounding_box()
        assert before is not None
        assert after is not None
        assert {side: after[side] for side in ("x", "width", "height")} == {
            side: before[side] for side in ("x", "width", "height")
        }
        assert page.locator("a.played").get_attribute("href") == "https://www.youtube.com/watch?v=abcDEF123_-"
        assert audio.count() == 1

        audio.click()
        soon(lambda: page.evaluate("1") and len(under_attack.watched.elsewhere) == 2)
        assert under_attack.watched.elsewhere[1] == "https://open.spotify.com/embed/track/4uLU6hM"
        assert page.locator("iframe.embedded.audio").get_attribute("referrerpolicy") == "no-referrer"
        assert not [each for each in under_attack.seen.said if "Content Security Policy" in each]
        assert (under_attack.seen.opened, under_attack.seen.dialogs) == (0, [])
    finally:
        reader.database.query("DELETE FROM items WHERE guid = 'players'")
        page.goto("about:blank")
        forget(under_attack)


def test_the_policy_lets_no_other_site_into_a_frame(under_attack: Attacked) -> None:
    page = under_attack.page
    name = next(iter(PAGES))
    try:
        page.goto(f"{under_attack.url}/items/{item_ids(under_attack.reader)[name]}", wait_until="load")
        page.evaluate(f"""() => {{
          const frame = document.createElement('iframe');
          frame.src = '{FAR}/frame';
          document.body.append(frame);
        }}""")
        soon(lambda: page.evaluate("1") and any("frame-src" in each for each in under_attack.seen.said))
        assert under_attack.watched.elsewhere == []
    finally:
        page.goto("about:blank")
        forget(under_attack)


def test_with_images_of_publishers_nothing_but_images_is_requested(under_attack: Attacked) -> None:
    name = "foreign media"
    under_attack.prefer(publisher_images=True)
    try:
        under_attack.page.goto(f"{under_attack.url}/items/{item_ids(under_attack.reader)[name]}")
        under_attack.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        found = under_attack.inspect()
        assert (found["wrong"], found["ran"]) == ([], False)
        asked: set[str] = set()
        images = {"/a.png", "/b.png", "/c.png", "/e.png", "/k.png", "/r.png"}

        def come() -> bool:
            under_attack.page.evaluate("1")
            asked.update(urlsplit(url).path for url in under_attack.watched.elsewhere)
            return bool(images & asked)

        soon(come)
        assert not asked & {f"/{n}" for n in ("d.mp4", "f.mp3", "g.mp4", "h.vtt", "p", "s.mid", "count.gif")}
    finally:
        under_attack.prefer(publisher_images=False)
        # Images that are still on their way would be held against the next item.
        under_attack.page.goto("about:blank")
        forget(under_attack)


def test_the_policy_alone_stops_scripts_and_requests(
    under_attack: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a hole be found in the sanitizer one day: its HTML is what the publisher sent."""
    monkeypatch.setattr(sanitized, "shown_html", lambda text, *_, **__: text)
    monkeypatch.setattr(bodies, "page_html", lambda html, **_: html)
    under_attack.reader.database.query("UPDATE feeds SET link = link || '?unsanitized'")
    wrong = 0
    try:
        for name in (*list(SCRIPTS)[::2], "style", "cover", "foreign media", *list(MUTATIONS)[::4]):
            under_attack.page.goto(f"{under_attack.url}/items/{item_ids(under_attack.reader)[name]}")
            found = under_attack.page.evaluate("window.ran")
            assert not found, name
            assert under_attack.seen.dialogs == [], name
            wrong += bool(under_attack.inspect()["wrong"])
            # Audio and video are allowed, and play by themselves here. What is fetched ahead (`/e`) may come
            # from wherever anything may (https://www.w3.org/TR/CSP3/#directive-default-src).
            left = {urlsplit(url).path for url in under_attack.watched.elsewhere if url.startswith(FAR)}
            assert left <= {"/d.mp4", "/f.mp3", "/g.mp4", "/h.vtt", "/e"}, name
    finally:
        forget(under_attack)
    assert wrong > 5, "this HTML would have been found by the tests above"
