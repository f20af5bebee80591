"""Problems as pages: an ASGI layer that turns problem details at an address for people into HTML.

Who is not signed in is sent to /login, and back from there to what was to be read.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import orjson
from fastapi import Request

from rss_pipeline.api.asgi import ASGIApp, Message, Receive, Scope, Send
from rss_pipeline.api.pages.addresses import HOME, is_page
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import MEDIA_TYPE


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


def _is_problem(head: Message) -> bool:
    return (b"content-type", MEDIA_TYPE.encode()) in head["headers"]


def _answer(request: Request, head: Message, problem: Mapping[str, Any]) -> ASGIApp:
    if problem["kind"] == "not_signed_in":
        return see_other(_login(request))
    answer = page(
        request, "error.html", title=problem["title"], status=head["status"], problem=problem, home=HOME
    )
    for name, value in head["headers"]:
        if name in (b"allow", b"retry-after"):
            answer.headers[name.decode()] = value.decode("latin-1")
    return answer


def _login(request: Request) -> str:
    query = request.url.query
    here = request.url.path + (f"?{query}" if query else "")
    return "/login" if request.method != "GET" or here == "/" else f"/login?next={quote(here, safe='/')}"
