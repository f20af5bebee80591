"""Problems as pages: an ASGI layer that turns problem details at an address for people into HTML.

Who is not signed in is sent to /login, and back from there to what was to be read.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import orjson
from fastapi import Request
from starlette.responses import Response

from rss_pipeline.api.asgi import ASGIApp, Message, Receive, Scope, Send
from rss_pipeline.api.pages.addresses import HOME, is_page, local, requested
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import MEDIA_TYPE, ApiError

_FOR_PEOPLE: Mapping[str, tuple[str, str]] = {
    "not_found": ("Not found", "It may have been removed, or you no longer subscribe to its feed."),
    "method_not_allowed": (
        "This page does not support this request method",
        "Open it from the reader's own pages.",
    ),
    "foreign_origin": (
        "A page of another site sent this",
        "If you did: open the reader itself, and do it there. Behind a reverse proxy, the operator passes the"
        " Host header on and adds the name to those of the reader.",
    ),
    "malformed_request": ("The request cannot be read", "Go back and try again."),
    "unsupported_media_type": ("The form cannot be read", "Go back and send it from the reader's own page."),
    "body_too_large": ("That is too large", "Send less: a smaller file, a shorter text."),
    "address_too_long": (
        "The address is too long",
        "Search for less, or open a page from the list of feeds.",
    ),
    "invalid_request": ("A value cannot be used", "Go back, correct it, and send it again."),
    "value_refused": ("A value cannot be stored", "Go back and remove line breaks and control characters."),
    "too_many_requests": ("Too many requests", "Wait a little, then try again."),
    "too_busy": ("The reader is too busy", "Wait a few seconds, then try again."),
    "internal_error": ("The reader failed", "Try again. For the operator: the log has the reason."),
}
"""By kind of problem, title and what to do on a page: those of problems.py are for programs."""


class PageErrors:
    """An ASGI application that passes everything to `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        problem: list[Message] = []

        async def look(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_problem(message):
                problem.append(message)
            elif not problem:
                await send(message)
            elif message["type"] == "http.response.body":
                answer = _answer(Request(scope), problem[0], orjson.loads(message.get("body", b"")))
                await answer(scope, receive, send)

        await self._app(scope, receive, look)


def failed(scope: Scope, error: ApiError) -> ASGIApp:
    """The answer to a request at which the application failed: a page, or problem details for programs."""
    if not is_page(scope["path"]):
        return error.response()
    return _page(Request(scope), error.status, error.problem)


def _is_problem(head: Message) -> bool:
    return (b"content-type", MEDIA_TYPE.encode()) in head["headers"]


def _answer(request: Request, head: Message, problem: Mapping[str, Any]) -> ASGIApp:
    if problem["kind"] == "not_signed_in":
        return see_other(_login(request))
    answer = _page(request, head["status"], problem)
    for name, value in head["headers"]:
        if name in (b"allow", b"retry-after"):
            answer.headers[name.decode()] = value.decode("latin-1")
    return answer


def _page(request: Request, status: int, problem: Mapping[str, Any]) -> Response:
    title, what_to_do = _FOR_PEOPLE.get(problem["kind"], (problem["title"], problem["what_to_do"]))
    return page(
        request,
        "error.html",
        title=title,
        status=status,
        detail=problem["detail"],
        what_to_do=what_to_do,
        back=_back(request),
    )


def _login(request: Request) -> str:
    query = request.url.query
    here = requested(request.scope) + (f"?{query}" if query else "")
    return "/login" if request.method != "GET" or here == "/" else f"/login?next={quote(here, safe='/')}"


def _back(request: Request) -> str:
    """The page of ours from which a form came; the first page for what was opened by its address."""
    here = f"{request.scope['scheme']}://{request.headers.get('host', '')}/"
    sent_from = request.headers.get("referer", "")
    if request.method in ("GET", "HEAD") or not sent_from.startswith(here):
        return HOME
    return local(sent_from[len(here) - 1 :])
