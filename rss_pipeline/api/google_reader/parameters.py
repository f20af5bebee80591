"""The parameters of calls as clients write them: streams and tags (a feed, a folder, a state of the user),
ids of items, times, and the page of a stream.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args
from urllib.parse import unquote

from rss_pipeline.api.google_reader.forms import Fields
from rss_pipeline.api.google_reader.responses import RefusedCall, not_understood
from rss_pipeline.reader.item_queries import MAX_INTEGER

StateName = Literal["reading-list", "read", "starred", "unread", "kept-unread", "fresh"]
"""`fresh` and `kept-unread` are names of `unread`; `reading-list` is all that the user subscribes to."""

FAILING_FEED_ID = "-failing"
"""The id of the feed "Feeds that fail"; no feed of feeds.yaml or of a user begins with a hyphen."""

STATES: frozenset[str] = frozenset(get_args(StateName))

_STATE_TITLES = {"reading-list": "All items", "read": "Read items", "starred": "Starred items"}

_FEED = re.compile(r"feed/(.+)", re.DOTALL)
_USER = re.compile(r"user/[^/]*/(label|state/com\.google)/(.+)", re.DOTALL)
_FEED_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
_MAX_CHARACTERS = 4_000


def feed_stream(feed_id: str) -> str:
    """The id of a feed's stream."""
    return f"feed/{feed_id}"


@dataclass(frozen=True, slots=True)
class FeedStream:
    id: str

    def __str__(self) -> str:
        return feed_stream(self.id)


@dataclass(frozen=True, slots=True)
class FeedByUrl:
    """A feed by its URL. Readrops edits and deletes subscriptions by it."""

    url: str

    def __str__(self) -> str:
        return f"feed/{self.url}"


@dataclass(frozen=True, slots=True)
class Label:
    """A folder."""

    name: str

    def __str__(self) -> str:
        return f"user/-/label/{self.name}"


@dataclass(frozen=True, slots=True)
class State:
    name: StateName

    @property
    def title(self) -> str:
        """For people."""
        return _STATE_TITLES.get(self.name, "Unread items")

    def __str__(self) -> str:
        return f"user/-/state/com.google/{self.name}"


@dataclass(frozen=True, slots=True)
class OtherState:
    """A state of Google Reader that no item has here (broadcast, like, tracking-kept-unread ...)."""

    name: str

    def __str__(self) -> str:
        return f"user/-/state/com.google/{self.name}"


Feed = FeedStream | FeedByUrl
Stream = FeedStream | FeedByUrl | Label | State
Tag = FeedStream | FeedByUrl | Label | State | OtherState

READING_LIST = State("reading-list")
READ = State("read")
STARRED = State("starred")


def read_tag(text: str) -> Tag:
    """A stream or a tag. The user's part may be `-`, or any number or name that a client remembers.

    Raises:
        Refused: the text is neither.
    """
    plain = text.strip()
    if plain.lower().startswith(("feed%2f", "user%2f")):
        plain = unquote(plain)
    if len(plain) <= _MAX_CHARACTERS and "\0" not in plain:
        if match := _FEED.fullmatch(plain):
            is_id = match[1] == FAILING_FEED_ID or _FEED_ID.fullmatch(match[1])
            return FeedStream(match[1]) if is_id else FeedByUrl(match[1])
        if match := _USER.fullmatch(plain):
            return _label(match[2]) if match[1] == "label" else _state(match[2])
    raise not_understood(
        "This is no stream. There are feed/ID, feed/URL, user/-/label/NAME and user/-/state/com.google/NAME."
    )


def read_stream(text: str | None, *, default: Stream | None = None) -> Stream:
    """A stream that can be read; `default` where none is named.

    Raises:
        Refused: there is no such stream, or none is named; never an empty list in its place.
    """
    if text is None or not text.strip():
        if default is not None:
            return default
        raise not_understood("No stream is named: s is missing.")
    found = read_tag(text)
    if isinstance(found, OtherState):
        raise RefusedCall(404, f"There is no stream of this state. There are: {', '.join(sorted(STATES))}.")
    return found


def read_label(text: str | None) -> Label:
    """A folder by its tag, or by its bare name, as some clients send it.

    Raises:
        Refused: it is missing, or another tag.
    """
    if text is None or not text.strip():
        raise not_understood("No folder is named: give user/-/label/NAME.")
    found = read_tag(text) if text.startswith(("user/", "user%2", "feed/")) else _label(text)
    if not isinstance(found, Label):
        raise not_understood("This is no folder: give user/-/label/NAME.")
    return found


def _label(name: str) -> Label:
    words = " ".join(name.split())
    if not words:
        raise not_understood("A folder has no name.")
    return Label(words)


def _state(name: str) -> State | OtherState:
    for known in get_args(StateName):
        if name == known:
            return State(known)
    return OtherState(name)


# The ids of items: numbers of arrival, in all the forms in which clients send them.
#
# A number has 16 decimal digits, is positive and below 2^53. So in hexadecimal it has 13 or 14 digits, or 16
# of which the first are zeros: a text of 16 digits that begins with another one is decimal, one of 13 or 14
# is not, and no form of a number of ours can be taken for another.

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
    # Behind the tag only 16 digits are certainly decimal: in hexadecimal ours begin with zeros there.
    if _DECIMAL.fullmatch(bare) and (bare == plain or (len(bare) == _DIGITS and bare[0] != "-")):
        number = int(bare)
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


# Instants as clients send them (ts, ot, nt): in seconds, milliseconds, microseconds or nanoseconds.
#
# The number of digits shows which: the documents of different servers name different units, and one writes
# "nanoseconds" beside a value of 16 digits.

_NUMBER = re.compile(r"([0-9]{1,20})(?:\.[0-9]*)?")
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

COMMIT_MICROSECONDS = 60_000_000
"""The time in which an item may appear after it got its number: the batch that writes it has to end."""


def microseconds(text: str | None, name: str) -> int | None:
    """An instant in microseconds since 1970; None where it is missing or empty.

    Raises:
        Refused: no number.
    """
    if text is None or not text.strip():
        return None
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise not_understood(f"{name} is no time: give seconds since 1970.")
    digits = match[1].lstrip("0") or "0"
    return min(_scaled(int(digits), len(digits)), MAX_INTEGER)


def arrivals_since(text: str | None) -> int | None:
    """The least number of arrival that `ot` wants.

    A client that sends a time of its own, the Date of its last request, would miss what had its number then
    but was not written yet: it gets a minute more, which it already has. A number of arrival is exact.

    Raises:
        Refused: no number.
    """
    instant = microseconds(text, "ot")
    if instant is None or is_arrival(text):
        return instant
    return max(0, instant - COMMIT_MICROSECONDS)


def is_arrival(text: str | None) -> bool:
    """True for a time with the digits of microseconds, as `timestampUsec` has them."""
    return text is not None and 15 <= len(text.strip().partition(".")[0].lstrip("0")) <= 17


def in_microseconds(moment: datetime) -> int:
    """An instant in microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _scaled(number: int, digits: int) -> int:
    if digits <= 11:
        return number * 1_000_000
    if digits <= 14:
        return number * 1_000
    return number if digits <= 17 else number // 1_000


# The page of a stream: the filters xt and it, the times ot and nt, and n, c, r.
#
# A page goes on behind the last item of the one before, by its number and not by a count: what is marked
# read between two pages of unread items moves no item out of the next page.

DEFAULT_COUNT = 20
_CONTINUATION = re.compile(r"[0-9]{1,16}")
_COUNT = re.compile(r"[0-9]{1,18}")

Place = FeedStream | FeedByUrl | Label
"""The part of the user's feeds that a page is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPage:
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


def read_page(stream: Stream, fields: Fields, *, most: int) -> StreamPage:
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
    return StreamPage(
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
