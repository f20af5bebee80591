"""The table of what failed: its links lead where they say, and no one's words become markup."""

from typing import Any

from rss_pipeline.orchestration.reporting.failure_table import failure_table
from rss_pipeline.pipeline.visits.summary import FailureRow
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def failed(feed_id: str = "lwn", url: str = "https://lwn.example/feed", **said: str | int) -> FailureRow:
    told: dict[str, str | int] = {"kind": "timeout", "message": "no answer", **said}
    return FailureRow(feed_id=feed_id, url=url, **told)  # type: ignore[arg-type]


def lines(table: Any) -> list[str]:
    return (table.md_str or "").splitlines()


def test_the_feed_leads_to_its_page_and_the_address_to_what_was_requested() -> None:
    assert lines(failure_table([failed(title="LWN\n[net]")])) == [
        "| feed | title | address | kind | what happened |",
        "| --- | --- | --- | --- | --- |",
        "| [lwn](/assets/feed_items?view=events&partitions%5B0%5D=lwn) | LWN \\[net\\] |"
        " [lwn.example/feed](https://lwn.example/feed) | timeout | no answer |",
    ]


def test_where_failures_are_counted_they_have_a_column() -> None:
    head, _, first, second = lines(failure_table([failed(in_a_row=3), failed()]))
    assert head.endswith("| in a row |")
    assert (first.split(" | ")[-1], second.split(" | ")[-1]) == ("3 |", " |")


def test_strangers_words_and_addresses_are_no_markup() -> None:
    (line,) = lines(
        failure_table([failed(url="http://x.example/a|b)[x](javascript:1)\\", message="<b>|[y](z)\n# up")])
    )[2:]
    assert "(http://x.example/a%7Cb%29%5Bx%5D%28javascript:1%29%5C)" in line
    assert "\\<b\\>\\|\\[y\\]\\(z\\) \\# up" in line
    assert line.replace("\\|", "").count("|") == 6


def test_a_feed_that_no_one_knows_has_no_address() -> None:
    assert " |  | " in lines(failure_table([failed(url="")]))[2]


def test_what_is_long_is_cut_and_what_is_left_out_is_counted() -> None:
    table = lines(failure_table([failed(message="x" * 1000)] * 5, rows=3, rest="are elsewhere."))
    assert len(table[2]) < 500
    assert table[5:] == ["", "2 are elsewhere."]


def test_a_run_s_table_has_the_same_links_whichever_door_it_came_by(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    url = server.route("127.0.0.2", "/gone", Answer(status=404))
    pipeline.register(url, "gone")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("a"))), "well")
    (round_,) = pipeline.poll()
    outputs = [
        event.step_output_data.metadata
        for event in (log.dagster_event for log in pipeline.instance.all_logs(round_.run_id))
        if event is not None and event.is_successful_output and event.step_key == "report"
    ]
    (of_the_poll,) = [output["failed_feeds"] for output in outputs]
    result = pipeline.materialize("gone")
    (failure,) = [event for event in result.all_node_events if event.is_step_failure]
    of_the_person = failure.step_failure_data.user_failure_data.metadata["failed"]
    for table, count in ((of_the_poll, 1), (of_the_person, 2)):
        (line,) = lines(table)[2:]
        assert line.startswith(
            "| [gone](/assets/feed_items?view=events&partitions%5B0%5D=gone) |  | [127.0.0.2:"
        )
        assert f"]({url}) | http_status | 404 Not Found" in line
        assert line.endswith(f"| {count} |")
