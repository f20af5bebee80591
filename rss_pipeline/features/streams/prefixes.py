"""The namespace prefixes of a stream's XPath expression, the same for every feed.

The names of the document's own format are written without a prefix (`//item`, `//entry`); `rss1:` and, in an
Atom document, `atom:` before them are dropped. Namespaces as publishers write them are in
collector.parse.namespaces.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from rss_pipeline.collector.parse.xml.namespaces import NAMESPACES, XML

PREFIXES: Mapping[str, str] = {
    **NAMESPACES,
    "xml": XML,
    "admin": "http://webns.net/mvcb/",
    "app": "http://www.w3.org/2007/app",
    "cc": "http://web.resource.org/cc/",
    "creativeCommons": "http://backend.userland.com/creativeCommonsRssModule",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "georss": "http://www.georss.org/georss",
    "gml": "http://www.opengis.net/gml",
    "googleplay": "http://www.google.com/schemas/play-podcasts/1.0",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "prism": "http://prismstandard.org/namespaces/basic/2.0/",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "source": "http://source.scripting.com/",
    "taxo": "http://purl.org/rss/1.0/modules/taxonomy/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "yt": "http://www.youtube.com/xml/schemas/2015",
}
"""Prefix to namespace. `atom` is for Atom's elements inside another format, `atom:link` of RSS."""

RSS1 = "rss1"
"""Accepted before names of the own format, in every document."""
ATOM = "atom"

KNOWN_PREFIXES = (*PREFIXES, RSS1)


def without_prefixes(expression: str, dropped: Collection[str] = (RSS1,)) -> str:
    """The expression with these prefixes taken off its names; literals stay as they are.

    An Atom document takes (RSS1, ATOM), for there `atom:entry` is a name of its own format.
    """
    parts, end = [], 0
    for token in tokens(expression):
        if token.prefix in dropped:
            parts.append(expression[end : token.start])
            end = token.start + len(token.prefix or "") + 1
    return "".join([*parts, expression[end:]])


# The tokens of an XPath 1.0 expression (XPath 1.0, 3.7), for what lxml's compiler does not report.
# No expression is compiled or evaluated here.

TokenKind = Literal[
    "literal", "number", "variable", "function", "axis", "name", "operator", "mark", "unknown"
]

_NAME = r"[^\W\d][\w.\-]*"
_TOKEN = re.compile(
    rf"""(?P<literal>"[^"]*"|'[^']*')
    |(?P<number>\d+(?:\.\d*)?|\.\d+)
    |(?P<variable>\$\s*{_NAME}(?::{_NAME})?)
    |(?P<name>(?:(?P<prefix>{_NAME}):)?(?P<local>{_NAME}|(?<=:)\*)(?!:{_NAME}))
    |(?P<operator>//|<=|>=|!=|[|+=<>/-])
    |(?P<mark>\.\.|::|[()\[\],@.*])
    |(?P<unknown>\S)""",
    re.VERBOSE,
)
_OPERATOR_NAMES = {"and", "or", "div", "mod"}
_NODE_TYPES = {"comment", "text", "processing-instruction", "node"}
_ENDS_OPERAND = {")", "]", ".", "..", "*"}


@dataclass(frozen=True, slots=True)
class Token:
    """`start` and `end` are places in the expression; `prefix` is that of a name, without the colon."""

    kind: TokenKind
    text: str
    start: int
    end: int
    prefix: str | None = None


def tokens(expression: str) -> Iterator[Token]:
    """The tokens in order, without white space. `*`, `and`, `or`, `div` and `mod` are operators behind an
    operand, and names elsewhere."""
    is_behind_operand = False
    for match in _TOKEN.finditer(expression):
        text, prefix = match[0], match["prefix"]
        kind: TokenKind = match.lastgroup if match.lastgroup in _GROUPS else "name"  # type: ignore[assignment]
        after = expression[match.end() :].lstrip()
        if is_behind_operand and (text == "*" or text in _OPERATOR_NAMES):
            kind = "operator"
        elif kind == "name" and after.startswith("::"):
            kind = "axis"
        elif kind == "name" and after.startswith("(") and text not in _NODE_TYPES:
            kind = "function"
        is_behind_operand = kind in {"literal", "number", "variable", "name"} or (
            kind == "mark" and text in _ENDS_OPERAND
        )
        yield Token(kind, text, match.start(), match.end(), prefix)


_GROUPS = {"literal", "number", "variable", "operator", "mark", "unknown"}
