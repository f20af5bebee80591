"""The names that the text of an author counts for, where items are selected by author.

Stored authors stay as published (collector.parse.authors).
"""

import re

_ADDRESS_AND_NAME = re.compile(r"[^\s@()<>]+@[^\s@()<>]+\s*\((.*)\)", re.DOTALL)


def names_of(author: str) -> tuple[str, ...]:
    """The text itself; and of `mail (Name)`, as RSS 2.0 writes authors, also `Name`."""
    found = _ADDRESS_AND_NAME.fullmatch(author.strip())
    name = found[1].strip() if found else ""
    return (author, name) if name else (author,)
