"""The XML namespaces of feeds, and the short names by which the readers use them.

Only names; feeds are read in `rss_atom.py`.
"""

from collections.abc import Mapping

XML = "http://www.w3.org/XML/1998/namespace"
XHTML = "http://www.w3.org/1999/xhtml"
ATOM_10 = "http://www.w3.org/2005/Atom"
ATOM_03 = "http://purl.org/atom/ns#"

NAMESPACES: Mapping[str, str] = {
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "atom": ATOM_10,
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "ppg": "http://bbc.co.uk/2009/01/ppgRss",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "xhtml": XHTML,
}
"""By the usual prefix, for documents that do not declare it."""

UNDECLARED = "urn:undeclared:"
"""The namespace, before the prefix, of a prefix that a document does not declare."""


def without_spelling(uri: str) -> str:
    """A namespace without that in which its spellings differ: case, scheme and the end."""
    return uri.strip().lower().partition("://")[2].rstrip("/#")


_SPELLINGS: Mapping[str, str] = {
    **{without_spelling(uri): f"{prefix}:" for prefix, uri in NAMESPACES.items()},
    "purl.org/dc/elements/1.0": "dc:",
    "github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md": "podcast:",
    "purl.org/atom/ns": "atom:",
    "www.w3.org/xml/1998/namespace": "xml:",
    "purl.org/rss/1.0": "",
    "my.netscape.com/rdf/simple/0.9": "",
    "channel.netscape.com/rdf/simple/0.9": "",
    "my.netscape.com/publish/formats/rss-0.91.dtd": "",
    "purl.org/net/rss1.1": "",
    "backend.userland.com/rss": "",
    "backend.userland.com/rss2": "",
    "backend.userland.com/rss191": "",
    "backend.userland.com/rss091": "",
    "blogs.law.harvard.edu/tech/rss": "",
    "cyber.law.harvard.edu/rss": "",
    "cyber.law.harvard.edu/rss/rss.html": "",
}
_OWN_NAMES: Mapping[str, str] = {
    name.lower(): name
    for name in (
        *("channel", "item", "title", "link", "guid", "description", "pubDate", "lastBuildDate", "author"),
        *("category", "comments", "enclosure", "source", "image", "url", "textInput", "language", "ttl"),
        *("managingEditor", "webMaster", "skipHours", "skipDays", "hour", "day"),
        *("entry", "id", "updated", "published", "summary", "content", "name", "email", "uri"),
        *("issued", "modified", "created", "tagline"),
    )
}
"""The names of RSS and Atom that mean something here, by their lower case: some publishers write `<Item>`."""


def short_name(tag: str, own: str) -> str:
    """`{uri}local` as `prefix:local`; bare for the document's own vocabulary, with the namespace `own`.

    Namespaces are compared without case, scheme and closing slash: publishers vary all three. An unknown
    one is not changed, nor is an unknown name.
    """
    if not tag.startswith("{"):
        return _OWN_NAMES.get(tag.lower(), tag)
    uri, _, local = tag[1:].partition("}")
    prefix = "" if uri == own else _SPELLINGS.get(without_spelling(uri))
    if prefix is None:
        return tag
    return prefix + local if prefix else _OWN_NAMES.get(local.lower(), local)
