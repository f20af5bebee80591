"""Types of values that requests bring, and which characters no text of them may have."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from rss_pipeline.collector.models.feed import MAX_URL_CHARACTERS
from rss_pipeline.collector.models.plain_text import whole_number
from rss_pipeline.reader.item_queries import KEY

SHORTEST_INTERVAL, LONGEST_INTERVAL = 15 * 60, 24 * 60 * 60
MAX_TITLE_CHARACTERS = 500
MAX_FOLDER_CHARACTERS = 500

_CONTROLS = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
"""Controls and unpaired surrogates. Joiners and marks of direction are part of emoji and of some scripts."""


LINE_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]*$"
"""The same for the OpenAPI document, which has no surrogates."""

_SHORT, _LABEL = (rf"[A-Za-z0-9_](?:[A-Za-z0-9_-]{{0,{most}}}[A-Za-z0-9_])?" for most in (29, 61))
_LETTERS = r"a-z\u00e0-\u00f6\u00f8-\u00ff\u03b1-\u03c9\u0430-\u044f\u3041-\u3096\u4e00-\u4fff\uac00-\uaeff"
ADDRESS_PATTERN = (
    r"^(?:https?://)?"
    rf"(?:(?:{_SHORT}\.){{0,3}}(?:{_LABEL}\.){{1,2}}[A-Za-z][A-Za-z0-9]{{1,23}}"
    rf"|(?:[0-9{_LETTERS}]{{1,12}}\.){{1,3}}[{_LETTERS}]{{2,12}})"
    r"(?:/[!#-;=?-\[\]-~\u00a1-\u06ff\u3041-\u30ff\u4e00-\u4fff\uac00-\uaeff]*)?$"
)
"""Addresses that can be requested, as far as a pattern can say it: names of up to six parts, at the usual
port. Other names and paths in characters that are not in it are taken as well; their `xn--` and `%` forms are
in it. Its classes are small: programs that make requests of it go through each of their characters, and took
seconds where a class had all of Han and Hangul."""
ADDRESS_CHARACTERS = MAX_URL_CHARACTERS - len("https://")
"""The most of an address, which may lack its scheme."""


def has_controls(text: str) -> bool:
    """True for text with line breaks, control characters or unpaired surrogates."""
    return _CONTROLS.search(text) is not None


def _line(text: str) -> str:
    if has_controls(text):
        raise ValueError("line breaks, control characters and unpaired surrogates are not allowed")
    return text


Line = Annotated[str, AfterValidator(_line), Field(json_schema_extra={"pattern": LINE_PATTERN})]
"""Text of one line that can be stored: a name, a title."""
Seen = Annotated[int, Field(ge=0, lt=2**53, strict=True), BeforeValidator(whole_number)]
"""An arrival number in JSON, and no text of one."""
Position = Annotated[int, Field(ge=0, le=1_000_000, strict=True), BeforeValidator(whole_number)]
Interval = Annotated[
    int, Field(ge=SHORTEST_INTERVAL, le=LONGEST_INTERVAL, strict=True), BeforeValidator(whole_number)
]
"""Seconds between visits."""
Title = Annotated[Line, Field(min_length=1, max_length=MAX_TITLE_CHARACTERS)]
Folder = Annotated[Line, Field(min_length=1, max_length=MAX_FOLDER_CHARACTERS)]
Number = Annotated[int, Field(ge=0, lt=2**53)]
"""An arrival number: of an item, or the version of a feed."""


PageKey = Annotated[str, Field(pattern=rf"^{KEY.pattern}$")]
"""The key of a page of items, for `Key.read`."""


class NeverNull:
    """A mark on a value that may be left out, and so is None for us, but never null: no address has one."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The schema without null. (`SkipJsonSchema[None]` does so too, but gives each mistake twice.)"""
        [given] = [each for each in handler(schema)["anyOf"] if each != {"type": "null"}]
        return dict(given)
