"""The secrets of a feed's access, and their search and removal in texts of servers.

Servers repeat what they were sent: in a Location, an ETag, the title of an error page, an item. Secrets are
sent in `client.py`, to the registered origin only. docs/security.md says what is found and what is not.
"""

import base64
import json
import re
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import unescape
from html.entities import html5
from itertools import compress
from typing import Self
from urllib.parse import unquote

from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.models.identity import Identities
from rss_pipeline.collector.models.item import Item, ParsedFeed

REPLACEMENT = "***"
"""In the place of a secret. Brackets would make a URL unreadable."""

_SHORTEST = 6
"""Characters: a shorter password would also be found within ordinary words."""
_ANYWHERE = 8
"""Characters: a secret that is shorter is found where it is a whole word, else it would shred texts."""
_MOST_MARKS = 60
"""Places that a backup's metadata names, one for each secret: it has 4 KB for all that a replay needs."""
_NO_SECRETS = frozenset({"accept", "accept-language", "from", "user-agent"})
_PARTS = re.compile(r"[\s;,\"]+")
_DIGIT = re.compile(r"[0-9]")
_JSON_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([/\"\\]))")
_ENTITIES: dict[str, list[str]] = {}
for _name, _written in html5.items():
    if len(_written) == 1 and _name.endswith(";"):
        _ENTITIES.setdefault(_written, []).append(_name)

Marks = tuple[tuple[int, int], ...]
"""Places of secrets in a document as served: the offset and the length of each, in bytes."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Texts that are stored nowhere and shown nowhere. A text may repeat them in several forms: in upper or
    lower case, percent-encoded, with the escapes of HTML, XML or JSON, and a password in base64."""

    plain: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, access: Access) -> Self:
        """The password, the values of headers and their parts."""
        plain: set[str] = set()
        if access.password is not None:
            pair = f"{access.username or ''}:{access.password}"
            plain |= {access.password, *_in_base64(pair)}
            if len(access.password) >= _SHORTEST:
                plain |= set(_in_base64(access.password))
        for name, value in access.headers.items():
            if name.strip().lower() not in _NO_SECRETS:
                # A part without a digit is no secret: `Bearer` and cookie names also occur in URLs.
                parts = (form for part in _PARTS.split(value) for form in (part, part.partition("=")[2]))
                plain |= {value.strip(), *filter(_DIGIT.search, parts)}
        return cls.named(plain)

    @classmethod
    def named(cls, texts: Iterable[str]) -> Self:
        """These texts, but for those that are too short to be looked for."""
        return cls(frozenset(text for text in texts if len(text) >= _SHORTEST))

    @classmethod
    def marked(cls, body: bytes, marks: Marks) -> Self:
        """The secrets at the places of `body` that the metadata of its backup names."""
        found = (body[start : start + length].replace(b"\0", b"") for start, length in marks)
        return cls.named(map(_unescaped, map(_decoded, found)))

    def __or__(self, other: "Secrets") -> "Secrets":
        return Secrets(self.plain | other.plain)

    def are_in(self, text: str) -> bool:
        """True if `text`, a URL for instance, contains a secret."""
        return bool(self.plain) and _pattern(self.plain).search(text) is not None

    def removed(self, text: str) -> str:
        """`text` with three stars in the place of each secret."""
        return _pattern(self.plain).sub(REPLACEMENT, text) if self.plain else text

    def marks(self, body: bytes) -> Marks:
        """The first place of each secret in a document as served; of 60 at most."""
        if not self.plain:
            return ()
        # Without the NULs of UTF-16, and as Latin-1, which keeps the offsets.
        text = body.replace(b"\0", b"").decode("latin-1")
        places: dict[str, tuple[int, int]] = {}
        for match in _pattern(self.plain, octets=True).finditer(text):
            places.setdefault(_unescaped(match[0]).lower(), match.span())
            if len(places) == _MOST_MARKS:
                break
        at: Sequence[int] = range(len(body))
        if places and len(text) < len(body):
            at = array("L", compress(at, body))
        return tuple((at[start], at[end - 1] + 1 - at[start]) for start, end in places.values())


def repeats_a_secret(text: str, access: Access) -> bool:
    """True if `text`, a URL for instance, contains a secret in any form."""
    return Secrets.of(access).are_in(text)


def scrubbed(text: str, access: Access) -> str:
    """`text` with three stars in the place of each secret."""
    return Secrets.of(access).removed(text)


def without_secrets(parsed: ParsedFeed, secrets: Secrets) -> ParsedFeed:
    """A parsed document with three stars in the place of each secret, also in guids and links.

    Two guids that are the same then are a double, as two that were the same before.
    """
    if not secrets.plain:
        return parsed
    items: dict[str, Item] = {}
    doubles: list[str] = []
    for item in parsed.items:
        cleaned = _without(item, secrets)
        if cleaned.guid in items:
            doubles.append(cleaned.guid)
        else:
            items[cleaned.guid] = cleaned
    header = parsed.header
    return replace(
        parsed,
        header=replace(
            header,
            title=_maybe(header.title, secrets),
            link=_maybe(header.link, secrets),
            description=_maybe(header.description, secrets),
            language=_maybe(header.language, secrets),
            repairs=tuple(map(secrets.removed, header.repairs)),
        ),
        items=tuple(items.values()),
        duplicate_guids=(*map(secrets.removed, parsed.duplicate_guids), *doubles),
    )


def _without(item: Item, secrets: Secrets) -> Item:
    return replace(
        item,
        guid=secrets.removed(item.guid),
        link=_maybe(item.link, secrets),
        title=_maybe(item.title, secrets),
        author=_maybe(item.author, secrets),
        authors=tuple(map(secrets.removed, item.authors)),
        pub_date_raw=_maybe(item.pub_date_raw, secrets),
        categories=tuple(map(secrets.removed, item.categories)),
        enclosures=tuple(
            replace(each, url=secrets.removed(each.url), type=_maybe(each.type, secrets))
            for each in item.enclosures
        ),
        summary=_maybe(item.summary, secrets),
        content_html=_maybe(item.content_html, secrets),
        comments_url=_maybe(item.comments_url, secrets),
        base_url=_maybe(item.base_url, secrets),
        identities=item.identities and _without_identities(item.identities, secrets),
        former_guids=tuple((secrets.removed(new), secrets.removed(old)) for new, old in item.former_guids),
    )


def _without_identities(identities: Identities, secrets: Secrets) -> Identities:
    return replace(
        identities,
        guid=secrets.removed(identities.guid),
        link=secrets.removed(identities.link),
        url=_maybe(identities.url, secrets),
        titles=tuple(_maybe(title, secrets) for title in identities.titles),
        pub_date_raw=_maybe(identities.pub_date_raw, secrets),
        former_date=identities.former_date
        and (secrets.removed(identities.former_date[0]), identities.former_date[1]),
    )


def _maybe(text: str | None, secrets: Secrets) -> str | None:
    return text and secrets.removed(text)


def _in_base64(text: str) -> Iterable[str]:
    """In both alphabets, without the padding, which a URL leaves out."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(text.encode()).decode("ascii").rstrip("=")


def _decoded(octets: bytes) -> str:
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


def _unescaped(text: str) -> str:
    """The secret that a document writes as `text`. `_pattern` finds it whatever escape is left or lost."""
    with suppress(ValueError):
        text = _JSON_ESCAPE.sub(lambda m: json.loads(f'"\\u{m[1]}"') if m[1] else m[2], text)
    for _ in range(3):
        text = unquote(unescape(text))
    return text


@lru_cache(maxsize=64)
def _pattern(secrets: frozenset[str], *, octets: bool = False) -> re.Pattern[str]:
    """Finds each secret, the longest first, with each character written in any form.

    `octets`: the text is bytes that are read as Latin-1.
    """
    forms = []
    for secret in sorted(secrets, key=lambda secret: (-len(secret), secret)):
        form = "".join(_character(character, octets=octets) for character in secret)
        if len(secret) < _ANYWHERE:
            # A letter or digit of an escape before it (`%20`) is no part of a word.
            form = rf"(?:(?<![^\W_])|(?<=%[0-9a-f][0-9a-f])){form}(?![^\W_])"
        forms.append(form)
    # Most characters begin none of them: one look instead of a try of each.
    first = {secret[0].encode().decode("latin-1")[0] if octets else secret[0] for secret in secrets}
    first |= {secret[0] for secret in secrets} | set("%&+\\")
    begin = "".join(map(re.escape, sorted(first)))
    return re.compile(f"(?=[{begin}])(?:{'|'.join(forms)})", re.IGNORECASE)


def _character(character: str, *, octets: bool) -> str:
    """The forms of one character; those that begin as another one first (`&amp;` before `&`)."""
    code, encoded = ord(character), character.encode("utf-8", "replace")
    names = "".join(f"|{re.escape(name.removesuffix(';'))}" for name in _ENTITIES.get(character, ()))
    units = character.encode("utf-16-be", "replace")
    forms = [
        "".join(rf"\\+u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2)),
        f"&(?:amp;){{0,4}}(?:#0{{0,6}}{code}|#x0{{0,6}}{code:x}{names});",
        "".join(f"%(?:25){{0,3}}{octet:02x}" for octet in encoded),
    ]
    if character in "/\"\\'":
        forms.append(rf"\\{{1,4}}{re.escape(character)}")
    if character == "&":
        forms.append("&(?:amp;){1,4}")
    if character == " ":
        forms.append(r"\+")
    if octets and not character.isascii():
        forms.append(re.escape(encoded.decode("latin-1")))
    forms.append(re.escape(character))
    return f"(?:{'|'.join(forms)})"
