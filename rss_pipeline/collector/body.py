"""A body on its way from the wire to a file: undone, counted, hashed, never longer than it may be.

No decision about what it is; the parser reads it later.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline.collector.headers import charset_of, content_codings
from rss_pipeline.collector.http import Answer, FetchPolicy
from rss_pipeline.collector.inflate import Gunzip
from rss_pipeline.collector.trouble import Trouble
from rss_pipeline.errors import InfrastructureError


@dataclass(frozen=True, slots=True)
class Body:
    """What lies in the spool: its size and its hash as `Document.content_hash` defines it."""

    size: int
    content_hash: str


async def save_body(answer: Answer, path: Path, *, policy: FetchPolicy) -> Body:
    """Stream the body to `path`. Raises `Trouble`; the caller removes what was begun.

    A file that cannot be written is no feed's fault: `InfrastructureError`.
    """
    gunzip = _decoder(answer)
    announced = answer.head.first("content-length") or ""
    # Refused before a byte of it is read; h11 has made sure that it is a number.
    if announced.isdecimal() and int(announced[:20]) > policy.max_wire_bytes:
        raise _too_large("is", int(announced[:20]), policy.max_wire_bytes)
    wire = size = 0
    digest = hashlib.sha256()
    try:
        with path.open("wb") as file:
            async for chunk in answer.chunks():
                wire += len(chunk)
                if wire > policy.max_wire_bytes:
                    raise _too_large("is more than", policy.max_wire_bytes, policy.max_wire_bytes)
                pieces: Iterable[bytes] = (chunk,) if gunzip is None else gunzip.feed(chunk)
                for piece in pieces:
                    size += len(piece)
                    if size > policy.max_body_bytes:
                        raise _too_large("unpacks to more than", policy.max_body_bytes, policy.max_body_bytes)
                    digest.update(piece)
                    file.write(piece)
            if gunzip is not None:
                gunzip.finish()
    except OSError as error:
        raise InfrastructureError(
            f"the spool file {path} cannot be written: {error.strerror or error}"
        ) from error
    if size == 0:
        raise Trouble("empty_body", "200 OK, but the document is empty.", status=200, body_bytes=0)
    digest.update(b"\0" + charset_of(answer.head.first("content-type")).encode("utf-8"))
    return Body(size, digest.hexdigest())


def _decoder(answer: Answer) -> Gunzip | None:
    codings = content_codings(answer.head.list("content-encoding"))
    if not codings:
        return None
    if len(codings) > 1:
        raise Trouble(
            "bad_compression", f"The answer is packed {len(codings)} times over; it is not unpacked."
        )
    if codings != ["gzip"]:
        raise Trouble(
            "bad_compression",
            f"The answer is packed as {codings[0][:20]!r}, although only gzip was asked for; "
            "the publisher has to mend it.",
        )
    return Gunzip()


def _too_large(what: str, size: int, limit: int) -> Trouble:
    return Trouble("too_large", f"The document {what} {size:,} bytes; at most {limit:,} are read.")
