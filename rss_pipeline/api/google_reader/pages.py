"""Which items of a stream a client wants: the filters xt and it, the times ot and nt, and the page (n, c, r).

A page goes on behind the last item of the one before, by its number and not by a count: what is marked read
between two pages of unread items moves no item out of the next page.
"""

import re
from dataclasses import dataclass

from rss_pipeline.api.google_reader.answers import not_understood
from rss_pipeline.api.google_reader.forms import Fields
from rss_pipeline.api.google_reader.streams import (
    FeedAddress,
    FeedStream,
    Label,
    OtherState,
    State,
    Stream,
    read_tag,
)
from rss_pipeline.api.google_reader.times import arrivals_since, microseconds
from rss_pipeline.reader.items import MAX_INTEGER

DEFAULT_COUNT = 20
_CONTINUATION = re.compile(r"[0-9]{1,16}")
_COUNT = re.compile(r"[0-9]{1,18}")

Place = FeedStream | FeedAddress | Label
"""The part of the user's feeds that a page is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a stream. `place` None is all of the user's feeds; a filter None lets both through."""

    place: Place | None = None
    is_read: bool | None = None
    is_starred: bool | None = None
    is_empty: bool = False
    """The filters exclude each other."""
    count: int = DEFAULT_COUNT
    oldest_first: bool = False
    behind: int | None = None
    """The number of the last item of the page before."""
    since: int | None = None
    """The least number of arrival."""
    until: int | None = None
    """The greatest."""


def read_page(stream: Stream, fields: Fields, *, most: int) -> Page:
    """The page of a stream that a request's fields name; of at most `most` items.

    Raises:
        Refused: a field that is not understood, or a filter that is not there.
    """
    filters = _Filters()
    filters.demand(stream)
    for text in fields.all("it"):
        if text.strip():
            filters.demand(read_tag(text))
    for text in fields.all("xt"):
        if text.strip():
            filters.exclude(read_tag(text))
    return Page(
        place=filters.place,
        is_read=filters.is_read,
        is_starred=filters.is_starred,
        is_empty=filters.is_empty,
        count=min(_count(fields.first("n")), most),
        oldest_first=fields.first("r") == "o",
        behind=_behind(fields.first("c")),
        since=arrivals_since(fields.first("ot")),
        until=microseconds(fields.first("nt"), "nt"),
    )


class _Filters:
    """The sum of all filters of a request."""

    def __init__(self) -> None:
        self.place: Place | None = None
        self.is_read: bool | None = None
        self.is_starred: bool | None = None
        self.is_empty = False

    def demand(self, tag: Stream | OtherState) -> None:
        match tag:
            case State("reading-list"):
                pass
            case State("starred"):
                self._starred(True)
            case State(name):
                self._read(name == "read")
            case OtherState():
                self.is_empty = True
            case _ if self.place in (None, tag):
                self.place = tag
            case _:
                raise not_understood("it names a second feed or folder: items of one only.")

    def exclude(self, tag: Stream | OtherState) -> None:
        match tag:
            case State("reading-list"):
                self.is_empty = True
            case State("starred"):
                self._starred(False)
            case State(name):
                self._read(name != "read")
            case OtherState():
                pass
            case _:
                raise not_understood("xt names a feed or folder, which cannot be left out; a state can.")

    def _read(self, wanted: bool) -> None:
        self.is_empty |= self.is_read is (not wanted)
        self.is_read = wanted

    def _starred(self, wanted: bool) -> None:
        self.is_empty |= self.is_starred is (not wanted)
        self.is_starred = wanted


def _count(text: str | None) -> int:
    if text is None:
        return DEFAULT_COUNT
    if not _COUNT.fullmatch(text) or int(text) == 0:
        raise not_understood("n is no number of items.")
    return int(text)


def _behind(text: str | None) -> int | None:
    if text is None:
        return None
    if not _CONTINUATION.fullmatch(text) or int(text) > MAX_INTEGER:
        raise not_understood("c is no continuation of an answer of this server.")
    return int(text)
