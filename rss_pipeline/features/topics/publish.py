"""The publication of topics: each that changed is built from its rows, and put where its bytes differ.

The mark in the database ends last, so that a process killed at any point leaves a topic due, and each
document whole, the old one or the new one.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from lxml import etree

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.parse.iri import published_url
from rss_pipeline.errors import InfrastructureError, ObjectStoreUnavailable, RssPipelineError
from rss_pipeline.features.streams.service import refresh
from rss_pipeline.features.topics import sql
from rss_pipeline.features.topics.candidates import read_chosen, with_texts
from rss_pipeline.features.topics.document_entry import HtmlCache, topic_title
from rss_pipeline.features.topics.documents import ATOM_TYPE, JSON_FEED_TYPE, Documents, build_chosen
from rss_pipeline.features.topics.model import PublicUrls, TopicSpec
from rss_pipeline.features.topics.sql import INDEX, INDEX_KEY, OPML_KEY, PublishedDocument, Taken, keys
from rss_pipeline.features.topics.websub import Notice, notify
from rss_pipeline.pipeline.session.fetch_policy import feed_policy
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.images import image_tasks as tasks
from rss_pipeline.storage.objects import ObjectStore, public_url

# The documents of topics in the object store: put where their bytes changed, and nowhere else.

CACHE_CONTROL = "public, max-age=300"
"""Readers and Cloudflare's cache take a document for the newest one for so long."""
_TYPES = {".json": JSON_FEED_TYPE, ".atom": ATOM_TYPE, INDEX_KEY: "application/json", OPML_KEY: "text/x-opml"}


@dataclass(frozen=True, slots=True)
class Target:
    """The place of published topics. `name` distinguishes two: after a move, all documents are put again."""

    store: ObjectStore
    name: str

    def put_changed(
        self, documents: Mapping[str, bytes], hashes: Mapping[str, str], *, is_checked: bool = False
    ) -> list[PublishedDocument]:
        """Put the documents with a hash other than the known one; return what was put.

        With `is_checked` also those that are not in the store: somebody deleted them.

        Raises `StorageRejected`, `ObjectStoreUnavailable`: those before it were put.
        """
        written = []
        for key, body in documents.items():
            file = PublishedDocument(key=key, hash=self._hash(body), bytes=len(body))
            if hashes.get(key) == file.hash and not (is_checked and self.store.head(key) is None):
                continue
            kind = _TYPES.get(key) or _TYPES[key[key.rindex(".") :]]
            self.store.put(key, body, content_type=kind, cache_control=CACHE_CONTROL)
            written.append(file)
        return written

    def described(self, key: str, body: bytes) -> PublishedDocument:
        return PublishedDocument(key=key, hash=self._hash(body), bytes=len(body))

    def urls(self, topic_id: str) -> PublicUrls | None:
        """The public URLs of a topic's documents; None where they are not served."""
        json, atom = (public_url(self.store, key) for key in keys(topic_id))
        return None if json is None or atom is None else PublicUrls(atom=atom, json=json)

    def _hash(self, body: bytes) -> str:
        return joint_hash([self.name.encode(), body])


def joint_hash(parts: Iterable[bytes]) -> str:
    """One SHA-256 of several texts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


logger = logging.getLogger(__name__)

THREADS = 8
"""Topics that are published at once where a store is remote: requests wait, and do so together."""
_LOCAL_THREADS = 1
"""On one machine more of them contend for the interpreter: eight take a fifth more processor time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationStores:
    """The stores that a publication reads and writes."""

    database: Database
    archive: ObjectStore
    """The store of images."""
    target: Target
    settings: Settings

    @classmethod
    def of(
        cls, settings: Settings, database: Database, objects: ObjectStore | None = None
    ) -> "PublicationStores":
        """The stores that settings name. `objects` is the usual store, where it is open already."""
        archive = objects or open_objects(settings)
        topics = settings.objects.open_topics()
        return cls(
            database=database,
            archive=archive,
            target=Target(topics or archive, settings.objects.topics_place),
            settings=settings,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The result of publishing one topic."""

    topic_id: str
    entries: int = 0
    feeds: int = 0
    """Feeds that the entries come from."""
    changed: tuple[str, ...] = ()
    """The keys of the objects with changed bytes."""
    hash: str = ""
    """SHA-256 of both documents together."""
    bytes: int = 0
    """Size of both documents."""
    error: str | None = None
    """Why the topic could not be published; it is tried again by the next publication."""


Report = Callable[[Publication], None]


def publish(
    stores: PublicationStores,
    *,
    clock: Clock,
    only: Sequence[str] | None = None,
    report: Report = lambda _: None,
) -> list[Publication]:
    """Publish the topics that are due, or those of `only`, due or not; `report` gets each as it is done.

    A topic that fails is a Publication with an error, and stays due. One that another process publishes is
    left to it; in `only` it is an error.

    Hubs of changed topics are notified at the end; a hub that fails is a warning in the log.

    Raises:
        InfrastructureError: a store cannot work now; what was not reported is still due.
    """
    ids = sql.due(stores.database, now=clock()) if only is None else list(only)
    if not ids:
        return []
    # A changed selector takes effect here. Its feed was changed in the registry, which made its topics due.
    refresh(stores.database)
    run = _Run(stores, clock, is_by_hand=only is not None)
    done = []
    try:
        for publication in run.publish_all(topic_id for topic_id in ids if topic_id != INDEX):
            report(publication)
            done.append(publication)
        run.publish_index()
    finally:
        run.notify_hubs()
    return done


class _Run:
    """The parts that the topics of one call share."""

    def __init__(self, stores: PublicationStores, clock: Clock, *, is_by_hand: bool) -> None:
        self._stores = stores
        self._database = stores.database
        self._target = stores.target
        self._clock = clock
        self._is_by_hand = is_by_hand
        self._installation = _installation(stores)
        self._html = HtmlCache()
        self._notices: list[Notice] = []
        self._has_public_images = public_url(stores.archive, "images/x") is not None

    def publish_all(self, topic_ids: Iterable[str]) -> Iterator[Publication]:
        """Publish these topics in threads, for stores answer several requests at once; results come in order.

        After a failure of a store, no further topic is begun.
        """
        settings = self._stores.settings
        is_remote = not (settings.database.is_here and settings.objects.is_here)
        with ThreadPoolExecutor(THREADS if is_remote else _LOCAL_THREADS) as threads:
            futures = [threads.submit(self.publish, topic_id) for topic_id in topic_ids]
            try:
                for future in futures:
                    publication = future.result()
                    if publication is not None:
                        yield publication
            finally:
                threads.shutdown(wait=True, cancel_futures=True)

    def publish(self, topic_id: str) -> Publication | None:
        taken = sql.take(self._database, topic_id)
        if taken is None:
            return self._not_taken(topic_id) if self._is_by_hand else None
        try:
            return self._publish(taken)
        # Foreign parsers read what publishers wrote: what they raise is this topic's, not its neighbours'.
        except Exception as error:
            said = str(error)
            if not isinstance(error, RssPipelineError):
                logger.exception("The topic %s could not be built.", topic_id)
                said = f"it could not be built: {type(error).__name__}: {error}"
            with suppress(RssPipelineError):
                sql.release(self._database, taken, error=said)
            if self._is_down(error):
                raise
            return Publication(topic_id=topic_id, error=said)

    def _publish(self, taken: Taken) -> Publication:
        topic_id = taken.topic.id
        documents = self._build(taken)
        json_key, atom_key = sql.keys(topic_id)
        files = {json_key: documents.json, atom_key: documents.atom}
        put = self._target.put_changed(files, taken.hashes, is_checked=self._is_by_hand)
        self._announce(taken.topic, [file.key for file in put])
        is_ended = sql.end(self._database, taken, put, entries=documents.entries, now=self._clock())
        return Publication(
            topic_id=topic_id,
            entries=documents.entries,
            feeds=documents.feeds,
            changed=tuple(file.key for file in put),
            hash=joint_hash(files.values()),
            bytes=sum(map(len, files.values())),
            error=None if is_ended else _OVERTAKEN,
        )

    def _announce(self, topic: TopicSpec, changed: Sequence[str]) -> None:
        urls = [url for key in changed if (url := public_url(self._target.store, key)) is not None]
        if urls:
            self._notices += [Notice(hub=hub, topic_id=topic.id, urls=tuple(urls)) for hub in topic.hub]

    def notify_hubs(self) -> None:
        """Notify the hubs of the topics that changed."""
        if self._notices:
            notices = sorted(self._notices, key=lambda notice: notice.topic_id)
            for sentence in notify(feed_policy(self._stores.settings), notices):
                logger.warning("%s", sentence)

    def _build(self, taken: Taken) -> Documents:
        chosen = read_chosen(self._database, taken.topic)
        images = self._images([each.candidate.item_id for each in chosen])
        return build_chosen(
            taken.topic,
            with_texts(self._database, taken.topic, chosen),
            installation=self._installation,
            image=lambda item_id, url: images.get(item_id, {}).get(url),
            html=self._html,
            urls=self._target.urls(taken.topic.id),
            expired=taken.is_removed,
        )

    def _images(self, item_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """By item, the public URLs of its archived images by their original ones."""
        if not self._has_public_images:
            return {}
        return {
            item_id: {
                original: public_url(self._stores.archive, key) or original for original, key in keys.items()
            }
            for item_id, keys in tasks.archived(self._database, item_ids).items()
        }

    def _is_down(self, error: Exception) -> bool:
        """True where the failure is not this topic's alone."""
        if not isinstance(error, ObjectStoreUnavailable):
            return isinstance(error, InfrastructureError)
        try:
            self._target.store.probe()
        except InfrastructureError:
            return True
        return False

    def _not_taken(self, topic_id: str) -> Publication:
        known = sql.topic_ids(self._database)
        sentence = _LEASED if topic_id in known else f"no topic has this id; there are: {', '.join(known)}"
        return Publication(topic_id=topic_id, error=sentence)

    def publish_index(self) -> None:
        """Write the list of all topics where it changed."""
        read = sql.index(self._database, even_unchanged=self._is_by_hand)
        if read is None:
            return
        documents = {
            OPML_KEY: index_opml(read.topics, self._target.urls),
            INDEX_KEY: index_json(read.topics, self._target.urls, installation=self._installation),
        }
        put = self._target.put_changed(documents, read.hashes, is_checked=self._is_by_hand)
        sql.end_index(
            self._database,
            read,
            self._target.described(INDEX_KEY, documents[INDEX_KEY]),
            [file for file in put if file.key != INDEX_KEY],
            now=self._clock(),
        )


_LEASED = f"another process publishes it, or was killed in the last {sql.LEASE_SECONDS} seconds"
_OVERTAKEN = (
    f"it took longer than {sql.LEASE_SECONDS} seconds, so that another process may have published it"
    " meanwhile; it is published again"
)


def _installation(stores: PublicationStores) -> UUID:
    """The base of the topics' ids: of this database, else of the list that an earlier one published."""
    known = sql.installation(stores.database)
    if known is not None:
        return known
    found = stores.target.store.get(INDEX_KEY)
    return sql.set_installation(stores.database, _of_index(found[0] if found else b"") or uuid4())


def _of_index(body: bytes) -> UUID | None:
    try:
        return UUID(json.loads(body)["installation"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


# The list of all topics, as JSON and as OPML for other readers.
# It depends on definitions only, so that it is written when these change and not with each item.

_TITLE = "Topics of rss_pipeline"


def index_json(
    topics: Iterable[TopicSpec], urls: Callable[[str], PublicUrls | None], *, installation: UUID
) -> bytes:
    """The topics by id. `urls` gives the public URLs of a topic; without them the file names are given, which
    are relative to the index.

    `installation` is the base of the topics' ids: a new database continues with that of the old one.
    """
    listed = [_topic(each, urls(each.id)) for each in _by_id(topics)]
    keys = {"installation": str(installation), "topics": listed}
    return f"{json.dumps(keys, ensure_ascii=False, indent=1)}\n".encode()


def _topic(topic: TopicSpec, urls: PublicUrls | None) -> dict[str, Any]:
    keys = {"id": topic.id, "title": topic_title(topic), **_files(topic, urls)}
    if link := published_url(topic.link):
        keys["home_page_url"] = link
    return keys


def index_opml(topics: Iterable[TopicSpec], urls: Callable[[str], PublicUrls | None]) -> bytes:
    """The topics by id as OPML 2.0, with the Atom document of each."""
    root = etree.Element("opml", version="2.0")
    etree.SubElement(etree.SubElement(root, "head"), "title").text = _TITLE
    body = etree.SubElement(root, "body")
    for topic in _by_id(topics):
        title = topic_title(topic)
        outline = etree.SubElement(body, "outline", type="rss", text=title, title=title)
        outline.set("xmlUrl", _files(topic, urls(topic.id))["atom"])
        if link := published_url(topic.link):
            outline.set("htmlUrl", link)
    etree.indent(root)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _files(topic: TopicSpec, urls: PublicUrls | None) -> dict[str, str]:
    if urls is None:
        return {"atom": f"{topic.id}.atom", "json": f"{topic.id}.json"}
    return {"atom": urls.atom, "json": urls.json}


def _by_id(topics: Iterable[TopicSpec]) -> list[TopicSpec]:
    return sorted(topics, key=lambda topic: topic.id)
