"""The addresses about the API itself: whether it is there, its OpenAPI document, and a page that lists it.

The document is completed by what FastAPI does not know: problems, how to sign in.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.auth import signed_in
from rss_pipeline.api.conditional import bytes_answer, json_answer
from rss_pipeline.api.problems import KINDS, MEDIA_TYPE, SCHEMA, ApiError
from rss_pipeline.api.request_values import LINE_PATTERN
from rss_pipeline.api.routing import api_router
from rss_pipeline.errors import InfrastructureError, NoSession
from rss_pipeline.reader.query import NOTHING

PUBLIC: dict[str, Any] = {"security": []}
"""`openapi_extra` of a route that needs no login."""

_SCHEMES: Mapping[str, Any] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "The token of `POST /api/auth/login`: for programs.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "rss_session",
        "description": "The cookie of `POST /api/auth/login` with `cookie: true`: for browsers, only from"
        " pages of this server. On https its name is `__Host-rss_session`.",
    },
}
_PROBLEM: Mapping[str, Any] = {
    "description": "Every other error.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def complete(app: FastAPI) -> None:
    """Let `app.openapi()` give the completed document."""
    plain = app.openapi
    done: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not done:
            done.update(_completed(plain()))
        return done

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    schemas["Problem"] = SCHEMA
    components["securitySchemes"] = _SCHEMES
    document["security"] = [{name: []} for name in _SCHEMES]
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    parameter["schema"].setdefault("pattern", LINE_PATTERN)
            responses = operation["responses"]
            # FastAPI's own, which no answer of ours has.
            if _is_fastapi_s(responses.get("422", {})):
                responses["422"] = {**_PROBLEM, "description": "A value cannot be used"}
            responses.setdefault("default", _PROBLEM)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return document


def _is_fastapi_s(response: Mapping[str, Any]) -> bool:
    return bool(response.get("description") == "Validation Error")


# The page that lists the API and explains its problems, made of the OpenAPI document; no script is in it.

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #8884; }
code { white-space: nowrap; }
"""
_POLICY = (
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{}'"
)


def _docs_page(request: Request, document: dict[str, Any]) -> Response:
    """The page as an answer."""
    answer = bytes_answer(request, _page(document).encode(), "text/html")
    digest = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    answer.headers["Content-Security-Policy"] = _POLICY.format(digest)
    return answer


def _page(document: dict[str, Any]) -> str:
    title = escape(document["info"]["title"])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        '<p>Every address with its parameters is in <a href="/api/openapi.json">/api/openapi.json</a>, an'
        " OpenAPI document.</p>"
        f"{_paragraphs(document['info']['description'])}"
        "<h2>Addresses</h2><table><tr><th>address</th><th>what it does</th></tr>"
        f"{''.join(_operations(document))}</table>"
        "<h2>Problems</h2><table><tr><th>kind</th><th>status</th><th>meaning</th><th>what to do</th></tr>"
        f"{''.join(_problems())}</table></body></html>\n"
    )


def _operations(document: dict[str, Any]) -> list[str]:
    return [
        f"<tr><td><code>{method.upper()} {escape(path)}</code></td>"
        f"<td>{_paragraphs(operation.get('description') or operation['summary'])}</td></tr>"
        for path, operations in sorted(document["paths"].items())
        for method, operation in operations.items()
    ]


def _problems() -> list[str]:
    return [
        f'<tr id="{escape(name)}"><td><code>{escape(name)}</code></td><td>{kind.status}</td>'
        f"<td>{escape(kind.title)}</td><td>{escape(kind.what_to_do)}</td></tr>"
        for name, kind in KINDS.items()
    ]


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part)}</p>" for part in text.strip().split("\n\n"))


# The addresses.

router = api_router("about")


class About(BaseModel):
    """The program that answers."""

    name: str = Field(description="Always rss_pipeline.")
    version: str | None = Field(description="Its version; null without a login.")


@router.get("/about", response_model=About, openapi_extra=PUBLIC)
async def about(request: Request) -> About:
    """The name of the reader, and its version for who is logged in: for a check that it answers. Without a
    login no store is used."""
    try:
        caller = await signed_in(request)
        await caller.ask(NOTHING)
    except (ApiError, NoSession, InfrastructureError):
        return About(name="rss_pipeline", version=None)
    return About(name="rss_pipeline", version=request.app.state.version)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    return json_answer(request, request.app.openapi())


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    return _docs_page(request, request.app.openapi())
