"""The statements of a request for an article in each store: noted, put off, ended, and requested again."""

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.full_text import sql
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.storage.values import NOW, claim_one, item, register, spec, store


def test_a_request_is_noted_put_off_ended_and_made_again(database: Database) -> None:
    register(database, spec("a", feature_keys={"full_text": "on"}))
    feed, token = claim_one(database)
    store(database, feed, token, [item("1", link="https://a.example/1")])

    def wanted() -> int:
        return sql.want_since(database, "a", since=None, most=9, now=NOW)

    def state() -> tuple[object, ...]:
        [row] = database.query("SELECT status, verdict, host, attempts, requested_at FROM articles").rows
        return tuple(row.values())

    assert (wanted(), state()) == (1, ("pending", None, None, 0, None))
    [due] = sql.due_articles(database, now=NOW, most=9)
    id, at = due["item_id"], instant(NOW)
    database.batch([sql.put_off([id], NOW, "later"), sql.begin([id], host="a.example", at=NOW)])
    assert state() == ("pending", "begun", "a.example", 1, at)
    # Another run has its host.
    database.batch([sql.put_off([id], NOW, "later")])
    assert (wanted(), state()[1]) == (0, "begun")
    database.batch([sql.put_off([id], NOW, "no answer", has_ended=True)])
    assert state() == ("pending", None, "a.example", 1, at)
    ended = sql.Fetched(item_id=id, feed_id="a", host="x", verdict=sql.INTERRUPTED, reason="a kill")
    database.batch(sql.record(ended, was_shown=False, now=NOW))
    assert state() == ("none", "interrupted", "a.example", 1, at)
    assert (wanted(), state()) == (1, ("pending", None, "a.example", 1, at))
    refused = sql.Fetched(
        item_id=id, feed_id="a", host="x", verdict="robots", reason="its robots.txt", was_requested=False
    )
    database.batch(sql.record(refused, was_shown=False, now=NOW))
    assert state() == ("none", "robots", "a.example", 1, None)
    assert wanted() == 0
