"""The text of feeds.yaml without an entry that no parser can read, so that mistakes of the others show too.

Only for messages: a file with a mistake is never used.
"""

import re

MOST = 20
"""Broken entries that are taken out; each costs the parser the whole text once more."""
MAX_CHARACTERS = 1_000_000
"""A longer text is not read again: 20 times 32 MB take minutes."""

_ENTRY = re.compile(r"( *)- ?")


def without_entry(text: str, line: int) -> tuple[str, range] | None:
    """The text with an empty entry in the place of the one around `line`, and the lines that it took.

    Lines count from 1 and stay as many, and so do entries. None where no entry begins at or above the line.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    lines = text.split("\n")
    first = next((n for n in range(min(line, len(lines)) - 1, -1, -1) if _ENTRY.match(lines[n])), None)
    if first is None or (dash := _ENTRY.match(lines[first])) is None:
        return None
    indent = len(dash[1])
    end = next((n for n in range(first + 1, len(lines)) if _is_outside(lines[n], indent)), len(lines))
    lines[first:end] = [f"{dash[1]}-", *[""] * (end - first - 1)]
    return "\n".join(lines), range(first + 1, end + 1)


def _is_outside(line: str, indent: int) -> bool:
    """The next entry, or a key beside or left of the list."""
    stripped = line.lstrip(" ")
    return bool(stripped) and not stripped.startswith("#") and len(line) - len(stripped) <= indent
