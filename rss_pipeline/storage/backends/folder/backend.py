"""The embedded object store: a folder in the home, without a server.

The bodies are under their keys, so that a person finds them; `.metadata/` holds a JSON file for each,
`.incoming/` what is being written. A body appears by rename, last, when all its bytes are on the disk.
"""

import fcntl
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.errors import ObjectStoreUnavailable, StorageRejected, disk_full, disk_is_full
from rss_pipeline.storage.backends.backend import ObjectsBackend, shown
from rss_pipeline.storage.objects import PUBLIC, ObjectInfo, ObjectStore, check_key, check_object

_MAX_SEGMENT_BYTES = 250
_PROBE_BYTES = 65_536
_SAFE = " !$&'()+,;=@[]{}:~^#"
"""Characters beside letters, digits and `-_.` that a file name holds unchanged."""


class FolderStore:
    """An `ObjectStore` in a folder of one machine; several processes may use it at once."""

    puts_at_once = 4

    def __init__(self, root: Path, *, public_url: str | None = None) -> None:
        """`public_url`: the address at which a web server shows the files of the folder, if one does."""
        self._bodies = root
        self._public_url = public_url.rstrip("/") if public_url else None
        self._metadata = root / ".metadata"
        self._incoming = root / ".incoming"
        self._lock_path = root / ".lock"
        self._thread_lock = threading.Lock()
        with _faults(root):
            for folder in (self._bodies, self._metadata, self._incoming):
                folder.mkdir(parents=True, exist_ok=True)
        self._show_stored(root / ".shown")

    def put(
        self,
        key: str,
        body: bytes | Path,
        *,
        content_type: str,
        metadata: Mapping[str, str] | None = None,
        cache_control: str | None = None,
        only_if_absent: bool = False,
    ) -> bool:
        check_object(key, content_type, metadata or {})
        target, beside = self._paths(key)
        with _faults(target):
            if only_if_absent and target.is_file():
                return False
            described = json.dumps({"content_type": content_type, "metadata": dict(metadata or {})})
            new_body, new_metadata = self._write(body), self._write(described.encode())
            try:
                with self._locked():
                    if only_if_absent and target.is_file():
                        return False
                    _move(new_metadata, beside)
                    _move(new_body, target)
                    if self._public_url is not None and key.startswith(PUBLIC):
                        self._show(target)
            finally:
                new_body.unlink(missing_ok=True)
                new_metadata.unlink(missing_ok=True)
            _sync_folder(target.parent)
        return True

    def get(self, key: str) -> tuple[bytes, ObjectInfo] | None:
        with _faults(self._bodies), self._locked():
            info = self.head(key)
            return None if info is None else (self._paths(key)[0].read_bytes(), info)

    def head(self, key: str) -> ObjectInfo | None:
        target, beside = self._paths(key)
        with _faults(target):
            try:
                found = target.stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            if not stat.S_ISREG(found.st_mode):
                return None
            described = json.loads(beside.read_text("utf-8")) if beside.exists() else {}
        return ObjectInfo(
            key=key,
            size=found.st_size,
            modified=datetime.fromtimestamp(found.st_mtime, UTC),
            content_type=described.get("content_type"),
            metadata=described.get("metadata", {}),
        )

    def copy(self, source: str, target: str) -> None:
        found = self.head(source)
        if found is None:
            raise KeyError(source)
        content_type = found.content_type or "application/octet-stream"
        self.put(target, self._paths(source)[0], content_type=content_type, metadata=found.metadata)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        with _faults(self._bodies):
            for key, path in _files(self._bodies, "", prefix, after):
                try:
                    found = path.stat()
                except FileNotFoundError:
                    continue
                modified = datetime.fromtimestamp(found.st_mtime, UTC)
                yield ObjectInfo(key=key, size=found.st_size, modified=modified)

    def delete_many(self, keys: Iterable[str]) -> dict[str, str]:
        refused: dict[str, str] = {}
        for key in keys:
            try:
                target, beside = self._paths(key)
                if not (target.parent.is_dir() or beside.parent.is_dir()):
                    continue
                # Also where the body is gone: a killed process left its metadata, or its empty folder.
                with self._locked():
                    for path, root in ((target, self._bodies), (beside, self._metadata)):
                        if path.is_file():
                            path.unlink()
                        _remove_empty(path.parent, root)
            except (OSError, StorageRejected) as error:
                refused[key] = str(error)
        return refused

    def sweep(self, *, before: datetime, dry_run: bool = False) -> int:
        """Delete what killed processes left half-written before then; how many files that is."""
        swept = 0
        with _faults(self._incoming):
            for path in self._incoming.iterdir():
                try:
                    if datetime.fromtimestamp(path.stat().st_mtime, UTC) >= before:
                        continue
                    if not dry_run:
                        path.unlink()
                except FileNotFoundError:
                    continue
                swept += 1
        return swept

    def url(self, key: str) -> str | None:
        path = self._paths(key)[0]
        if self._public_url is None or not key.startswith(PUBLIC):
            return path.absolute().as_uri()
        return f"{self._public_url}/{quote(path.relative_to(self._bodies).as_posix(), safe='/-_.~')}"

    def probe(self) -> None:
        with _faults(self._incoming):
            self._write(b"\0" * _PROBE_BYTES).unlink()
            if not os.access(self._bodies, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise PermissionError(13, "not writable", str(self._bodies))

    def _paths(self, key: str) -> tuple[Path, Path]:
        check_key(key)
        names = [_file_name(segment) for segment in key.split("/")]
        if any(len(name.encode()) > _MAX_SEGMENT_BYTES for name in names):
            raise StorageRejected(f"object key {key!r}: a segment is longer than a file name may be")
        *folders, last = names
        return self._bodies.joinpath(*folders, last), self._metadata.joinpath(*folders, last + ".json")

    def _write(self, body: bytes | Path) -> Path:
        path = self._incoming / f"{os.getpid()}-{threading.get_ident()}-{os.urandom(6).hex()}"
        try:
            with path.open("xb") as file:
                if isinstance(body, Path):
                    with body.open("rb") as source:
                        shutil.copyfileobj(source, file, 1 << 20)
                else:
                    file.write(body)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def _show_stored(self, mark: Path) -> None:
        """Let the web server read what was stored before the folder had a public address, once: documents
        name those addresses too. `mark` is a file that says so."""
        # What cannot be changed, by its owner or on a full disk, is no reason not to use the rest.
        with suppress(OSError):
            if self._public_url is None:
                mark.unlink(missing_ok=True)
            elif not mark.exists():
                for prefix in PUBLIC:
                    for path in (self._bodies / prefix).rglob("*"):
                        with suppress(OSError):
                            if path.is_file():
                                self._show(path)
                mark.touch()

    def _show(self, target: Path) -> None:
        """Let the web server read a public file: the folders above it let it through, and show nothing."""
        target.chmod(0o644)
        for folder in target.parents:
            mode = stat.S_IMODE(folder.stat().st_mode)
            if mode & 0o011 != 0o011:
                folder.chmod(mode | 0o011)
            if folder == self._bodies.parent:
                return

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at the last step: metadata and body change together for all processes."""
        with self._thread_lock, self._lock_path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _move(source: Path, target: Path) -> None:
    try:
        source.replace(target)
    except FileNotFoundError:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
    except (IsADirectoryError, NotADirectoryError) as error:
        raise StorageRejected(f"{target.name}: another key is a folder of this one's name") from error


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove folders that became empty, upwards, below `root`: years of images would leave as many of them.

    Under the lock, for a put makes its folders and moves into them under it.
    """
    while folder != root:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            return
        folder = folder.parent


def _sync_folder(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return  # Another process deleted what was just put, and with it the folder.
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_name(segment: str) -> str:
    """Never begins with a dot: those names are the store's own."""
    name = quote(segment, safe=_SAFE)
    return "%2E" + name[1:] if name.startswith(".") else name


def _files(folder: Path, above: str, prefix: str, after: str) -> Iterator[tuple[str, Path]]:
    """Keys and files in key order, one folder's names in memory at a time. `above` is the folder's key."""
    try:
        with os.scandir(folder) as entries:
            names = [
                (above + unquote(entry.name) + "/" * entry.is_dir(), entry.path)
                for entry in entries
                if not entry.name.startswith(".")
            ]
    except FileNotFoundError:
        return
    for key, path in sorted(names):
        if not key.endswith("/"):
            if key.startswith(prefix) and key > after:
                yield key, Path(path)
        elif (key.startswith(prefix) or prefix.startswith(key)) and (key > after or after.startswith(key)):
            yield from _files(Path(path), key, prefix, after)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if disk_is_full(error):
            raise ObjectStoreUnavailable(f"{disk_full(path.parent)}. Object folder: {error}") from error
        raise ObjectStoreUnavailable(
            f"object folder: {error}; check that {error.filename or path} is writable and the disk has room"
        ) from error


OBJECTS_FOLDER = "objects"
"""Its name in the home."""


@dataclass(frozen=True, slots=True)
class FolderBackend(ObjectsBackend):
    """The embedded object store: backups and images as files."""

    name = "folder"
    title = "a folder"
    fix = "Make RSS_PIPELINE_HOME a folder that this user may write, on a disk with room."

    root: Path = shown("The folder.")
    public_url: str | None = shown("The URL under which browsers find its files.", default=None)

    @classmethod
    def read(cls, reader: EnvironmentReader, *, ca_file: Path | None) -> None:
        """None: it is in the home, and no variable names it."""

    @property
    def place(self) -> str:
        return str(self.root)

    @property
    def described(self) -> str:
        return f"the folder {self.root}"

    @property
    def folder(self) -> Path:
        return self.root

    def open(self) -> ObjectStore:
        return FolderStore(self.root, public_url=self.public_url)

    def uri(self, prefix: str) -> tuple[str, str]:
        return (self.root / prefix).absolute().as_uri(), str(self.root)

    @property
    def topics_place(self) -> str:
        return "folder"

    def public_urls(self) -> list[str]:
        return [] if self.public_url is None else [self.public_url]

    @property
    def fix_open(self) -> str:
        return "Let the web server show images/ and topics/ of the folder and nothing else (docs/topics.md)."
