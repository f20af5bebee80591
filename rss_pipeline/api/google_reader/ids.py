"""The ids of items: numbers of arrival, in all the forms in which clients send them.

A number has 16 decimal digits, is positive and below 2^53. So in hexadecimal it has 13 or 14 digits, or 16 of
which the first are zeros: a text of 16 digits that begins with another one is decimal, one of 13 or 14 is
not, and no form of a number of ours can be taken for another.
"""

import re
from urllib.parse import unquote

from rss_pipeline.api.google_reader.answers import not_understood
from rss_pipeline.reader.items import MAX_INTEGER

LONG_ID = "tag:google.com,2005:reader/item/"

# Not of 13 or 14 digits: such a text is one of our numbers in hexadecimal.
_DECIMAL = re.compile(r"-[1-9][0-9]{0,19}|[1-9](?:[0-9]{0,11}|[0-9]{14,19})")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{1,16}")
_DIGITS = 16


def long_id(number: int) -> str:
    """The form that answers have: Read You demands 16 lower-case digits, newsboat sends it back as it is."""
    return f"{LONG_ID}{number:016x}"


def item_number(text: str) -> int | None:
    """The number of an item's id: decimal, hexadecimal of any length, or the long form, also escaped twice.

    None for an id that is well formed and cannot be one of ours: it is answered as an unknown one.

    Raises:
        Refused: the text is no id.
    """
    if len(text) == _DIGITS and text.isascii() and text.isdecimal() and text[0] != "0":
        # As most clients send it.
        number = int(text)
        return number if number < MAX_INTEGER else None
    plain = text.strip()
    if "%" in plain:
        plain = unquote(plain)
    bare = plain.removeprefix(LONG_ID)
    if bare == plain and _DECIMAL.fullmatch(plain):
        number = int(plain)
    elif _HEXADECIMAL.fullmatch(bare):
        number = int(bare, 16)
    else:
        raise not_understood("i is no id of an item.")
    return number if 0 < number < MAX_INTEGER else None


def item_numbers(texts: tuple[str, ...]) -> tuple[int, ...]:
    """The numbers of these ids, each once, in their order.

    Raises:
        Refused: one is no id, or there is none.
    """
    if not texts:
        raise not_understood("No item is named: the form has no field i.")
    numbers = dict.fromkeys(map(item_number, texts))
    return tuple(number for number in numbers if number is not None)
