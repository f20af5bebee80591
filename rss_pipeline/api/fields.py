"""Types of values that requests bring, and which characters no text of them may have."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

SHORTEST_INTERVAL, LONGEST_INTERVAL = 15 * 60, 24 * 60 * 60
MAX_TITLE_CHARACTERS = 500
MAX_FOLDER_CHARACTERS = 500

_CONTROLS = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""Controls and halves of characters. Joiners and marks of direction are part of emoji and of some scripts."""
_BUT_LINES = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


LINE_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]*$"
"""The same for the OpenAPI document, which has no halves of characters."""


def has_controls(text: str) -> bool:
    """True for text with line breaks, control characters or halves of characters."""
    return _CONTROLS.search(text) is not None


def _lines(text: str) -> str:
    """JSON can write what no store takes: half of a character, U+0000."""
    if _BUT_LINES.search(text):
        raise ValueError("control characters and halves of characters cannot be stored")
    return text


def _whole(value: object) -> object:
    """JSON has one type of numbers: 3.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _line(text: str) -> str:
    if has_controls(text):
        raise ValueError("line breaks, control characters and halves of characters cannot be stored")
    return text


Text = Annotated[str, AfterValidator(_lines)]
"""Text that can be stored; it may have line breaks and tabs."""
Line = Annotated[str, AfterValidator(_line), Field(json_schema_extra={"pattern": LINE_PATTERN})]
"""Text of one line that can be stored: a name, a title."""
Seen = Annotated[int, Field(ge=0, lt=2**53, strict=True), BeforeValidator(_whole)]
"""An arrival number in JSON, and no text of one."""
Position = Annotated[int, Field(ge=0, le=1_000_000, strict=True), BeforeValidator(_whole)]
Interval = Annotated[
    int, Field(ge=SHORTEST_INTERVAL, le=LONGEST_INTERVAL, strict=True), BeforeValidator(_whole)
]
"""Seconds between visits."""
Title = Annotated[Line, Field(min_length=1, max_length=MAX_TITLE_CHARACTERS)]
Folder = Annotated[Line, Field(min_length=1, max_length=MAX_FOLDER_CHARACTERS)]
Number = Annotated[int, Field(ge=0, lt=2**53)]
"""An arrival number: of an item, or the version of a feed."""
