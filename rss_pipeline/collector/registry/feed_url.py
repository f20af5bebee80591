"""A feed's URL in feeds.yaml: checked and split into URL, password and host, with the id made from it.

No name is resolved and no request made; the HTTP client decides which addresses are allowed.
"""

import hashlib
import ipaddress
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

import idna

from rss_pipeline.collector.models.feed import MAX_URL_CHARACTERS
from rss_pipeline.collector.registry.variables import expand, shown

MAX_SLUG_CHARACTERS = 60

_USERINFO = re.compile(r"\A([^:/?#]+://)([^/?#]*)@")
_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*:")
_HOST_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_ORIGIN = re.compile(r"\A[A-Za-z]+://[^/?#]*")
_ENCODED_BY_BROWSERS = re.compile(r'[ "<>]')
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\\<>\"]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredUrl:
    url: str
    """The URL as written, without userinfo and fragment."""
    host: str
    """Lower-case ASCII (punycode), without port, brackets or a closing dot."""
    same_as: str
    """Equal for two forms of the same request: they differ in the case of the host or in a default port."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


class UrlRefused(ValueError):
    """A text that is no URL of a feed. The message shows it, without a password, for who reads feeds.yaml;
    `reason` does not, for who is sent an answer."""

    def __init__(self, written: str, reason: str) -> None:
        super().__init__(f"{shown(written)} {reason}")
        self.reason = f"it {reason}"


def reason(error: ValueError) -> str:
    """The reason why `read_url` refused a text, without the text."""
    return error.reason if isinstance(error, UrlRefused) else str(error)


def read_url(written: str, environ: Mapping[str, str]) -> RegisteredUrl:
    """The value of `url:`. Raises ValueError with a message that shows no password and no variable's value.

    Before the `@`, the value of a `${VAR}` is taken literally, since passwords contain `@`, `/` and `%`; the
    rest of that part is percent-decoded (RFC 3986 3.2.1).
    """
    written = written.strip()
    username = password = None
    if match := _USERINFO.match(written):
        head, userinfo = match.groups()
        username, password = _credentials(userinfo, environ)
        text = expand(head + written[match.end() :], environ).strip()
    else:
        text = expand(written, environ).strip()
        if match := _USERINFO.match(text):
            username, password = _credentials(match[2].replace("${", "$${"), {})
            text = match[1] + text[match.end() :]
    url = text.partition("#")[0]
    host, same_as = _checked(url, written)
    return RegisteredUrl(url=url, host=host, same_as=same_as, username=username, password=password)


def same_as(url: str) -> str:
    """`RegisteredUrl.same_as` of a URL that was read before: no variable in it is replaced."""
    return _checked(url, url)[1]


def other_form(url: str) -> str:
    """Another text of the same request, for `same_as` equal: with the default port, or without it."""
    match = _ORIGIN.match(url)
    assert match is not None
    origin, rest = match[0], url[match.end() :]
    scheme, _, _ = origin.partition(":")
    default = {"http": ":80", "https": ":443"}[scheme.lower()]
    if origin.endswith(default):
        return origin.removesuffix(default) + rest
    if urlsplit(url).port is None:
        return origin + default + rest
    return scheme.swapcase() + url[len(scheme) :]


def literal(url: str) -> str:
    """A URL from outside as `url:` has to be written, so that no `${NAME}` in it is replaced by a secret."""
    return url.replace("${", "$${")


def completed(text: str) -> str:
    """An address as people type or copy it, as `url:` takes it: with a scheme, and blanks percent-encoded.

    `example.org` and `feed:` become https. Nothing is encoded before the path, where a password may be.
    """
    rest = re.sub(r"^feed:(?://)?", "", text.strip(), flags=re.IGNORECASE)
    if _is_without_scheme(rest):
        rest = f"https://{rest}"
    if match := _ORIGIN.match(rest):
        rest = match[0] + _ENCODED_BY_BROWSERS.sub(lambda m: quote(m[0]), rest[match.end() :])
    return rest


def feed_id(url: str, host: str) -> str:
    """The default id: host and path as a slug, and 10 hex digits of the URL's SHA-256."""
    path = urlsplit(url).path
    slug = re.sub(r"[^a-z0-9]+", "-", (host + path).lower()).strip("-")[:MAX_SLUG_CHARACTERS].rstrip("-")
    digest = hashlib.sha256(url.encode()).hexdigest()[:10]
    return f"{slug}-{digest}" if slug else digest


def free_id(url: str, host: str, urls: Mapping[str, str]) -> str:
    """The default id of a feed that is new, with a number where another feed has it.

    A feed keeps its id when its address changes: whoever adds the old address would have that feed. `urls`
    are the URLs of the stored feeds by id, at least of those with an id that begins like this one.
    """
    default = feed_id(url, host)
    numbered = (f"{default}-{n}" for n in itertools.count(2))
    return next(id for id in itertools.chain([default], numbered) if urls.get(id, url) == url)


def _credentials(userinfo: str, environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    if not userinfo:
        return None, None
    name, colon, secret = userinfo.partition(":")
    username = expand(name, environ, unquote)
    if colon:
        return username, expand(secret, environ, unquote)
    # One variable may hold both, as `name:password`.
    username, colon, password = username.partition(":")
    return username, password if colon else None


def _checked(url: str, written: str) -> tuple[str, str]:
    """Host and `same_as` of `url`; messages show the text as `written`."""
    if "${" not in written and url.lower().startswith("url:"):
        raise UrlRefused(written, "is not a URL; write a space after the colon of `url:`")
    if bad := _NOT_IN_A_URL.search(url):
        code = ord(bad[0])
        name = "a space" if code == 0x20 else f"the character U+{code:04X}"
        raise ValueError(f"{name} is not allowed in a URL; write it percent-encoded (a space is %20)")
    if len(url) > MAX_URL_CHARACTERS:
        raise ValueError(f"the URL is longer than {MAX_URL_CHARACTERS:,} characters; write a shorter one")
    try:
        parts = urlsplit(url)
        port = parts.port
        netloc, hostname = parts.netloc, parts.hostname
    except ValueError:
        hint = "write / ? # percent-encoded before the @, or the password as ${VAR}"
        advice = (
            hint
            if "@" in url
            else "a port is a number from 1 to 65535, an IPv6 address is written in brackets"
        )
        raise UrlRefused(written, f"is not a URL: its host or port cannot be read; {advice}") from None
    if parts.scheme not in ("http", "https"):
        refused = UrlRefused(written, f"is not an http or https URL{_correction(written)}")
        refused.reason = "it is not an http or https URL; only those are fetched"
        raise refused
    if not hostname or port == 0 or netloc.endswith(":"):
        missing = "has no host" if not hostname else "has no valid port"
        raise UrlRefused(written, f"{missing}; write a complete URL such as https://example.org/feed.xml")
    host = _ascii_host(hostname, written)
    default = {"http": 80, "https": 443}[parts.scheme]
    query = f"?{parts.query}" if parts.query else ""
    return host, f"{parts.scheme}://{host}:{port or default}{parts.path or '/'}{query}"


def _correction(written: str) -> str:
    """A proposal for a URL with another scheme or none, as the end of a message."""
    rest = re.sub(r"^feed:(?://)?", "", written, flags=re.IGNORECASE)
    if "@" in rest or "${" in rest:
        return "; write it with https://"
    if rest.lower().startswith(("http://", "https://")):
        return f"; write {shown(rest)}"
    if _is_without_scheme(rest):
        return f"; write {shown('https://' + rest)}"
    return "; only those are fetched"


def _is_without_scheme(text: str) -> bool:
    host = text.partition("/")[0]
    return "." in host and not _SCHEME.match(text)


def _ascii_host(hostname: str, written: str) -> str:
    if ":" in hostname:
        try:
            address = ipaddress.IPv6Address(hostname)
        except ValueError:
            address = None
        if address is None or address.scope_id is not None:
            raise UrlRefused(
                written, "has an invalid IPv6 address; write it as in https://[2001:db8::1]/feed.xml"
            )
        return str(address)
    host = hostname.removesuffix(".").lower()
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True, transitional=False).decode("ascii")
        except idna.IDNAError:
            raise UrlRefused(written, "has a host name that no domain can have") from None
    if len(host) > 253 or not all(_HOST_LABEL.fullmatch(label) for label in host.split(".")):
        raise UrlRefused(written, "has a host name that no domain can have")
    return host
