"""Another's asset renders items with the stores as resources, as the renderer's docstring shows it."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from rss_pipeline.pipeline.read.terminal_text import item_html, items_html
from rss_pipeline_tests.pipeline.read.test_render import item, store
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.server import FeedServer


def test_a_downstream_asset_renders_with_the_stores_as_resources(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    store(pipeline, server)
    pages: dict[str, Mapping[str, Any] | list[str | None]] = {}

    @dg.asset(required_resource_keys={"database", "objects"})
    def page(context: dg.AssetExecutionContext) -> None:
        database, objects = context.resources.database, context.resources.objects
        rows = database.query(
            "SELECT items.*, feeds.url AS feed_url, feeds.link AS feed_link"
            " FROM items JOIN feeds ON feeds.id = items.feed_id"
            " WHERE feed_id = ? ORDER BY pub_date DESC, guid LIMIT 50",
            ["news"],
        ).rows
        pages["news"] = items_html(database, objects, rows)

    resources = {key: pipeline.definitions().resources[key] for key in ("database", "objects")}  # type: ignore[index]
    assert dg.materialize([page], instance=pipeline.instance, resources=resources).success
    assert pages["news"] == [
        item_html(pipeline.database, pipeline.objects, item(pipeline)),
        "<p>Text of b</p>",
    ]
