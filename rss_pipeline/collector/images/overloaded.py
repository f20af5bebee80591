"""Tags with so many attributes that a parser would take minutes."""

import re

_MOST_ATTRIBUTES = 500
_TAG_OR_COMMENT = re.compile(r"<(?:!--|[a-z])", re.IGNORECASE)
_TAG_PART = re.compile(r"(?P<end>>)|=\s*(?:\"[^\"]*\"?|'[^']*'?|[^\s>]*)|(?P<name>[^\s=>/]+)")
_QUOTED_END = re.compile(r"""=\s*+(?:"[^">]*+>|'[^'>]*+>)""")
"""A `>` in the value of an attribute."""
_FEW_ATTRIBUTES_CHARACTERS = 900
"""A name and a blank are two characters; a tenth is for what is added to a tag."""


def has_overloaded_tag(html: str) -> bool:
    """True if a tag has more than 500 attributes: libxml2 compares each with all before it, which takes a
    minute for a megabyte of them. The ends of tags are found roughly; a parser's time limit covers the
    rest."""
    if not may_have_overloaded_tag(html):
        return False
    at = 0
    has_end = True
    while start := _TAG_OR_COMMENT.search(html, at):
        at = start.end()
        attributes = 0
        if start[0].startswith("<!"):
            # Of comments that do not end, only the first is searched for its end: a text of "<!--" would
            # take time by the square of its length.
            end = html.find("-->", at) if has_end else -1
            has_end = end >= 0
            at = max(at, end + 3)
            continue
        for part in _TAG_PART.finditer(html, at):
            at = part.end()
            if part.lastgroup == "end":
                break
            attributes += part.lastgroup == "name"
            if attributes > _MOST_ATTRIBUTES:
                return True
    return False


def may_have_overloaded_tag(html: str) -> bool:
    """False if `has_overloaded_tag` is certainly false, which is seen in a tenth of the time.

    Then no value has a `>`, so that each tag ends at the next one, and none is long.
    """
    if _QUOTED_END.search(html):
        return True
    pieces = html.split(">")
    return max(map(len, pieces)) > _FEW_ATTRIBUTES_CHARACTERS and any(
        0 <= piece.find("<") < len(piece) - _FEW_ATTRIBUTES_CHARACTERS for piece in pieces
    )
