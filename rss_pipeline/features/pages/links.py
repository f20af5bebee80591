"""The identity of an entry: its link without what changes from visit to visit.

Whether an address may be requested is collector.http's.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit, urlunsplit

from rss_pipeline.features.pages.model import Entry

DROPPED_PARAMETERS = re.compile(
    r"(?:utm_\w+|fbclid|gclid|gbraid|wbraid|dclid|msclkid|yclid|mc_cid|mc_eid|igshid|_hsenc|_hsmi"
    r"|ref|ref_src|phpsessid|jsessionid|aspsessionid\w*|sessionid|session_id|cfid|cftoken)(?:=.*)?"
    r"|sid(?:=[\w-]{16,})?",
    re.IGNORECASE | re.DOTALL,
)
"""The one table of what is dropped of a query: campaigns, where a click came from, sessions. A short `sid` is
the number of a story."""
_DROPPED_OF_PATH = re.compile(r";jsessionid=[^/?#]*", re.IGNORECASE)
_PORTS = {"http": ":80", "https": ":443"}


def without_dropped(url: str) -> str:
    """An absolute URL without fragment, default port, tracking parameters and session ids; scheme and host in
    lower case. The rest of the query keeps its order, the path its case and its last slash.

    >>> without_dropped("HTTPS://Example.org:443/News/?utm_source=x&id=7#top")
    'https://example.org/News/?id=7'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    scheme, host = parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower()
    host = host.removesuffix(_PORTS.get(scheme, "\0"))
    query = parts.query
    if query:
        kept = (each for each in query.split("&") if not DROPPED_PARAMETERS.fullmatch(each))
        query = "&".join(filter(None, kept))
    path = _DROPPED_OF_PATH.sub("", parts.path) if ";" in parts.path else parts.path
    return urlunsplit((scheme, host, path or "/", query, ""))


def identity(url: str) -> str:
    """The guid of an entry with this link: http and https are one.

    >>> identity("http://example.org/a?gclid=1") == identity("https://EXAMPLE.org/a#b")
    True
    """
    return "//" + without_dropped(url).partition("://")[2]


def identities(urls: Sequence[str]) -> list[str]:
    """The identity of each link of one list. Links that differ by their fragments alone keep these: a page of
    versions has `#v1.2` and `#v1.1`."""
    plain = [identity(url) for url in urls]
    if len(set(plain)) > 1 or len(set(urls)) == 1:
        return plain
    return [
        f"{each}#{fragment}" if (fragment := url.partition("#")[2]) else each
        for each, url in zip(plain, urls, strict=True)
    ]


def shape(url: str) -> tuple[str, ...]:
    """The form of an address: its host and the parts of its path, digits as `#`, words of the last part left
    out.

    >>> shape("https://example.org/2024/05/a-title.html")
    ('example.org', '####', '##', '*.html')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ()
    host = parts.netloc.lower().removeprefix("www.")
    path = [re.sub(r"\d", "#", each) for each in parts.path.split("/") if each]
    if path:
        last = path[-1]
        extension = re.search(r"\.[a-z]{2,5}\Z", last)
        path[-1] = "*" + (extension[0] if extension else "")
    query = tuple(sorted(each.partition("=")[0] for each in parts.query.split("&") if each))
    return (host, *path, *query)


def same_host(url: str, other: str) -> bool:
    """True if both are of one host, `www.` or not."""
    return host_of(url) == host_of(other)


def host_of(url: str) -> str:
    """The host in lower case without `www.`; empty for what is no URL."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower().removeprefix("www.")
    except ValueError:
        return ""


def distinct(urls: Iterable[str]) -> list[str]:
    """The first of each identity, in this order."""
    return list({identity(url): url for url in reversed(list(urls))}.values())[::-1]


def guids_of(entries: Sequence[Entry]) -> list[str]:
    """The identity of each entry: its link, or of one without a link a hash of its title and date."""
    links = iter(identities([each.link for each in entries if each.link is not None]))
    return [
        next(links)
        if each.link is not None
        else f"entry:{hashlib.sha256(f'{each.title} {each.date}'.encode()).hexdigest()[:32]}"
        for each in entries
    ]
