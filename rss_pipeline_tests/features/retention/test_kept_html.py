"""The HTML of items in a clean: renewed where other rules made it, gone with what is removed."""

from rss_pipeline_tests.features.retention.archive import cleaned
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def rules(pipeline: Pipeline) -> list[str]:
    return [row["rules"] for row in pipeline.rows("SELECT rules FROM item_html ORDER BY arrived")]


def test_a_clean_renews_html_and_a_dry_run_does_not(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b"))), "feed")
    pipeline.poll()
    [now, _] = rules(pipeline)
    pipeline.database.query("UPDATE item_html SET rules = 'before'")
    cleaned(pipeline, dry_run=True)
    assert rules(pipeline) == ["before", "before"]
    cleaned(pipeline)
    assert rules(pipeline) == [now, now]


def test_the_html_of_what_a_clean_removes_goes_too(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b"))), "feed")
    pipeline.poll()
    of_a = "(SELECT arrived FROM items WHERE guid = 'a')"
    pipeline.database.query(f"UPDATE item_html SET arrived = 7 WHERE arrived = {of_a}")
    pipeline.database.query(
        "UPDATE items SET arrived = 7, created_at = '2020-01-01T00:00:00Z' WHERE guid = 'a'"
    )
    cleaned(pipeline, confirmed=True)
    assert pipeline.guids("feed") == ["b"]
    assert len(rules(pipeline)) == 1
