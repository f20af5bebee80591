"""New feeds written into feeds.yaml: all or nothing, and nothing else changes."""

import os
import stat
import threading
from pathlib import Path

import pytest

from rss_pipeline.collector.registry.feed_url import feed_id
from rss_pipeline.collector.registry.new_entries import NewEntry
from rss_pipeline.errors import RegistryError
from rss_pipeline.pipeline.registry.write_entries import write_feeds
from rss_pipeline.storage.feeds.registered import registry_rows
from rss_pipeline_tests.support.pipeline import Pipeline

NEW = NewEntry(url="https://new.example/feed")
WRITTEN = f"- url: https://new.example/feed\n  id: {feed_id('https://new.example/feed', 'new.example')}\n"
"""Its id is written, too."""


def write(path: Path, *entries: NewEntry, environ: dict[str, str] | None = None) -> list[str]:
    return [spec.url for spec in write_feeds(path, entries or [NEW], environ=environ or {}, rows=[])]


def test_the_file_keeps_its_permissions_and_a_link_to_it_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real" / "mine.yaml", tmp_path / "feeds.yaml"
    real.parent.mkdir()
    real.write_text("- https://a.example/  # mine\n", "utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    assert write(link) == ["https://new.example/feed"]
    assert link.is_symlink()
    assert real.read_text("utf-8") == f"- https://a.example/  # mine\n{WRITTEN}"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert os.listdir(real.parent) == ["mine.yaml"], "no temporary file is left"


def test_what_is_around_the_list_and_inside_an_entry_stays_when_a_feed_is_added(tmp_path: Path) -> None:
    path = tmp_path / "feeds.yaml"
    head = "feeds:\n  - url: https://a.example/\n    id: a\n    headers:\n      Accept: x  # mine\n"
    tail = "defaults:\n  keep: 90d\n"
    path.write_text(head + tail, "utf-8")
    assert write(path) == ["https://new.example/feed"]
    assert path.read_text("utf-8") == f"{head}  {WRITTEN.replace('  id', '    id')}{tail}"


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    write(tmp_path / "feeds.yaml")
    assert "  - url: https://new.example/feed\n" in (tmp_path / "feeds.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (b"", b"# The feeds to collect; docs/feeds-yaml.md explains all keys.\nfeeds:\n  @"),
        (b"# - https://old.example/\r\n", b"# - https://old.example/\r\nfeeds:\r\n  @"),
        (b"feeds:\n  # - https://old.example/\n", b"feeds:\n  @  # - https://old.example/\n"),
        (b"\xef\xbb\xbf- https://a.example/\r\n", b"\xef\xbb\xbf- https://a.example/\r\n@"),
    ],
)
def test_a_file_as_an_editor_left_it_keeps_its_bytes(tmp_path: Path, body: bytes, after: bytes) -> None:
    path = tmp_path / "feeds.yaml"
    path.write_bytes(body)
    assert write(path) == ["https://new.example/feed"]
    lines = WRITTEN.replace("  id", "    id" if b"feeds" in after else "  id").encode()
    written = lines.replace(b"\n", b"\r\n") if b"\r\n" in body else lines
    assert path.read_bytes() == after.replace(b"@", written)


@pytest.mark.parametrize(
    ("text", "entry", "sentence"),
    [
        (
            "- url: https://a.example/\n  intervall: 3\n",
            NEW,
            "line 2: feeds[0].intervall: unknown key; did you",
        ),
        (
            "- https://NEW.example:443/feed\n",
            NEW,
            "line 2: feeds[1].url: is the same URL as feeds[0] in line 1",
        ),
        ("- https://a.example/\n", NewEntry(url="ftp://b.example/"), "not an http or https URL"),
        ("x: &f [https://a.example/]\nfeeds: *f\n", NEW, "unknown key"),
    ],
)
def test_what_would_be_a_mistake_is_refused_and_the_file_stays(
    tmp_path: Path, text: str, entry: NewEntry, sentence: str
) -> None:
    path = tmp_path / "feeds.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(RegistryError, match=r"(?s).*") as refused:
        write(path, NewEntry(url="https://ok.example/"), entry) if entry is not NEW else write(path, entry)
    assert sentence in str(refused.value)
    assert path.read_text("utf-8") == text


def test_a_feed_that_was_collected_under_another_id_goes_on_with_it(pipeline: Pipeline) -> None:
    pipeline.register("https://new.example/feed", "mine")
    pipeline.sync()
    pipeline.feeds = []
    pipeline.write_registry()
    pipeline.sync()
    path, rows = pipeline.settings.feeds_file, registry_rows(pipeline.database)
    (spec,) = write_feeds(path, [NEW], environ={}, rows=rows)
    assert spec.id == "mine"
    pipeline.sync()
    assert pipeline.feed("mine")["registered"]
    text = path.read_text("utf-8")
    path.write_text(text.replace("new.example", "other.example"), "utf-8")
    assert pipeline.sync().changes.unregistered == ()
    assert pipeline.feed("mine")["url"] == "https://other.example/feed"


def test_an_address_that_a_feed_had_before_is_another_feed(pipeline: Pipeline) -> None:
    """By `add` and by `import`, which write through this, and by hand. The id of the first one is made from
    its first address."""
    path = pipeline.settings.feeds_file
    path.write_text("feeds: []\n", "utf-8")
    (first,) = write_feeds(path, [NEW], environ={}, rows=[])
    pipeline.sync()
    moved = path.read_text("utf-8").replace("new.example", "other.example")
    path.write_text(moved, "utf-8")
    # Also where no sync has seen the change.
    for rows in ([], registry_rows(pipeline.database)):
        path.write_text(moved, "utf-8")
        (second,) = write_feeds(path, [NEW], environ={}, rows=rows)
        assert (second.id, second.url) == (f"{first.id}-2", first.url)
    pipeline.sync()
    urls = {row["id"]: row["url"] for row in registry_rows(pipeline.database)}
    assert urls == {first.id: "https://other.example/feed", second.id: first.url}
    path.write_text(moved, "utf-8")
    assert "2 feeds" not in str(pipeline.sync())
    rows = registry_rows(pipeline.database)
    assert write_feeds(path, [NEW], environ={}, rows=rows)[0].id == second.id, "it is known by its address"


def test_an_entry_without_id_takes_over_no_feed_that_was_at_its_address(pipeline: Pipeline) -> None:
    path = pipeline.settings.feeds_file
    path.write_text("feeds: [https://new.example/feed]\n", "utf-8")
    pipeline.sync()
    [known] = registry_rows(pipeline.database)
    pipeline.database.query("UPDATE feeds SET url = 'https://other.example/feed'")
    with pytest.raises(RegistryError, match=f"other.example/feed now: write `id: {known['id']}`"):
        pipeline.sync()
    assert pipeline.feed(known["id"])["url"] == "https://other.example/feed"
    path.write_text(f"feeds: [{{url: https://new.example/feed, id: {known['id']}}}]\n", "utf-8")
    pipeline.sync()
    assert pipeline.feed(known["id"])["url"] == "https://new.example/feed"


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "feeds.yaml"
    path.mkdir()
    with pytest.raises(RegistryError, match="a folder"):
        write(path)
    with pytest.raises(RegistryError, match="cannot be opened"):
        write(tmp_path / "no" / "feeds.yaml")


def test_commands_at_the_same_time_lose_no_feed(tmp_path: Path) -> None:
    path = tmp_path / "feeds.yaml"
    path.write_text("feeds: []\n", "utf-8")
    writers = [
        threading.Thread(target=write, args=(path, NewEntry(url=f"https://e{n}.example/"))) for n in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_text("utf-8").count("https://e") == 8
