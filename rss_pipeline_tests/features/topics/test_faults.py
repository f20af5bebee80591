"""Publications that fail or die: readers see the old or the new document, and the next one completes."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.errors import (
    DatabaseUnavailable,
    InfrastructureError,
    ObjectStoreUnavailable,
    StorageRejected,
)
from rss_pipeline.features.topics import sql
from rss_pipeline.features.topics.publish import Publication, PublicationStores, Target, publish
from rss_pipeline.features.topics.sql import due
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline_tests.features.topics.stored import set_topics, topic
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.stored import add_feeds, add_items, item


def stores(pipeline: Pipeline, objects: FolderStore | None = None) -> PublicationStores:
    return PublicationStores.of(pipeline.settings, pipeline.database, objects or pipeline.objects)


def documents(pipeline: Pipeline) -> dict[str, bytes]:
    found = {}
    for info in pipeline.objects.list("topics/"):
        stored = pipeline.objects.get(info.key)
        assert stored is not None
        found[info.key] = stored[0]
    return found


def lapse(pipeline: Pipeline) -> None:
    pipeline.database.query(
        "UPDATE topics SET lease_until = '2000-01-01T00:00:00Z' WHERE lease_token IS NOT NULL"
    )


def stored(pipeline: Pipeline, *topics: Any) -> None:
    add_feeds(pipeline.database, "a", "b")
    add_items(
        pipeline.database, [item("a", "1", "2026-02-01T00:00:00Z"), item("b", "1", "2026-02-02T00:00:00Z")]
    )
    set_topics(pipeline.database, *(topics or (topic("t", "a", "b"),)))


def news(pipeline: Pipeline) -> None:
    add_items(pipeline.database, [item("a", "2", "2026-02-03T00:00:00Z")])


@pytest.mark.slow
def test_killed_before_any_write_it_leaves_whole_documents_and_the_next_one_completes(
    pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stored(pipeline, topic("t", "a", "b"), topic("gone", "b"))
    publish(stores(pipeline), clock=pipeline.clock)
    old = documents(pipeline)
    news(pipeline)
    set_topics(pipeline.database, topic("t", "a", "b", title="New title"), topic("new", "a"))
    pipeline.database.close()
    homes = tmp_path_factory.mktemp("homes")
    command = [sys.executable, "-W", "ignore", "-m", "rss_pipeline_tests.features.topics.dying_publish"]
    ended = subprocess.run(
        [*command, str(homes), str(pipeline.settings.home)],
        check=True,
        capture_output=True,
        cwd=Path(__file__).parents[3],
    )
    codes = json.loads(ended.stdout)
    # Three topics are taken and ended; 2 + 2 + 1 documents are put, and the two of the list, which is ended.
    assert codes == [-9] * 14 + [0]
    undisturbed = Pipeline(homes / "14")
    new = documents(undisturbed)
    undisturbed.close()
    assert {key for key in old if old[key] != new[key]} == {
        "topics/t.json", "topics/t.atom", "topics/gone.json", "topics/index.json", "topics/index.opml"
    }  # fmt: skip
    for number in range(14):
        killed = Pipeline(homes / str(number))
        killed.clock.turn(hours=2)
        assert all(body in (old.get(key), new[key]) for key, body in documents(killed).items())
        assert due(killed.database, now=killed.clock())
        lapse(killed)
        publications = publish(stores(killed), clock=killed.clock)
        assert not [each for each in publications if each.error]
        assert documents(killed) == new, number
        assert due(killed.database, now=killed.clock()) == []
        killed.close()


class Failing(FolderStore):
    """A folder that fails at the puts of keys with this ending."""

    def __init__(self, root: Path, ending: str, error: Exception, *, is_down: bool = False) -> None:
        super().__init__(root)
        self.ending = ending
        self._error = error
        self._is_down = is_down

    def put(self, key: str, *args: Any, **kwargs: Any) -> bool:
        if self.ending and key.endswith(self.ending):
            raise self._error
        return super().put(key, *args, **kwargs)

    def probe(self) -> None:
        if self._is_down:
            raise self._error
        super().probe()


@pytest.mark.parametrize("error", [ObjectStoreUnavailable("no room"), StorageRejected("too large")])
def test_a_store_that_fails_between_the_two_puts_is_a_sentence_and_the_next_one_completes(
    pipeline: Pipeline, error: Exception
) -> None:
    stored(pipeline, topic("t", "a"), topic("u", "b"))
    objects = Failing(pipeline.settings.objects_path, "topics/t.atom", error)
    failed, done = publish(stores(pipeline, objects), clock=pipeline.clock)
    assert (failed.topic_id, failed.error, failed.changed) == ("t", str(error), ())
    assert (done.topic_id, done.error) == ("u", None), "its neighbour is published"
    assert due(pipeline.database, now=pipeline.clock()) == ["t"]
    objects.ending = ""
    [again] = publish(stores(pipeline, objects), clock=pipeline.clock)
    assert (again.error, len(again.changed)) == (None, 2)
    assert {"topics/t.atom", "topics/t.json"} <= set(documents(pipeline))


def test_a_store_that_is_down_ends_the_publication_and_nothing_is_lost(pipeline: Pipeline) -> None:
    stored(pipeline, topic("t", "a"), topic("u", "b"))
    error = ObjectStoreUnavailable("no room")
    objects = Failing(pipeline.settings.objects_path, "u.json", error, is_down=True)
    reported: list[Publication] = []
    with pytest.raises(InfrastructureError, match="no room"):
        publish(stores(pipeline, objects), clock=pipeline.clock, report=reported.append)
    assert [each.topic_id for each in reported] == ["t"]
    assert due(pipeline.database, now=pipeline.clock()) == ["index", "u"]
    assert publish(stores(pipeline), clock=pipeline.clock)[0].error is None
    assert due(pipeline.database, now=pipeline.clock()) == []


def test_news_that_come_while_a_topic_is_published_are_published_next(pipeline: Pipeline) -> None:
    stored(pipeline)

    class Meanwhile(FolderStore):
        def put(self, key: str, *args: Any, **kwargs: Any) -> bool:
            if key == "topics/t.json":
                news(pipeline)
            return super().put(key, *args, **kwargs)

    [first] = publish(stores(pipeline, Meanwhile(pipeline.settings.objects_path)), clock=pipeline.clock)
    assert first.entries == 2
    pipeline.clock.turn(minutes=20)
    [second] = publish(stores(pipeline), clock=pipeline.clock)
    assert second.entries == 3


def test_a_topic_that_another_process_publishes_is_left_to_it(pipeline: Pipeline) -> None:
    stored(pipeline, topic("t", "a"), topic("u", "b"))
    taken = sql.take(pipeline.database, "t")
    assert taken is not None
    assert due(pipeline.database, now=pipeline.clock()) == ["index", "u"]
    [by_hand] = publish(stores(pipeline), clock=pipeline.clock, only=["t"])
    assert by_hand.error is not None
    assert "another process" in by_hand.error
    assert [each.topic_id for each in publish(stores(pipeline), clock=pipeline.clock)] == ["u"]
    lapse(pipeline)
    assert [each.topic_id for each in publish(stores(pipeline), clock=pipeline.clock)] == ["t"]


def test_a_publication_that_outlived_its_lease_is_repeated_with_both_puts(pipeline: Pipeline) -> None:
    """The other process may have put an older document last: neither hash is known."""
    stored(pipeline)
    other: list[Publication] = []

    class Slow(FolderStore):
        def put(self, key: str, *args: Any, **kwargs: Any) -> bool:
            if key == "topics/t.json" and not other:
                lapse(pipeline)
                other.extend(publish(stores(pipeline), clock=pipeline.clock))
            return super().put(key, *args, **kwargs)

    [slow] = publish(stores(pipeline, Slow(pipeline.settings.objects_path)), clock=pipeline.clock)
    assert other[0].error is None
    assert slow.error is not None
    assert "longer than 120 seconds" in slow.error
    pipeline.clock.turn(minutes=20)
    [again] = publish(stores(pipeline), clock=pipeline.clock)
    assert (again.error, len(again.changed)) == (None, 2)
    assert publish(stores(pipeline), clock=pipeline.clock) == []


def test_a_lease_is_over_after_two_minutes_of_the_databases_clock(place: Pipeline) -> None:
    set_topics(place.database, topic("t", "a"))
    assert sql.take(place.database, "t") is not None
    assert sql.take(place.database, "t") is None
    [row] = place.rows(
        "SELECT strftime('%s', lease_until) - strftime('%s', 'now') AS seconds FROM topics WHERE id = 't'"
    )
    assert 110 <= row["seconds"] <= 120


def test_a_database_that_is_away_ends_the_publication(pipeline: Pipeline) -> None:
    stored(pipeline)
    pipeline.database.query("ALTER TABLE items RENAME TO elsewhere")
    with pytest.raises(DatabaseUnavailable):
        publish(stores(pipeline), clock=pipeline.clock)
    pipeline.database.query("ALTER TABLE elsewhere RENAME TO items")
    assert [each.error for each in publish(stores(pipeline), clock=pipeline.clock)] == [None]


def test_a_topic_that_cannot_be_built_harms_no_other(pipeline: Pipeline) -> None:
    stored(pipeline, topic("t", "a"), topic("u", "b"))
    pipeline.database.query("UPDATE items SET categories = '[' WHERE feed_id = 'a'")
    failed, done = publish(stores(pipeline), clock=pipeline.clock)
    assert failed.error is not None
    assert failed.error.startswith("it could not be built: JSONDecodeError: ")
    assert done.error is None
    pipeline.database.query("UPDATE items SET categories = '[]'")
    assert [each.topic_id for each in publish(stores(pipeline), clock=pipeline.clock)] == ["t"]


def test_an_unknown_topic_is_an_error_with_the_known_ones(pipeline: Pipeline) -> None:
    stored(pipeline, topic("t", "a"), topic("u", "b"))
    [unknown] = publish(stores(pipeline), clock=pipeline.clock, only=["v"])
    assert unknown.error == "no topic has this id; there are: t, u"


def test_another_bucket_gets_all_documents(pipeline: Pipeline, tmp_path: Path) -> None:
    stored(pipeline)
    publish(stores(pipeline), clock=pipeline.clock)
    moved = PublicationStores(
        database=pipeline.database,
        archive=pipeline.objects,
        target=Target(FolderStore(tmp_path / "other"), "another place"),
        settings=pipeline.settings,
    )
    # With the same items, so that the bytes are those of the last publication.
    set_topics(pipeline.database, topic("t", "a", "b", every=timedelta(hours=1)))
    pipeline.clock.turn(hours=2)
    [again] = publish(moved, clock=pipeline.clock)
    assert len(again.changed) == 2
    assert publish(moved, clock=pipeline.clock, only=["t"])[0].changed == ()
