"""Backups of what users have: their keys, and their form, a line of JSON for each part.

One object a user, `state/users/{user_id}.jsonl.gz`, with no password's hash, session or app password. How a
state is read from the tables and written back is storage.subscriptions'.
"""

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.feed import MAX_URL_CHARACTERS
from rss_pipeline.errors import BackupUnreadable, ObjectStoreUnavailable
from rss_pipeline.features import FEATURES
from rss_pipeline.features.feature import UserRows
from rss_pipeline.storage.accounts.user_rows import NAME
from rss_pipeline.storage.database import MAX_INTEGER
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore

PREFIX = "state/users/"
IDS_OF_A_LINE = 5_000

_FORMAT = "rss_pipeline user"
_VERSION = 1
_CONTENT_TYPE = "application/gzip"
_SUFFIX = ".jsonl.gz"
_MOST_BYTES = 64_000_000
_MOST_LINE_BYTES = 1_000_000
_MOST_LINES = 50_000
"""A state of 200,000 unread items in 3,000 feeds has 3,100 lines, and its object 4 MB."""

_USER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FEED_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_ITEM_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")
_TEXT_CHARACTERS = 10_000
_PREFERENCES_CHARACTERS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class UserHead:
    """The user, and when the backup was taken. Instants are those of the tables."""

    id: str
    name: str
    created_at: str
    taken_at: str
    version: int
    """The `state_version` that the backup holds."""
    preferences: Mapping[str, Any]
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSubscription:
    """A subscription. Items that the marks do not name are unread if they were fetched after `known_until`,
    else as `rest_is_read` says."""

    feed_id: str
    url: str
    title: str | None
    folder: str | None
    position: int
    wished_interval: int | None
    added_at: str
    known_until: str
    """The last visit; "" where there was none."""
    rest_is_read: bool
    last_read_at: str | None = None
    origin: str | None = None
    full_text: bool = False
    leads: bool = False
    requested_url: str | None = None
    """The address that was requested then, which is another one after a permanent redirect; None in a backup
    of an older version."""


@dataclass(frozen=True, slots=True)
class KeptMarks:
    """Ids of items that are read, or unread."""

    is_read: bool
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptStars:
    """Ids of items with the instants of their stars."""

    stars: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows of a feature's table, which has this name in the lines of a backup."""

    name: str
    rows: tuple[tuple[str, ...], ...]


Part = UserHead | KeptSubscription | KeptMarks | KeptStars | KeptRows


@cache
def user_rows() -> dict[str, UserRows]:
    """The tables of features, by name."""
    return {name: rows for feature in FEATURES for name, rows in feature.user_rows.items()}


def user_key(user_id: str) -> str:
    """The key of a user's backup."""
    return f"{PREFIX}{user_id}{_SUFFIX}"


def user_of(key: str) -> str | None:
    """The user with the backup of this key; None for a key that is no user's."""
    id = key.removeprefix(PREFIX).removesuffix(_SUFFIX)
    return id if _USER_ID.fullmatch(id) and user_key(id) == key else None


def put_state(store: ObjectStore, user_id: str, parts: Iterable[Part]) -> None:
    """Store a user's state; the head is its first part. The same parts make the same bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as file:
        for part in parts:
            file.write(json.dumps(_line(part), ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    store.put(user_key(user_id), packed.getvalue(), content_type=_CONTENT_TYPE)


def delete_state(store: ObjectStore, user_id: str) -> None:
    """Delete a user's backup, if there is one."""
    if refused := store.delete_many([user_key(user_id)]):
        [(key, reason)] = refused.items()
        raise ObjectStoreUnavailable(f"{key} could not be deleted: {reason}")


def list_states(store: ObjectStore) -> Iterator[ObjectInfo]:
    """The backups of all users."""
    return store.list(PREFIX)


def load_state(store: ObjectStore, info: ObjectInfo) -> bytes:
    """The bytes of a backup, for `parts_of`.

    Raises BackupUnreadable where it is no user's, is gone, or is larger than any of ours.
    """
    if user_of(info.key) is None:
        raise BackupUnreadable("this is no key of a user's backup")
    if info.size > _MOST_BYTES:
        raise BackupUnreadable(f"it has {info.size:,} bytes; at most {_MOST_BYTES:,} are read")
    found = store.get(info.key)
    if found is None:
        raise BackupUnreadable("it vanished")
    return found[0]


def parts_of(key: str, packed: bytes) -> Iterator[Part]:
    """The parts of a backup, the head first; only one line of it is in memory.

    Raises:
        BackupUnreadable: it is broken, of another user or of a newer version. Parts before the mistake were
            given already.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            for number in range(_MOST_LINES + 1):
                line = file.readline(_MOST_LINE_BYTES)
                if not line:
                    if number == 0:
                        raise ValueError("it is empty")
                    return
                if number == _MOST_LINES or not line.endswith(b"\n"):
                    raise ValueError("it has more lines, or a longer one, than any of ours")
                part = _head(key, json.loads(line)) if number == 0 else _part(json.loads(line))
                if part is not None:
                    yield part
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OSError,
        EOFError,
        zlib.error,
        RecursionError,
    ) as e:
        raise BackupUnreadable(f"it cannot be read ({type(e).__name__}: {e})") from e


def _line(part: Part) -> dict[str, Any]:
    match part:
        case UserHead():
            head = {name: getattr(part, name) for name in ("id", "name", "created_at", "taken_at", "version")}
            more = {"preferences": part.preferences, "folders": part.folders}
            return {"format": _FORMAT, "format_version": _VERSION, **head, **more}
        case KeptSubscription():
            return {name: getattr(part, name) for name in KeptSubscription.__slots__}
        case KeptMarks():
            return {"read" if part.is_read else "unread": part.ids}
        case KeptStars():
            return {"stars": part.stars}
        case KeptRows():
            return {part.name: part.rows}


def _head(key: str, line: dict[str, Any]) -> UserHead:
    if line.get("format") != _FORMAT:
        raise ValueError("this is no backup of a user")
    if line["format_version"] != _VERSION:
        raise ValueError("it was written by a newer version of rss_pipeline")
    head = UserHead(
        id=_matching(_USER_ID, line["id"]),
        name=_matching(NAME, line["name"]),
        created_at=_instant(line["created_at"]),
        taken_at=_instant(line["taken_at"]),
        version=_whole(line["version"]),
        preferences=line["preferences"],
        folders=tuple(_text(name) for name in line["folders"]),
    )
    if user_key(head.id) != key:
        raise ValueError(f"it is a backup of the user {head.id}")
    text = json.dumps(line["preferences"])
    if not isinstance(line["preferences"], dict) or len(text) > _PREFERENCES_CHARACTERS or "\\u0000" in text:
        raise ValueError("the preferences cannot be read")
    return head


def _part(line: dict[str, Any]) -> Part | None:
    """A line; None for rows of a feature that is not here any more."""
    if "feed_id" in line:
        wish = line["wished_interval"]
        return KeptSubscription(
            feed_id=_matching(_FEED_ID, line["feed_id"]),
            url=_text(line["url"], MAX_URL_CHARACTERS),
            title=None if line["title"] is None else _text(line["title"]),
            folder=None if line["folder"] is None else _text(line["folder"]),
            position=_whole(line["position"]),
            wished_interval=None if wish is None else _whole(wish, least=60),
            added_at=_instant(line["added_at"]),
            known_until="" if line["known_until"] == "" else _instant(line["known_until"]),
            rest_is_read=bool(line["rest_is_read"]),
            last_read_at=None if line.get("last_read_at") is None else _instant(line["last_read_at"]),
            origin=None if line.get("origin") is None else _text(line["origin"]),
            full_text=bool(line.get("full_text")),
            leads=bool(line.get("leads")),
            requested_url=None
            if line.get("requested_url") is None
            else _text(line["requested_url"], MAX_URL_CHARACTERS),
        )
    if "stars" in line:
        return KeptStars(tuple((_matching(_ITEM_ID, id), _instant(at)) for id, at in line["stars"]))
    for name, kept in user_rows().items():
        if name in line:
            patterns = [re.compile(pattern) for pattern in kept.columns.values()]
            return KeptRows(name, tuple(_row(patterns, row) for row in line[name]))
    if not line.keys() & {"read", "unread"}:
        return None
    is_read = "read" in line
    return KeptMarks(is_read, tuple(_matching(_ITEM_ID, id) for id in line["read" if is_read else "unread"]))


def _row(patterns: Sequence[re.Pattern[str]], row: Sequence[str]) -> tuple[str, ...]:
    return tuple(_text(_matching(pattern, text)) for pattern, text in zip(patterns, row, strict=True))


def _matching(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is none of ours")
    return text


def _text(text: str, most: int = _TEXT_CHARACTERS) -> str:
    if not isinstance(text, str) or len(text) > most or _UNSTORABLE.search(text):
        raise ValueError(f"{str(text)[:80]!r} is no text of ours")
    return text


def _whole(number: int, *, least: int = -MAX_INTEGER) -> int:
    if type(number) is not int or not least <= number <= MAX_INTEGER // 2:
        raise ValueError(f"{str(number)[:80]} is no number of ours")
    return number


def _instant(text: str) -> str:
    at = from_instant(text)
    if at is None or at.tzinfo is None or instant(at) != text:
        raise ValueError(f"{text!r} is no instant of ours")
    return text
