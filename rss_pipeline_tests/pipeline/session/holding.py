"""A process with a session open: `python -m ... HOME`. It prints its folders, and ends when its input does.

Started, and killed, by test_leftovers.py.
"""

import multiprocessing
import sys
from pathlib import Path

from rss_pipeline_tests.support.pipeline import Pipeline


def main() -> None:
    pipeline = Pipeline(Path(sys.argv[1]))
    with pipeline.session() as session:
        (session.spool.folder / "body").write_bytes(b"<rss/>")
        assert [result for _, result in session.parser_pool.map(len, ["abc"])] == [3]
        print(session.spool.folder, multiprocessing.current_process()._config["tempdir"], flush=True)  # type: ignore[attr-defined]  # noqa: T201
        sys.stdin.read()
    pipeline.close()


if __name__ == "__main__":
    main()
