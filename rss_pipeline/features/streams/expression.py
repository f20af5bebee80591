"""A stream's XPath expression as text: its namespace prefixes, its tokens, its check.

Prefixes are the same for every feed. The names of the document's own format are written without a prefix
(`//item`, `//entry`); `rss1:` and, in an Atom document, `atom:` before them are dropped. Namespaces as
publishers write them are in collector.parse.xml.namespaces.
"""

import difflib
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
class XPathToken:
    """`start` and `end` are places in the expression; `prefix` is that of a name, without the colon."""

    kind: TokenKind
    text: str
    start: int
    end: int
    prefix: str | None = None


def tokens(expression: str) -> Iterator[XPathToken]:
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
        yield XPathToken(kind, text, match.start(), match.end(), prefix)


_GROUPS = {"literal", "number", "variable", "operator", "mark", "unknown"}


# The check of a stream's XPath expression when feeds.yaml is read, before there is a document.
#
# lxml's compiler finds neither an unknown prefix nor an unknown function nor a result that is no element:
# these show in the tokens. Nothing is evaluated, for that has no limit in time.

_NODE_FUNCTIONS = ["last", "position", "count", "id", "local-name", "namespace-uri", "name"]
_TEXT_FUNCTIONS = [
    *("string", "concat", "starts-with", "contains", "substring-before", "substring-after", "substring"),
    *("string-length", "normalize-space", "translate"),
]
_OTHER_FUNCTIONS = ["boolean", "not", "true", "false", "lang", "number", "sum", "floor", "ceiling", "round"]
_FUNCTIONS = [*_NODE_FUNCTIONS, *_TEXT_FUNCTIONS, *_OTHER_FUNCTIONS]
"""XPath 1.0, 4."""
_PATH_OPERATORS = {"/", "//", "|"}


def xpath_mistake(expression: str) -> str | None:
    """A sentence that says what is wrong with the expression, or None."""
    # The command line imports this with every feeds.yaml, and few use XPath: lxml takes 20 ms.
    from lxml import etree

    found = list(tokens(expression))
    for token in found:
        if (mistake := _of_token(token)) is not None:
            return mistake
    try:
        etree.XPath(
            without_prefixes(expression), namespaces=dict(PREFIXES), regexp=False, smart_strings=False
        )
    except etree.XPathError as error:
        return (
            f"is no XPath 1.0 expression ({str(error) or 'it does not compile'}); check brackets and quotes"
        )
    if _gives_a_value(found):
        return "gives a value and no element; write a path such as //item[enclosure]"
    return None


def _of_token(token: XPathToken) -> str | None:
    if token.kind == "variable":
        return f"{token.text} is a variable, and there are none here; write its value"
    if token.kind == "unknown":
        return (
            f"is no XPath 1.0 expression: {token.text} at character {token.start + 1} is not expected there"
        )
    if token.kind == "function" and token.text not in _FUNCTIONS:
        close = difflib.get_close_matches(token.text.rpartition(":")[2], _FUNCTIONS, n=1)
        meant = f'did you mean "{close[0]}"?' if close else "contains() and starts-with() compare texts"
        return f'"{token.text}" is no function of XPath 1.0; {meant}'
    if token.prefix is not None and token.prefix not in KNOWN_PREFIXES:
        close = difflib.get_close_matches(token.prefix, KNOWN_PREFIXES, n=1)
        meant = f'did you mean "{close[0]}:"?' if close else f"known are {', '.join(KNOWN_PREFIXES)}"
        return f'the prefix "{token.prefix}:" is not known; {meant}'
    return None


def _gives_a_value(found: list[XPathToken]) -> bool:
    """The expression is a number, text or truth value by its form (XPath 1.0, 3.1 to 3.5)."""
    depth = 0
    for token in found:
        if depth == 0:
            if token.kind in {"literal", "number"}:
                return True
            if token.kind == "operator" and token.text not in _PATH_OPERATORS:
                return True
            if token.kind == "function" and token.text != "id":
                return True
        if token.kind == "mark":
            depth += (token.text in "([") - (token.text in ")]")
    return False
