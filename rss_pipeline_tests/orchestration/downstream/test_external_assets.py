"""The words of the UI: sources, the result of a poll, changes of the registry, owners."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import asset_node_snaps_from_repo

from rss_pipeline.orchestration.reporting.asset_keys import POLLS, REGISTRY
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.s3.backend import R2Backend
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.installed import of_features
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

OWNERS = ["team:rss_pipeline"]
DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "embedded": {},
    "cloudflare": {
        "database_server": D1Backend(url="https://d1.example", token="sEcReT"),
        "objects_server": R2Backend(
            endpoint_url="https://r2.example", bucket="b", access_key_id="k", secret_access_key="sEcReT"
        ),
    },
}


def told(pipeline: DagsterPipeline, asset: dg.AssetKey) -> list[dict[str, Any]]:
    """Metadata of an asset's events, newest first."""
    records = pipeline.instance.fetch_materializations(asset, limit=100).records
    return [
        {name: value.value for name, value in record.asset_materialization.metadata.items()}
        for record in records
        if record.asset_materialization is not None
    ]


@pytest.fixture
def three(pipeline: DagsterPipeline, server: FeedServer) -> DagsterPipeline:
    """Three feeds: one that is well, one without news at the second visit, one that fails."""
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b"))), "well")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("c"), etag='"1"')), "quiet")
    pipeline.register(
        server.route("127.0.0.4", "/feed", Answer(status=200, headers={"Content-Type": "text/html"})), "ill"
    )
    return pipeline


def test_a_poll_is_reported_as_a_whole_with_links_to_what_failed(
    three: DagsterPipeline, server: FeedServer
) -> None:
    three.poll()
    [first] = told(three, POLLS)
    failures = first.pop("failures")
    assert first == {
        "due": 3,
        "fetched": 2,
        "not_modified": 0,
        "changed": 2,
        "failed": 1,
        "given_back": 0,
        "on_hold": 0,
        "gaps": 0,
        "items_new": 3,
        "seconds": 0.0,
        "lag_seconds": 0,
    }
    assert "[ill](/assets/feed_items?view=events&partitions%5B0%5D=ill)" in failures
    assert f"(http://127.0.0.4:{server.port}/feed)" in failures

    server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b", "d")))
    due = max(three.feed(id)["next_fetch_at"] for id in ("well", "quiet"))
    three.clock.turn(hours=6)
    three.poll()
    second = told(three, POLLS)[0]
    assert (second["due"], second["changed"], second["not_modified"], second["items_new"]) == (3, 1, 1, 1)
    assert second["lag_seconds"] > 3 * 3600, f"due since {due}"


def test_a_hold_of_a_host_is_no_lag_of_ours(pipeline: DagsterPipeline, server: FeedServer) -> None:
    busy = Answer(status=429, headers={"Retry-After": "3600"})
    for id, answers in (("quiet", [Answer(body=rss("a"))]), ("busy", [Answer(body=rss("b")), busy])):
        pipeline.register(server.route("127.0.0.2", f"/{id}", *answers), id, interval="30m")
    pipeline.poll()
    pipeline.clock.turn(hours=1)
    pipeline.poll("busy")
    pipeline.clock.turn(hours=1, minutes=3)
    pipeline.poll()
    last = told(pipeline, POLLS)[0]
    assert last["due"] >= 1
    assert 180 <= last["lag_seconds"] < 240, "the quiet one was due for more than 90 minutes"


def test_a_poll_that_found_nothing_due_is_not_reported(three: DagsterPipeline) -> None:
    three.poll()
    three.poll()
    assert len(told(three, POLLS)) == 1


def test_a_publisher_s_words_are_no_markup_of_ours(three: DagsterPipeline, server: FeedServer) -> None:
    three.register(server.url("127.0.0.9", "/a|b)[x](javascript:1)"), "odd")
    server.route("127.0.0.9", "/", Answer(status=500))
    three.poll()
    (line,) = [line for line in told(three, POLLS)[0]["failures"].splitlines() if "[odd]" in line]
    assert "javascript:1)" not in line
    assert line.replace("\\|", "").count("|") == 7


def test_a_change_of_the_registry_is_reported_and_nothing_else(three: DagsterPipeline) -> None:
    three.sync()
    three.sync()
    del three.feeds[0]
    three.write_registry()
    three.sync()
    assert [event["feeds"] for event in told(three, REGISTRY)] == [2, 3]
    assert told(three, REGISTRY)[0] == {
        "feeds": 2,
        "added": 0,
        "updated": 0,
        "unregistered": 1,
        "subscribed": 0,
        "removed": 1,
        **dict.fromkeys(of_features(topics=["topics"]), 0),
    }


def test_the_graph_leads_from_the_registry_over_the_items_to_their_images(pipeline: DagsterPipeline) -> None:
    graph = pipeline.definitions().resolve_asset_graph()
    key = dg.AssetKey("feed_items")
    assert graph.get(key).parent_keys == {REGISTRY}
    others = graph.get_all_asset_keys() - {REGISTRY, key, dg.AssetKey("polls")}
    assert dg.AssetKey("item_images") in others
    assert [each for each in others if graph.get(each).parent_keys != {key}] == []
    assert {node.group_name for node in graph.asset_nodes} == {"feeds"}


def where(pipeline: DagsterPipeline, *keys: str) -> dict[str, tuple[Any, ...]]:
    """The kinds of these assets, or of all, and by the names that Dagster knows: table, in what, objects."""
    names = ("dagster/table_name", "dagster/storage_kind", "dagster/uri")
    return {
        node.key.to_user_string(): (node.kinds, *(node.metadata.get(name) for name in names))
        for node in pipeline.definitions().resolve_asset_graph().asset_nodes
        if not keys or node.key.to_user_string() in keys
    }


def test_the_graph_says_where_everything_is(pipeline: DagsterPipeline) -> None:
    objects, registry = pipeline.settings.objects_path, pipeline.settings.feeds_file.as_uri()
    core = ("registry", "feed_items", "item_images", "polls")
    assert where(pipeline, *core) == {
        "registry": ({"yaml", "sqlite"}, "feeds", "sqlite", registry),
        "feed_items": ({"rss", "sqlite"}, "items", "sqlite", f"file://{objects}/backups"),
        "item_images": ({"image", "sqlite"}, "image_tasks", "sqlite", f"file://{objects}/images"),
        "polls": ({"rss"}, None, None, None),
    }
    pipeline.set(**DEPLOYMENTS["cloudflare"])
    assert where(pipeline, *core) == {
        "registry": ({"yaml", "cloudflare"}, "feeds", "d1", registry),
        "feed_items": ({"rss", "cloudflare", "r2"}, "items", "d1", "s3://b/backups/"),
        "item_images": ({"image", "cloudflare", "r2"}, "image_tasks", "d1", "s3://b/images/"),
        "polls": ({"rss"}, None, None, None),
    }
    graph = pipeline.definitions().resolve_asset_graph()
    assert "sEcReT" not in "".join(str(node.metadata) for node in graph.asset_nodes)


def test_the_tables_that_the_graph_names_are_there(pipeline: DagsterPipeline) -> None:
    tables = {row["name"] for row in pipeline.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {table for _, table, *_ in where(pipeline).values() if table is not None} <= tables


def ops(definitions: dg.Definitions) -> dict[str, dg.OpDefinition]:
    """Every op, also those that an asset or a check was made into."""
    jobs = definitions.get_repository_def().get_all_jobs()
    return {op.name: op for job in jobs for op in job.graph.iterate_op_defs()}


def undescribed_fields(name: str, field: Any) -> Iterator[str]:
    """The fields of a config that have no description, at any depth."""
    for inner, each in getattr(field.config_type, "fields", {}).items():
        if not each.description:
            yield f"{name}.{inner}"
        yield from undescribed_fields(f"{name}.{inner}", each)


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_whatever_the_ui_shows_says_what_it_is_and_has_an_owner(
    pipeline: DagsterPipeline, deployment: str
) -> None:
    pipeline.set(**DEPLOYMENTS[deployment])
    definitions = pipeline.definitions()
    repository = definitions.get_repository_def()
    graph = repository.asset_graph
    jobs = [job for job in repository.get_all_jobs() if not job.name.startswith("__")]
    automations: list[Any] = [*repository.schedule_defs, *repository.sensor_defs]
    assets = [graph.get(key) for key in graph.get_all_asset_keys()]
    assert [node.key for node in assets if not node.description or node.owners != OWNERS] == []
    assert [each.name for each in (*jobs, *automations) if not each.description] == []
    assert [each.name for each in (*jobs, *automations) if each.owners != OWNERS] == []
    assert [each.name for each in (*jobs, *automations) if not each.tags] == []
    # Dagster's checks have no owners of their own: they are on their asset's page.
    checks = [graph.get_check_spec(key) for key in graph.asset_check_keys]
    assert [check.name for check in checks if not check.description] == []

    described: dict[str, Any] = {**ops(definitions), **repository.get_top_level_resources()}
    assert [name for name, each in described.items() if not each.description] == []
    configs = {name: each.config_schema.as_field() for name, each in described.items() if each.config_schema}
    assert {"claim", "database", "objects"} <= {name for name, field in configs.items() if field.config_type}
    assert [each for name, field in configs.items() for each in undescribed_fields(name, field)] == []


def test_every_op_but_the_reports_has_a_kind_that_is_true_of_any_store(pipeline: DagsterPipeline) -> None:
    """Dagster shows the kind of an asset's last op in place of the asset's own; no op names a product."""
    jobs = pipeline.definitions().get_repository_def().get_all_jobs()
    names = {"poll_feeds", "replay_backups", "replay_all", "clean_store", "purge_history", "publish_topics"}
    nodes = [op for job in jobs if job.name in names for op in job.graph.iterate_op_defs()]
    kinds = {op.name: op.tags.get("dagster/compute_kind") for op in nodes}
    assert (kinds.pop("report"), kinds.pop("publish", None)) == (None, None)
    assert set(kinds.values()) == {"sql", "http", "file", "python"}


def test_no_op_s_kind_hides_those_of_an_asset(pipeline: DagsterPipeline) -> None:
    # Dagster's page of an asset shows this one alone where there is one.
    snaps = asset_node_snaps_from_repo(pipeline.definitions().get_repository_def())
    kinds = {snap.asset_key.to_user_string(): snap.compute_kind for snap in snaps}
    assert kinds == dict.fromkeys(kinds)
    assert {"registry", "polls", "feed_items", "item_images"} <= kinds.keys()


def test_all_visits_every_feed_due_or_not_and_conditionally(
    three: DagsterPipeline, server: FeedServer
) -> None:
    three.poll()
    server.forget()
    job = three.definitions().resolve_job_def("poll_feeds")
    three.clock.turn(seconds=1)
    result = job.execute_in_process(
        instance=three.instance, run_config={"ops": {"claim": {"config": {"all": True}}}}
    )
    assert result.success
    assert {request.host for request in server.requests} == {"127.0.0.2", "127.0.0.3", "127.0.0.4"}
    assert server.asked("127.0.0.3")[0].headers["if-none-match"] == '"1"'
