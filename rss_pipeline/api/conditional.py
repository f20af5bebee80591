"""Answers with an ETag, and 304 for a client that has them already (RFC 9110 13).

An answer belongs to its user: no cache in between may keep it, and its tag has to differ from another user's.
"""

import hashlib
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

CACHE_CONTROL = "private, no-cache"
_GZIP = "-gzip"


def version_tag(*parts: str | int | None) -> str:
    """A strong ETag of what an answer is made of: the user's id first, then versions.

    Everything that changes one byte of the answer must be in it, the address' parameters too.
    """
    return _tag("\0".join("" if part is None else str(part) for part in parts).encode())


def unchanged(request: Request, tag: str) -> Response | None:
    """The answer 304 if the client has what this tag names, or else None."""
    for candidate in _candidates(request):
        if candidate in ("*", tag, gzip_tag(tag.encode()).decode()):
            tag = tag if candidate == "*" else candidate
            return Response(status_code=304, headers={"ETag": tag, "Cache-Control": CACHE_CONTROL})
    return None


def json_answer(request: Request, content: Any, *, tag: str | None = None) -> Response:
    """`content` as JSON, or 304. Without a tag (`version_tag`) it is that of the bytes."""
    return bytes_answer(request, orjson.dumps(content), "application/json", tag=tag)


def bytes_answer(request: Request, body: bytes, media_type: str, *, tag: str | None = None) -> Response:
    """A body as it is, or 304."""
    tag = _tag(body) if tag is None else tag
    if (same := unchanged(request, tag)) is not None:
        return same
    headers = {"ETag": tag, "Cache-Control": CACHE_CONTROL}
    return Response(body, headers=headers, media_type=media_type)


def gzip_tag(tag: bytes) -> bytes:
    """The tag of the same answer, compressed: other bytes have another strong tag (RFC 9110 8.8.3.3)."""
    return tag[:-1] + _GZIP.encode() + b'"' if tag.endswith(b'"') and not tag.startswith(b"W/") else tag


def _candidates(request: Request) -> list[str]:
    """The tags of If-None-Match, which are compared weakly."""
    found = request.headers.getlist("if-none-match")
    return [part.strip().removeprefix("W/") for value in found for part in value.split(",")]


def _tag(content: bytes) -> str:
    return f'"{hashlib.blake2b(content, digest_size=16).hexdigest()}"'
