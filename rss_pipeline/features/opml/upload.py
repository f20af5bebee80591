"""Lists of feeds that users bring from other readers: every mistake in them, or their feeds, each once.

The form of OPML is collector.opml's. Nothing is fetched: the next poll visits what is new, paced as ever.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.registry.entry import MAX_FOLDER_CHARACTERS
from rss_pipeline.collector.registry.feed_url import literal, read_url
from rss_pipeline.collector.registry.yaml_nodes import Mistake
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.opml.outline import OpmlFeed
from rss_pipeline.features.opml.read import OpmlLimits, read_outlines

UPLOAD = OpmlLimits(file_bytes=1_000_000, outlines=10_000, deepest=10, takes_doctype=False)
_PRIVATE = "is in a private network, or at a port that is not open here; remove the outline"


class OpmlRefused(RssPipelineError):
    """A list that was not imported: nothing of it was written. `mistakes` are in the order of its lines."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(self.mistakes)

    def __str__(self) -> str:
        return "\n".join(["The list has mistakes; nothing was imported.", *map(str, self.mistakes)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFeed:
    """A feed of a list. The address has neither userinfo nor fragment."""

    url: str
    host: str
    same_as: str
    """The same for two forms of one address."""
    title: str | None = None
    folder: str | None = None
    line: int
    """The line of its first outline."""
    refusal: Mistake | None = None
    """The reason not to request it for a user. A feed that feeds.yaml shares may have such an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedList:
    """The feeds of a list in its order, each once."""

    feeds: tuple[ListedFeed, ...]
    merged: int
    """Further outlines of a feed that the list has more than once."""
    mistakes: tuple[Mistake, ...] = ()
    empty_folders: tuple[str, ...] = ()

    def check(self, known: Collection[str]) -> None:
        """Raise OpmlRefused with all mistakes, if there are any.

        `known` has `same_as` of the feeds that users may subscribe to, whatever their addresses.
        """
        refused = [
            feed.refusal for feed in self.feeds if feed.refusal is not None and feed.same_as not in known
        ]
        if mistakes := [*self.mistakes, *refused]:
            raise OpmlRefused(sorted(mistakes, key=lambda mistake: mistake.line))


def read_upload(body: bytes, policy: AddressPolicy) -> UploadedList:
    """The feeds of an OPML file of at most 1 MB, with its mistakes. An address with a password is one.

    Of two outlines of one feed, the first gives title and folder; what it lacks comes from the others.
    """
    outlines, mistakes, empty = read_outlines(body, UPLOAD)
    feeds: dict[str, ListedFeed] = {}
    for each in outlines:
        feed = _listed(each, policy)
        if isinstance(feed, Mistake):
            mistakes.append(feed)
            continue
        first = feeds.setdefault(feed.same_as, feed)
        feeds[feed.same_as] = replace(
            first, title=first.title or feed.title, folder=first.folder or feed.folder
        )
    return UploadedList(
        feeds=tuple(feeds.values()),
        merged=len(outlines) - len(feeds),
        mistakes=tuple(mistakes),
        empty_folders=tuple(folder for folder in empty if len(folder) <= MAX_FOLDER_CHARACTERS),
    )


def _listed(outline: OpmlFeed, policy: AddressPolicy) -> ListedFeed | Mistake:
    read = read_url(literal(outline.url), {})
    if read.username is not None or read.password is not None:
        return Mistake(outline.line, "", "xmlUrl: the address has a name or password in it; remove them")
    refusal = None
    try:
        request = request_url(read.url)
        policy.check_unresolved(request.host, request.port)
    except FetchError as error:
        if error.kind != "blocked_address":
            return Mistake(outline.line, "", error.message)
        refusal = Mistake(outline.line, "", f"xmlUrl: the address {_PRIVATE}")
    return ListedFeed(
        url=read.url,
        host=read.host,
        same_as=read.same_as,
        title=outline.title,
        folder=outline.folder,
        line=outline.line,
        refusal=refusal,
    )
