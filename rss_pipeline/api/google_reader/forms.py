"""The fields of a request: of its query and of its form, in whichever way a client sends them.

The route's own library is not used: it stops at 1,000 fields, and gives an empty form where it does not know
the content type. Bytes are bounded by the layer that reads the body.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import parse_qsl

import python_multipart
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, parse_options_header

from rss_pipeline.api.google_reader.responses import RefusedCall, not_understood

MAX_FIELDS = 20_000
"""RSS Guard marks 10,000 items in one request."""
MAX_BODY_BYTES = 2_000_000
"""20,000 ids in their long form, escaped."""

_MULTIPART = b"multipart/form-data"


@dataclass(frozen=True, slots=True)
class Fields:
    """The values of each name, in their order."""

    _values: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def all(self, name: str) -> tuple[str, ...]:
        return self._values.get(name, ())

    def first(self, name: str) -> str | None:
        """The first value that is not empty, without the newline that a token ends with."""
        return next((value.strip() for value in self.all(name) if value.strip()), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def over(self, query: "Fields") -> "Fields":
        """These fields of a form, and those of the query that the form does not name.

        Read You sends an address raw in the query, where it is torn at its `&`, and whole in the form.
        """
        return Fields(MappingProxyType({**query._values, **self._values}))

    def __contains__(self, name: str) -> bool:
        return name in self._values


def query_fields(query: bytes) -> Fields:
    """The fields of an address.

    Raises:
        Refused: too many fields, or broken UTF-8.
    """
    return _grouped(_pairs(query, "query"))


def form_fields(content_type: str | None, body: bytes) -> Fields:
    """The fields of a form. A body of an unknown content type, or of none, is read as one.

    Raises:
        Refused: too many fields, broken UTF-8, a broken multipart form.
    """
    kind, options = parse_options_header(content_type)
    return _grouped(_parts(options.get(b"boundary"), body) if kind == _MULTIPART else _pairs(body, "form"))


def _pairs(text: bytes, place: str) -> list[tuple[str, str]]:
    if b"%" not in text and b"+" not in text and text.isascii() and text.count(b"&") < MAX_FIELDS:
        # A hundred ids: nothing is escaped, and the other way takes ten times as long.
        parts = [part.partition("=") for part in text.decode().split("&") if part]
        return [(name, value) for name, _, value in parts]
    try:
        return parse_qsl(text.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise not_understood(f"The {place} is not UTF-8.") from None
    except ValueError:
        raise RefusedCall(413, f"The {place} has more than {MAX_FIELDS:,} fields.") from None


def _parts(boundary: bytes | None, body: bytes) -> list[tuple[str, str]]:
    """The fields of a multipart form; a file is a field with its content."""
    if not boundary:
        raise not_understood("The form has no boundary.")
    found: list[tuple[str, str]] = []

    def add(name: bytes | None, value: bytes | None) -> None:
        if len(found) == MAX_FIELDS:
            raise RefusedCall(413, f"The form has more than {MAX_FIELDS:,} fields.")
        try:
            found.append(((name or b"").decode(), (value or b"").decode()))
        except UnicodeDecodeError:
            raise not_understood("The form is not UTF-8.") from None

    def on_field(part: Field) -> None:
        add(part.field_name, part.value)

    def on_file(part: File) -> None:
        part.file_object.seek(0)
        add(part.field_name, part.file_object.read())
        part.close()

    try:
        # A boundary that is too long is refused before there is a parser.
        parser = python_multipart.FormParser(
            "multipart/form-data",
            on_field,
            on_file,
            boundary=boundary,
            # A file on the disk would be one that a stranger wrote.
            config={"MAX_MEMORY_FILE_SIZE": MAX_BODY_BYTES + 1},
        )
        with closing(parser):
            parser.write(body)
            parser.finalize()
    except FormParserError:
        raise not_understood("The multipart form is broken.") from None
    return found


def _grouped(pairs: Iterable[tuple[str, str]]) -> Fields:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if "\0" in value:
            raise not_understood("A field has the character U+0000, which cannot be stored.")
        found.setdefault(name, []).append(value)
    return Fields(MappingProxyType({name: tuple(values) for name, values in found.items()}))
