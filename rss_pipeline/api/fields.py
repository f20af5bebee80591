"""Types of values that requests bring, and which characters no text of them may have."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_CONTROLS = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""Controls and halves of characters. Joiners and marks of direction are part of emoji and of some scripts."""
_BUT_LINES = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def has_controls(text: str) -> bool:
    """True for text with line breaks, control characters or halves of characters."""
    return _CONTROLS.search(text) is not None


def _lines(text: str) -> str:
    """JSON can write what no store takes: half of a character, U+0000."""
    if _BUT_LINES.search(text):
        raise ValueError("control characters and halves of characters cannot be stored")
    return text


def _line(text: str) -> str:
    if has_controls(text):
        raise ValueError("line breaks, control characters and halves of characters cannot be stored")
    return text


Text = Annotated[str, AfterValidator(_lines)]
"""Text that can be stored; it may have line breaks and tabs."""
Line = Annotated[str, AfterValidator(_line)]
"""Text of one line that can be stored: a name, a title."""
Title = Annotated[Line, Field(min_length=1, max_length=500)]
Folder = Annotated[Line, Field(min_length=1, max_length=200)]
Number = Annotated[int, Field(ge=0, lt=2**53)]
"""An arrival number: of an item, or the version of a feed."""
