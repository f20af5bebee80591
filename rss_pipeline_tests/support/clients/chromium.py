"""The system's Chromium, headless, for tests that click; none is ever downloaded.

Whatever a page requests of another address than this machine's is refused, or leads nowhere, and is written
down. No test is in here.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Request, Route

CHROMIUM = next(
    filter(
        None,
        # The first has no window, and takes half of the processor time.
        map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")),
    ),
    None,
)
REBOUND = "rebound.example"
"""A name that a stranger lets point to 127.0.0.1, as far as the browser knows."""
_OFF = [
    # A window starts processes for its address bar's lists and for a page that may come: with them a page
    # takes twice the processor time.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    "SpareRendererForSitePerProcess",
    # Of these lists Chromium takes the last, and these are in playwright's.
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "TcpPortRandomizationWin",
    "ThirdPartyStoragePartitioning",
]
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    f"--disable-features={','.join(_OFF)}",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    # A publisher's name that leads to this machine; all others lead nowhere.
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.*",
]
ELSEWHERE = re.compile(r"^(https?|wss?)://(?!127\.0\.0\.1(:\d+)?([/?#]|$))")
"""Addresses of other machines. The browser calls Python for these only, which is slow with each request."""
WIDTH, HEIGHT = 1400, 900
PATIENCE_MS = 90_000
"""The time that a page may take to show something, on a machine that runs other tests beside it."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A context of the browser, and what its pages did that they should not."""

    context: "BrowserContext"
    elsewhere: list[str] = field(default_factory=list)
    """Requests of pages for addresses that are not this machine's."""
    errors: list[str] = field(default_factory=list)
    """Errors of the pages' scripts."""

    def page(self) -> "Page":
        """A new page."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def guard(self, route: "Route", request: "Request") -> None:
        """Let through what stays on this machine."""
        if _leaves(request):
            self.note(request)
            route.abort()
        else:
            route.continue_()

    def note(self, request: "Request") -> None:
        """Write down what leaves this machine."""
        if _leaves(request):
            self.elsewhere.append(request.url)


def _leaves(request: "Request") -> bool:
    url = urlsplit(request.url)
    return url.scheme in ("http", "https", "ws", "wss") and url.hostname != "127.0.0.1"


@contextmanager
def chromium() -> "Iterator[Browser]":
    """A running Chromium."""
    # Its import takes as long as that of a whole room, and most runs of tests need no browser.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched(browser: "Browser", *, with_cache: bool = False, **options: Any) -> Iterator[Watched]:
    """A context without any cookie, in UTC and of a desktop's size unless `options` of playwright say
    otherwise.

    Requests are refused one by one only without a cache: a browser that lets them be refused has none, and
    would load and compile all scripts of a page each time.
    """
    given = {"viewport": {"width": WIDTH, "height": HEIGHT}, "timezone_id": "UTC", "locale": "en-GB"}
    context = browser.new_context(**{**given, **options})
    context.set_default_timeout(PATIENCE_MS)
    found = Watched(context)
    if with_cache:
        context.on("request", lambda request: found.note(request))
    else:
        context.route(ELSEWHERE, lambda route, request: found.guard(route, request))
    try:
        yield found
    finally:
        context.close()
