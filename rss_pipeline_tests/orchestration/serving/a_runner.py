"""The process of `up` that forks runs, below one that is no `up`. It writes its socket's path to a file,
and its errors and those of its runs to one beside it.

Started by test_run_launcher.py, with the file as its argument.
"""

import os
import sys
from pathlib import Path

from rss_pipeline.orchestration.dagster_private import setup_interrupt_handlers
from rss_pipeline.orchestration.instance.dead_runs import RUNNER
from rss_pipeline.orchestration.serving.runner import Runner, listen
from rss_pipeline.settings import Settings


def main() -> None:
    path = Path(sys.argv[1])
    os.dup2(os.open(path.with_suffix(".said"), os.O_WRONLY | os.O_CREAT), 2)
    setup_interrupt_handlers()
    runner = Runner(Settings.from_environ(os.environ, cwd=Path.cwd()), listen())
    path.with_suffix(".new").write_text(os.environ[RUNNER], "utf-8")
    path.with_suffix(".new").rename(path)
    try:
        runner.keep_running(parent=os.getppid())
    finally:
        runner.end()
