"""A fetch of articles that dies by SIGKILL once it has kept so many pages: in a process of its own, with the
arguments HOME AFTER. With AFTER 0 it is for others to kill.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from rss_pipeline.features.full_text.service import fetch_articles
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline_tests.support.pipeline import Pipeline


class Dying(FolderStore):
    """Dies after the last put allowed."""

    left = 0

    def put(self, key: str, *rest: Any, **named: Any) -> bool:
        done = super().put(key, *rest, **named)
        if key.startswith("pages/"):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return done


def main() -> None:
    home, after = Path(sys.argv[1]), int(sys.argv[2])
    # As a host is in earnest: one request after the other, with a pause.
    pipeline = Pipeline(home, host_delay_seconds=0.3)
    pipeline.clock.turn(minutes=1)
    store = Dying(home / "objects")
    store.left = after
    with pipeline.session(objects=store) as session, session.step():
        fetch_articles(session)


if __name__ == "__main__":
    main()
