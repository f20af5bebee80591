"""Helpers for statements: JSON parameters, values that every store takes, and the database's clock.

No statement is in here.
"""

import json
import re
import secrets
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""`json.dumps` would make one for each value."""
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def compact(value: Any) -> str:
    """JSON for a parameter: no blanks, and no escapes that would double Chinese and Japanese text.

    Raises:
        StorageRejected: U+0000, which JSON would carry past the database's own check, or a lone surrogate.
    """
    text = _ENCODER.encode(value)
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise StorageRejected("U+0000 cannot be stored: stores differ on it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise StorageRejected("a lone surrogate cannot be stored") from error
    return text


def storable(text: str) -> str:
    """A sentence may quote what a server sent; a failure that could not be recorded would end the run."""
    return text.replace("\0", "").encode(errors="replace").decode()


def seconds(value: timedelta | None) -> int | None:
    """Whole seconds of a duration."""
    return None if value is None else int(value.total_seconds())


def chunked(elements: Iterable[str], *, most: int = MAX_PARAMETER_BYTES) -> Iterator[str]:
    """JSON arrays of these JSON texts, each array of at most `most` bytes where its elements allow."""
    pending: list[str] = []
    size = 2
    for element in elements:
        length = len(element.encode()) + 1
        if pending and size + length > most:
            yield f"[{','.join(pending)}]"
            pending, size = [], 2
        pending.append(element)
        size += length
    if pending:
        yield f"[{','.join(pending)}]"


NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
"""The database's own clock."""
DB_NOW = f"coalesce(?, {NOW})"
"""The instant bound (for a test), or the database's own clock."""
LIVE_TOKENS = f"SELECT token FROM leases WHERE expires_at > {DB_NOW}"
"""Tokens of live leases. Binds the leases' clock."""
LIVE_TOKENS_NOW = f"SELECT token FROM leases WHERE expires_at > {NOW}"
"""Likewise, by the database's clock."""
EXPIRY = "strftime('%Y-%m-%dT%H:%M:%SZ', coalesce(?, 'now'), '+' || cast(? AS INTEGER) || ' seconds')"
"""So many seconds after `DB_NOW`."""
FIELD = "json_extract(v.value, '$.{}')"
"""A field of the JSON object `v.value`, to be formatted with its name."""


def number(sql: str) -> str:
    """The value of this SQL as a whole number: a field out of JSON, which is text in Postgres, or 1 and 0
    for a condition."""
    return f"CAST({sql} AS INTEGER)"


NUMBER_FIELD = number(FIELD)
"""A field of the JSON object `v.value` that is a whole number or a truth value, to be formatted likewise."""


def new_token() -> str:
    """A lease's name."""
    return secrets.token_hex(16)


HIGHEST = "coalesce((SELECT value FROM sequences WHERE name = 'items'), 0)"
"""The highest number of arrival that was given so far (storage.items.cursor)."""
