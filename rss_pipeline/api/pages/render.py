"""Templates to pages.

How a page is added:

1. A module here with `router = APIRouter(include_in_schema=False)`. A page that needs a login has the
   parameter `caller: SignedIn` of api/auth.py: a request without a session goes to /login. It reads by
   `frame, found = await read_frame(caller, query)` (frame.py), in one batch, where the query is a function of
   rss_pipeline/reader/, and answers
   `page(request, "name.html", frame=frame, title="...", found=found)`.
2. A form sends POST to a route that reads `await form_fields(request)` (forms.py), writes by
   `await caller.change(act)`, where the act is a function of rss_pipeline/reader/, and answers
   `see_other(local(fields.get("back")))`. That it comes from a page of ours is checked with `SignedIn`.
   `here` is the address of the page that is rendered.
3. A template that extends `base.html`: `{% block main %}` with an `<h1>`. Values are escaped. Text of
   publishers gets `dir="auto"`; `{{ at | when }}` is a `<time>`; addresses are `feed_url(id)`,
   `folder_url(name)`, `item_url(id)`, `static_url(name)`. The style sheet has `.panel`, `.form`, `.table`,
   `.button`, `.notice`. No style and no script is in a template: the policy of pages refuses both.
4. The router in `PAGES` of api/app.py, an address with a variable behind those without; of a feature, in
   its `reader_pages`, with its templates in its folder: `page(request, "search/search.html", ...)`.

An error is an `ApiError`, as in the JSON API: error_pages.py makes a page of it.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.responses import Response

from rss_pipeline import features
from rss_pipeline.api.answers import gzipped, takes_gzip
from rss_pipeline.api.hosts import is_https
from rss_pipeline.api.pages.addresses import feed_url, folder_url, item_url, requested
from rss_pipeline.api.pages.frame import Frame
from rss_pipeline.api.problems import ApiError
from rss_pipeline.collector.models.clock import instant, rough
from rss_pipeline.collector.sanitize.embeds import FRAME_HOSTS
from rss_pipeline.collector.sanitize.text import title_line
from rss_pipeline.features.packages import is_installed
from rss_pipeline.reader.accounts.preferences import Preferences
from rss_pipeline.reader.images import public_images
from rss_pipeline.reader.stores import Stores

# The files of the pages: style sheets, scripts, an icon. Their address changes with their bytes.

router = APIRouter()

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _File:
    url: str
    media_type: str
    body: bytes
    gzip: bytes


def _read() -> Mapping[str, _File]:
    found = {}
    folders = (_FOLDER, *(Path(features.__file__).parent / feature.name for feature in features.FEATURES))
    for path in sorted(path for folder in folders for path in folder.iterdir()):
        if path.suffix in _TYPES:
            body = path.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:16]
            url = f"/static/{digest}/{path.name}"
            found[path.name] = _File(url, _TYPES[path.suffix], body, gzipped(body, is_kept=True))
    return found


_FILES = _read()


def static_url(name: str) -> str:
    """The address of a file, which a browser may keep for ever. Raises KeyError for a name that is none."""
    return _FILES[name].url


@router.get("/static/{version}/{name}", include_in_schema=False)
async def read(request: Request, version: str, name: str) -> Response:
    """A file. A page of before an update requests an address of before: it gets what is there, for now."""
    file = _FILES.get(name)
    if file is None:
        raise ApiError("not_found", "The reader has no such file.")
    is_current = file.url == f"/static/{version}/{name}"
    headers = {"Cache-Control": _FOREVER if is_current else "no-cache", "Vary": "Accept-Encoding"}
    if takes_gzip(request.scope) and len(file.gzip) < len(file.body):
        headers["Content-Encoding"] = "gzip"
        return Response(file.gzip, headers=headers, media_type=file.media_type)
    return Response(file.body, headers=headers, media_type=file.media_type)


NAME = "rss_pipeline"
STATE_COOKIE = "state"
_DEFAULTS = Preferences()
_TITLE_CHARACTERS = 300


def page(
    request: Request,
    template: str,
    *,
    title: str,
    frame: Frame | None = None,
    status: int = 200,
    cache: str | None = None,
    path: str | None = None,
    retry_after: int | None = None,
    **values: object,
) -> Response:
    """A page as an answer; without a frame it is the same for everybody. `cache` takes the place of the
    header Cache-Control of all pages; `path` is the address that the column shows as the current one. With
    `retry_after`, in seconds, it says that there were too many attempts."""
    preferences = _DEFAULTS if frame is None else frame.preferences
    html = _TEMPLATES.get_template(template).render(
        title=title,
        frame=frame,
        preferences=preferences,
        here=_here(request),
        path=requested(request.scope) if path is None else path,
        now=request.app.state.clock(),
        **values,
    )
    headers = dict(page_headers(request.app.state.stores, publisher_images=preferences.publisher_images))
    if cache is not None:
        headers["Cache-Control"] = cache
    if retry_after is not None:
        status, headers["Retry-After"] = 429, str(retry_after)
    answer = Response(html, status_code=status, headers=headers, media_type="text/html")
    if frame is not None and request.cookies.get(STATE_COOKIE) != str(frame.state):
        # Chromium keeps pages as they are in spite of `no-store`, until a cookie changes that no script sees.
        answer.set_cookie(
            STATE_COOKIE, str(frame.state), secure=is_https(request.scope), httponly=True, samesite="lax"
        )
    return answer


def see_other(address: str) -> Response:
    """The answer to a form: the browser opens this page."""
    return Response(status_code=303, headers={"Location": address})


def _here(request: Request) -> str:
    """The address of the page, to come back to."""
    query = request.url.query
    return requested(request.scope) + (f"?{query}" if query else "")


@pass_context
def _when(context: Context, at: datetime | None) -> Markup:
    """An instant as `<time>`; the script puts it into the reader's zone."""
    if at is None:
        return Markup("")
    utc = at.astimezone(UTC)
    full = f"{utc:%-d %B %Y, %H:%M} UTC"
    shown = full
    if context["preferences"].dates == "relative":
        shown = age(utc, context["now"])
    # Nothing in it needs to be escaped, which takes five times as long as the rest.
    return Markup(f'<time datetime="{instant(utc)}" title="{full}">{shown}</time>')


def _on(at: datetime | None) -> Markup:
    """An instant as `<time>` that is no age, whatever the user prefers: `since 14 November`."""
    if at is None:
        return Markup("")
    utc = at.astimezone(UTC)
    return Markup('<time class="exact" datetime="{}">{}</time>').format(
        instant(utc), f"{utc:%-d %B %Y, %H:%M} UTC"
    )


def age(at: datetime, now: datetime) -> str:
    """`now`, `5 min`, `3 h`, `2 d`, then the date: `14 Nov`, `14 Nov 2024`. The next two days are
    `in 5 min`, `in 3 h`."""
    span = now - at
    if timedelta(minutes=1) <= -span < timedelta(days=2):
        return f"in {rough(-span)}"
    if timedelta(minutes=-1) < span < timedelta(minutes=1):
        return "now"
    if timedelta() <= span < timedelta(hours=1):
        return f"{span // timedelta(minutes=1)} min"
    if timedelta() <= span < timedelta(days=1):
        return f"{span // timedelta(hours=1)} h"
    if timedelta() <= span < timedelta(days=7):
        return f"{span.days} d"
    return f"{at:%-d %b}" if at.year == now.year else f"{at:%-d %b %Y}"


def _of_features(place: str, *values: object) -> Markup:
    """The parts of features at this place of a page (`Feature.reader_page_parts`)."""
    return Markup("").join(macro(*values) for macro in _macros(place))


@cache
def _macros(place: str) -> list[Callable[..., Markup]]:
    modules = [
        _TEMPLATES.get_template(feature.reader_page_parts).module
        for feature in features.FEATURES
        if feature.reader_page_parts is not None
    ]
    return [macro for module in modules if (macro := getattr(module, place, None)) is not None]


def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader([Path(__file__).parent / "templates", Path(features.__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.globals |= {
        "name": NAME,
        "feed_url": feed_url,
        "folder_url": folder_url,
        "is_installed": is_installed,
        "item_url": item_url,
        "of_features": _of_features,
        "settings_of_features": [
            entry for feature in features.FEATURES for entry in feature.reader_settings.items()
        ],
        "static_url": static_url,
    }
    found.filters["when"] = _when
    found.filters["on"] = _on
    found.filters["title_line"] = partial(title_line, limit=_TITLE_CHARACTERS)
    return found


_TEMPLATES = _environment()


# Headers of every page, above all the Content-Security-Policy: what a page may load and to whom it sends.


def page_headers(stores: Stores, *, publisher_images: bool = False) -> Mapping[str, str]:
    """The headers of a page of the reader on these stores, with or without images that publishers send.

    `no-store`, because a browser takes whatever it keeps when somebody goes back, also what has to be
    revalidated (RFC 9111 4.2.1 lets it): a list would show as unread what was read from it.

    `same-origin` says nothing to a publisher, and lets browsers send Origin with our own forms: with
    `no-referrer` they send `null` (https://fetch.spec.whatwg.org/#append-a-request-origin-header).
    """
    return {
        "Content-Security-Policy": content_policy(stores, publisher_images=publisher_images),
        "Referrer-Policy": "same-origin",
        "Cache-Control": "private, no-store",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "Cross-Origin-Opener-Policy": "same-origin",
    }


def content_policy(stores: Stores, *, publisher_images: bool = False) -> str:
    """The policy. Images of publishers are allowed where bodies have them (reader/page_html.py): by
    the user's preference. Their audio and video comes only once somebody plays it, and so do the frames of
    players, which the page's script makes then."""
    directives = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": " ".join(
            ["'self'", "data:", *(["https:", "http:"] if publisher_images else _public_images(stores))]
        ),
        "media-src": "'self' https: http:",
        "frame-src": " ".join(FRAME_HOSTS),
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


def _public_images(stores: Stores) -> list[str]:
    url = public_images(stores.objects)
    return [] if url is None else [url]
