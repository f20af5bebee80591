"""A restore in a process that kills itself at a given place: HOME STEP [ADVANCES].

RESTORE_HOURS of the environment says how late after noon it is. Started by test_restore.py and
test_restore_users.py.
"""

import os
import sys
from pathlib import Path

from rss_pipeline_tests.features.replay.replays import restored
from rss_pipeline_tests.pipeline.visits.faults.dying_poll import Death
from rss_pipeline_tests.support.pipeline import Pipeline


def main() -> None:
    home, step, *advances = sys.argv[1:]
    pipeline = Pipeline(Path(home))
    pipeline.clock.turn(hours=int(os.environ.get("RESTORE_HOURS", "0")))
    death = Death(step.replace("find_backups", "find backups"), int(advances[0]) if advances else None)
    restored(pipeline, progress=death)


if __name__ == "__main__":
    main()
