"""The reader as one ASGI application: its layers, its routers, its answers to errors.

What a route does is in routers/, google_reader/ and pages/; what the server itself limits in connections.py.
"""

import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from rss_pipeline.api import problems
from rss_pipeline.api.answers import Answers
from rss_pipeline.api.asgi import Scope, header
from rss_pipeline.api.auth import session_key
from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.direct import is_passed_on
from rss_pipeline.api.document import complete
from rss_pipeline.api.google_reader import routes as google_reader
from rss_pipeline.api.google_reader.call import session_of
from rss_pipeline.api.hosts import ForwardedProto, OwnHosts, StrictTransport, own_hosts
from rss_pipeline.api.item_pages import MOST_BODIES_BYTES, ItemPages
from rss_pipeline.api.limits import Limits
from rss_pipeline.api.pages import routes as pages
from rss_pipeline.api.pages.account import lists_of_feeds
from rss_pipeline.api.pages.errors import PageErrors, failed
from rss_pipeline.api.pages.statistics import page as statistics
from rss_pipeline.api.pages.statistics.timed import Timed
from rss_pipeline.api.routers import (
    about,
    app_passwords,
    auth,
    feeds,
    images,
    items,
    marks,
    opml,
    preferences,
    search,
    sessions,
    subscribing,
    tasks,
)
from rss_pipeline.api.stores import Stores
from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.errors import NoSession
from rss_pipeline.pipeline.reading.bodies import Bodies

ROUTERS: tuple[APIRouter, ...] = (
    feeds.router,
    items.router,
    search.router,
    marks.router,
    images.router,
    subscribing.router,
    tasks.router,
    opml.router,
    preferences.router,
    auth.router,
    sessions.router,
    app_passwords.router,
    about.router,
)
"""Routers below /api. They are looked through in this order: what clients request often comes first."""
LARGER_BODIES: dict[str, int] = {
    **google_reader.LARGER_BODIES,
    **opml.LARGER_BODIES,
    **lists_of_feeds.LARGER_BODIES,
}
"""Bytes of a body by path, for addresses that take more than `limits.BODY_BYTES`."""

_VERSION = version("rss_pipeline")
_API_VERSION = "1"

DESCRIPTION = """\
Feeds, items, read states and stars of one user. Log in by `POST /api/auth/login`, then send the token with
every request as `Authorization: Bearer ...`. Errors are problem details (RFC 9457) with a `kind` for
programs. Answers with an `ETag` can be requested again with `If-None-Match`.
"""


def create_app(
    stores: Stores, *, clock: Clock = utc_now, is_passed_on: Callable[[Scope], bool] = is_passed_on
) -> FastAPI:
    """The application on these stores. `is_passed_on` looks at the sender of a request from this machine."""
    settings = stores.settings
    proxies = [str(each) for each in settings.reader_proxies]
    app = FastAPI(
        title="rss_pipeline reader",
        # Of the API, which strangers may see: the version of the program is for those who are logged in.
        version=_API_VERSION,
        description=DESCRIPTION,
        openapi_url=None,
        redirect_slashes=False,
        # The name of its function is an operation's id.
        generate_unique_id_function=lambda route: route.name,
        # Nothing is measured or sent, whatever other packages have set up in this process.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        middleware=[
            Middleware(StrictTransport),
            Middleware(Answers, failed=failed),
            Middleware(PageErrors),
            *(
                [Middleware(ForwardedProto), Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies)]
                if proxies
                else []
            ),
            Middleware(OwnHosts, own=own_hosts(settings)),
            Middleware(Limits, larger_bodies=LARGER_BODIES, sender=partial(_sender, stores, clock)),
        ],
    )
    app.state.stores = stores
    app.state.version = _VERSION
    app.state.clock = clock
    app.state.is_passed_on = is_passed_on
    app.state.bodies = Bodies(stores.objects, seconds=time.monotonic, most_bytes=MOST_BODIES_BYTES)
    app.state.item_pages = ItemPages(app.state.bodies, seconds=time.monotonic)
    # An embedded store reads for nothing; a remote one counts the rows.
    app.state.statistics = (
        Timed(lifetime=statistics.KEPT_SECONDS, seconds=time.monotonic) if stores.is_remote else None
    )
    problems.install(app)
    app.state.google_reader = google_reader.service_on(stores, clock=clock)
    app.router.routes.extend(google_reader.routes(app.state.google_reader))
    for router in ROUTERS:
        app.include_router(router, prefix="/api")
    for router in pages.ROUTERS:
        app.include_router(router)
    complete(app)
    return app


async def _sender(stores: Stores, clock: Clock, scope: Scope) -> str | None:
    """The id of the user who has sent a request, by the session that its headers name; None for nobody."""
    try:
        key = session_of(header(scope, b"authorization")) or session_key(scope, stores.secret, now=clock())
        await AsyncCaller(stores, key, clock).read()
    except NoSession:
        return None
    return key.user_id
