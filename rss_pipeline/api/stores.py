"""The stores of the reader, opened once for the life of its process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from rss_pipeline.pipeline.accounts.secret import reader_secret
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect, open_database, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.search.readers import IndexReaders

MAKERS = 2
"""Requests that make bodies at one time. More would not be faster, and all others would wait for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The stores that the routes work with.

    `prompt` answers on the event loop and `database` in threads; where every statement is a request over the
    network, they are the same and both are used in threads.
    """

    settings: Settings
    database: Database
    prompt: Database
    objects: ObjectStore
    search: IndexReaders
    secret: bytes = field(repr=False)
    making: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, MAKERS), repr=False)
    """The places of requests that make bodies, given in the order of arrival."""

    @property
    def is_remote(self) -> bool:
        """True if a statement is a request over the network."""
        return not self.settings.has_embedded_database


@contextmanager
def open_stores(settings: Settings) -> Iterator[Stores]:
    """The stores that the settings name, until the end of the block.

    Raises:
        DatabaseUnavailable: the database cannot be reached, or its schema is not this code's.
        SettingsError, InfrastructureError: there is no key for tokens.
    """
    with open_database(settings) as database:
        # A connection of its own: a short read never waits for what a thread reads or writes.
        prompt = connect(settings) if settings.has_embedded_database else database
        search = IndexReaders(settings.search_path)
        try:
            yield Stores(
                settings=settings,
                database=database,
                prompt=prompt,
                objects=open_objects(settings),
                search=search,
                secret=reader_secret(settings),
            )
        finally:
            prompt.close()
            search.close()
