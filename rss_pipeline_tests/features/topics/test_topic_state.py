"""The state of topics, for people: entries, the last error, and since when a change waits."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.errors import StorageRejected
from rss_pipeline.features.topics.publish import PublicationStores, publish
from rss_pipeline.features.topics.sql import LATE, TopicState, topic_states
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


class RefusingFolder(FolderStore):
    """A store that refuses the documents of one topic."""

    def put(self, key: str, body: bytes | Path, **options: Any) -> bool:
        if key == "topics/bad.atom":
            raise StorageRejected("bad.atom is refused here")
        return super().put(key, body, **options)


@pytest.fixture
def two(tmp_path: Path, server: FeedServer) -> Iterator[Pipeline]:
    """A feed with two items, and two topics of it."""
    pipeline = Pipeline(tmp_path)
    pipeline.register(server.route("127.0.0.2", "/a", Answer(body=rss("1", "2"))), "a")
    pipeline.topics = {id: {"of": ["a"], "public": True} for id in ("bad", "good")}
    pipeline.write_registry()
    pipeline.poll()
    yield pipeline
    pipeline.close()


def states(pipeline: Pipeline) -> dict[str, TopicState]:
    return {each.spec.id: each for each in topic_states(pipeline.database)}


def published(pipeline: Pipeline, store: FolderStore) -> None:
    pipeline.clock.turn(hours=1)
    publish(PublicationStores.of(pipeline.settings, pipeline.database, store), clock=pipeline.clock)


def test_a_publication_leaves_what_a_person_wants_to_know(two: Pipeline) -> None:
    before = states(two)["good"]
    assert (before.entries, before.published_at, before.error) == (None, None, None)
    assert before.stale_at is not None
    published(two, RefusingFolder(two.settings.objects_path))
    good, bad = states(two)["good"], states(two)["bad"]
    assert (good.entries, good.published_at, good.stale_at) == (2, two.clock(), None)
    files = [two.settings.objects_path / "topics" / f"good.{kind}" for kind in ("json", "atom")]
    assert good.bytes == sum(file.stat().st_size for file in files)
    assert good.warning(utc_now() + timedelta(days=9)) is None
    assert bad.error is not None
    assert "is refused here" in bad.error
    assert bad.stale_at == before.stale_at, "the time of its first change"
    assert bad.warning(utc_now()) == f"not published: {bad.error}"
    published(two, FolderStore(two.settings.objects_path))
    bad = states(two)["bad"]
    assert (bad.error, bad.stale_at, bad.entries, bad.warning(utc_now())) == (None, None, 2, None)


def test_a_change_that_nothing_publishes_is_a_warning_after_a_while(two: Pipeline) -> None:
    published(two, FolderStore(two.settings.objects_path))
    begun = two.clock()
    two.database.query("UPDATE topics SET stale = 1, stale_at = ? WHERE id = 'good'", [instant(begun)])
    good = states(two)["good"]
    every = good.spec.every
    assert good.due_at() == begun + every, "not before `every` has passed"
    assert good.warning(begun + every + LATE - timedelta(seconds=1)) is None
    late = good.warning(begun + every + LATE)
    assert late is not None
    assert late.startswith("a change has waited for 6 hours to be published")
    assert "`rss-pipeline publish good`" in late


def test_a_topic_that_left_the_registry_is_not_shown(two: Pipeline) -> None:
    del two.topics["bad"]
    two.write_registry()
    two.sync()
    assert list(states(two)) == ["good"]


def test_a_change_while_a_topic_is_published_keeps_it_waiting(two: Pipeline) -> None:
    class Changing(FolderStore):
        """A store with a first put during which an item comes in."""

        def put(self, key: str, body: bytes | Path, **options: Any) -> bool:
            two.database.query("UPDATE topics SET stale = stale + 1 WHERE id = 'good'")
            return super().put(key, body, **options)

    published(two, Changing(two.settings.objects_path))
    good = states(two)["good"]
    assert good.published_at == two.clock()
    assert good.stale_at is not None
