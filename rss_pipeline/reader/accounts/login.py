"""Logging in, by an account's own password or an app's; renewing a token; logging out; another password.

A password is looked at only after the attempt has been counted: attempts made at once would
otherwise all slip past the limit. The right one takes the count back. Every answer to a wrong login is the
same, and takes as long, whether or not there is such a user.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import HashingBusy, NoSession
from rss_pipeline.reader.accounts.app_passwords import secret_hash
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.devices import Device, place_of
from rss_pipeline.reader.accounts.passwords import (
    check_new,
    hash_again,
    hash_password,
    is_outdated,
    is_right,
)
from rss_pipeline.reader.accounts.tokens import Opaque, new_opaque, read_opaque, sign_jwt
from rss_pipeline.reader.accounts.users import account_key, as_name
from rss_pipeline.storage.accounts import app_passwords, login_failures, sessions
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.accounts.login_failures import AttemptKey, Place
from rss_pipeline.storage.database import Database, one

# The keys under which failed logins are counted, so that passwords cannot be tried one after the other.
#
# An account's owner is known at the addresses of earlier logins, on the devices (devices.py), and in a
# session. There, only what fails there counts: whatever others try elsewhere, or of other accounts from the
# same address, the owner gets in. Everywhere else an attempt counts for the account and for the address. The
# counts are in storage/accounts/login_failures.py.

_FREE_OF_ACCOUNT = 5
_FREE_OF_ADDRESS = 20
"""More than one user may be behind one address."""


def client_address(text: str) -> str:
    """An address as logins are counted: of IPv6 its /64, which one subscriber has whole."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        # A socket of the file system, a test's client.
        return "unknown"
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ip_network((address, 64), strict=False))
    return str(address)


def keys_of_login(name: str, address: str) -> tuple[AttemptKey, ...]:
    """The keys of a login with the account's own password."""
    return (
        AttemptKey(account_key(name), _FREE_OF_ACCOUNT, of_known=False),
        AttemptKey(f"address:{address}", _FREE_OF_ADDRESS, of_known=False),
        AttemptKey(owner_key(name, address), _FREE_OF_ACCOUNT, of_known=True),
    )


def keys_of_app(address: str) -> tuple[AttemptKey, ...]:
    """The keys of a login with an app password, known or not. They lock only what is wrong: 160 random
    bits are not guessed, and a phone with a password that was revoked must not lock out the household."""
    return tuple(AttemptKey(f"apps:{address}", _FREE_OF_ADDRESS, of_known=known) for known in (False, True))


def owner_key(name: str, address: str) -> str:
    """The key that a right password clears: the owner is there."""
    return f"owner:{name}@{address}"


_BUSY_SECONDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    """A session that has begun or was renewed, and the token that names it in the requests to come."""

    user_id: str
    session_id: str
    token: str
    """A JWT; of an app, the opaque token."""
    expires_at: datetime
    """The time at which the token expires."""
    renewal: str | None = None
    """The opaque token that `renew` takes while the session lives, and that a browser keeps as a cookie; as a
    bearer it opens nothing. None for apps."""
    lives: timedelta = sessions.LIFETIME
    """The time without use after which the session ends."""
    device: str | None = None
    """The text by which the browser is known at the next login; None where it keeps none."""


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """No session. All that the caller may learn is when to try again."""

    retry_after: int | None = None
    """Seconds in which no login is tried; None: name or password is wrong."""


@dataclass(frozen=True, slots=True)
class _Right:
    """A password that was right, and what its attempt was counted for."""

    user_id: str
    password_hash: str
    counted: Sequence[AttemptKey]


def log_in(
    database: Database,
    secret: bytes,
    *,
    name: str,
    password: str,
    address: str,
    client: str,
    clock: Clock,
    device: Device | None = None,
) -> LoggedIn | LoginRefused:
    """Begin a session of kind `login`. It takes 50 ms, and waits while two others do.

    `address` is the client's, `client` its user agent, `device` its browser: after this login the user is
    known there, whatever its address.
    """
    name = as_name(name)
    place = _place_of_login(database, secret, name, address, device, clock())
    while True:
        now = clock()
        tried = _try_password(database, name, password, place, now)
        if isinstance(tried, LoginRefused):
            return tried
        opaque = new_opaque()
        if _begin(database, opaque, tried, name, place, client, now):
            break
        # The hash is another one now: of a new password, or of the same one with newer parameters.
    _rehash(database, tried, password)
    user_id = tried.user_id
    token, expires_at = sign_jwt(secret, user_id=user_id, session_id=opaque.session_id, now=now)
    return LoggedIn(
        user_id=user_id,
        session_id=opaque.session_id,
        token=token,
        expires_at=expires_at,
        renewal=opaque.of(user_id),
        device=None if device is None else str(device.with_user(secret, account_key(name))),
    )


def log_in_with_app_password(
    database: Database, *, name: str, password: str, address: str, client: str, clock: Clock
) -> LoggedIn | LoginRefused:
    """Begin a session of kind `google_reader`. A right password is never locked out; one of these is a random
    secret that cannot be guessed, so what is wrong only hears that it should come less often."""
    now, opaque = clock(), new_opaque()
    name, hashed = as_name(name), secret_hash(password)
    *_, begun = database.batch(
        [
            sessions.begin_by_app_password(
                opaque.session_id, user_name=name, secret_hash=hashed, client=client, now=now
            ),
            app_passwords.use(user_name=name, secret_hash=hashed, now=now),
            sessions.tidy(opaque.session_id, now=now),
            sessions.user_of(opaque.session_id),
        ]
    )
    if begun.rows:
        user_id = str(begun.rows[0]["user_id"])
        return LoggedIn(
            user_id=user_id,
            session_id=opaque.session_id,
            token=opaque.of(user_id),
            expires_at=now + sessions.LIFETIME,
        )
    keys = keys_of_app(client_address(address))
    lock, _ = database.batch(
        [
            login_failures.lock(keys, name="", place=Place(""), now=now),
            login_failures.count(keys, name="", place=Place(""), now=now),
        ]
    )
    locked_until = login_failures.locked_until(lock)
    return LoginRefused() if locked_until is None else _refused(locked_until - now)


def renew(database: Database, secret: bytes, *, renewal: str, clock: Clock) -> LoggedIn:
    """A new JWT for a session that is alive, which lives on for its whole time from now.

    Raises:
        NoSession: the session has ended, or the text is none of our tokens.
    """
    now, key = clock(), read_opaque(renewal, "login")
    [renewed] = database.batch([sessions.renew(key.session_id, key.user_id, key.purpose, now=now)])
    if renewed.changes == 0:
        raise NoSession
    token, expires_at = sign_jwt(secret, user_id=key.user_id, session_id=key.session_id, now=now)
    return LoggedIn(
        user_id=key.user_id,
        session_id=key.session_id,
        token=token,
        expires_at=expires_at,
        renewal=renewal,
    )


def log_out(database: Database, session_id: str) -> None:
    """End a session: none of its tokens opens anything from now on. Again, it does nothing."""
    database.batch([sessions.end(session_id)])


def end_session(caller: Caller, id: str) -> bool:
    """End a session of the caller; False where there is none of this id."""
    [ended] = caller.write(sessions.end_of(caller.user_id, id))
    return ended.changes > 0


def end_other_sessions(caller: Caller) -> None:
    """End every session of the caller but this one. Apps log in again by themselves."""
    caller.write(sessions.end_others(caller.user_id, caller.key.session_id))


def confirm_password(caller: Caller, *, password: str) -> LoginRefused | None:
    """Try the caller's own password again, as at a login: whoever finds an open browser is not to guess it.

    Raises NoSession where the session has ended.
    """
    tried = _own_password(caller, password)
    if isinstance(tried, LoginRefused):
        return tried
    caller.database.batch(login_failures.take_back(tried.counted))
    return None


def change_own_password(caller: Caller, *, current: str, new: str, revoke_apps: bool) -> LoginRefused | None:
    """Give the caller another password, and end every session but the caller's own. Apps log in again by
    themselves with their app passwords, unless those are revoked too.

    The current password is tried as at a login: whoever finds an open browser is not to guess it.

    Raises:
        PasswordRefused: the new password can be none.
        HashingBusy: too many passwords are being checked.
        NoSession: the session has ended.
    """
    check_new(new, name=_own_name(caller))
    tried = _own_password(caller, current)
    if isinstance(tried, LoginRefused):
        return tried
    caller.database.batch(login_failures.take_back(tried.counted))
    # Whoever has set another one meanwhile has ended this session, so nothing is written.
    caller.write(
        users.change_password(caller.user_id, hash_password(new)),
        sessions.end_others(caller.user_id, caller.key.session_id),
        *([app_passwords.revoke_all(caller.user_id)] if revoke_apps else []),
    )
    return None


def _own_password(caller: Caller, password: str) -> _Right | LoginRefused:
    """Look at a password in a session that is alive: what others try elsewhere does not count there."""
    place = Place(place_of("session", caller.key.session_id), is_proven=True)
    return _try_password(caller.database, _own_name(caller), password, place, caller.clock())


def _own_name(caller: Caller) -> str:
    [found] = caller.read(users.named(caller.user_id))
    return str(found.rows[0]["name"])


def _place_of_login(
    database: Database, secret: bytes, name: str, address: str, device: Device | None, now: datetime
) -> Place:
    """The place that a login comes from: the device where the account is known on it, else the address."""
    if device is not None:
        if device.knows(secret, account_key(name)):
            return Place(device.place, is_proven=True)
        # A cookie from before there were marks.
        place = Place(device.place)
        [known] = database.batch([login_failures.is_known(name, place, now=now)])
        if known.rows[0]["known"]:
            return place
    return Place(client_address(address))


def _try_password(
    database: Database, name: str, password: str, place: Place, now: datetime
) -> _Right | LoginRefused:
    """Look at a password, if this name at this place may try one now."""
    every_key = keys_of_login(name, place.address)
    found, known, lock, _ = database.batch(
        [
            users.by_name(name),
            login_failures.is_known(name, place, now=now),
            login_failures.lock(every_key, name=name, place=place, now=now),
            login_failures.count(every_key, name=name, place=place, now=now),
        ]
    )
    locked_until = login_failures.locked_until(lock)
    if locked_until is not None:
        return _refused(locked_until - now)
    is_known = bool(known.rows[0]["known"])
    counted = [key for key in every_key if key.of_known == is_known]
    user = one(found)
    try:
        stored = None if user is None else user["password_hash"]
        right = is_right(password, stored, is_stranger=not is_known)
    except HashingBusy:
        database.batch(login_failures.take_back(counted))
        return LoginRefused(_BUSY_SECONDS)
    if user is None or not right:
        return LoginRefused()
    return _Right(str(user["id"]), user["password_hash"], counted)


def _begin(
    database: Database,
    opaque: Opaque,
    right: _Right,
    name: str,
    place: Place,
    client: str,
    now: datetime,
) -> bool:
    """Begin a session of a user with the right password; False if it is no longer the password."""
    id = opaque.session_id
    begun, *_ = database.batch(
        [
            sessions.begin_by_password(
                id, right.user_id, password_hash=right.password_hash, client=client, now=now
            ),
            sessions.tidy(id, now=now),
            *login_failures.take_back(right.counted),
            login_failures.forget([owner_key(name, place.address)]),
            *([] if place.is_proven else login_failures.know(id, place.address, now=now)),
            login_failures.tidy(now=now),
        ]
    )
    return begun.changes == 1


def _rehash(database: Database, right: _Right, password: str) -> None:
    """Hash a right password anew where its hash has old parameters; if that fails, the next login does."""
    if is_outdated(right.password_hash):
        try:
            new = hash_again(password)
        except HashingBusy:
            return
        database.batch([users.rehash(right.user_id, old=right.password_hash, new=new)])


def _refused(left: timedelta) -> LoginRefused:
    return LoginRefused(max(1, math.ceil(left.total_seconds())))
