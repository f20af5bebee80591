"""Answers that several routers give, and their descriptions for the OpenAPI document."""

from typing import Any

import orjson
from starlette.responses import Response

from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.reader.refresh import (
    Held,
    NotPolled,
    NotSubscribed,
    Queued,
    RefreshAnswer,
    TooMany,
    VisitRunning,
)

NOT_CHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "What the ETag in If-None-Match names is still so; no body."}
}
READS = documented("not_signed_in", "foreign_origin")
CHANGE_KINDS = (
    "malformed_request",
    "not_signed_in",
    "foreign_origin",
    "not_found",
    "invalid_request",
    "value_refused",
)
CHANGES = documented(*CHANGE_KINDS)


def json_of(content: object, *, status: int = 200) -> Response:
    """An answer to a request that changed something."""
    return Response(orjson.dumps(content), status_code=status, media_type="application/json")


def no_feed() -> ApiError:
    """The answer for another's feed, an unknown one, and what is no id."""
    return ApiError(
        "not_found", "You subscribe to no feed with this id.", what_to_do="GET /api/feeds lists your feeds."
    )


def begun(answer: RefreshAnswer) -> Queued | VisitRunning | Held:
    """The visit that was requested. Raise ApiError where there will be none, for a program or a person."""
    match answer:
        case TooMany(retry_after=seconds):
            raise ApiError("too_many_requests", "Too many requests in an hour.", retry_after=seconds)
        case NotPolled(message=message):
            raise ApiError("conflict", message, what_to_do="Write to the operator of this server.")
        case NotSubscribed():
            raise no_feed()
        case Queued() | VisitRunning() | Held():
            return answer


def no_item() -> ApiError:
    """The answer for an item of another's feed, an unknown one, and what is no id."""
    return ApiError(
        "not_found",
        "Your feeds have no item of this id.",
        what_to_do="GET /api/items lists your items; old ones are removed after some time.",
    )
