"""The namespace prefixes of a stream's XPath expression, the same for every feed.

The names of the document's own format are written without a prefix (`//item`, `//entry`); `rss1:` and, in an
Atom document, `atom:` before them are dropped. Namespaces as publishers write them are in
collector.parse.namespaces.
"""

from collections.abc import Collection, Mapping

from rss_pipeline.collector.parse.xml.namespaces import NAMESPACES, XML
from rss_pipeline.collector.streams.tokens import tokens

PREFIXES: Mapping[str, str] = {
    **NAMESPACES,
    "xml": XML,
    "admin": "http://webns.net/mvcb/",
    "app": "http://www.w3.org/2007/app",
    "cc": "http://web.resource.org/cc/",
    "creativeCommons": "http://backend.userland.com/creativeCommonsRssModule",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "georss": "http://www.georss.org/georss",
    "gml": "http://www.opengis.net/gml",
    "googleplay": "http://www.google.com/schemas/play-podcasts/1.0",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "prism": "http://prismstandard.org/namespaces/basic/2.0/",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "source": "http://source.scripting.com/",
    "taxo": "http://purl.org/rss/1.0/modules/taxonomy/",
    "thr": "http://purl.org/syndication/thread/1.0",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "yt": "http://www.youtube.com/xml/schemas/2015",
}
"""Prefix to namespace. `atom` is for Atom's elements inside another format, `atom:link` of RSS."""

RSS1 = "rss1"
"""Accepted before names of the own format, in every document."""
ATOM = "atom"

KNOWN_PREFIXES = (*PREFIXES, RSS1)


def without_prefixes(expression: str, dropped: Collection[str] = (RSS1,)) -> str:
    """The expression with these prefixes taken off its names; literals stay as they are.

    An Atom document takes (RSS1, ATOM), for there `atom:entry` is a name of its own format.
    """
    parts, end = [], 0
    for token in tokens(expression):
        if token.prefix in dropped:
            parts.append(expression[end : token.start])
            end = token.start + len(token.prefix or "") + 1
    return "".join([*parts, expression[end:]])
