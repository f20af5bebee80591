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


def origins(scope: Mapping[str, Any]) -> list[str]:
    """The values of Origin. A page with `Referrer-Policy: no-referrer`, which some proxies add to all
    answers, sends `null`; it says nothing where Sec-Fetch-Site says that the page is of the same origin.

    https://fetch.spec.whatwg.org/#append-a-request-origin-header
    """
    found = headers_named(scope, b"origin")
    is_same = set(headers_named(scope, b"sec-fetch-site")) == {"same-origin"}
    return [origin for origin in found if not (is_same and origin == "null")]
