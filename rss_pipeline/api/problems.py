"""Errors of the API: problem details (RFC 9457) with a kind for programs and what to do for people.

All kinds are in `KINDS`; the API's own page lists them. No answer repeats what was sent: it may hold a
password.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from rss_pipeline.errors import InfrastructureError, NoSession, StorageRejected
from rss_pipeline.features import FEATURES

MEDIA_TYPE = "application/problem+json"
PAGE = "/api/docs"
"""The page that explains each kind; `type` is a link into it."""

_MOST_MISTAKES = 20
_NAME = re.compile(r"[a-z]{2,20}(?:_[a-z]{1,20}){0,5}")
_RETRY_SECONDS = 5

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: its HTTP status, and two sentences for people."""

    status: int
    title: str
    what_to_do: str


KINDS: Mapping[str, Kind] = {
    "malformed_request": Kind(400, "The request cannot be read", "Correct the request; send text as UTF-8."),
    "not_signed_in": Kind(
        401,
        "Not signed in",
        "Log in by POST /api/auth/login and send the token as `Authorization: Bearer ...`.",
    ),
    "login_refused": Kind(401, "The login was refused", "Check name and password."),
    "foreign_origin": Kind(
        403,
        "A page of another site sent this",
        "Open the reader's own page, or send the token as `Authorization: Bearer ...` instead of a cookie."
        " Behind a reverse proxy, pass the Host header on and add the name to those of the reader.",
    ),
    "not_found": Kind(404, "Not found", "Check the address; /api/docs lists all of them."),
    "method_not_allowed": Kind(
        405, "The address does not take this method", "The header Allow has those it takes."
    ),
    "feed_on_hold": Kind(
        409, "The feed's server wants no requests now", "Wait as long as the header Retry-After says."
    ),
    "too_many_feeds": Kind(
        409, "You have reached the limit of subscriptions", "Unsubscribe from what you no longer read."
    ),
    "address_refused": Kind(
        422,
        "The address cannot be subscribed",
        "Send the public web address of a feed or of its page, without a password.",
    ),
    "request_too_slow": Kind(408, "The request did not arrive in time", "Send it again."),
    "conflict": Kind(409, "It is not possible as things are now", "Read the current state, then try again."),
    "body_too_large": Kind(413, "The body is too large", "Send less in one request."),
    "address_too_long": Kind(414, "The address is too long", "Send values in the body, or fewer of them."),
    "unsupported_media_type": Kind(
        415, "The body's type is not taken", "Send the Content-Type that /api/docs names, uncompressed."
    ),
    "wrong_host": Kind(
        421,
        "The Host header names another server",
        "If the name is yours (a reverse proxy, a tunnel), add it to those of the reader: its documentation"
        " for operators says how.",
    ),
    "invalid_request": Kind(422, "A value cannot be used", "Correct the values that `errors` names."),
    "value_refused": Kind(
        422, "A value cannot be stored", "Remove control characters and broken characters."
    ),
    "too_many_requests": Kind(429, "Too many requests", "Wait as long as the header Retry-After says."),
    "head_too_large": Kind(
        431, "The request's head is too large", "Send fewer or shorter headers and cookies."
    ),
    "internal_error": Kind(500, "The reader failed", "Look into its log; the request may be sent again."),
    "not_implemented": Kind(501, "Unknown endpoint", "/api/docs lists what is."),
    "too_busy": Kind(
        503, "The reader is too busy", "Wait as long as the header Retry-After says, then try again."
    ),
    **{name: Kind(*kind) for feature in FEATURES for name, kind in feature.reader_problems.items()},
    "store_unavailable": Kind(
        503,
        "A store cannot be reached",
        "Try again soon; the operator's log has the cause.",
    ),
}
"""By the name that programs read in `kind`."""

_KINDS_BY_STATUS = {
    400: "malformed_request",
    401: "not_signed_in",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
}

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "Problem details, RFC 9457.",
    "required": ["type", "kind", "title", "status", "detail", "what_to_do"],
    "properties": {
        "type": {"type": "string", "description": "A link to the explanation of this kind."},
        "kind": {"type": "string", "description": "The kind, for programs.", "enum": list(KINDS)},
        "title": {"type": "string", "description": "The kind in words."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "What is wrong with this request."},
        "what_to_do": {"type": "string", "description": "How to go on."},
        "errors": {
            "type": "array",
            "description": "Each value that cannot be used.",
            "items": {
                "type": "object",
                "required": ["where", "message"],
                "properties": {"where": {"type": "string"}, "message": {"type": "string"}},
            },
        },
        "until": {"type": "string", "description": "The end of a hold, in UTC."},
        "retry_after": {"type": "integer", "description": "Seconds to wait, as in the header Retry-After."},
    },
}
"""The JSON schema of a problem, for the OpenAPI document."""


class ApiError(Exception):
    """A request that ends with a problem.

    `kind` is one of `KINDS`; `what_to_do` replaces that of the kind; `members` are more members of the
    problem; `retry_after` is in seconds.
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        what_to_do: str | None = None,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(kind, detail)
        known = KINDS[kind]
        self.status = known.status
        self.headers = dict(headers or {})
        self.problem: dict[str, object] = {
            "type": f"{PAGE}#{kind}",
            "kind": kind,
            "title": known.title,
            "status": known.status,
            "detail": detail,
            "what_to_do": what_to_do or known.what_to_do,
            **(members or {}),
        }
        if retry_after is not None:
            self.problem["retry_after"] = retry_after
            self.headers["Retry-After"] = str(retry_after)
        if known.status == 401:
            # RFC 9110 11.6.1 demands one; no scheme that makes a browser prompt for a password itself.
            self.headers.setdefault("WWW-Authenticate", 'Bearer realm="rss-pipeline"')

    def response(self) -> Response:
        return Response(
            orjson.dumps(self.problem), status_code=self.status, headers=self.headers, media_type=MEDIA_TYPE
        )


def install(app: FastAPI) -> None:
    """Let the application answer every error with a problem."""
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(NoSession, _no_session)
    app.add_exception_handler(StorageRejected, _refused)
    app.add_exception_handler(InfrastructureError, _unavailable)


def documented(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that ends with problems of these kinds."""
    by_status: dict[int, list[str]] = {}
    for kind in kinds:
        by_status.setdefault(KINDS[kind].status, []).append(kind)
    return {
        status: {
            "description": "; ".join(KINDS[kind].title for kind in names),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status, names in by_status.items()
    }


async def _api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error.response()


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    mistakes = error.errors()
    if any(mistake["type"] == "json_invalid" for mistake in mistakes):
        return ApiError("malformed_request", "The body is not JSON.").response()
    found = [_mistake(mistake) for mistake in mistakes[:_MOST_MISTAKES]]
    more = f" and {len(mistakes) - len(found)} more" if len(mistakes) > len(found) else ""
    where = ", ".join(mistake["where"] for mistake in found)
    return ApiError(
        "invalid_request", f"These values cannot be used: {where}{more}.", members={"errors": found}
    ).response()


def _mistake(mistake: Mapping[str, Any]) -> dict[str, str]:
    """The place and the kind of a mistake, without the value: it may be a secret. A name that nothing here
    has is repeated if it looks like one."""
    parts: Sequence[object] = mistake["loc"]
    message = str(mistake["msg"])[:300]
    if mistake["type"] == "extra_forbidden":
        message = "No value has this name here; /api/docs lists those that are known"
        if not _NAME.fullmatch(str(parts[-1])):
            parts = [*parts[:-1], "(unknown)"]
    where = ".".join(str(part)[:60] for part in parts[:8])
    return {"where": _printable(where), "message": _printable(message)}


def _printable(text: str) -> str:
    """Lone surrogates and control characters cannot be written into an answer."""
    return "".join(character if character.isprintable() else "?" for character in text)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405 and (methods := _methods(request)):
        # Starlette names those of one route only, and an address may have several.
        error.headers = {"Allow": ", ".join(sorted(methods))}
    kind = _KINDS_BY_STATUS.get(error.status_code)
    if kind is None:
        kind = "malformed_request" if error.status_code < 500 else "internal_error"
    return ApiError(kind, f"{KINDS[kind].title}.", headers=error.headers).response()


def _methods(request: Request) -> set[str]:
    """The methods of the address of a request, by the OpenAPI document: one without variables is first."""
    paths, path = request.app.openapi()["paths"], request.scope["path"]
    found = [path] if path in paths else [each for each in paths if compile_path(each)[0].fullmatch(path)]
    methods = {method.upper() for each in found for method in paths[each]}
    return methods | ({"HEAD"} if "GET" in methods else set())


async def _no_session(_: Request, __: Exception) -> Response:
    return ApiError("not_signed_in", "You are not logged in, or no longer.").response()


async def _refused(_: Request, error: Exception) -> Response:
    # The statement's words are for logs; the position of a parameter means nothing to a caller.
    _logger.info("a value was refused: %s", error)
    return ApiError("value_refused", "The database refused a value of this request.").response()


async def _unavailable(request: Request, error: Exception) -> Response:
    _logger.error("%s %s: %s", request.method, request.url.path, error)
    return ApiError(
        "store_unavailable", "The database or the object store cannot work now.", retry_after=_RETRY_SECONDS
    ).response()
