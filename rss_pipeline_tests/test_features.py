"""The features: their lists name what is there, they import what they need, and each can be removed."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.features import FEATURES
from rss_pipeline.features.feature import Feature, Part
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.removal import ROOT, gone_with, imported, use, without
from rss_pipeline_tests.support.server import Answer, FeedServer

NAMES = [feature.name for feature in FEATURES]
IN_USE = ("replay", "topics")
"""The features that each run of the tests removes; `make soak` removes all of them."""

AT = "2026-03-02T08:00:00Z"
ROWS = f"""
INSERT INTO feeds (id, url, host, next_fetch_at, created_at, first_stored_at, registered, listed,
    streams)
  VALUES ('old', 'https://old.example/', 'old.example', '2100-01-01T00:00:00Z', '{AT}', '{AT}', 0, 0,
    '[{{"name":"one","title":["*"]}}]');
INSERT INTO items (id, feed_id, guid, title, pub_date, created_at, guid_source, pub_date_source)
  VALUES ('i', 'old', 'g', 'An item', '{AT}', '{AT}', 'guid', 'feed');
INSERT INTO item_versions
  (item_id, replaced_at, guid_source, pub_date, pub_date_source, categories, enclosures)
  VALUES ('i', '{AT}', 'guid', '{AT}', 'feed', '[]', '[]');
INSERT INTO streams (feed_id, name) VALUES ('old', 'one');
INSERT INTO item_streams (feed_id, stream, item_id) VALUES ('old', 'one', 'i');
INSERT INTO topics (id, definition, stale_at, published_at) VALUES
  ('t', '{{"id":"t","title":null,"of":["old/one"],"each":null,"items":50,"every":900,"content":"full",'
    || '"link":null,"hub":[],"public":false}}', '{AT}', '{AT}');
INSERT INTO topic_members (topic_id, feed_id) VALUES ('t', 'old');
INSERT INTO published_files (key, hash, bytes, published_at) VALUES ('topics/t.json', 'h', 1, '{AT}');
INSERT INTO story_members (item_id, story_id, feed_id, arrived, article, lead, decided_at, version)
  VALUES ('i', 'i', 'old', 1, 'i', 1, '{AT}', 1);
INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('old', 'gone', '{AT}')
"""
TABLES = {
    "replay": ("item_versions",),
    "retention": ("expired_items",),
    "stories": ("story_members",),
    "streams": ("streams", "item_streams"),
    "topics": ("topics", "topic_members", "published_files"),
}
"""The tables with rows that are a feature's alone."""


def parts(of: object) -> Iterator[tuple[str, Part[Any]]]:
    """All parts of a list, each with the name of its field."""
    assert is_dataclass(of)
    for each in fields(of):
        value = getattr(of, each.name)
        if isinstance(value, Mapping):
            value = tuple(value.values())
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Part):
                yield each.name, one
            elif is_dataclass(one):
                yield from parts(one)


@pytest.mark.slow
@pytest.mark.parametrize("feature", FEATURES, ids=NAMES)
def test_every_part_of_a_feature_is_there_and_is_what_its_field_says(feature: Feature) -> None:
    import click
    import dagster as dg
    from fastapi import APIRouter

    from rss_pipeline.api.google_reader.call import FeatureCall
    from rss_pipeline.storage.subscriptions.folding import Folding

    kinds: dict[str, type | tuple[type, ...]] = {
        "checks": (tuple, list),
        "commands": click.Command,
        "folding": Folding,
        "job": dg.JobDefinition,
        "op": dg.OpDefinition,
        "reader_calls": FeatureCall,
        "reader_pages": APIRouter,
        "reader_routers": APIRouter,
        "stale": Statement,
        "stored": Statement,
    }
    for name, part in parts(feature):
        found = part.load()
        kind = kinds.get(name)
        assert callable(found) if kind is None else isinstance(found, kind), (name, part)


def test_a_feature_needs_features_that_there_are_and_none_needs_itself() -> None:
    for feature in FEATURES:
        assert set(feature.needs) <= set(NAMES)
        assert gone_with(feature.name).isdisjoint(feature.needs), "a circle"


@pytest.mark.parametrize("feature", FEATURES, ids=NAMES)
def test_a_feature_imports_no_other_that_it_does_not_need(feature: Feature) -> None:
    """But for the words of health, in the modules that only health loads."""
    needed = {feature.name, *(other for other in NAMES if feature.name in gone_with(other))}
    of_health = {
        part.name.partition(":")[0].rpartition(".")[2]
        for name, part in parts(feature)
        if name in ("backlog_advice", "checks", "doctor", "metrics")
    }
    for path in (ROOT / "rss_pipeline" / "features" / feature.name).rglob("*.py"):
        allowed = needed | ({"health"} if path.stem in of_health else set())
        assert imported(path) <= allowed, path


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name in IN_USE else pytest.param(name, marks=pytest.mark.soak) for name in NAMES]
)
def test_a_feature_is_removed_with_its_folder_and_its_lines(
    name: str, tmp_path: Path, server: FeedServer
) -> None:
    """Without it each module is imported, Dagster's definitions load, a poll collects, pages are served, and
    what is in the database stays."""
    home = tmp_path / "home"
    home.mkdir()
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b")))
    (home / "feeds.yaml").write_text(f"- {{url: '{url}', id: news, allow_private: true}}\n", "utf-8")
    database = migrated(home / "rss.sqlite")
    database.batch([Statement(sql) for sql in ROWS.split(";\n")])
    before = _rows(database, name)
    database.close()
    tree = without(name, tmp_path / "tree")
    said = use(tree, home)
    assert "'poll'] 0 " in said, said
    database = SqliteDatabase(home / "rss.sqlite")
    assert len(database.query("SELECT * FROM items WHERE feed_id = 'news'").rows) == 2, said
    assert _rows(database, name) == before
    database.close()
    gone = gone_with(name)
    naming = {path: imported(path) & gone for path in (tree / "rss_pipeline_tests").rglob("*.py")}
    assert {path: found for path, found in naming.items() if found} == {}, "these tests cannot be collected"


def _rows(database: Database, name: str) -> dict[str, list[Row]]:
    tables = [table for each in gone_with(name) for table in TABLES.get(each, ())]
    return {table: database.query(f"SELECT * FROM {table}").rows for table in tables}
