"""The characters that a title or folder may have, and texts of other programs brought into that form."""

import unicodedata

_JOINERS = str.maketrans("", "", "\u200c\u200d")
"""Without them Persian and Indic words are spelled otherwise, and one emoji becomes several."""


def is_printable(text: str) -> bool:
    """`str.isprintable`, with the two joiners of words and emoji as letters."""
    return text.translate(_JOINERS).isprintable()


def printable(text: str) -> str:
    """The text on one line: characters without a width go, other unprintable ones become blanks."""
    return " ".join("".join(map(_shown, text)).split())


def _shown(character: str) -> str:
    if is_printable(character):
        return character
    return "" if unicodedata.category(character) == "Cf" else " "
