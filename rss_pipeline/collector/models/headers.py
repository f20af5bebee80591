"""The request headers that feeds.yaml cannot set, each with its reason.

The registry refuses them in the file, and the HTTP client never sends one that a feed brings. Headers of
responses are read in `collector.http.headers`.
"""

from collections.abc import Mapping

_CONDITIONAL = "rss-pipeline sets it from the last response"
_CONNECTION = "it belongs to the connection, not to a feed"

REFUSED_HEADERS: Mapping[str, str] = {
    "accept-encoding": "rss-pipeline accepts only codings that it reads within its size limit",
    "connection": _CONNECTION,
    "content-length": _CONNECTION,
    "expect": _CONNECTION,
    "host": "it is taken from the URL; write the right host name there",
    "if-match": _CONDITIONAL,
    "if-modified-since": _CONDITIONAL,
    "if-none-match": _CONDITIONAL,
    "if-range": _CONDITIONAL,
    "if-unmodified-since": _CONDITIONAL,
    "keep-alive": _CONNECTION,
    "proxy-authorization": "it is for a proxy; write the password into RSS_PROXY",
    "proxy-connection": _CONNECTION,
    "range": "a feed is always read completely",
    "referer": "no page links to the request of a feed reader; publishers treat it as spam",
    "te": _CONNECTION,
    "trailer": _CONNECTION,
    "transfer-encoding": _CONNECTION,
    "upgrade": _CONNECTION,
}
"""Reasons by lower-case name, as the end of a sentence. A promise of the client depends on each of them."""
