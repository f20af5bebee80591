"""Connections to the search index for the threads of the reader."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rss_pipeline.storage.search.index_file import IndexFile, open_to_read


class IndexReaders:
    """The index at `path`, opened when it is needed; one that was deleted and made again is noticed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[IndexFile] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[IndexFile]:
        """A connection for this thread alone, until the end of the block.

        Raises:
            SearchUnavailable: there is no index yet, it is broken, or this SQLite has no FTS5.
        """
        file = self._take()
        try:
            yield file
        except BaseException:
            file.close()
            raise
        with self._lock:
            self._idle.append(file)

    def close(self) -> None:
        """Close those that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for file in idle:
            file.close()

    def _take(self) -> IndexFile:
        while True:
            with self._lock:
                file = self._idle.pop() if self._idle else None
            if file is None:
                return open_to_read(self._path)
            if file.is_current():
                return file
            file.close()
