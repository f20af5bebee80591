"""Headers of ASGI requests: their values, and how a sentence shows them."""

from collections.abc import Mapping
from typing import Any

_SHOWN = 80
"""Characters of a value that a sentence shows."""


def headers_named(scope: Mapping[str, Any], name: bytes) -> list[str]:
    """All values of a request header, by its name in lower case, as ASGI servers give names."""
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


def shown(values: list[str], *, without: str = "(none)") -> str:
    """The sent values for a sentence: printable, and not long; `without` if there is none."""
    text = ", ".join(values) or without
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text[:_SHOWN])
