"""Absolute IRIs (RFC 3987): whether a text is one, and URLs of publishers brought into that form."""

import re
from functools import lru_cache

from rss_pipeline.collector.parse.links import absolute

_UCS = (
    "\u00a1-\u1fff\u200b-\u200d\u2010-\u2027\u2030-\u205e\u2070-\u2fff\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14))
    + "\U000e1000-\U000efffd"
)
"""ucschar without white space and without marks of direction, which an IRI must not have (4.1)."""
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_PATH = rf"A-Za-z0-9._~!$&'()*+,;=:@/{_UCS}\-"
_ESCAPE = "%[0-9A-Fa-f]{2}"
_IRI = re.compile(
    r"\A(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):"
    rf"(?://(?P<host>(?:(?:[{_PATH}]|{_ESCAPE})*?@)?(?:\[[0-9A-Fa-f:.]+\](?::[0-9]*)?|(?:(?![/@])[{_PATH}]|{_ESCAPE})*))"
    r"(?=[/?#]|\Z))?"
    rf"(?P<path>(?:[{_PATH}]|{_ESCAPE})*)"
    rf"(?:\?(?:[{_PATH}{_PRIVATE}?]|{_ESCAPE})*)?(?:#(?:[{_PATH}?]|{_ESCAPE})*)?"
)
_URN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,30}[A-Za-z0-9]:[^\s#?]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TAG = re.compile(r"\A(?:[a-z0-9._-]+@)?[a-z0-9.-]+,[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2})?)?:[\x21-\x7e]*")
_WEB = ("http", "https")
_USUAL = re.compile(r"https?://[a-z0-9][a-z0-9.-]*(?:/[A-Za-z0-9._~/-]{0,2000})?")
"""Most URLs: for these, all below changes nothing."""
_ILLEGAL = re.compile(rf"%(?!{_ESCAPE[1:]})|[^%?#{_PATH}{_PRIVATE}]")


def is_absolute_iri(text: str) -> bool:
    """True if the text is an IRI with a scheme, and follows the rules of its scheme where it is http(s), urn
    (RFC 8141) or tag (RFC 4151)."""
    match = _IRI.fullmatch(text)
    if match is None:
        return False
    scheme, rest = match["scheme"].lower(), text[match.end("scheme") + 1 :]
    if scheme in _WEB:
        return bool(match["host"])
    if scheme == "urn":
        name, _, own = rest.partition(":")
        return _URN.fullmatch(rest) is not None and (name.lower() != "uuid" or bool(_UUID.fullmatch(own)))
    if scheme == "tag":
        return _TAG.fullmatch(rest) is not None
    return bool(rest)


@lru_cache(maxsize=1_000)
def published_url(url: str | None) -> str | None:
    """A stored URL as an IRI: what an IRI cannot hold is percent-encoded. None if it cannot be one."""
    if url is not None and _USUAL.fullmatch(url):
        return url
    text = absolute(url, ())
    if text is None:
        return None
    if is_absolute_iri(text):
        return text
    head, mark, fragment = text.partition("#")
    encoded = _encoded(head) + mark + _encoded(fragment.replace("#", "%23"))
    return encoded if is_absolute_iri(encoded) else None


def _encoded(text: str) -> str:
    start = re.match(r"\A[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*", text)
    at = start.end() if start else 0
    return text[:at] + _ILLEGAL.sub(_escaped, text[at:])


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace"))
