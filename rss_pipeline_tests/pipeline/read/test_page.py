"""Publishers' HTML in a real browser: it is read, and it reaches nothing.

The tricks name a listener on loopback that counts connections. The browser opens the page as a file.
"""

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rss_pipeline.pipeline.read import frames as page
from rss_pipeline.pipeline.read.frames import content_policy, image_sources, item_page
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.clients.chromium import CHROMIUM
from rss_pipeline_tests.support.server import Answer, FeedServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TLS = Path(__file__).parents[2] / "support" / "tls"
ITEM = {
    "title": "A <b>title</b>",
    "link": "https://example.com/a?x=1&y=2",
    "pub_date": "2026-01-01T00:00:00Z",
    "feed_title": "News",
    "author": None,
    "authors": None,
    "base_url": None,
    "feed_link": None,
    "feed_url": "https://example.com/feed",
}
TRICKS = """
<img src="{}/img"><img src="x" srcset="{}/srcset 2x"><picture><source srcset="{}/source">
<img src="{}/p"></picture>
<script src="{}/script"></script><script>fetch("{}/fetch"); new Image().src = "{}/new"</script>
<img src=x onerror="fetch('{}/onerror')"><svg onload="fetch('{}/onload')"><image href="{}/svg"/>
<use href="{}/u#a"/>
<script href="{}/svgscript"/><filter id=f><feImage href="{}/fe"/></filter>
<rect width=9 height=9 filter="url(#f)"/></svg>
<iframe src="{}/iframe"></iframe><iframe srcdoc='<img src="{}/nested">
<link rel=preconnect href="{}">'></iframe>
<object data="{}/object"></object><embed src="{}/embed"><frameset><frame src="{}/frame"></frameset>
<portal src="{}/portal"></portal><fencedframe src="{}/fenced"></fencedframe>
<meta http-equiv="refresh" content="0;url={}/refresh"><base href="{}/base/"><img src="relative.png">
<link rel=stylesheet href="{}/css"><link rel=prefetch href="{}/prefetch">
<link rel=preload as=image href="{}/preload">
<link rel=preconnect href="{}"><link rel=dns-prefetch href="{}"><link rel=modulepreload href="{}/module">
<LINK/rel=preconnect/href="{}"><link rel=prerender href="{}/prerender"><link rel=icon href="{}/icon">
<math><mtext><link rel=preconnect href="{}"></mtext></math><noscript><img src="{}/noscript"></noscript>
<style>@import url({}/import); @font-face {{ font-family: x; src: url({}/font) }}
p {{ font-family: x; background: url({}/bg); list-style-image: url({}/list); cursor: url({}/c), auto }}
</style>
<p style="background-image: url({}/inline)">Text</p><video autoplay poster="{}/poster" src="{}/video">
<track default src="{}/track"></video><audio autoplay src="{}/audio"></audio><video>
<source src="{}/vs"></video>
<form action="{}/form" id=form><input type=image src="{}/input">
<input autofocus onfocus="this.form.submit()"></form>
<table background="{}/table"><tr><td>x</table><a href="{}/a" ping="{}/ping">a link</a>
<p id=end>The end.</p><img id=archived src="ARCHIVED">"""


class Listener:
    """Counts the connections to it, and answers none."""

    def __init__(self) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    # As in support/clients/chromium.py.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.mark.slow
@pytest.mark.parametrize("walls", ["all", "no page"])
def test_an_item_reaches_nothing_when_it_is_opened_in_a_browser(
    walls: str, browser: "Browser", listener: Listener, tmp_path: Path
) -> None:
    objects = FolderStore(tmp_path / "objects")
    objects.put("images/x", pictures.PNG, content_type="image/png")
    url = objects.url("images/x")
    assert url is not None
    html = TRICKS.replace("{{", "{").replace("}}", "}").replace("{}", listener.url).replace("ARCHIVED", url)
    shown = item_page(ITEM, html, sources=image_sources(objects)) if walls == "all" else html
    (tmp_path / "item.html").write_text(shown, "utf-8")
    tab = browser.new_page()
    tab.goto((tmp_path / "item.html").as_uri(), wait_until="commit")
    if walls != "all":
        # The tricks are real ones: without the page many of them arrive.
        tab.wait_for_timeout(50)
        while listener.connections < 10:
            tab.wait_for_timeout(50)
        tab.close()
        return
    assert tab.title() == "A title"
    content = tab.frame_locator("iframe")
    content.locator("#end").wait_for()
    archived = content.locator("#archived")
    while not archived.evaluate("image => image.naturalWidth"):
        tab.wait_for_timeout(50)
    # A refresh comes after the page has been loaded.
    tab.wait_for_load_state("networkidle")
    assert (listener.connections, tab.url) == (0, (tmp_path / "item.html").as_uri())
    tab.close()


@pytest.mark.slow
def test_the_sandbox_alone_stops_scripts_forms_and_a_refresh(
    browser: "Browser", listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a policy, and without the renaming of tags."""
    monkeypatch.setattr(page, "content_policy", lambda _: "base-uri 'none'")
    monkeypatch.setattr(page, "_RENAMED_TAGS", re.compile("(?!)"))
    html = (
        '<meta http-equiv="refresh" content="0;url={}/refresh"><script>fetch("{}/fetch")</script>'
        '<form action="{}/form"><button id=send>Send</button></form><img src=x onerror="fetch(\'{}/x\')">'
    )
    for sources in ((), ("file:",)):
        shown = item_page(ITEM, html.replace("{}", listener.url), sources=sources)
        (tmp_path / "item.html").write_text(shown, "utf-8")
        tab = browser.new_page()
        tab.goto((tmp_path / "item.html").as_uri(), wait_until="commit")
        tab.frame_locator("iframe").locator("#send").click()
        tab.wait_for_load_state("networkidle")
        assert listener.connections == 0
        tab.close()


@pytest.mark.slow
def test_images_over_https_are_shown_and_get_no_referer(browser: "Browser") -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "good.pem")
    with FeedServer(tls=context) as images, FeedServer() as pages:
        image = Answer(body=pictures.PNG, headers={"Content-Type": "image/png"})
        plain, forced = (images.route("127.0.0.1", path, image) for path in ("/plain", "/forced"))
        html = (
            f'<meta name=referrer content=unsafe-url><img src="{plain}">'
            f'<img referrerpolicy="unsafe-url" alt=">" ReferrerPolicy = unsafe-url src="{forced}">'
        )
        for sources in ((), ("file:",)):
            answer = Answer(body=item_page(ITEM, html, sources=sources).encode(), headers=HTML)
            url = pages.route("127.0.0.1", "/secret/page", answer)
            tab = browser.new_page(ignore_https_errors=True)
            tab.goto(url, wait_until="commit")
            shown = tab.frame_locator("iframe").locator("img")
            for number in (0, 1):
                while not shown.nth(number).evaluate("image => image.naturalWidth"):
                    tab.wait_for_timeout(50)
            tab.close()
    assert {request.target for request in images.requests} == {"/plain", "/forced"}
    assert [request.headers.get("referer") for request in images.requests] == [None] * len(images.requests)


HTML = {"Content-Type": "text/html; charset=utf-8"}


def test_a_page_is_whole_and_begins_with_its_policy() -> None:
    whole = item_page(ITEM, "<p>x", sources=("https://unused",))
    assert whole.index("Content-Security-Policy") < whole.index("charset") < whole.index("<title>")
    assert '<a href="https://example.com/a?x=1&amp;y=2" rel="noopener noreferrer">A title' in whole
    assert ("2026-01-01T00:00:00Z" in whole, "News" in whole) == (True, True)
    several = item_page({**ITEM, "author": "A", "authors": '["A","<B>"]'}, "")
    assert "News · A, &lt;B&gt; · <time" in several
    assert "javascript" not in item_page({**ITEM, "link": "javascript:alert(1)"}, "")


@pytest.mark.parametrize(
    ("url", "sources"),
    [
        (None, ()),
        ("https://images.example/images/x", ()),
        ("http://127.0.0.1:9000/b/images/x", ("http://127.0.0.1:9000",)),
        ("file:///home/me/var/objects/images/x", ("file:",)),
    ],
)
def test_the_policy_names_where_archived_images_are(url: str | None, sources: tuple[str, ...]) -> None:
    class Store(FolderStore):
        def url(self, key: str) -> str | None:
            return url

    store: Any = Store(Path("/nowhere"))
    assert image_sources(store) == sources
    assert content_policy(sources).startswith("default-src 'none'; img-src https: data:")
