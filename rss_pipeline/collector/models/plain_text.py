"""Text of publishers without characters that control a terminal or forge a line of a log.

Such text is stored as it was published; it becomes plain where a person reads it: in the command's output
(cli.output.terminal), in sentences of failures, in alerts.
"""

import json
import re
from typing import Any

_LINE_BREAKS = re.compile(r"[\t\n]+")
_ODD_LINE_BREAKS = re.compile(r"\r(?=\n)|[\v\f\r\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""C0 but tab and newline, DEL, C1 (U+009B begins an escape sequence as ESC [ does), lone surrogates."""
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of a text, and so the order in which a line is read (CVE-2021-42574)."""
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    """The text on one line, with U+FFFD for each control character and without marks of direction."""
    return _LINE_BREAKS.sub(" ", plain_lines(text))


def plain_lines(text: str) -> str:
    """As `one_line`, with its line feeds and tabs."""
    text = _ODD_LINE_BREAKS.sub(" ", text)
    return _DIRECTIONS.sub("", _CONTROLS.sub("\ufffd", text))


def json_text(value: Any, **options: Any) -> str:
    """A value as JSON that a terminal may show: json.dumps escapes U+0000 to U+001F only, this the rest."""
    text = json.dumps(value, ensure_ascii=False, **options)
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


# Whole numbers of JSON, which has one type of numbers: 3.0 is a whole one.


def whole_number(value: object) -> object:
    """A float that is whole as an int; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
