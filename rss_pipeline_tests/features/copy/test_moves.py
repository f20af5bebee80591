"""An installation that moves from place to place, and goes on in each: what it had, and what comes."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.features import FEATURES
from rss_pipeline.features.copy.service import Copied, copy, open_side
from rss_pipeline.features.copy.sql import TABLES
from rss_pipeline.progress import NoProgress
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.reader.kept_users import (
    FEEDS,
    MANY,
    USERS,
    act,
    serve,
    shown,
    subscribe_feeds,
)
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.support.kept_parsers import KeptParsers
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import Pipeline, on_cloudflare, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

Contents = dict[str, list[dict[str, Any]]]


def contents(pipeline: Pipeline) -> Contents:
    """All rows, and the texts that the reader shows of them."""
    rows = {
        table: pipeline.rows(f"SELECT * FROM {table} ORDER BY {', '.join(key)}")
        for table, key in TABLES.items()
    }
    return {**rows, "texts": [shown(pipeline)]}


def fill(pipeline: Pipeline, server: FeedServer) -> None:
    """Feeds with images, a topic, and users who have read, starred and sorted at random."""
    if any(feature.name == "topics" for feature in FEATURES):
        pipeline.topics = {"t": {"public": True, "of": ["listed"]}}
    image = server.route("127.0.0.41", "/i/p.png", Answer(body=png(), headers={"Content-Type": "image/png"}))
    document = Answer(body=rss("p", image=image.removesuffix("/p.png")))
    pipeline.register(server.route("127.0.0.40", "/feed", document), "pictures")
    serve(pipeline, server)
    pipeline.download()
    chance = random.Random(7)
    for _ in range(40):
        act(pipeline, chance.choice(USERS), chance)
    for user in USERS:
        subscribe_feeds(pipeline, user, *FEEDS)
    pipeline.lapse_leases()


def goes_on(pipeline: Pipeline, server: FeedServer, guid: str) -> None:
    """A new item comes in behind all others, unread for everybody, and its feed had nothing else."""
    before = {row["id"] for row in pipeline.rows("SELECT id FROM items")}
    (last,) = pipeline.rows("SELECT max(arrived) AS n FROM items")
    unread = {user: readers.unread(pipeline.database, user)["large"] for user in USERS}
    server.route("127.0.0.2", "/feed", Answer(body=rss(*MANY[40:], "late", guid)))
    pipeline.poll(all_feeds=True)
    pipeline.clock.turn(hours=3)
    (new,) = [row for row in pipeline.rows("SELECT * FROM items") if row["id"] not in before]
    assert (new["guid"], new["arrived"] > last["n"]) == (guid, True)
    pipeline.lapse_leases()
    for user in USERS:
        assert readers.unread(pipeline.database, user)["large"] == unread[user] + 1


@pytest.fixture
def reopened(tmp_path: Path, kept_parsers: KeptParsers) -> Iterator[Callable[..., Pipeline]]:
    """The installation with other stores: the same home, feeds.yaml and clock."""
    opened: list[Pipeline] = []

    def reopen(**stores: Any) -> Pipeline:
        pipeline = Pipeline(tmp_path, parser_pool=kept_parsers, **stores)
        if opened:
            last = opened[-1]
            pipeline.feeds, pipeline.topics, pipeline.clock = last.feeds, last.topics, last.clock
            pipeline.set(allow_networks=last.settings.allow_networks, allow_ports=last.settings.allow_ports)
            last.close()
        opened.append(pipeline)
        return pipeline

    yield reopen
    opened[-1].close()


@pytest.mark.slow
def test_an_installation_moves_through_all_places_and_goes_on_in_each(
    tmp_path: Path,
    reopened: Callable[..., Pipeline],
    server: FeedServer,
    postgres_url: str,
    emptied_postgres: Callable[[], PostgresDatabase],
    cloudflare: Cloudflare,
) -> None:
    on_postgres: Mapping[str, Any] = {"database_server": PostgresBackend(url=postgres_url)}
    in_r2 = {"objects_server": on_cloudflare(cloudflare)["objects_server"]}
    environ = {"RSS_PIPELINE_HOME": str(tmp_path), "DATABASE_URL": postgres_url, **cloudflare.environ}

    def move(source: str, target: str) -> Copied:
        with (
            open_side(environ, source, cwd=tmp_path, as_source=True) as ours,
            open_side(environ, target, cwd=tmp_path) as theirs,
        ):
            return copy(ours, theirs, progress=NoProgress())

    home = reopened()
    fill(home, server)
    before = contents(home)
    assert [task["status"] for task in before["image_tasks"]] == ["success"]
    assert all(before[table] for table in ("item_states", "folders", "subscriptions", "sequences"))

    assert move("embedded", "postgres+folder").objects is None
    pipeline = reopened(**on_postgres)
    assert contents(pipeline) == before
    goes_on(pipeline, server, "on Postgres")
    before = contents(pipeline)

    for path in tmp_path.glob("rss.sqlite*"):
        path.rename(path.with_name(f"moved-{path.name}"))
    move("postgres+folder", "embedded")
    pipeline = reopened()
    assert contents(pipeline) == before
    goes_on(pipeline, server, "at home again")
    before = contents(pipeline)
    kept = [info.key for info in pipeline.objects.list("") if not info.key.startswith("copies/")]

    with closing(D1Database(cloudflare.url, cloudflare.token)) as d1:
        migrate(d1)
    copied = move("embedded", "cloudflare")
    pipeline = reopened(**on_cloudflare(cloudflare))
    assert contents(pipeline) == before
    assert copied.objects is not None
    assert copied.objects_written == copied.objects.count == len(kept)
    goes_on(pipeline, server, "in Cloudflare")
    before = contents(pipeline)

    emptied_postgres()
    assert move("cloudflare", "postgres").objects is None, "the bucket is that of both"
    pipeline = reopened(**on_postgres, **in_r2)
    assert contents(pipeline) == before
    goes_on(pipeline, server, "on Postgres, in R2")
