"""The duties of a server of ours: the face of a database and of an object store, each documented here.

A backend is one folder beside this page and one line in `connect.py`. It is made of settings and opens
nothing by itself; the libraries of its server are imported in the methods that need them. Abstract duties are
required: a backend without one is refused (`missing_duties`). The others have an answer that is right where a
server has nothing of the kind.

What it opens is a `Database` (storage/database.py: query, batch, close; the limits that hold for all) or an
`ObjectStore` (storage/objects.py). An open one may offer more, each a protocol of its own:

- `HasRoom`, `TakesBytes`: rows of items larger than D1's, bytes as values (storage/database.py);
- `WritesInTurn`: documents are stored there one after the other (storage/database.py);
- `Shrinks`, `HasReserve`, `InFile`: what `clean`, `forget` and `migrate --compact` do for room there;
- `Prepared`: something of its own before the first migration, migrations of its own (storage/schema.py);
- `ClaimsFeeds`: claims of its own, beside batches that write (storage/feeds/claims.py);
- `PublicBucket`, `Sweeps`: a place for what everybody may read; leftovers of killed processes
  (storage/objects.py).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore

REQUEST_SECONDS = 10.0
"""The longest wait of a request of the reader that writes. One that only reads waits for no writer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that a backend needs: no feed may lead to it."""

    what: str
    """Its name for people, with the variable that names it."""
    url: str
    default_port: int | None = None
    """The port of a URL without one, where its scheme is not one of the web."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    """The answer of a database's server to one small request."""

    said: str
    """The server that answered, for people."""
    clock: datetime | None
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeVerdict:
    """The meaning of a database's size."""

    found: str
    state: Literal["ok", "warning", "failure"] = "ok"
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """Days after which the bucket deletes backups; None: no rule. `unread`: why it is not known.

    It deletes the newest backups too, where no clean puts them again meanwhile (storage.backups.expiry).
    """

    days: int | None = None
    unread: str | None = None
    bucket: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsPlace:
    """The place of topics where it is not that of all other objects."""

    place: str
    bucket_variable: str
    public_url: str | None
    public_variable: str


class Backend(ABC):
    """The duties of every backend. A subclass is a frozen dataclass of what its settings say. Dagster's UI
    shows its fields, each described by `shown`."""

    name: ClassVar[str]
    """Its name in `copy`, and in Dagster's metadata."""
    title: ClassVar[str]
    """Its name for people."""
    maker: ClassVar[str] = ""
    """The service that offers it, where it has one only."""
    variables: ClassVar[tuple[str, ...]] = ()
    """The environment variables that name one, all of them needed. A backend without any is in the home, and
    used where no other one is set."""
    secrets: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The fields that are secret, each with its variable: neither the UI nor a message shows them."""
    fix: ClassVar[str]
    """The sentences on what to do where it does not answer."""

    @classmethod
    @abstractmethod
    def read(cls, reader: EnvironmentReader, *, ca_file: Path | None) -> Self | None:
        """The backend that the variables name, or None; mistakes in them are added to the reader."""

    @classmethod
    def main_variable(cls) -> str:
        """Optional: the variable by which it is known to be meant, whether or not the others are set."""
        return cls.variables[0]

    @property
    @abstractmethod
    def place(self) -> str:
        """The file, folder or server, for people: no secret. Two with the same place are the same."""

    @property
    def is_here(self) -> bool:
        """True if it is in the home: its room is that of this machine's disk, and nothing is a request."""
        return not self.variables

    def servers(self) -> Iterable[Server]:
        """Optional: the servers that it needs."""
        return ()


class DatabaseBackend(Backend):
    """The duties of a database."""

    pays_by_row: ClassVar[bool] = False
    """True if each request, and each row that it reads, is paid for."""
    side: ClassVar[tuple[str, str] | None] = None
    """Optional: its short name in `copy`, with the objects that most have beside it."""

    @property
    def file(self) -> Path | None:
        """Optional: the file of this machine that it is."""
        return None

    @property
    def where(self) -> str:
        """Optional: its place as Dagster's UI shows it beside its kind."""
        return self.place

    @abstractmethod
    def connect(self, *, for_requests: bool = False, alone_where_full: bool = False) -> Database:
        """The open database, whatever its schema. The options are those of `connect.opened`.

        Raises DatabaseUnavailable: it cannot be reached, or a library for it is not installed.
        """

    def connect_to_read(self) -> Database | None:
        """Optional: the open database for a user who may not write it; None where `connect` serves."""
        return None

    @abstractmethod
    def probe(self) -> ServerAnswer:
        """One small request, which a database without our schema answers as well.

        Raises DatabaseUnavailable: no answer, or not to us.
        """

    def size(self) -> int | None:
        """Optional: the bytes of the whole database, None where they are not known. Raises as `probe`."""
        return self.probe().size_bytes

    def judge_size(self, size: int | None) -> SizeVerdict:
        """Optional: the meaning of this size on a server with a limit."""
        return SizeVerdict(found="not known" if size is None else f"{size / 1e6:,.1f} MB")

    def most_connections(self, database: Database) -> int | None:
        """Optional: the connections that the server gives to all of us together."""
        return None

    def make_schema(self, name: str) -> None:
        """Optional: make a schema for the tables of others, Dagster's of a fleet."""


class ObjectsBackend(Backend):
    """The duties of an object store."""

    pays_by_list: ClassVar[bool] = False
    """True if a list of objects is paid for."""

    @property
    def described(self) -> str:
        """Optional: itself in a sentence."""
        return f"{self.title} at {self.place}"

    @property
    def folder(self) -> Path | None:
        """Optional: the folder of this machine that it is."""
        return None

    @abstractmethod
    def open(self) -> ObjectStore:
        """The open store. Raises ObjectStoreUnavailable: the settings are of no use to anybody."""

    @abstractmethod
    def uri(self, prefix: str) -> tuple[str, str]:
        """The URI of the objects with this prefix, and their place, for people."""

    def topics(self) -> TopicsPlace | None:
        """Optional: the place of topics where it is another one."""
        return None

    def open_topics(self) -> ObjectStore | None:
        """Optional: the open store of `topics`."""
        return None

    @property
    def topics_place(self) -> str:
        """Optional: distinguishes two places of topics. After a move, all documents are put again."""
        return self.place

    def public_urls(self) -> list[str]:
        """Optional: the addresses at which something of it is shown to everybody."""
        return []

    def own_url(self) -> str | None:
        """Optional: its own address, which nobody should read without a key."""
        return None

    @property
    def fix_open(self) -> str:
        """Optional: the sentences on what to do where strangers can read what is not public."""
        return f"Take away the public access to {self.place}."

    def clock(self, store: ObjectStore) -> datetime | None:
        """Optional: the clock of its server, which may refuse keys that a wrong one signs."""
        return None

    def lifecycle(self, store: ObjectStore) -> Lifecycle | None:
        """Optional: its own rule that deletes backups; None where a store has no such rules."""
        return None


def shown(description: str, **options: Any) -> Any:
    """A field of a backend, as Dagster's UI describes it; `options` are those of `dataclasses.field`."""
    return field(metadata={"description": description}, **options)


_NAMES = ("name", "title", "fix")


def missing_duties(kind: type[Backend]) -> list[str]:
    """The required duties that a backend lacks. It cannot be used, and a sentence names them."""
    return [*(name for name in _NAMES if not hasattr(kind, name)), *sorted(kind.__abstractmethods__)]


def check_place(reader: EnvironmentReader, name: str, url: str) -> None:
    """Note an address to which the keys of objects cannot be added."""
    reader.check_web(name, url)
    if re.search(r"[\s?#\"'<>]", url):
        reader.add("has `?`, `#`, a quote or a space in it; write the address of the folder alone", name)


def http_date(text: str | None) -> datetime | None:
    """The time of a server's header `Date`."""
    try:
        return None if text is None else parsedate_to_datetime(text).astimezone(UTC)
    except ValueError:
        return None
