"""A run below `up` that parses: it forks the server of its parser processes before it has threads.

Started by test_forked.py. It prints the command line of a parser process, and whether that has loaded what
this process has.
"""

import sys
import threading
from pathlib import Path

from rss_pipeline.orchestration.serving.parsers import fork_parser_server
from rss_pipeline.pipeline.session.parser_pool import ParserPool

sys.modules["only_here"] = sys.modules[__name__]


def look(_: int) -> tuple[str, bool]:
    """The argument of a parser process, and True if it has what only this program has loaded."""
    command = Path("/proc/self/cmdline").read_text("ascii").split("\0")
    return command[2], "only_here" in sys.modules


if __name__ == "__main__":
    fork_parser_server()
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    pool = ParserPool(processes=1, timeout=60)
    from rss_pipeline_tests.orchestration.serving.a_parsing_run import look

    [(_, found)] = pool.map(look, [1])
    pool.close()
    sys.stdout.write(f"{found}\n")
