"""The documents of topics in the object store: put where their bytes changed, and nowhere else."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rss_pipeline.pipeline.topics.atom import ATOM_TYPE
from rss_pipeline.pipeline.topics.json_feed import JSON_FEED_TYPE
from rss_pipeline.pipeline.topics.values import PublicUrls
from rss_pipeline.storage.objects import ObjectStore, public_url
from rss_pipeline.storage.topics.publications import INDEX_KEY, OPML_KEY, Published, keys

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
    ) -> list[Published]:
        """Put the documents with a hash other than the known one; return what was put.

        With `is_checked` also those that are not in the store: somebody deleted them.

        Raises `StorageRejected`, `ObjectStoreUnavailable`: those before it were put.
        """
        written = []
        for key, body in documents.items():
            file = Published(key=key, hash=self._hash(body), bytes=len(body))
            if hashes.get(key) == file.hash and not (is_checked and self.store.head(key) is None):
                continue
            kind = _TYPES.get(key) or _TYPES[key[key.rindex(".") :]]
            self.store.put(key, body, content_type=kind, cache_control=CACHE_CONTROL)
            written.append(file)
        return written

    def described(self, key: str, body: bytes) -> Published:
        return Published(key=key, hash=self._hash(body), bytes=len(body))

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
