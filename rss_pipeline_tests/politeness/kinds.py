"""The kinds of publishers that the score is made of. What they have in common is publishers.py's."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from rss_pipeline_tests.politeness.behaviours import (
    asks,
    cookies,
    dropping,
    fat_304,
    frozen,
    gone_for_good,
    http10,
    negotiated,
    packed,
    says,
    stuck,
    stuck_for_a_week,
    two_edges,
    until_date,
    walled,
)
from rss_pipeline_tests.politeness.publishers import (
    PHOTOS,
    Ask,
    Kind,
    Page,
    between,
    both,
    edition_date,
    edition_etag,
    every,
    fixed,
    hotlinked,
    http_date,
    leads,
    limited,
    page,
    pictured,
    with_fields,
)
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.server import Answer

HALF_A_DAY = "max-age=43200"
SLOW_SECONDS = 9.0
"""Longer than the deadline of the client that is scored."""


MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def _many(name: str, feeds: int, serve: Page) -> Kind:
    """So many feeds of a host that allows so many requests in a time."""
    places = tuple(f"a/{n}" for n in range(feeds))
    return Kind(name=name, pages=dict.fromkeys(places, serve), feeds=places, is_limited=True)


def _service(name: str, serve: Page) -> Kind:
    """A feed at each of eight names of one registered domain."""
    places = tuple(f"{letter}/feed" for letter in "abcdefgh")
    return Kind(name=name, pages=dict.fromkeys(places, serve), feeds=places, service=True, is_limited=True)


PICTURES = ("logo", *map(str, range(PHOTOS)))
IMAGE = fixed(Answer(body=png()))


def _gallery(
    name: str,
    serve: Page,
    *,
    gives: bool = True,
    moves: Literal["each", "to one"] | None = None,
    is_limited: bool = False,
) -> Kind:
    """Two feeds on two hosts, with items that show the same images, which a third one serves so."""
    served = {f"{'j' if moves else 'i'}/{each}.png": serve for each in PICTURES}
    led = {
        f"i/{each}.png": leads(301, f"j/{each if moves == 'each' else 'logo'}.png")
        for each in PICTURES
        if moves
    }
    return Kind(
        name=name,
        pages={"a/feed": pictured, "b/feed": pictured, **served, **led},
        feeds=("a/feed", "b/feed"),
        images=(*served, *led),
        gives_images=gives,
        is_limited=is_limited,
        leading=0,
    )


def _pictures_at_home(name: str, *, every: timedelta) -> Kind:
    """Two feeds and their images on one host, which limits the requests for all of them together."""

    def feed(ask: Ask) -> Answer:
        return pictured(replace(ask, urls={f"i/{each}.png": ask.urls[f"a/{each}.png"] for each in PICTURES}))

    images = {f"a/{each}.png": limited(IMAGE, every=every) for each in PICTURES}
    feeds = dict.fromkeys(("a/feed", "a/other"), limited(feed, every=every))
    return Kind(
        name=name,
        pages=feeds | images,
        feeds=tuple(feeds),
        images=tuple(images),
        gives_images=True,
        is_limited=True,
        leading=0,
    )


def _one(name: str, serve: Page, *, days: int = 14, **options: Any) -> Kind:
    return Kind(name=name, pages={"a/feed": serve}, days=days, options=options)


def _whole(name: str, serve: Page, **options: Any) -> Kind:
    return replace(_one(name, serve, **options), is_whole=True)


VALIDATORS = (
    _one("no validators", page()),
    _one("ETag only", page(etag=edition_etag)),
    _one("Last-Modified only", page(modified=edition_date)),
    _one("both", both),
    _one("weak ETag", page(etag=lambda a: f'W/"{a.edition}"')),
    _one("ETag of 5,000 characters", page(etag=lambda a: f'"{a.edition:05000}"')),
    _one("ETag with -gzip", page(etag=lambda a: f'"{a.edition}-gzip"', gzip=True)),
    _one("ETag without quotes", page(etag=lambda a: f"edition={a.edition}")),
    _one("ETag with odd quotes", page(etag=lambda a: f'""{a.edition}"é\'"')),
    _one("other ETag, same bytes", page(etag=lambda a: f'"{a.number}"')),
    _one("other Last-Modified, same bytes", page(modified=lambda a: http_date(a.at))),
    _one("two caches disagree", two_edges),
    _one("304 for ever", stuck, days=45, interval="12h"),
    _one("304 for ever, then errors", between(29.5, 35, says(500), stuck), days=45, interval="12h"),
    _one("304 with a new ETag", page(etag=edition_etag, on_304=lambda a: {"ETag": edition_etag(a)})),
    _one(
        "304 changes Last-Modified",
        page(etag=edition_etag, modified=edition_date, on_304=lambda a: {"Last-Modified": http_date(a.at)}),
    ),
    _one("304 without validators", page(etag=edition_etag, modified=edition_date, on_304=lambda _: {})),
    _one("304 with a body", fat_304),
    _one("304 to a plain request", between(4, 5, fixed(Answer(status=304)), page())),
    _one("Last-Modified in the future", page(modified=lambda a: http_date(a.at.replace(year=2031, month=1)))),
    _one("Last-Modified no date", page(modified=lambda a: f"edition {a.edition}")),
    _one(
        "Last-Modified not GMT",
        page(modified=lambda a: edition_date(a).replace("GMT", "+0100")),
    ),
    _one("validators come and go", dropping),
    _whole("Last-Modified of 1970", frozen(modified=lambda _: "Thu, 01 Jan 1970 00:00:00 GMT")),
    _whole(
        "Last-Modified of 1980, of 2041",
        frozen(
            modified=lambda a: (
                "Tue, 01 Jan 1980 00:00:01 GMT" if a.day < 7 else "Sat, 16 Nov 2041 19:11:00 GMT"
            )
        ),
    ),
    _whole("Last-Modified of year 1", frozen(modified=lambda _: "Mon, 01 Jan 0001 00:00:00 GMT")),
    _whole("ETag without a character", frozen(etag=lambda a: ('""', 'W/""', "")[int(a.day) % 3])),
    _one(
        "one ETag for ever",
        frozen(etag=lambda _: '"1"', modified=lambda _: "Mon, 23 Feb 2026 10:00:00 GMT"),
        days=45,
        interval="12h",
    ),
    _one("304 for a week", stuck_for_a_week, days=45, interval="12h"),
)

LIMITS = (
    _one("429 bare", between(2, 3, fixed(Answer(status=429)))),
    _one("429, seconds", between(2, 4, says(429, Retry_After="10800"))),
    _one("429, a date", between(2, 4, until_date)),
    _one("429, x-ratelimit-reset", between(2, 4, says(429, x_ratelimit_reset="10800"))),
    _one("429 now and then", every(5, says(429, Retry_After="900"))),
    Kind(
        name="429, two feeds of a host",
        pages={"a/feed": between(2, 4, says(429, Retry_After="3600")), "a/other": both},
        feeds=("a/feed", "a/other"),
    ),
    Kind(
        name="429 where a redirect leads",
        pages={
            "a/feed": leads(302, "b/feed"),
            "b/feed": between(2, 4, says(429, Retry_After="3600")),
            "b/other": both,
        },
        feeds=("a/feed", "b/other"),
    ),
    Kind(
        name="503 of one feed",
        pages={"a/feed": between(2, 4, says(503, Retry_After="20000")), "a/other": both},
        feeds=("a/feed", "a/other"),
    ),
    Kind(
        name="503 of two feeds",
        pages={
            "a/feed": between(2, 4, says(503, Retry_After="7200")),
            "a/other": between(2, 4, says(503, Retry_After="7200")),
            "a/third": both,
        },
        feeds=("a/feed", "a/other", "a/third"),
    ),
    Kind(
        name="429 where two feeds lead",
        pages={
            "a/feed": leads(302, "c/feed"),
            "b/feed": leads(302, "c/feed"),
            "c/feed": between(2, 4, says(429, Retry_After="18000"), page()),
            "c/other": both,
        },
        feeds=("a/feed", "b/feed", "c/other"),
        leading=2,
    ),
    _one("503 bare", every(6, says(503))),
    Kind(
        name="five feeds of a host",
        pages={f"a/{n}": both for n in range(5)},
        feeds=tuple(f"a/{n}" for n in range(5)),
    ),
)

RATES = (
    _many("one a minute, 20 feeds", 20, limited(both, every=MINUTE)),
    _many(
        "one a minute, says when",
        20,
        limited(both, every=MINUTE, counts_refusals=True, says_when=True),
    ),
    _many("one a minute, by 503", 20, limited(both, every=MINUTE, says_when=True, status=503)),
    _many("ten an hour, 12 feeds", 12, limited(both, every=HOUR, most=10, says_when=True)),
    _service("a service, two a minute", limited(both, every=MINUTE, most=2)),
)

IMAGES = (
    _gallery("images", IMAGE),
    _gallery("images for its pages alone", hotlinked(IMAGE)),
    _gallery("images for its pages from day 5", between(5, 99, hotlinked(IMAGE), IMAGE)),
    _gallery("images for nobody", fixed(Answer(status=403)), gives=False),
    _gallery("images that are missing", fixed(Answer(status=404)), gives=False),
    _gallery("images, 410 after a week", between(7, 99, says(410), IMAGE), gives=False),
    _gallery("images, 500 now and then", every(3, says(500), IMAGE)),
    _gallery("images, 503 with a time", every(3, says(503, Retry_After="1800"), IMAGE)),
    _gallery("images that moved", IMAGE, moves="each"),
    _gallery("images that lead to one", IMAGE, moves="to one"),
    _gallery("images, reset from day 2", between(2, 99, fixed(Answer(raw=b"")), IMAGE), gives=False),
    _gallery(
        "images, six in ten minutes",
        limited(IMAGE, every=10 * MINUTE, most=6, says_when=True),
        is_limited=True,
    ),
    _gallery("images, one a minute", limited(IMAGE, every=MINUTE), is_limited=True),
    _pictures_at_home("images at their feeds' host, one a minute", every=MINUTE),
)
"""They have a reader of their own as well: a gap between two images turns the clock for all."""

OUTAGES = (
    Kind(
        name="a provider resets for a day",
        pages={f"{letter}/feed": between(2, 3, fixed(Answer(raw=b""))) for letter in "abcdefgh"},
        feeds=tuple(f"{letter}/feed" for letter in "abcdefgh"),
    ),
)
"""Each of them is all that its reader has."""

WISHES = (
    _one("max-age of 12 h", asks(HALF_A_DAY)),
    _one("max-age, Age", page(headers=lambda _: {"Cache-Control": "public, max-age=36000", "Age": "3600"})),
    _one("max-age of a week", asks("max-age=604800")),
    _one(
        "max-age, bare 304",
        page(etag=edition_etag, headers=lambda _: {"Cache-Control": HALF_A_DAY}, on_304=lambda _: {}),
    ),
    _one(
        "Expires in 12 h",
        page(
            etag=edition_etag,
            headers=lambda a: {"Expires": http_date(a.at + timedelta(hours=12)), "Date": http_date(a.at)},
        ),
    ),
    _one("no-store", asks("no-store")),
    _one("no-cache", asks("no-cache, max-age=0, must-revalidate")),
    _one("ttl of 6 h", page(etag=edition_etag, extra="<ttl>360</ttl>")),
    _one(
        "skipHours",
        page(etag=edition_etag, extra="<skipHours><hour>1</hour><hour>2</hour><hour>9</hour></skipHours>"),
    ),
    _one(
        "skipDays",
        page(etag=edition_etag, extra="<skipDays><day>Wednesday</day></skipDays>"),
    ),
    _one(
        "Retry-After with 200 and 304",
        page(etag=edition_etag, headers=lambda _: {"Retry-After": "28800"}),
    ),
    _one("auto", page(etag=edition_etag), interval=None),
)

MOVES = (
    Kind(
        name="301, a chain",
        pages={"a/feed": leads(301, "b/feed"), "b/feed": leads(301, "c/feed"), "c/feed": both},
    ),
    Kind(name="301 on its host", pages={"a/feed": leads(301, "a/new"), "a/new": both}),
    Kind(name="302", pages={"a/feed": leads(302, "b/feed"), "b/feed": both}),
    Kind(name="307", pages={"a/feed": leads(307, "b/feed"), "b/feed": both}),
    Kind(
        name="302, other ETag where it leads",
        pages={"a/feed": leads(302, "b/feed"), "b/feed": page(etag=lambda a: f'"{a.number}"')},
    ),
    Kind(
        name="302, then elsewhere",
        pages={
            "a/feed": lambda a: leads(302, "b/feed" if a.day < 6 else "c/feed")(a),
            "b/feed": both,
            "c/feed": both,
        },
    ),
    Kind(
        name="302 to two mirrors by turns",
        pages={
            "a/feed": lambda a: leads(302, "b/feed" if a.number % 2 else "c/feed")(a),
            "b/feed": page(etag=lambda a: f'"b-{a.edition}"'),
            "c/feed": page(etag=lambda a: f'"c-{a.edition}"', modified=edition_date),
        },
    ),
    Kind(
        name="302 now and then",
        pages={"a/feed": every(4, leads(302, "b/feed")), "b/feed": page(modified=edition_date)},
    ),
    Kind(
        name="308 for 9 days, then 404",
        pages={"a/feed": between(9, 99, says(404), leads(308, "b/feed")), "b/feed": both},
    ),
    _one("302 to itself with a cookie", walled),
    Kind(
        name="302, Retry-After",
        pages={"a/feed": leads(302, "b/feed", Retry_After="28800"), "b/feed": both},
    ),
    Kind(
        name="302, max-age, then errors",
        pages={
            "a/feed": leads(302, "b/feed", Cache_Control=HALF_A_DAY),
            "b/feed": between(3, 6, says(500), page(modified=edition_date)),
        },
    ),
    _one("410", gone_for_good),
)

TROUBLES = (
    _one("404 for a day", between(3, 4.5, says(404))),
    _one("404 for a day, max-age", between(3, 4.5, says(404, Cache_Control="max-age=28800"))),
    _one("500 flapping", every(3, says(500))),
    _one("gzip only", page(etag=edition_etag, gzip=True)),
    _one("gzip, an ETag each", packed),
    _one("content negotiated", negotiated),
    _one("cookies", cookies),
    _one("slow", every(30, with_fields(both, delay=SLOW_SECONDS), with_fields(both, delay=0.02))),
    _one(
        "drip",
        every(30, page(drip=(100, SLOW_SECONDS / 5)), page(etag=edition_etag, drip=(400, 0.005))),
    ),
    _one("resets", every(4, fixed(Answer(raw=b"")))),
    _one("cut short", every(4, page(etag=lambda a: f'"cut-{a.number}"', cut_after=200))),
    _one("keeps alive, then closes", with_fields(both, keep_alive=True)),
    _one("HTTP/1.0", http10),
    _one(
        "an error page for a while",
        between(5.05, 5.3, fixed(Answer(body=b"PHP Fatal error: out of memory", headers={"ETag": '"bad"'}))),
    ),
    _one(
        "an error page, another each time",
        between(
            3, 4.5, lambda a: Answer(body=b"Error %d" % a.number, headers={"Last-Modified": http_date(a.at)})
        ),
    ),
    _one("the same bytes after an error", every(3, says(502), page())),
    _one(
        "HTML for a while",
        between(
            5.05,
            5.3,
            fixed(
                Answer(
                    body=b"<!doctype html><html><head><title>Soon back</title></head><body></body></html>",
                    headers={"Content-Type": "text/html", "ETag": '"page"'},
                )
            ),
        ),
    ),
    _one("empty for a day", between(3, 4, fixed(Answer(body=b"", headers={"ETag": '"empty"'})))),
    _one("bot challenge", between(3, 5, says(403, cf_mitigated="challenge"))),
)

TABLES = {
    "validators": VALIDATORS,
    "holds": LIMITS,
    "limits by rate": RATES,
    "wishes": WISHES,
    "moves": MOVES,
    "errors and oddities": TROUBLES,
    "images": IMAGES,
    "outages": OUTAGES,
}
KINDS = tuple(kind for kinds in TABLES.values() for kind in kinds if kinds is not OUTAGES)
READERS: tuple[tuple[Kind, ...], ...] = (
    RATES,
    tuple(kind for kind in KINDS if kind not in (*RATES, *IMAGES)),
    IMAGES,
    *((kind,) for kind in OUTAGES),
)
"""Kinds that one reader has. Waiting for a host with a limit turns the clock for all that its reader does,
and a provider with an outage is all that its reader sees."""
