"""The head of a response without its malformed header lines, as h11 accepts it. Pure.

Browsers, curl and requests leave out a line that is no header; h11 refuses the whole response. A malformed
line that may concern the length or the coding of the body is not left out: where it does not say what it
seems to say, the body would be cut at the wrong place (request smuggling, RFC 9112 11.2).
"""

import re
from collections.abc import Iterator, Sequence

from rss_pipeline.collector.http.errors import FetchError

_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_NOT_IN_A_VALUE = re.compile(rb"[\x00\r\v\f]")
_NOT_A_LETTER = re.compile(rb"[^a-z]+")
_FRAMING = {
    b"contentlength": "Content-Length",
    b"transferencoding": "Transfer-Encoding",
    b"contentencoding": "Content-Encoding",
}
"""Names by their letters alone: `Content Length` and a name in quotes count as well."""


def wellformed_head(head: bytes) -> bytes:
    """A head, from its status line to its blank line, without the header lines that are malformed.

    Blanks before the colon are removed (RFC 9112 5.1). A folded line (RFC 9112 5.2) belongs to the line
    before it. Raises `FetchError` if a malformed line may concern the length or the coding of the body.
    """
    status, *lines, last, end = head.split(b"\n")
    kept = [status]
    for first, *folded in _fields(lines):
        name, colon, value = first.partition(b":")
        if _is_wellformed(name, colon, value, *folded):
            kept += [first, *folded]
            continue
        _refuse_framing([first, *folded])
        name = name.rstrip(b" \t")
        if _is_wellformed(name, colon, value, *folded):
            kept += [name + colon + value, *folded]
    return head if kept == [status, *lines] else b"\n".join([*kept, last, end])


def _fields(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Each header line with the folded lines after it."""
    field: list[bytes] = []
    for line in lines:
        if field and not line.startswith((b" ", b"\t")):
            yield field
            field = []
        field.append(line)
    if field:
        yield field


def _is_wellformed(name: bytes, colon: bytes, *values: bytes) -> bool:
    return (
        bool(colon)
        and _NAME.fullmatch(name) is not None
        and not any(_NOT_IN_A_VALUE.search(value.removesuffix(b"\r")) for value in values)
    )


def _refuse_framing(field: Sequence[bytes]) -> None:
    """Raise `FetchError` for a malformed line that a server or a cache may take for one about the body."""
    for line in field:
        text = line.removesuffix(b"\r")
        # Behind a control character another line may begin, for whoever takes it for a line break.
        name = text if _NOT_IN_A_VALUE.search(text) else text.partition(b":")[0]
        letters = _NOT_A_LETTER.sub(b"", name.lower())
        for framing, known in _FRAMING.items():
            if framing in letters:
                raise FetchError(
                    "connect",
                    f"The server sent a malformed header line about its body ({known}), so that nobody can "
                    "tell where the body ends or how it is coded; the publisher has to fix it.",
                )
