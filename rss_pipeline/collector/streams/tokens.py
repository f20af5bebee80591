"""The tokens of an XPath 1.0 expression (XPath 1.0, 3.7), for what lxml's compiler does not report.

No expression is compiled or evaluated here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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
