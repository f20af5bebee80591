"""The types of ASGI, and small readings of its messages that the layers share."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rss_pipeline.web.authority import headers_named

__all__ = ["ASGIApp", "Message", "Receive", "Scope", "Send", "header"]


def header(scope: Scope, name: bytes) -> str | None:
    """The only or last value of a request header, or None."""
    found = headers_named(scope, name)
    return found[-1] if found else None
