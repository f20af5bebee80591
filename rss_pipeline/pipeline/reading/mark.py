"""The file that shows the processes of `up`, on the same machine, that a request for a visit was made.

They check it several times a second, which costs nothing, and the database only when it has changed.
Requests from other machines are found by the sensor `refresh_feeds_when_requested`.
"""

import os
from contextlib import suppress

from rss_pipeline.settings import Settings

NAME = "refresh_requested"


def set_mark(settings: Settings) -> None:
    """Set the mark. Called after the request is stored; where it cannot be written, the sensor finds the
    request."""
    path = settings.home / NAME
    with suppress(OSError):
        # Not `touch`: the clock of a file system may be coarser than two requests are apart.
        path.write_text(f"{os.getpid()}\n", "utf-8")


def read_mark(settings: Settings) -> int | None:
    """A number that differs after each request; None while there was none."""
    try:
        return (settings.home / NAME).stat().st_mtime_ns
    except OSError:
        return None
