"""The ids of streams and tags, as clients write them: a feed, a folder (label), or a state of the user."""

import re
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import unquote

from rss_pipeline.api.google_reader.answers import Refused, not_understood

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
class FeedAddress:
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


Feed = FeedStream | FeedAddress
Stream = FeedStream | FeedAddress | Label | State
Tag = FeedStream | FeedAddress | Label | State | OtherState

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
            return FeedStream(match[1]) if is_id else FeedAddress(match[1])
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
        raise Refused(404, f"There is no stream of this state. There are: {', '.join(sorted(STATES))}.")
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
