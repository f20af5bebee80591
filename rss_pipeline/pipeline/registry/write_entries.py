"""New feeds written into feeds.yaml, in one step: the file has all of them, or is as it was.

The text is collector.registry.new_entries'. What a new feed's first visit is, is pipeline.adding's.
"""

import codecs
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from rss_pipeline.atomic_file import replace_file
from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.registry.feed_url import free_id, read_url
from rss_pipeline.collector.registry.load import load_registry, parse_registry
from rss_pipeline.collector.registry.new_entries import NewEntry, lists_nothing, with_entries
from rss_pipeline.collector.registry.yaml_nodes import read_text
from rss_pipeline.errors import InfrastructureError, RegistryError, disk_full, disk_is_full
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.feeds.registered import registry_changes


def registered(path: Path, *, environ: Mapping[str, str]) -> tuple[FeedSpec, ...]:
    """The feeds of feeds.yaml; none if there is no file yet, or no list in it.

    Raises RegistryError with its mistakes.
    """
    if not path.exists() or lists_nothing(read_text(path)):
        return ()
    return load_registry(path, environ=environ).feeds


def write_feeds(
    path: Path, entries: Sequence[NewEntry], *, environ: Mapping[str, str], rows: Sequence[Row]
) -> tuple[FeedSpec, ...]:
    """Write these entries behind those of feeds.yaml; return their feeds.

    Each gets its id in writing, so that a change of its address keeps it. `rows` are the feeds known to the
    database (`registry_rows`): an address that is stored under another id gets that id, and goes on with its
    history. A link is followed; a missing file is made.

    Raises RegistryError: the file has mistakes, or with these entries would have some, or cannot be written.
    It is as it was.
    """
    with _locked(path.resolve().parent):
        before = read_text(path) if path.exists() else ""
        known = parse_registry("feeds: []" if lists_nothing(before) else before, path=path, environ=environ)
        specs = known.feeds
        try:
            after = with_entries(before, list(_with_ids(entries, specs, rows, environ)))
        except ValueError as error:
            raise RegistryError(str(path), [f"{error}; nothing was added"]) from None
        changed = parse_registry(after, path=path, environ=environ)
        written = changed.feeds
        is_whole = written[: len(specs)] == specs and len(written) == len(specs) + len(entries)
        if not is_whole or changed.of_features != known.of_features:
            raise RegistryError(str(path), ["new entries would change others; add them by hand"])
        registry_changes(written, rows, path=str(path))
        mark = codecs.BOM_UTF8 if path.exists() and path.read_bytes().startswith(codecs.BOM_UTF8) else b""
        _replace(path, mark + after.encode())
    return written[len(specs) :]


def _with_ids(
    entries: Sequence[NewEntry], specs: Sequence[FeedSpec], rows: Sequence[Row], environ: Mapping[str, str]
) -> Iterator[NewEntry]:
    """The entries with ids: those of the stored feeds with their URLs, else such as no feed has."""
    ids = {row["url"]: row["id"] for row in rows if not row["forgotten"]}
    urls = {id: url for url, id in ids.items()} | {spec.id: spec.url for spec in specs}
    for entry in entries:
        read = read_url(entry.url, environ)
        id = ids.get(read.url)
        if id is None or urls[id] != read.url:
            id = free_id(read.url, read.host, urls)
        urls[id] = read.url
        yield replace(entry, id=id)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other commands from writing at the same time: each reads what the one before has written."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise RegistryError(str(folder), [f"the folder cannot be opened: {error.strerror}"]) from None
    try:
        # Some network file systems have no locks; the file is still replaced in one step.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _replace(path: Path, body: bytes) -> None:
    try:
        replace_file(path, body)
    except OSError as error:
        if disk_is_full(error):
            raise InfrastructureError(f"{disk_full(path.parent)}. {path} was not changed") from error
        reason = error.strerror or type(error).__name__
        advice = (
            "check the permissions of its folder; in a container, mount the folder and not the file alone"
        )
        raise RegistryError(str(path), [f"the file cannot be written: {reason}; {advice}"]) from None
