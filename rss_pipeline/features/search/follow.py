"""The search index kept current: looks at the database again and again, for as long as the reader runs.

It is the work of a process of its own beside the reader, wherever that runs, for only the reader uses the
index; a run of Dagster for each look would cost more than the look. A look at an unchanged database reads
four rows.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.search.build import bring_up_to_date
from rss_pipeline.features.search.index_file import check_fts5, open_to_write
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database

LOOK_SECONDS = 5.0
REMOTE_LOOK_SECONDS = 60.0
"""Interval of looks that are requests over the network."""
LONGEST_WAIT = 60.0

_logger = logging.getLogger(__name__)


def keep_current(settings: Settings, *, clock: Clock, wait: Callable[[float], bool]) -> None:
    """Bring the index up to date until `wait`, which takes seconds, returns True; it returns at once where
    that is due.

    A store that does not work is tried again, with a line in the log when that begins.

    Raises:
        SearchUnavailable: this SQLite has no FTS5: there is nothing to keep.
    """
    check_fts5()
    every = LOOK_SECONDS if settings.database.is_here else REMOTE_LOOK_SECONDS
    failures, said = 0, ""
    while True:
        try:
            if _follow(settings, clock=clock, wait=wait, every=every):
                return
            failures, said = 0, ""
        except RssPipelineError as error:
            failures += 1
            if str(error) != said:
                said = str(error)
                _logger.warning("the search index is not current: %s", error)
        if wait(min(every * 2 ** min(failures, 10), LONGEST_WAIT) if failures else 0):
            return


def _follow(settings: Settings, *, clock: Clock, wait: Callable[[float], bool], every: float) -> bool:
    """Follow with one pair of connections; True to stop, False where the file was deleted."""
    with ExitStack() as stack:
        file = stack.enter_context(open_to_write(settings.search_path))
        database = stack.enter_context(open_database(settings))
        while file.is_current():
            bring_up_to_date(file, database, now=clock(), is_over=lambda: wait(0))
            if wait(every):
                return True
    return False
