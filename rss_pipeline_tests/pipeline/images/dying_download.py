"""A download of images that dies by SIGKILL once so many images are stored: in a process of its own, with
the arguments HOME AFTER.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline_tests.support.pipeline import Pipeline


class Dying(FolderStore):
    """Dies at the put after the last one allowed; none is half done then."""

    left = 0
    _one_at_a_time = threading.Lock()

    def put(self, key: str, *rest: Any, **named: Any) -> bool:
        with self._one_at_a_time:
            if key.startswith("images/"):
                if self.left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                self.left -= 1
            return super().put(key, *rest, **named)


def main() -> None:
    home, after = Path(sys.argv[1]), int(sys.argv[2])
    pipeline = Pipeline(home, image_host_delay_seconds=0.0)
    store = Dying(home / "objects")
    store.left = after
    pipeline.download(objects=store)


if __name__ == "__main__":
    main()
