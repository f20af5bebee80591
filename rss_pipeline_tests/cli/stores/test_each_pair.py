"""Every command and every health check in each pair of stores: what an operator types in a year."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import dagster as dg
import psycopg
import pytest

from rss_pipeline.cli.main import main
from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.settings import Settings
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.services.s3_server import BUCKET, rclone, s3_server

SERVE = {"up", "reader", "worker"}
"""Commands that run until they are stopped; tests of their own start them."""
OPML = '<opml version="2.0"><body><outline type="rss" xmlUrl="{}"/></body></opml>'


@pytest.fixture(
    params=[
        pytest.param(f"{database}+{objects}", marks=() if n == m else pytest.mark.soak)
        for n, database in enumerate(("sqlite", "postgres", "d1"))
        for m, objects in enumerate(("folder", "s3", "r2"))
    ]
)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The name of a pair of stores, and the variables that name it."""
    name: str = request.param
    env: dict[str, str] = {}
    if "d1" in name or "r2" in name:
        cloudflare: Cloudflare = request.getfixturevalue("cloudflare")
        env |= {
            variable: value
            for variable, value in cloudflare.environ.items()
            if variable.partition("_")[0].lower() in name
        }
    if "postgres" in name:
        env["DATABASE_URL"] = request.getfixturevalue("postgres_url")
    if "s3" not in name:
        yield name, env
        return
    program = rclone()
    if program is None:
        pytest.skip("rclone is not installed: there is no store with the S3 API besides R2's")
    with s3_server(program, tmp_path) as server:
        s3 = server.settings()
        env |= {
            "S3_ENDPOINT_URL": s3.endpoint_url,
            "S3_REGION": s3.region,
            "S3_BUCKET": BUCKET,
            "S3_ACCESS_KEY_ID": s3.access_key_id,
            "S3_SECRET_ACCESS_KEY": s3.secret_access_key,
        }
        yield name, env


def lose(name: str, home: Path, env: dict[str, str]) -> None:
    """Lose the database, where that is cheap."""
    if "sqlite" in name:
        for path in home.glob("rss.sqlite*"):
            path.unlink()
    if "postgres" in name:
        with psycopg.connect(env["DATABASE_URL"], autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")


def healthy(home: Path) -> dict[str, bool]:
    """Each health check of the UI, and whether it passes."""
    definitions = build_definitions(Settings.from_environ(os.environ, cwd=home))
    known = {key.name for key in definitions.resolve_asset_graph().asset_check_keys}
    with dg.DagsterInstance.ephemeral() as instance:
        run = definitions.resolve_job_def("check_health").execute_in_process(instance=instance)
        found = {each.check_name: each.passed for each in run.get_asset_check_evaluations()}
    assert found.keys() == known
    return found


@pytest.mark.slow
def test_every_command_and_every_check_works_in_each_pair_of_stores(
    tmp_path: Path,
    invoke: Callable[..., Any],
    pair: tuple[str, dict[str, str]],
    server: FeedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, env = pair
    used = set(SERVE)
    commands = set(main.list_commands(click.Context(main)))
    for variable, value in env.items():
        monkeypatch.setenv(variable, value)

    def done(*arguments: str, code: int = 0, **options: Any) -> str:
        used.add(arguments[0])
        result = invoke(*arguments, **options)
        assert result.exit_code == code, f"{arguments}: {result.output}"
        return str(result.output)

    def list_feeds(*ids: str) -> None:
        feeds = [{"url": urls[id], "id": id, "allow_private": True} for id in ids]
        topics = {"t": {"title": "T", "of": ["news"], "public": True}}
        more = {"topics": topics} if "publish" in commands else {}
        (tmp_path / "feeds.yaml").write_text(json.dumps({"feeds": feeds, **more}), "utf-8")

    urls = {
        id: server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(f"{id}-1", f"{id}-2"), etag=f'"{id}"'))
        for n, id in enumerate(("news", "old", "added", "imported"), start=2)
    }
    list_feeds("news", "old")
    done("migrate", "--compact", "--yes")
    assert "CREATE TABLE items (" in done("schema", "items")
    assert "4 new items" in done("poll")
    assert json.loads(done("status", "--json"))["items"] == 4
    assert "Title of news-1" in done("items", "news")
    lines = [json.loads(line) for line in done("export", "news").splitlines() if line.startswith("{")]
    assert "Text of news-1" in done("item", next(item["id"] for item in lines if item["guid"] == "news-1"))
    if "publish" in commands:
        assert "unchanged" in done("publish")
    done("images")
    done("move-images")
    if "doctor" in commands:
        assert "rss_items" in done("metrics")
        assert set(healthy(tmp_path).values()) == {True}
        done("doctor")
    done("user", "add", "ada", input="correct horse\n" * 2)
    if "clean" in commands:
        assert "1 users backed up" in done("clean")
        assert json.loads(done("clean", "--dry-run", "--json"))["items_removed"] == 0
    list_feeds("news")
    assert "1 feeds and 2 items deleted" in done("forget", "--unlisted", "--yes")
    if "replay" in commands:
        assert "1 backups read again" in done("replay", "--all", "--repair")
    if "streams" in commands:
        done("streams", "news")
    if "stories" in commands:
        # As `items` shows them.
        ids = [item["id"][:12] for item in lines if item["guid"] in ("news-1", "news-2")]
        assert "one story" in done("stories", "join", *ids)
        assert ids[1] in done("stories", "why", ids[0])
        assert len(json.loads(done("stories", "--since", "2026-01-01", "--json"))) == 1
        assert "alone" in done("stories", "split", ids[1])
        assert "taken back" in done("stories", "undo")
    if "search-index" in commands:
        assert "is up to date" in done("search-index", "--update")
    done("purge", "--days", "1")
    assert "added" in done("add", "--allow-private", urls["added"])
    if "import" in commands:
        (tmp_path / "list.opml").write_text(OPML.format(urls["imported"]), "utf-8")
        done("import", "list.opml")
        assert urls["imported"] in done("export-opml")
    if "page" in commands:
        assert "none" in done("page", "--allow-private", "--json", urls["news"])
    if "full-text" in commands:
        assert "2 wait" in done("full-text", "news")
    if "copy" not in commands:
        pass
    elif env:
        copied = json.loads(done("copy", "--from", name, "--to", "embedded", "--json"))
        if "sqlite" not in name:  # A store that both sides have stays as it is.
            assert copied["items"]["count"] == 4
            (tmp_path / "rss.sqlite").unlink()
    else:
        done("copy", "--from", "embedded", "--to", "embedded", code=1)
    if "restore" in commands:
        lose(name, tmp_path, env)
        # An empty file beside backups is a loss, which a person confirms.
        done("migrate", *(["--empty"] if "sqlite" in name else []))
        done("restore")
        assert json.loads(done("status", "--json"))["items"] == 6, "backups of a forgotten feed are kept"
    if "clean" in commands or "restore" not in commands:
        assert "ada" in done("user", "list")
    assert commands <= used
