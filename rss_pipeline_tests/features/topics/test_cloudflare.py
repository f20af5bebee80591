"""Topics on D1 and R2 in workerd: the same bytes, few puts, few rows."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rss_pipeline.features.topics.publish import PublicationStores, publish
from rss_pipeline.features.topics.sql import set_installation
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.s3.backend import R2Backend
from rss_pipeline_tests.features.topics.stored import set_topics, topic
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.services.faults import FaultProxy
from rss_pipeline_tests.support.stored import add_feeds, add_items, item

FEEDS = [f"f{number}" for number in range(20)]
KEYS = ("topics/index.json", "topics/index.opml", "topics/t.atom", "topics/t.json")


def day(number: int) -> str:
    return f"2026-02-{number:02}T00:00:00Z"


def fill(pipeline: Pipeline) -> None:
    """Twenty feeds with thirty items each, of which five are of the first document."""
    add_feeds(pipeline.database, *FEEDS, first_stored_at=day(1))
    add_items(
        pipeline.database,
        (
            item(id, f"{n}", f"2026-02-{max(1, n - 4):02}T{k:02}:00:00Z" if n > 4 else day(1), title="頭条")
            for k, id in enumerate(FEEDS)
            for n in range(30)
        ),
    )
    set_installation(pipeline.database, UUID(int=7))
    set_topics(pipeline.database, topic("t", *FEEDS, title="ノースリーブス"))


@pytest.fixture
def proxy(away: Pipeline, cloudflare: Cloudflare) -> Iterator[FaultProxy]:
    with FaultProxy(cloudflare.url) as proxy:
        proxy.keep_answers = True
        assert isinstance(away.settings.objects, R2Backend)
        away.set(
            database_server=D1Backend(url=proxy.url, token=cloudflare.token),
            objects_server=replace(
                away.settings.objects,
                endpoint_url=proxy.s3_endpoint,
                topics_bucket=cloudflare.topics_bucket,
                topics_public_url="https://topics.example",
            ),
        )
        yield proxy


def test_d1_and_r2_get_the_same_bytes_at_two_puts_a_topic_and_few_rows(
    pipeline: Pipeline, away: Pipeline, proxy: FaultProxy, cloudflare: Cloudflare
) -> None:
    for place in (pipeline, away):
        fill(place)
    usual = PublicationStores.of(pipeline.settings, pipeline.database)
    served = PublicationStores.of(away.settings, away.database)
    target = replace(usual.target, store=_Addressed(usual.target.store, served.target.store))
    publish(replace(usual, target=target), clock=pipeline.clock)
    publish(served, clock=away.clock)
    s3 = cloudflare.s3()
    for key in KEYS:
        there = s3.get_object(Bucket=cloudflare.topics_bucket, Key=key)
        here = pipeline.objects.get(key)
        assert here is not None
        assert there["Body"].read() == here[0]
        assert there["CacheControl"] == "public, max-age=300"
        assert "ノースリーブス" in here[0].decode()
    assert s3.head_object(Bucket=cloudflare.topics_bucket, Key="topics/t.atom")["ContentType"] == (
        "application/atom+xml"
    )
    assert list(away.objects.list("topics/")) == [], "the bucket with the backups has none"
    s3.close()

    database = connect(away.settings)
    add_items(database, [item("f3", "new", "2026-03-01T00:00:00Z")])
    away.clock.turn(hours=1)
    proxy.heal()
    proxy.answers.clear()
    [changed] = publish(replace(served, database=database), clock=away.clock)
    assert len(changed.changed) == 2
    puts = [call.key for call in proxy.calls if call.store == "r2"]
    assert puts == ["topics/t.json", "topics/t.atom"]
    # Due, selectors, the installation, taken, where the items are, their texts, ended, the list of topics.
    assert proxy.count("d1") == 8
    assert proxy.rows_read() <= 900
    assert proxy.rows_written() <= 10
    proxy.heal()
    assert publish(replace(served, database=database), clock=away.clock) == []
    assert (proxy.count("d1"), proxy.count("r2")) == (1, 0)
    database.close()


class _Addressed:
    """A folder with the addresses of a bucket, so that both publish the same URLs."""

    def __init__(self, folder: Any, bucket: Any) -> None:
        self._folder = folder
        self.url = bucket.url

    def __getattr__(self, name: str) -> Any:
        return getattr(self._folder, name)


def test_doctor_checks_the_bucket_of_topics(away: Pipeline, cloudflare: Cloudflare, tmp_path: Path) -> None:
    health = pytest.importorskip("rss_pipeline.features.health.store_checks")
    assert health.check_topics_store(away.settings) == []

    def check(**fields: Any) -> tuple[str, str]:
        assert isinstance(away.settings.objects, R2Backend)
        [found] = health.check_topics_store(
            replace(away.settings, objects_server=replace(away.settings.objects, **fields))
        )
        return found.state, found.found

    public = {"topics_public_url": "https://t.example"}
    state, found = check(topics_bucket=cloudflare.topics_bucket, **public)
    assert (state, found.endswith("written; readers find it at https://t.example")) == ("ok", True)
    state, found = check(topics_bucket=cloudflare.topics_bucket)
    assert (state, "without R2_TOPICS_PUBLIC_URL" in found) == ("warning", True)
    assert check(topics_bucket="no-such-bucket", **public)[0] == "failure"
