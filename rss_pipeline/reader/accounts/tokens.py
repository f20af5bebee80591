"""The tokens by which a client names a session: a JWT for half an hour, or an opaque one as long as it lives.

Both only name a session; whether it is alive is read from the store in every request
(reader/accounts/callers.py). The key that signs is made once.
"""

import errno
import hashlib
import logging
import os
import re
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jwt

from rss_pipeline.errors import InfrastructureError, NoSession, file_error
from rss_pipeline.put_aside import put_aside
from rss_pipeline.reader.accounts.callers import SessionKey
from rss_pipeline.settings import Settings
from rss_pipeline.storage.accounts.sessions import Kind

TOKEN_LIFETIME = timedelta(minutes=30)

_logger = logging.getLogger(__name__)

_ALGORITHM = "HS256"
_TYPE = "rss-session+jwt"
_ISSUER = "rss-pipeline"
_AUDIENCE = "rss-pipeline-reader"
_CLAIMS = ["iss", "aud", "sub", "exp", "iat", "jti"]
_MOST_CHARACTERS = 1_000
"""Ours have some 350."""
_CLOCK_STEP = timedelta(minutes=1)
"""By so much the clocks of two machines, or of one before and after it was set, may differ."""
_OPAQUE = re.compile(r"([0-9a-f]{32})/([A-Za-z0-9_-]{43})", re.ASCII)
_USER_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SESSION_ID = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A new opaque token, and the id of the session that it opens: a hash, which makes no token."""

    secret: str
    session_id: str

    def of(self, user_id: str) -> str:
        """The token's text. It holds no `=`, at which clients would split it."""
        return f"{user_id}/{self.secret}"


def new_opaque() -> Opaque:
    """A token for a session that is about to begin: 256 random bits."""
    secret = secrets.token_urlsafe(32)
    return Opaque(secret, _session_id(secret))


def read_opaque(token: str, purpose: Kind) -> SessionKey:
    """The session that an opaque token names.

    Raises:
        NoSession: no token of ours looks like this.
    """
    match = _OPAQUE.fullmatch(token)
    if match is None:
        raise NoSession
    return SessionKey(_session_id(match[2]), match[1], purpose)


def sign_jwt(secret: bytes, *, user_id: str, session_id: str, now: datetime) -> tuple[str, datetime]:
    """A JWT of a session of kind `login`, and when it expires."""
    issued = now.replace(microsecond=0)
    expires_at = issued + TOKEN_LIFETIME
    claims = {
        "iss": _ISSUER,
        "aud": _AUDIENCE,
        "sub": user_id,
        "exp": int(expires_at.timestamp()),
        "iat": int(issued.timestamp()),
        "jti": session_id,
    }
    return jwt.encode(claims, secret, _ALGORITHM, headers={"typ": _TYPE}), expires_at


def read_jwt(secret: bytes, token: str, *, now: datetime) -> SessionKey:
    """The session that a JWT of ours names, as only `sign_jwt` makes it.

    Raises:
        NoSession: it is signed by another key or algorithm or not at all, it is of another type, issuer or
            audience, it lacks a claim, or it has expired.
    """
    if len(token) > _MOST_CHARACTERS:
        raise NoSession
    try:
        claims = _signed_claims(secret, token)
    except (jwt.PyJWTError, ValueError):
        # ValueError: a lone surrogate in the text.
        raise NoSession from None
    expires, issued, user_id, session_id = (claims[name] for name in ("exp", "iat", "sub", "jti"))
    if not (type(expires) is int and type(issued) is int):
        raise NoSession
    at = now.timestamp()
    # One that expires late comes from a clock that was ahead, and would live on for as long.
    if not at < expires <= at + (TOKEN_LIFETIME + _CLOCK_STEP).total_seconds():
        raise NoSession
    if not (_is_of(_USER_ID, user_id) and _is_of(_SESSION_ID, session_id)):
        raise NoSession
    return SessionKey(session_id, user_id, "login")


@lru_cache(maxsize=1_000)
def _signed_claims(secret: bytes, token: str) -> Mapping[str, Any]:
    """The claims of a token of ours, whenever it expires: a client sends the same one for half an hour.

    Raises:
        jwt.PyJWTError, ValueError: the token is invalid (failures are not cached).
    """
    decoded = jwt.decode_complete(
        token,
        secret,
        algorithms=[_ALGORITHM],
        audience=_AUDIENCE,
        issuer=_ISSUER,
        # The instants are checked by the clock that is passed in.
        options={"require": _CLAIMS, "verify_exp": False, "verify_iat": False},
    )
    if decoded["header"].get("typ") != _TYPE:
        raise jwt.InvalidTokenError("a token of another type")
    return MappingProxyType(decoded["payload"])


def _session_id(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _is_of(form: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


# The key that signs tokens: from the environment, or a file in the home that is made once.

LEAST_BYTES = 32
"""A shorter key than the hash of HS256 could be guessed from a token (RFC 7518 3.2)."""


def reader_secret(settings: Settings) -> bytes:
    """The key of this installation. Every process of one home gets the same.

    Raises:
        InfrastructureError: the file in the home cannot be read or made.
    """
    if settings.reader_secret is not None:
        return settings.reader_secret.encode(errors="surrogateescape")
    path = settings.home / "reader_secret"
    try:
        _make(path)
        if (secret := _read(path)) is None:
            aside = put_aside(path)
            _logger.warning("%s holds no key: it is now %s, and all log in again with a new one", path, aside)
            _make(path)
            secret = _read(path) or b""
        return secret
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


def _read(path: Path) -> bytes | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            # A copy of the home may have lost the mode; what others on this machine read, they can sign with.
            with suppress(OSError):
                os.fchmod(file.fileno(), 0o600)
        secret = file.read(10_000).strip()
    return secret if len(secret) >= LEAST_BYTES else None
