"""Pages in lists of feeds: out as pages, in as pages, and others taken by a person's word alone."""

import json
import os
import pty
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.registry.load import load_registry
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.features.pages.site import TITLES, entries, page
from rss_pipeline_tests.reader.accounts.conftest import (
    Time,
    database,
    empty_d1,
    migrated_d1,
    migrated_schema,
    shared_d1,
    sqlite,
    time,
)
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE

opml: Any = pytest.importorskip("rss_pipeline.features.opml.service")
__all__ = ["database", "empty_d1", "migrated_d1", "migrated_schema", "shared_d1", "sqlite", "time"]

JOBS = {"item": "li.job", "link": "a@href", "title": './/a[.!="$${A}"]'}


def test_what_is_exported_of_feeds_yaml_is_imported_as_it_was(pipeline: Pipeline) -> None:
    entry = {"url": "https://a.example/", "page": "auto"}
    pipeline.feeds = [
        {"id": "a", **entry, "title": "A", "folder": "News"},
        {"id": "b", "url": "https://b.example/", "page": JOBS},
        {"id": "c", "url": "https://c.example/", "watch": False, "title": "C"},
        {"id": "d", "url": "https://d.example/feed"},
    ]
    pipeline.write_registry()
    places = {"database": pipeline.database, "settings": pipeline.settings, "environ": {}}
    body, feeds, _ = opml.export_opml(now=utc_now(), **places)
    assert feeds == 4
    assert body.count(b"xmlUrl") == 1, "other readers would request a feed there"
    pipeline.settings.feeds_file.unlink()
    done = opml.import_opml(body, path=Path("x.opml"), **places)
    assert (done.added, done.pages) == (4, ())
    # Two lists: those with a source come first.
    specs = {spec.url: spec for spec in load_registry(pipeline.settings.feeds_file, environ={}).feeds}
    a, b, c = (specs[f"https://{name}.example/"] for name in "abc")
    assert (a.feature_keys, a.title, a.folder) == ({"page": "auto"}, "A", "News")
    title = './/a[.!="${A}"]'
    assert json.loads(b.feature_keys["page"]) == {"item": "li.job", "link": "a@href", "title": title}
    assert (c.watched, c.title) == (False, "C")


def test_a_user_s_pages_stay_pages_in_another_installation(
    database: Database, time: Time, tmp_path: Path
) -> None:
    settings = Settings.from_environ({"RSS_PIPELINE_HOME": str(tmp_path)}, cwd=tmp_path)
    ann = signed_in(database, "ann", clock=time)
    selectors = "{&quot;item&quot;:&quot;li&quot;}"
    body = (
        '<opml xmlns:rssp="https://rss-pipeline.invalid/opml"><body>'
        '<outline text="A" htmlUrl="https://a.example/" rssp:page="confirmed"/>'
        f'<outline text="B" htmlUrl="https://b.example/" rssp:page="{selectors}"/>'
        '<outline text="C" htmlUrl="https://c.example/" rssp:watch="false"/></body></opml>'
    ).encode()
    done = opml.import_list(ann, body, settings=settings)
    assert (done.added, done.known) == (1, 0)
    # Selectors run for everybody who reads the feed: feeds.yaml alone has them.
    assert [each.url for each in done.pages] == ["https://b.example/", "https://c.example/"]
    [row] = database.query("SELECT url, page FROM feeds").rows
    assert row == {"url": "https://a.example/", "page": "confirmed"}
    names = opml.subscribed(ann_names(ann))
    written = opml.export_subscriptions(names, now=time())
    assert b'htmlUrl="https://a.example/" rssp:page="confirmed"' in written
    again = opml.import_list(ann, written, settings=settings)
    assert (again.added, again.known, again.pages) == (0, 1, ())


def ann_names(caller: Any) -> Any:
    from rss_pipeline.storage.subscriptions.listing import feed_names, list_names

    [found] = caller.read(list_names(caller.user_id))
    return feed_names(found)


def answered_once(terminal: int, question: bytes, answer: bytes) -> bytes:
    """All that a program writes to a terminal, which gives this answer to this question."""
    shown = b""
    with suppress(OSError):  # Its end, on Linux.
        while select.select([terminal], [], [], PATIENCE)[0]:
            is_answered = question in shown
            shown += os.read(terminal, 65_536)
            if question in shown and not is_answered:
                os.write(terminal, answer)
    return shown


@pytest.mark.slow
def test_the_operator_is_shown_each_page_of_a_list_and_takes_it_at_the_terminal(
    tmp_path: Path, server: FeedServer
) -> None:
    url = server.route(
        "127.0.0.2", "/news/", Answer(body=page(entries()).encode(), headers={"Content-Type": "text/html"})
    )
    outline = f'<outline text="Town"><outline text="The town" htmlUrl="{url}"/></outline>'
    (tmp_path / "x.opml").write_text(f"<opml><body>{outline}</body></opml>", "utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RSS_")} | {
        "ALLOW_PORTS": str(server.port),
        "RSS_HOST_DELAY_SECONDS": "0",
        "RSS_PARSE_WORKERS": "1",
        "COLUMNS": "300",
    }
    command = [sys.executable, "-m", "rss_pipeline.cli", "import", "x.opml"]
    said = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    assert "1 outlines are web pages without a feed: `rss-pipeline import --pages x.opml`" in said.stdout
    assert server.asked("127.0.0.2") == []

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*command, "--pages", "--allow-private"],
        cwd=tmp_path,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as it:
        os.close(theirs)
        shown = answered_once(ours, b"Collect these entries?", b"y\n")
        assert it.wait(PATIENCE) == 0
    os.close(ours)
    assert f"2026-01-11  {TITLES[0]}".encode() in shown
    [spec] = load_registry(tmp_path / "feeds.yaml", environ={}).feeds
    assert (spec.url, spec.title, spec.folder) == (url, "The town", "Town")
    assert (spec.feature_keys, spec.allow_private) == ({"page": "auto"}, True)
