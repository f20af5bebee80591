"""The types of ASGI, and small readings of its messages that the layers share."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["ASGIApp", "Message", "Receive", "Scope", "Send", "header", "headers_named"]


def headers_named(scope: Scope, name: bytes) -> list[str]:
    """All values of a request header, by its name in lower case."""
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


def header(scope: Scope, name: bytes) -> str | None:
    """The only or last value of a request header, or None."""
    found = headers_named(scope, name)
    return found[-1] if found else None
