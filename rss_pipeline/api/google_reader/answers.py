"""The answers of the calls: text, JSON, and a sentence with a status for what was refused."""

from typing import Any

import orjson
from starlette.responses import Response

from rss_pipeline.api.google_reader.refused import Refused

PRIVATE = {"Cache-Control": "private, no-cache"}


def ok() -> Response:
    """`OK` without a newline: newsboat and Liferea compare the whole body."""
    return text("OK")


def text(body: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A text, which no client may take for HTML."""
    return Response(body, status_code=status, headers=headers, media_type="text/plain")


def as_json(content: Any) -> Response:
    """Content that changes with each request; others have an ETag (`conditional.json_answer`)."""
    return Response(orjson.dumps(content), headers=PRIVATE, media_type="application/json")


def refusal(refused: Refused) -> Response:
    """The sentence of what was refused, as text: clients show it, or their logs do."""
    return text(f"{refused.sentence}\n", refused.status, refused.headers)
