"""Parts that other people's assets build on: the reader as a resource, `feed_changed`, the example of both.

Events are those of real polls, conditions are evaluated as the daemon does it, assets run in this process.
"""

import ast
import importlib.util
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import pytest

from rss_pipeline import downstream
from rss_pipeline.downstream import (
    FEED_ITEMS,
    FeedReader,
    FeedReaderResource,
    feed_changed,
    feed_reader_resource,
    feeds_partitions,
    last_cursor,
    open_feed_reader,
)
from rss_pipeline.pipeline.visits import store
from rss_pipeline.storage.database import Statement
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline, copied, new_instance
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "digest"


@dg.asset(partitions_def=feeds_partitions, deps=[FEED_ITEMS], automation_condition=feed_changed())
def follower(
    context: dg.AssetExecutionContext, feed_reader: FeedReaderResource
) -> dg.MaterializeResult[None]:
    """Items since the last time, as metadata."""
    cursor, guids = last_cursor(context), []
    for item in feed_reader.items(context.partition_key, since=cursor):
        guids.append(item.guid)
        cursor = item.cursor
    return dg.MaterializeResult(metadata={"guids": guids, "cursor": cursor or ""})


@dg.asset(deps=[FEED_ITEMS], automation_condition=feed_changed())
def over_all(
    context: dg.AssetExecutionContext, feed_reader: FeedReaderResource
) -> dg.MaterializeResult[None]:
    """The same over all feeds, without partitions."""
    since = last_cursor(context)
    items = list(feed_reader.items(since=since))
    cursor = items[-1].cursor if items else since
    return dg.MaterializeResult(
        metadata={"guids": [item.guid for item in items], **({"cursor": cursor} if cursor else {})}
    )


class Following:
    """A pipeline of many feeds with assets downstream, and the daemon's ticks over them."""

    def __init__(
        self, pipeline: DagsterPipeline, server: FeedServer, feeds: int, *, cursor: Any = None
    ) -> None:
        self.pipeline, self.server = pipeline, server
        self.ids = [f"feed-{n:02}" for n in range(feeds)]
        self.cursor = cursor
        """The daemon's; with one the feeds are known and polled already."""
        urls = [self.serve(n, "old") for n in range(feeds)]
        if cursor is None:
            for id, url in zip(self.ids, urls, strict=True):
                pipeline.register(url, id)
            pipeline.poll()

    def serve(self, n: int, *guids: str) -> str:
        body = rss(*(f"{guid}-{n}" for guid in guids))
        return self.server.route(
            f"127.0.{1 + n // 200}.{2 + n % 200}", "/feed", Answer(body=body, etag=f'"{guids}"')
        )

    def definitions(self) -> dg.Definitions:
        return dg.Definitions.merge(
            self.pipeline.definitions(),
            dg.Definitions(
                assets=[follower, over_all],
                resources={"feed_reader": feed_reader_resource(self.pipeline.settings)},
            ),
        )

    def tick(self) -> set[str | None]:
        """The keys that one tick requests; None is the asset without partitions."""
        result = dg.evaluate_automation_conditions(
            self.definitions(),
            self.pipeline.instance,
            asset_selection=dg.AssetSelection.assets(follower, over_all),
            cursor=self.cursor,
        )
        self.cursor = result.cursor
        asked: set[str | None] = set(result.get_requested_partitions(follower.key))
        return asked | ({None} if result.get_num_requested(over_all.key) else set())

    def run(self, *keys: str | None) -> dict[str | None, list[str]]:
        """Run the assets downstream for these keys; the guids that each read."""
        resources = {"feed_reader": feed_reader_resource(self.pipeline.settings)}
        read: dict[str | None, list[str]] = {}
        for key in keys:
            asset = over_all if key is None else follower
            done = dg.materialize(
                [asset], instance=self.pipeline.instance, partition_key=key, resources=resources
            )
            (event,) = done.asset_materializations_for_node(asset.key.to_python_identifier())
            read[key] = list(event.metadata["guids"].value)  # type: ignore[arg-type]
        return read


def named(*numbers: int) -> set[str]:
    return {f"feed-{n:02}" for n in numbers}


def test_of_20_feeds_of_which_3_bring_news_and_5_a_heartbeat_exactly_3_run(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    following = Following(pipeline, server, 20)
    assert following.tick() == set(), "what came before the first evaluation is backfilled, not fired"
    assert following.tick() == set()
    for n in (3, 7, 19):
        following.serve(n, "new", "old")
    pipeline.clock.turn(days=8)
    pipeline.poll(*named(3, 7, 19, 0, 1, 2, 10, 12))
    events = {id: len(pipeline.events(id)) for id in following.ids}
    assert {id for id, count in events.items() if count == 2} == named(3, 7, 19, 0, 1, 2, 10, 12)
    assert following.tick() == named(3, 7, 19) | {None}
    assert following.tick() == set(), "each is asked for once"
    read = following.run(*sorted(named(3, 7, 19)), None)
    assert read["feed-07"] == ["old-7", "new-7"], "its first run reads all there is"
    assert len(read[None]) == 23
    assert following.tick() == set()

    following.serve(7, "newer", "new", "old")
    pipeline.clock.turn(hours=1)
    pipeline.poll("feed-07")
    assert following.tick() == named(7) | {None}
    assert following.run("feed-07", None) == {"feed-07": ["newer-7"], None: ["newer-7"]}


@pytest.mark.slow
def test_a_poll_killed_between_store_and_report_loses_no_key(
    tmp_path: Path, pipeline: DagsterPipeline, server: FeedServer, prepared: Prepared
) -> None:
    """Eight days later, so that all the others have a heartbeat in the same poll."""
    following = Following(pipeline, server, 12)
    following.tick()
    for n in (3, 7, 11):
        following.serve(n, "new", "old")
    poll = prepared.start(
        "rss_pipeline_tests.orchestration.runs.dying_poll",
        *(str(tmp_path), "report"),
        environment={"PATH": "", "POLL_MINUTES": str(8 * 24 * 60)},
        quiet=True,
    )
    assert poll.wait() == -signal.SIGKILL
    assert pipeline.rows("SELECT count(*) AS n FROM items WHERE guid LIKE 'new-%'") == [{"n": 3}]
    assert following.tick() == set(), "nobody has been told yet"
    pipeline.lapse_leases()
    pipeline.clock.turn(days=8, hours=1)
    pipeline.poll()
    assert all(len(pipeline.events(id)) == 2 for id in following.ids), "news, and heartbeats of the others"
    newest = [pipeline.events(id)[0] for id in sorted(named(3, 7, 11))]
    assert [(event["items_new"], event["items_seen"]) for event in newest] == [(1, 2)] * 3
    assert following.tick() == named(3, 7, 11) | {None}
    assert following.run("feed-11")["feed-11"] == ["old-11", "new-11"]
    assert following.tick() == set()


@pytest.fixture(scope="module")
def server() -> Iterator[FeedServer]:
    """One for all, for its port is in the home that `following` copies; each test sets the feeds anew."""
    with FeedServer() as server:
        yield server


@pytest.fixture(scope="module")
def followed_once(server: FeedServer, tmp_path_factory: pytest.TempPathFactory) -> Following:
    """The pipeline of `following`, closed."""
    home = tmp_path_factory.mktemp("following")
    with new_instance(home) as instance:
        following = Following(DagsterPipeline(home, instance), server, 2)
        following.tick()
        following.pipeline.close()
    return following


@pytest.fixture
def following(followed_once: Following, server: FeedServer, tmp_path: Path) -> Iterator[Following]:
    """Two feeds that were polled, and one tick after that."""
    with copied(followed_once.pipeline, tmp_path) as pipeline:
        yield Following(pipeline, server, 2, cursor=followed_once.cursor)


def news(following: Following, *guids: str) -> None:
    following.serve(0, *guids)
    following.pipeline.clock.turn(hours=1)
    following.pipeline.poll("feed-00")


def test_news_that_come_between_request_and_end_of_a_run_get_a_run_of_their_own(following: Following) -> None:
    """`since_last_handled`, of which `eager()` is made, takes the run that ends for one that saw them."""
    news(following, "b", "a")
    assert "feed-00" in following.tick()
    with under_way(following, "feed-00") as end:
        news(following, "c", "b", "a")
        assert "feed-00" not in following.tick(), "it is under way"
        assert "feed-00" not in following.tick()
        end()
    assert "feed-00" in following.tick()
    with under_way(following, "feed-00") as end:
        news(following, "d", "c", "b", "a")
        end()
    assert "feed-00" in following.tick(), "news, request and end were all seen in one tick"
    assert "feed-00" not in following.tick()


class under_way:  # noqa: N801
    """A run of `follower` that has been started and not ended; `end` records its materialization."""

    def __init__(self, following: Following, key: str) -> None:
        self._instance, self._key, self._ended = following.pipeline.instance, key, False
        self._job = following.definitions().resolve_implicit_global_asset_job_def()

    def __enter__(self) -> Callable[[], None]:
        self._run = self._instance.create_run_for_job(
            self._job.get_subset(asset_selection={follower.key}),
            tags={"dagster/partition": self._key},
            asset_selection=frozenset({follower.key}),
            status=dg.DagsterRunStatus.STARTED,
        )
        return self._end

    def _end(self) -> None:
        event = dg.AssetMaterialization(follower.key, partition=self._key, metadata={"guids": []})
        self._instance.report_runless_asset_event(event)
        self._instance.report_run_canceled(self._run)

    def __exit__(self, *_: object) -> None: ...


def test_only_news_request_runs(following: Following, server: FeedServer) -> None:
    """One pipeline for all of it, for setting one up takes seconds."""
    materializing_by_hand_asks_for_nothing(following)
    a_feed_that_answers_again_asks_for_nothing(following, server)
    a_new_feed_is_followed_from_its_first_items_on(following, server)
    news_are_followed_after_a_pause_although_a_heartbeat_came_since(following)


def materializing_by_hand_asks_for_nothing(following: Following) -> None:
    following.pipeline.clock.turn(hours=1)
    assert following.pipeline.materialize("feed-00").success
    assert len(following.pipeline.events("feed-00")) == 2
    assert following.tick() == set()


def a_feed_that_answers_again_asks_for_nothing(following: Following, server: FeedServer) -> None:
    host = following.pipeline.feeds[0]["url"].split("/")[2].split(":")[0]
    server.route(host, "/feed", Answer(status=500))
    following.pipeline.clock.turn(hours=1)
    following.pipeline.poll("feed-00")
    following.serve(0, "old")
    following.pipeline.clock.turn(hours=25)
    following.pipeline.poll("feed-00")
    assert len(following.pipeline.events("feed-00")) == 3
    assert following.tick() == set()


def a_new_feed_is_followed_from_its_first_items_on(following: Following, server: FeedServer) -> None:
    url = server.route("127.0.9.9", "/feed", Answer(body=rss("first")))
    following.pipeline.register(url, "newcomer")
    following.pipeline.clock.turn(minutes=5)
    following.pipeline.poll("newcomer")
    assert following.tick() == {"newcomer", None}
    assert following.run("newcomer") == {"newcomer": ["first"]}


def news_are_followed_after_a_pause_although_a_heartbeat_came_since(following: Following) -> None:
    """The state between ticks is the daemon's cursor, which outlives its processes; definitions are new."""
    news(following, "b", "a")
    following.pipeline.clock.turn(days=9)
    following.pipeline.poll()
    assert following.tick() == {"feed-00", None}


def test_a_cursor_stays_where_a_run_failed_and_what_a_replay_brings_back_is_behind_it(
    following: Following,
) -> None:
    pipeline = following.pipeline
    reader = FeedReader(pipeline.database, pipeline.objects)
    assert following.run("feed-00") == {"feed-00": ["old-0"]}
    news(following, "b")

    @dg.asset(name="follower", partitions_def=feeds_partitions, deps=[FEED_ITEMS])
    def failing(context: dg.AssetExecutionContext) -> None:
        assert last_cursor(context) == last_cursor(context, "feed-00")
        assert last_cursor(context, "feed-01") is None
        assert [item.guid for item in reader.items("feed-00", since=last_cursor(context))] == ["b-0"]
        raise RuntimeError("on purpose")

    failed = dg.materialize(
        [failing], instance=pipeline.instance, partition_key="feed-00", raise_on_error=False
    )
    assert "on purpose" in str(failed.events_for_node("follower")[-1].event_specific_data)
    assert following.run("feed-00") == {"feed-00": ["b-0"]}
    assert following.run("feed-00") == {"feed-00": []}


def test_a_run_over_several_partitions_names_the_one_it_requests(following: Following) -> None:
    said: list[object] = []

    @dg.asset(name="follower", partitions_def=feeds_partitions, deps=[FEED_ITEMS])
    def several(context: dg.AssetExecutionContext) -> None:
        with pytest.raises(ValueError, match="name one"):
            last_cursor(context)
        said.extend(last_cursor(context, key) for key in context.partition_keys)

    tags = {
        "dagster/asset_partition_range_start": "feed-00",
        "dagster/asset_partition_range_end": "feed-01",
    }
    assert dg.materialize([several], instance=following.pipeline.instance, tags=tags).success
    assert said == [None, None]


def test_the_reader_renders_and_opens_outside_of_dagster(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    body = rss("a").replace(b"<p>Text of a</p>", b'<p>Text</p><img src="http://x.example/1.png">')
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=body)), "news", title="News")
    pipeline.poll()
    pipeline.objects.put("images/news/a/0.png", b"\x89PNG", content_type="image/png")
    pipeline.database.query("UPDATE image_tasks SET status = 'success', r2_key = 'images/news/a/0.png'")
    with open_feed_reader(pipeline.settings) as reader:
        (plain,), (item,) = reader.items("news"), reader.items("news", html=True)
        assert [feed.title for feed in reader.feeds()] == ["News"]
        assert list(reader.items("news", since=reader.end())) == []
        assert list(reader.items("nobody")) == []
    url = pipeline.objects.url("images/news/a/0.png")
    assert (plain.html, item.html) == (None, f'<p>Text</p><img src="{url}">')
    assert replace(item, html=None) == plain
    assert item.feed_title == "News"


@pytest.mark.parametrize("sizes", [[600_000, 600_000], [999_998, 1], [500_000, 499_996, 2]])
def test_an_insert_and_the_record_of_its_numbers_are_never_parted(sizes: list[int]) -> None:
    """A crash between the two would let numbers be given again."""
    groups = [[Statement("INSERT", ["x" * size]), Statement("count", ["one"])] for size in sizes]
    batches = store._batches([*groups, [Statement("close", ["x" * 500])]])
    told = [[statement.sql for statement in batch] for batch in batches]
    assert [sql for batch in told for sql in batch] == ["INSERT", "count"] * len(sizes) + ["close"]
    assert all(batch[0] != "count" for batch in told)


def test_all_that_is_public_is_documented() -> None:
    for name in downstream.__all__:
        if name not in ("FEED_ITEMS", "FeedReaderResource", "feeds_partitions"):
            assert getattr(downstream, name).__doc__, name
    page = (ROOT / "docs" / "downstream.md").read_text("utf-8")
    assert [name for name in downstream.__all__ if f"`{name}" not in page] == []


@pytest.fixture
def at_home(following: Following, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of `following` as the current folder, and as what the environment names."""
    home = following.pipeline.settings.home
    monkeypatch.chdir(home)
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(home))
    return home


def test_the_code_of_the_page_runs(at_home: Path, following: Following) -> None:
    page = (ROOT / "docs" / "downstream.md").read_text("utf-8")
    known: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "docs/downstream.md", "exec"), known)
    assert (at_home / "items.parquet").exists()
    assert dg.materialize(
        [known["titles"], known["all_titles"]],
        instance=following.pipeline.instance,
        partition_key="feed-00",
        resources={"feed_reader": feed_reader_resource()},
    ).success


@pytest.fixture
def example(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example's module, with this pipeline's home."""
    monkeypatch.setenv("DIGEST_FOLDER", str(at_home / "digests"))
    spec = importlib.util.spec_from_file_location("digest_example", EXAMPLE / "digest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_writes_what_came_since_the_last_digest(
    example: ModuleType, following: Following
) -> None:
    pipeline = following.pipeline
    job = example.defs.resolve_implicit_global_asset_job_def()

    def run(key: str) -> list[str]:
        done = job.execute_in_process(
            instance=pipeline.instance, partition_key=key, asset_selection=[dg.AssetKey("feed_digest")]
        )
        (event,) = done.asset_materializations_for_node("feed_digest")
        path = event.metadata.get("file")
        return [] if path is None else Path(str(path.value)).read_text("utf-8").splitlines()

    assert run("feed-00")[0] == "## Title of old-0"
    assert run("feed-00") == []
    news(following, "*new*", "old")
    text = run("feed-00")
    assert [line for line in text if line.startswith("##")] == ["## Title of \\*new\\*-0"]
    assert len(list((pipeline.settings.home / "digests" / "feed-00").iterdir())) == 2

    pages = example.defs.resolve_implicit_global_asset_job_def()
    assert pages.execute_in_process(
        instance=pipeline.instance, asset_selection=[dg.AssetKey("front_page")]
    ).success
    page = (pipeline.settings.home / "digests" / "index.html").read_text("utf-8")
    assert page.count("<iframe sandbox") == 3
    assert page.startswith('<!doctype html><meta http-equiv="Content-Security-Policy"')
    assert "<p>Text of" not in page, "content stays inside its frame"


def test_the_example_imports_the_public_module_only_and_loads_both_locations() -> None:
    tree = ast.parse((EXAMPLE / "digest.py").read_text("utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name and name.startswith("rss_pipeline")} == {
        "rss_pipeline.downstream"
    }
    workspace = (EXAMPLE / "workspace.yaml").read_text("utf-8")
    assert "rss_pipeline.definitions" in workspace
    assert "digest.py" in workspace
