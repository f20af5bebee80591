"""The check of what strangers can read: one object of each kind is requested without a key, at every address.

Where objects are is storage's; the command that moves them is storage.images.places'.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from rss_pipeline.features.health.model import Finding, Look, State, worst_of
from rss_pipeline.settings import Settings
from rss_pipeline.storage.images.places import to_move
from rss_pipeline.storage.objects import PRIVATE_IMAGES, ObjectStore, public_url

SECONDS = 5.0
MOST_BYTES = 65_536
_PRIVATE = {
    "backups of documents": "backups/",
    "what users have": "state/",
    "images of private feeds": PRIVATE_IMAGES,
}
_PUBLIC = {"images": "images/", "topics": "topics/"}


@dataclass(frozen=True, slots=True)
class _Readable:
    kind: str
    url: str


def public_objects(look: Look) -> Finding | None:
    """Everybody can read images of public feeds and topics, where they have an address, and nothing else."""
    settings, store = look.settings, look.objects()
    found: list[tuple[State, str, str]] = []
    open_ = list(_open_to_all(settings, store))
    if open_:
        kinds = ", ".join(dict.fromkeys(each.kind for each in open_))
        sentence = f"everybody can read {kinds}, without a key: {open_[0].url}"
        found.append(("failure", sentence, settings.objects.fix_open))
    closed = list(_closed_to_all(settings, store))
    if closed:
        kinds = ", ".join(each.kind for each in closed)
        sentence = f"{kinds} cannot be read at the public address: {closed[0].url}"
        fix = "See that the address is the bucket's (or the folder's), and that it is public."
        found.append(("warning", sentence, fix))
    wrong = to_move(look.database, store)
    moves: tuple[tuple[int, State, str], ...] = (
        (wrong.private, "failure", "images of private feeds are where everybody may read them"),
        (wrong.public, "warning", "images and documents of topics are not in the public bucket yet"),
    )
    for number, state, what in moves:
        if number:
            found.append((state, f"{number:,} {what}", "Move them: rss-pipeline move-images"))
    if found:
        return worst_of("public_objects", found)
    if settings.objects.public_urls():
        return Finding("public_objects", "ok", "without a key, only public ones can be read")
    return None


def _open_to_all(settings: Settings, store: ObjectStore) -> Iterator[_Readable]:
    addresses = [url.rstrip("/") for url in settings.objects.public_urls()]
    if (own := settings.objects.own_url()) is not None:
        addresses.append(own)
    for kind, prefix in _PRIVATE.items():
        key = _one(store, prefix)
        for address in addresses if key is not None else ():
            url = f"{address}/{quote(key or '', safe='/-_.~')}"
            if key is not None and _is_readable(settings, store, key, url):
                yield _Readable(kind, url)


def _closed_to_all(settings: Settings, store: ObjectStore) -> Iterator[_Readable]:
    topics = settings.objects.open_topics() or store
    for kind, prefix in _PUBLIC.items():
        of_kind = topics if kind == "topics" else store
        key = _one(of_kind, prefix)
        url = None if key is None else public_url(of_kind, key)
        if key is not None and url is not None and not _is_readable(settings, of_kind, key, url):
            yield _Readable(kind, url)


def _one(store: ObjectStore, prefix: str) -> str | None:
    return next((info.key for info in store.list(prefix)), None)


def _is_readable(settings: Settings, store: ObjectStore, key: str, url: str) -> bool:
    """True if this address gives the object to a stranger: its bytes, not only a friendly page."""
    from rss_pipeline.httpx_without_cli import httpx
    from rss_pipeline.tls import tls_context

    found = store.get(key)
    if found is None:
        return False
    wanted, given = found[0], b""
    try:
        verify = tls_context(settings.ca_file, trust_env=True)
        with httpx.stream("GET", url, timeout=SECONDS, verify=verify) as answer:
            if answer.status_code != httpx.codes.OK:
                return False
            for chunk in answer.iter_bytes():
                given += chunk
                if len(given) >= min(len(wanted), MOST_BYTES):
                    break
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return given[: len(wanted)] == wanted[: len(given)] and len(given) >= min(len(wanted), MOST_BYTES)
