"""The files of Dagster's history during a run: their write-ahead logs stay from one event to the next."""

from pathlib import Path

from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


class LogsAtEachStep:
    """The write-ahead logs that there are when a step begins, by the first letters of their file's name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[str, set[str]] = {}

    def begin(self, step: str, total: int) -> None:
        self.seen[step] = self.now()

    def advance(self, step: str, by: int = 1) -> None:
        pass

    def now(self) -> set[str]:
        return {path.name.partition(".")[0] for path in self.folder.glob("*.db-wal")}


def test_no_event_of_a_run_ends_the_log_of_its_file_and_the_run_does(
    dagster_pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline = dagster_pipeline
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    logs = LogsAtEachStep(pipeline.settings.home / "dagster" / "history" / "runs")
    [round_] = pipeline.poll(progress=logs)
    assert {"fetch", "parse", "store", "report"} <= logs.seen.keys()
    assert all(seen == {round_.run_id, "index"} for seen in logs.seen.values())
    assert logs.now() == set()
