"""Passwords: their form, and Argon2id hashes of them, at most two at once.

Who may try one is decided before (login.py): a hash takes 50 ms and 19 MiB on purpose.
"""

import string
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from argon2.low_level import Type

from rss_pipeline.errors import HashingBusy, PasswordRefused

LEAST_CHARACTERS = 8
MOST_CHARACTERS = 1024
_LEAST_OF_LIST = 4
_LONG = 6
"""Characters of a common password that are looked for, and of one with any number of signs around it."""
_MOST_AROUND_SHORT = 5
_MOST_OF_REPEATED = 20
_AROUND = string.digits + string.punctuation + string.whitespace
_OURS = frozenset({"rss-pipeline", "rss_pipeline", "rss pipeline", "rsspipeline", "rss-reader", "rssreader"})
"""Words of this program, which a guesser knows (OWASP ASVS 5.0, 6.2.11)."""

_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1, type=Type.ID)
"""OWASP's least (Password Storage Cheat Sheet, Argon2id: m=19 MiB, t=2, p=1)."""
_DECOY = "$argon2id$v=19$m=19456,t=2,p=1$ZGVjb3ktc2FsdC1vZi11cw$Skd3EcWXeDzmEF21XrEdxW3RrgqhTki+VyEGpBMRdWQ"
"""A hash of no user's, with the parameters of `_HASHER`."""
_AT_ONCE = threading.BoundedSemaphore(2)
_WAITING = threading.BoundedSemaphore(16)
"""Hashes at work and in the queue, of this process."""
_OF_STRANGERS = threading.BoundedSemaphore(12)
"""The ones among them of logins from where the account is not known: a flood of these leaves places."""


def check_new(password: str, *, name: str = "") -> None:
    """Raise PasswordRefused for a password that no account, or not the user of this name, may have."""
    if not LEAST_CHARACTERS <= len(_normal(password)) <= MOST_CHARACTERS:
        raise PasswordRefused(
            f"a password has from {LEAST_CHARACTERS} to {MOST_CHARACTERS:,} characters; choose another one"
        )
    if _is_guessed(_normal(password).lower(), name.lower()):
        raise PasswordRefused("this is one of the passwords that are tried first; choose another one")


def _is_guessed(password: str, name: str) -> bool:
    """True for the name of the user or of this program, and for one of the most used passwords, also with
    digits or signs around it; for a short text again and again; for characters in a row (abcdefgh)."""
    once = password[: (password + password).find(password, 1)]
    if len(once) < len(password) <= _MOST_OF_REPEATED:
        return True
    if len({ord(after) - ord(before) for before, after in pairwise(password)} | {0}) == 2 and (
        abs(ord(password[1]) - ord(password[0])) == 1
    ):
        return True
    forms = {password, password.rstrip(_AROUND), password.strip(_AROUND)}
    names = {name, name.strip(_AROUND), *_OURS} - {""}
    least = min(_LONG, len(password) - _MOST_AROUND_SHORT)
    return not forms.isdisjoint(names) or any(len(each) >= least and each in _common() for each in forms)


@cache
def _common() -> frozenset[str]:
    # 14 MB and a tenth of a second, for those alone who set a password.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(each for each in FREQUENCY_LISTS["passwords"] if len(each) >= _LEAST_OF_LIST)


def hash_password(password: str, *, name: str = "") -> str:
    """The hash to store of a new password of the user of this name.

    Raises:
        PasswordRefused: it can be none.
        HashingBusy: too many wait.
    """
    check_new(password, name=name)
    return hash_again(password)


def hash_again(password: str) -> str:
    """The hash of a password that its account has, also if it could not be a new one; raises HashingBusy."""
    with _turn():
        return _HASHER.hash(_bytes(password))


def is_right(password: str, password_hash: str | None, *, is_stranger: bool = True) -> bool:
    """True if this is the password of that hash. Without one (there is no such user) it takes as long.

    `is_stranger`: the account is not known where the login comes from.

    Raises:
        HashingBusy: too many wait.
    """
    # This takes no time, which shows nothing but the length, and no user has such a password.
    if not LEAST_CHARACTERS <= len(_normal(password)) <= MOST_CHARACTERS:
        return False
    with _place_of(is_stranger), _turn():
        try:
            return _HASHER.verify(password_hash or _DECOY, _bytes(password)) and password_hash is not None
        except (Argon2Error, InvalidHashError):
            return False


def is_outdated(password_hash: str) -> bool:
    """True if the hash was made with other parameters than today's."""
    return _HASHER.check_needs_rehash(password_hash)


@contextmanager
def _place_of(is_stranger: bool) -> Iterator[None]:
    if not is_stranger:
        yield
        return
    if not _OF_STRANGERS.acquire(blocking=False):
        raise HashingBusy("too many passwords are being checked at once; try again in a few seconds")
    try:
        yield
    finally:
        _OF_STRANGERS.release()


@contextmanager
def _turn() -> Iterator[None]:
    if not _WAITING.acquire(blocking=False):
        raise HashingBusy("too many passwords are being checked at once; try again in a few seconds")
    try:
        with _AT_ONCE:
            yield
    finally:
        _WAITING.release()


def _normal(password: str) -> str:
    """One form for what keyboards write in several (NIST SP 800-63B 5.1.1.2)."""
    return unicodedata.normalize("NFKC", password) if len(password) <= MOST_CHARACTERS else password


def _bytes(password: str) -> bytes:
    return _normal(password).encode(errors="surrogatepass")
