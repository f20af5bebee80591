"""The name in an author as published: RSS 2.0 writes `mail (Name)`, some publishers `Name <mail>`.

Authors are stored as published; people read the name.
"""

import re

_ADDRESS = r"(?:mailto:)?[^\s@()<>,;]++@[^\s@()<>,;]++"
_NAMED = re.compile(
    rf"\A(?:{_ADDRESS}\s*+\((?P<behind>[^()]*+(?:\([^()]*+\)[^()]*+)*+)\)"
    rf"|(?P<before>[^@<>()]*+)(?:<\s*+{_ADDRESS}\s*+>|\(\s*+{_ADDRESS}\s*+\)))"
)
_SEVERAL = re.compile(r"(?<=[)>])\s*+[,;&]\s*+")
_LONGEST = 1_000


def author_name(author: str) -> str:
    """The name in an author that has an address too, or the names of several of them; other text as it is.

    >>> author_name("ann@example.org (Ann Lee)"), author_name("ann@example.org")
    ('Ann Lee', 'ann@example.org')
    """
    if "@" not in author or len(author) > _LONGEST:
        return author
    names = []
    for part in _SEVERAL.split(author.strip()):
        found = _NAMED.fullmatch(part)
        name = "" if found is None else (found["behind"] or found["before"] or "").strip(" \t\r\n\"'")
        if not name:
            return author
        names.append(name)
    return ", ".join(names)
