"""The command with its tables in Postgres: one after the other, what an operator types in a year."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.mark.slow
def test_the_commands_of_an_operator_work_on_postgres(
    tmp_path: Path, invoke: Any, postgres_url: str, server: FeedServer
) -> None:
    env = {"DATABASE_URL": postgres_url}

    def done(*arguments: str, **options: Any) -> str:
        result = invoke(*arguments, env=env, **options)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    def list_feeds(*ids: str) -> None:
        feeds = [{"url": urls[id], "id": id, "allow_private": True} for id in ids]
        (tmp_path / "feeds.yaml").write_text(json.dumps({"feeds": feeds}), "utf-8")

    urls = {
        id: server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(f"{id}-1", f"{id}-2"), etag=f'"{id}"'))
        for n, id in enumerate(("news", "old"), start=2)
    }
    list_feeds("news", "old")
    assert "already up to date" in done("migrate")
    assert "4 new items" in done("poll")
    said = json.loads(done("status", "--json"))
    assert (said["items"], set(said["disk"])) == (4, {"objects"})
    assert "Title of news-1" in done("items", "news")
    done("user", "add", "ada", input="correct horse\n" * 2)
    assert "1 users backed up" in done("clean")
    assert json.loads(done("clean", "--dry-run", "--json"))["items_removed"] == 0
    list_feeds("news")
    assert "1 feeds and 2 items deleted" in done("forget", "--unlisted", "--yes")
    assert "1 backups read again" in done("replay", "--all", "--repair")
    assert "rss_items" in done("metrics")
    assert "is up to date" in done("search-index", "--update")

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    lost = invoke("restore", env=env)
    assert (lost.exit_code, "run `rss-pipeline migrate`" in lost.stderr) == (1, True)
    assert "0001_initial.sql" in done("migrate")
    done("restore")
    assert json.loads(done("status", "--json"))["items"] == 4, "backups of a forgotten feed are kept"
    assert "ada" in done("user", "list")
    assert not (tmp_path / "rss.sqlite").exists()
