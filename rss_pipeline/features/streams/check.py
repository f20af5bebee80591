"""The check of a stream's XPath expression when feeds.yaml is read, before there is a document.

lxml's compiler finds neither an unknown prefix nor an unknown function nor a result that is no element: these
show in the tokens. Nothing is evaluated, for that has no limit in time.
"""

import difflib

from rss_pipeline.features.streams.prefixes import KNOWN_PREFIXES, PREFIXES, Token, tokens, without_prefixes

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


def _of_token(token: Token) -> str | None:
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


def _gives_a_value(found: list[Token]) -> bool:
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
