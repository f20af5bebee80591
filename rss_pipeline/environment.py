"""Values of environment variables, each checked, and the mistakes in them.

Which variables there are, and what they mean, is in settings.py.
"""

import math
import os
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import time
from importlib.metadata import version
from io import StringIO
from ipaddress import IPv4Address, ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit
from zoneinfo import available_timezones

from dotenv import load_dotenv
from dotenv.parser import parse_stream

from rss_pipeline.collector.http.addresses import AddressRange, is_never_opened
from rss_pipeline.errors import SettingMistake, SettingsError, file_error
from rss_pipeline.web.authority import Authority, read_authority


def load_env_file(folder: Path) -> None:
    """Put the variables of the file .env in this folder into the environment; those that are set stay.

    Raises:
        SettingsError: it cannot be read, is not UTF-8, or has lines that are no variables.
    """
    path = folder / ".env"
    raw = b""
    try:
        if path.exists() and not path.is_dir():
            raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
        if "\0" in text:
            # Text in UTF-16 without its mark; a variable cannot have such a character.
            raise UnicodeDecodeError("utf-8", raw, raw.index(0), raw.index(0) + 1, "it is null")
    except UnicodeDecodeError as error:
        kind = "UTF-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or 0 in raw else "not UTF-8"
        sentence = (
            f"{path} is {kind}; save it as UTF-8 (PowerShell: `Set-Content -Encoding utf8`, Notepad: Save as)"
        )
        raise SettingsError(SettingMistake((".env",), sentence)) from error
    except OSError as error:
        raise SettingsError(
            SettingMistake((".env",), file_error(f"{path} cannot be read", error, folder))
        ) from error
    lines = [str(each.original.line) for each in parse_stream(StringIO(text)) if each.error]
    if lines:
        # The library would leave them out, and what they should set would have its default.
        sentence = f"{path}, line {', '.join(lines)}: not a variable; write NAME=value, and close quotes"
        raise SettingsError(SettingMistake((".env",), sentence))
    load_dotenv(stream=StringIO(text))


_Number = TypeVar("_Number", int, float)

_ESCAPES = (
    "and in the password, percent-encoded, %40 for @, %2F for /, %3A for :, %3F for ?, %23 for #, %20 for a"
    " space and %25 for %"
)
_PRODUCT = f"rss_pipeline/{version('rss_pipeline')}"
"""The beginning of the User-Agent."""
_SECRET_BYTES = 32
MOST_CONTACT_CHARACTERS = 200
CONTACT_WANTED = (
    f"write an address or URL in at most {MOST_CONTACT_CHARACTERS} ASCII characters, without brackets and"
    " backslashes"
)


def is_contact(text: str) -> bool:
    """True for what a comment in a header may be (RFC 9110 5.6.5)."""
    plain = text.isascii() and text.isprintable() and len(text) <= MOST_CONTACT_CHARACTERS
    return plain and re.search(r"[()\\]", text) is None


def user_agent(contact: str | None) -> str:
    """The User-Agent of all requests to publishers."""
    return _PRODUCT if contact is None else f"{_PRODUCT} (+{contact})"


class EnvironmentReader:
    """Reads one variable after the other and collects the mistakes.

    A variable that cannot be used reads as its default.
    """

    def __init__(self, environ: Mapping[str, str], cwd: Path) -> None:
        self.mistakes: list[SettingMistake] = []
        self.variables: set[str] = set()
        """All that were read."""
        self._environ = environ
        self._cwd = cwd

    def path(self, name: str, default: str) -> Path:
        text = self.text(name) or default
        try:
            path = self._cwd / Path(text).expanduser()
        except RuntimeError:
            self._wrong(name, text, "write a path without ~, for that user has no home folder")
            path = self._cwd / default
        return Path(os.path.abspath(path))

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        return self._number(name, default, int, f"a whole number from {least:,} to {most:,}", least, most)

    def whole_or_none(self, name: str, least: int, most: int, *, unset: str) -> int | None:
        wanted = f"a whole number from {least:,} to {most:,}"
        number = self._number(name, 0, int, wanted, least, most, unset=unset)
        return number or None

    def decimal(self, name: str, default: float, least: float, most: float) -> float:
        return self._number(name, default, float, f"a number from {least:g} to {most:g}", least, most)

    def time_of_day(self, name: str, default: time) -> time:
        return self._time_of_day(name, unset=f"it is {default:%H:%M}") or default

    def time_of_day_or_none(self, name: str) -> time | None:
        return self._time_of_day(name, unset="there is none")

    def timezone(self, name: str, default: str) -> str:
        text = self.text(name)
        if text is None:
            return default
        if text not in available_timezones():
            self._wrong(name, text, f"write a name like Europe/Berlin; unset, it is {default}")
            return default
        return text

    def user_agent(self, name: str) -> str:
        contact = self.text(name)
        if contact is not None and not is_contact(contact):
            self._wrong(name, contact, CONTACT_WANTED)
        return user_agent(contact)

    def proxy(self, name: str) -> str | None:
        return self._url(
            name,
            lambda url: url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0,
            "not the URL of a proxy; write http://[user:password@]host:port",
        )

    def postgres(self, name: str, *, more: Sequence[str] = ()) -> str | None:
        """The URL of a database; `more` are schemes that it may have as well."""
        return self._url(
            name,
            lambda url: (
                url.scheme in ("postgresql", "postgres", *more)
                and url.path.strip("/") != ""
                and url.port != 0
                # libpq would take what follows the first of two for the host, and print it; and what is
                # before a / in a password for host and port, if it is a number.
                and url.netloc.count("@") < 2
                and "@" not in url.path
                and not url.fragment
                and all(map(_is_encoded, (url.netloc, url.path, url.query)))
            ),
            f"not the URL of a database; write postgresql://user:password@host:5432/database, {_ESCAPES}",
        )

    def redis(self, name: str) -> str | None:
        return self._url(
            name,
            lambda url: (
                url.scheme in ("redis", "rediss")
                and bool(url.hostname)
                and url.port != 0
                and re.fullmatch("(/[0-9]*)?", url.path) is not None
                and _is_encoded(url.netloc)
            ),
            f"not the URL of a Redis; write redis://[:password@]host:6379/0, {_ESCAPES}",
        )

    def _url(self, name: str, fits: Callable[[SplitResult], bool], wanted: str) -> str | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            is_fit = fits(urlsplit(text))
        except ValueError:
            is_fit = False
        if is_fit:
            return text
        # The value may hold a password.
        self.add(wanted, name)
        return None

    def machine(self, name: str) -> str:
        """The name of a machine; unset, its host name."""
        text = self.text(name)
        default = re.sub("[^A-Za-z0-9._-]", "-", socket.gethostname())[:63] or "worker"
        if text is not None and not re.fullmatch(r"[A-Za-z0-9._-]{1,63}", text):
            self._wrong(
                name, text, f"write at most 63 letters, digits, points and hyphens; unset, it is {default}"
            )
            return default
        return text or default

    def webhook(self, name: str) -> str | None:
        text = self.text(name)
        if text is not None:
            self.check_web(name, text)
        return text

    def secret(self, name: str) -> str | None:
        """A key; it is never repeated."""
        text = self.text(name)
        if text is not None and len(text.encode(errors="surrogateescape")) < _SECRET_BYTES:
            self.add(
                f"too short; write {_SECRET_BYTES} bytes or more that cannot be guessed, such as the output"
                " of `openssl rand -base64 48`",
                name,
            )
        return text

    def authorities(self, name: str) -> Path | None:
        text = self.text(name)
        if text is None:
            return None
        path = self.path(name, text)
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except OSError as error:
            wanted = "write the path of a PEM file with the certificates of the authorities to trust"
            self._wrong(name, text, f"{error.strerror or error}; {wanted}")
        return path

    def networks(self, name: str) -> tuple[AddressRange, ...]:
        networks = []
        for text in self._listed(name):
            try:
                network = ip_network(text)
            except ValueError:
                self._wrong(name, text, _range_meant(text))
                continue
            if is_never_opened(network):
                self._wrong(
                    name,
                    text,
                    "link-local, metadata, multicast and unspecified addresses are never requested",
                )
            networks.append(network)
        return tuple(networks)

    def ranges(self, name: str) -> tuple[AddressRange, ...]:
        found = []
        for text in self._listed(name):
            try:
                found.append(ip_network(text))
            except ValueError:
                self._wrong(name, text, _range_meant(text))
        return tuple(found)

    def on_off(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text is None or text.lower() in ("on", "off"):
            return default if text is None else text.lower() == "on"
        self._wrong(name, text, f"write on or off; unset, it is {'on' if default else 'off'}")
        return default

    def ports(self, name: str) -> frozenset[int]:
        ports = set()
        for text in self._listed(name):
            if re.fullmatch(r"[0-9]{1,5}", text) and 0 < int(text) < 65_536:
                ports.add(int(text))
            else:
                self._wrong(name, text, "write ports from 1 to 65535, with commas between them")
        return frozenset(ports)

    def ipv4(self, name: str, default: str) -> str:
        text = self.text(name)
        if text is None:
            return default
        try:
            return str(IPv4Address(text))
        except ValueError:
            self._wrong(name, text, f"write an IPv4 address of this machine; unset, it is {default}")
            return default

    def names(self, name: str) -> tuple[Authority, ...]:
        found = []
        for text in self._listed(name):
            authority = read_authority(text)
            if authority is None:
                self._wrong(
                    name, text, "write names as in a browser's address, rss.example.org or localhost:8080"
                )
            else:
                found.append(authority)
        return tuple(found)

    def all_or_none(self, names: Sequence[str]) -> dict[str, str] | None:
        given = {name: text for name in names if (text := self.text(name)) is not None}
        missing = [name for name in names if name not in given]
        if given and missing:
            there = ", ".join(given)
            self.add(f"not set, but {there} is; set all of them, or none", *missing)
        return None if missing else given

    def check_web(self, name: str, text: str) -> None:
        """Note a value that is no URL. It may hold a secret, so it is not repeated."""
        try:
            parts = urlsplit(text)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname)
            usable = usable and parts.username is None and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            self.add("not a URL; write https://..., without user and password", name)

    def text(self, name: str) -> str | None:
        self.variables.add(name)
        text = self._environ.get(name, "").strip()
        if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
            # A file .env is read without them; the value itself may be a secret.
            sentence = "has quotes around it, which `docker --env-file` keeps: take them out"
            if not any(name in mistake.names for mistake in self.mistakes):
                self.add(sentence, name)
            text = text[1:-1].strip()
        return text or None

    def _time_of_day(self, name: str, *, unset: str) -> time | None:
        text = self.text(name)
        if text is None:
            return None
        match = re.fullmatch(r"([0-9]{1,2}):([0-9]{2})", text)
        if match is None or int(match[1]) > 23 or int(match[2]) > 59:
            self._wrong(name, text, f"write a time of day as 04:00; unset, {unset}")
            return None
        return time(int(match[1]), int(match[2]))

    def _listed(self, name: str) -> list[str]:
        return [text for part in (self.text(name) or "").split(",") if (text := part.strip())]

    def _number(
        self,
        name: str,
        default: _Number,
        kind: Callable[[str], _Number],
        wanted: str,
        least: float,
        most: float,
        *,
        unset: str | None = None,
    ) -> _Number:
        text = self.text(name)
        if text is None:
            return default
        try:
            number = kind(text)
        except ValueError:
            number = kind("-1")
        if not (math.isfinite(number) and least <= number <= most):
            self._wrong(name, text, f"write {wanted}; unset, {unset or f'it is {default:g}'}")
            return default
        return number

    def _wrong(self, name: str, text: str, advice: str) -> None:
        self.add(f'"{text[:80]}" cannot be used; {advice}', name)

    def add(self, message: str, *names: str) -> None:
        self.mistakes.append(SettingMistake(names, message))


def _is_encoded(part: str) -> bool:
    """True for a part of a URL that a client can decode: no % stands for itself, and the bytes are a text."""
    if re.search(r"%(?![0-9A-Fa-f]{2})|%00|\s", part) is not None:
        return False
    try:
        unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return False
    return True


def _range_meant(text: str) -> str:
    try:
        return f"write {ip_network(text, strict=False)} or {text.partition('/')[0]}"
    except ValueError:
        return "write ranges such as 198.18.0.0/15, with commas between them"
