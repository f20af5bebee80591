"""The key that signs tokens: from the environment, or a file in the home that is made once."""

import errno
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from rss_pipeline.errors import InfrastructureError, SettingMistake, SettingsError, file_error
from rss_pipeline.settings import Settings

LEAST_BYTES = 32
"""A shorter key than the hash of HS256 could be guessed from a token (RFC 7518 3.2)."""


def reader_secret(settings: Settings) -> bytes:
    """The key of this installation. Every process of one home gets the same.

    Raises:
        SettingsError: the file in the home holds no key.
        InfrastructureError: it cannot be read or made.
    """
    if settings.reader_secret is not None:
        return settings.reader_secret.encode(errors="surrogateescape")
    path = settings.home / "reader_secret"
    try:
        _make(path)
        return _read(path)
    except OSError as error:
        raise InfrastructureError(
            f"{file_error(f'{path}: the key of the reader cannot be read or made', error, path)};"
            " or set RSS_READER_SECRET"
        ) from error


def _make(path: Path) -> None:
    """Put a new key there, whole and for this user only, unless there is one."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two processes may start at once, and either be killed: a key is complete before it has its name, and the
    # second one finds that of the first. mkstemp opens with O_EXCL and mode 0600.
    handle, name = tempfile.mkstemp(prefix=".reader_secret.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            _name_it(Path(name), path)
    finally:
        Path(name).unlink(missing_ok=True)


def _name_it(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        # A file system without hard links: written in place, a kill here leaves a file that `_read` refuses.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(temporary.read_bytes())


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            # A copy of the home may have lost the mode; what others on this machine read, they can sign with.
            with suppress(OSError):
                os.fchmod(file.fileno(), 0o600)
        secret = file.read(10_000).strip()
    if len(secret) < LEAST_BYTES:
        raise SettingsError(
            SettingMistake(
                ("RSS_READER_SECRET",),
                f"not set, and {path} holds no key of {LEAST_BYTES} bytes or more; remove the file, and a"
                " new one is made (everybody then logs in again)",
            )
        )
    return secret
