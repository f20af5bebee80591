"""The answers of the calls: text, JSON, and a sentence with a status for what was refused."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.answers import GZIP_FROM_BYTES
from rss_pipeline.api.gzip_member import Packed, gzip, plain

# A request of a Google Reader client that is refused: a status, and a sentence for its user.


class RefusedCall(Exception):
    """Ends a request with this status; the sentence is the body of the answer."""

    def __init__(self, status: int, sentence: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}


def not_understood(sentence: str) -> RefusedCall:
    """Status 400."""
    return RefusedCall(400, sentence)


PRIVATE = {"Cache-Control": "private, no-cache"}
IN_THREAD_FROM_BYTES = 1_000_000


def ok() -> Response:
    """`OK` without a newline: newsboat and Liferea compare the whole body."""
    return text("OK")


def text(body: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A text, which no client may take for HTML."""
    return Response(body, status_code=status, headers=headers, media_type="text/plain")


def as_json(content: Any) -> Response:
    """Content that changes with each request; others have an ETag (`conditional.json_answer`)."""
    return Response(orjson.dumps(content), headers=PRIVATE, media_type="application/json")


async def packed_json(parts: Sequence[Packed], *, as_gzip: bool) -> Response:
    """The same from parts, which are compressed already if it is sent so."""
    size = sum([part.length for part in parts])
    headers = PRIVATE
    make: Callable[[Sequence[Packed]], bytes] = plain
    if size >= GZIP_FROM_BYTES and as_gzip:
        headers, make = {**PRIVATE, "Content-Encoding": "gzip"}, gzip
    body = make(parts) if size < IN_THREAD_FROM_BYTES else await run_in_threadpool(make, parts)
    return Response(body, headers=headers, media_type="application/json")


def refusal(refused: RefusedCall) -> Response:
    """The sentence of what was refused, as text: clients show it, or their logs do."""
    return text(f"{refused.sentence}\n", refused.status, refused.headers)
