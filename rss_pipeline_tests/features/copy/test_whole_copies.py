"""Copies between a home on this disk and a Cloudflare or a Postgres: there, back, killed, and again."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rss_pipeline.cli.main import main
from rss_pipeline.features.copy.service import MARKER, copy
from rss_pipeline.features.copy.sql import fingerprint
from rss_pipeline.storage.database import MAX_VALUE_BYTES, Statement
from rss_pipeline_tests.features.copy.houses import (
    AT,
    CJK,
    FORKS,
    House,
    Quiet,
    feed,
    insert,
    item,
    objects,
    rows,
    same,
)

pytestmark = FORKS


def test_there_and_back_the_rows_and_objects_are_the_same(house: House, tmp_path: Path) -> None:
    before = house.contents("embedded")
    progress = Quiet()
    there = house.copy("embedded", house.away, progress=progress)
    assert same(house.contents(house.away), before)
    is_shared = there.objects is None
    assert (there.rows_written, there.objects_written) == (2760, 0 if is_shared else 43)
    assert is_shared == (house.away == "postgres+folder")
    assert {name: made.count for name, made in there.tables.items()} == {
        "feeds": 4, "items": 702, "image_tasks": 30, "item_versions": 600, "expired_items": 1200,
        "item_aliases": 1, "articles": 1, "article_readers": 1, "story_members": 1, "story_choices": 1,
        "story_acts": 1, "story_views": 1,
        "streams": 2, "item_streams": 200,
        "hosts": 2, "feed_holds": 1, "image_holds": 1, "sequences": 1, "installation": 1, "host_gaps": 1,
        "new_addresses": 1, "image_urls": 1, "image_referers": 1,
        "users": 1, "app_passwords": 1, "subscriptions": 1, "folders": 1, "item_states": 1,
    }  # fmt: skip
    assert progress.done == progress.totals
    back = house.emptied(tmp_path / "another")
    again = back.copy(house.away, "embedded")
    assert same(back.contents("embedded"), before)
    assert (again.tables, again.objects) == (there.tables, there.objects)


def test_topics_stay_behind_so_that_the_target_publishes_all_of_them(small: House) -> None:
    """Published topics are in a bucket of the source, and the target may have another one."""
    one = {"id": "t", "definition": "{}", "stale": 0, "published_at": AT}
    with small.side("embedded") as source:
        insert(source.database, "topics", one)
        key = {"key": "topics/t.json", "hash": "x", "bytes": 1, "published_at": AT}
        insert(source.database, "published_files", key)
    small.copy("embedded", "cloudflare")
    with small.side("cloudflare") as target:
        for table in ("topics", "topic_members", "published_files"):
            assert target.database.query(f"SELECT * FROM {table}").rows == []


def test_html_of_items_stays_behind_and_what_the_target_kept_of_them_goes(small: House) -> None:
    """It is made of rows that the copy may write anew."""
    row = "INSERT INTO item_html (arrived, rules, size, html) VALUES (1, 'rules', 1, x'00')"
    with small.side("embedded") as source:
        source.database.query(row)
    small.copy("embedded", "cloudflare")
    with small.side("cloudflare") as target:
        assert target.database.query("SELECT * FROM item_html").rows == []
        target.database.query(row)
    small.copy("embedded", "cloudflare")
    with small.side("cloudflare") as target:
        assert target.database.query("SELECT * FROM item_html").rows == []


@pytest.mark.parametrize(
    "empty", [pytest.param("cloudflare", marks=pytest.mark.soak), "postgres"], indirect=True
)
def test_killed_half_way_and_started_again_both_ways_it_ends_the_same(house: House, tmp_path: Path) -> None:
    before = house.contents("embedded")
    house.killed("embedded", house.away, "items", 2)
    with house.side(house.away) as side:
        assert 0 < side.database.query("SELECT count(*) AS n FROM items").rows[0]["n"] < 702
    if house.away == "cloudflare":
        house.killed("embedded", house.away, "objects", 7)
        with house.side(house.away) as side:
            assert 0 < len(objects(side.objects)) < 43
        there = house.copy("embedded", house.away)
        assert there.rows_written == 0, "what is there already is not written again"
        assert 0 < there.objects_written < 43
    else:
        assert 0 < house.copy("embedded", house.away).rows_written < 2749
    assert same(house.contents(house.away), before)
    back = house.emptied(tmp_path / "another")
    back.killed(house.away, "embedded", "items", 1)
    back.killed(house.away, "embedded", "expired_items", 1)
    back.killed(house.away, "embedded", "check", 1)
    back.copy(house.away, "embedded")
    assert same(back.contents("embedded"), before)


def test_copied_again_only_what_is_new_goes_over(small: House) -> None:
    small.copy("embedded", "cloudflare")
    nothing = small.copy("embedded", "cloudflare")
    assert (nothing.rows_written, nothing.objects_written) == (0, 0)
    with small.side("embedded") as side:
        side.database.query("UPDATE feeds SET title = NULL WHERE id = 'f0'")
        insert(side.database, "items", item("new", "f0", title=CJK, arrived=7))
        side.objects.put("backups/f0/2026-03-03T08:00:00Z.xml", b"<rss/>", content_type="application/xml")
        key = "backups/f0/2026-03-02T08:00:00Z.xml"
        side.objects.put(key, b"<rss>x</rss>", content_type="application/xml")
    more = small.copy("embedded", "cloudflare")
    # The feed, the item, and the number of the next change.
    assert (more.rows_written, more.objects_written) == (3, 2)
    assert same(small.contents("cloudflare"), small.contents("embedded"))


def test_the_command_copies_and_says_what_is_where(small: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(small.home)
    with small.side("embedded") as side:
        tombstones = [{"feed_id": "f0", "guid": f"{n}", "expired_at": AT} for n in range(1200)]
        insert(side.database, "expired_items", *tombstones)
        side.objects.put("images/f1/aaaa/1.png", bytes(2_000_000), content_type="image/png")
    command = ["copy", "--from", "embedded", "--to", "cloudflare"]
    said = CliRunner().invoke(main, command, env=small.environ)
    assert said.exit_code == 0, said.output
    assert "1,200" in said.stdout
    assert (
        "Both sides hold the same rows and objects; written now: 1,207 rows and 3 of 3 objects"
        " (2.0 MB in all)." in said.stdout
    )
    told = json.loads(CliRunner().invoke(main, [*command, "--json"], env=small.environ).stdout)
    assert (told["items"]["count"], told["rows_written"]) == (3, 0)
    same = CliRunner().invoke(main, ["copy", "--from", "embedded", "--to", "embedded"], env=small.environ)
    assert (same.exit_code, "there is nothing to copy" in same.stderr) == (1, True)
    without = {**small.environ, "D1_PROXY_URL": "", "D1_PROXY_TOKEN": ""}
    refused = CliRunner().invoke(main, command, env=without)
    assert refused.exit_code == 1
    assert "D1_PROXY_URL, D1_PROXY_TOKEN: not set; a copy from or to cloudflare needs all 6" in refused.stderr


def test_texts_that_d1_has_no_room_for_are_cut_on_the_way_there_and_counted(
    small: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.home)
    text = "replace(hex(zeroblob(400000)), '00', '<p>word</p>')"
    with small.side("embedded") as side:
        [first, second, *_] = [row["id"] for row in side.database.query("SELECT id FROM items").rows]
        large = f"UPDATE items SET content_html = {text}, title = 'kept' WHERE id = ?"
        side.database.query(large, [first])
        columns = "pub_date, categories, enclosures, guid_source, pub_date_source"
        side.database.query(
            f"""INSERT INTO item_versions (item_id, replaced_at, content_html, {columns})
            SELECT id, '{AT}', {text}, {columns} FROM items WHERE id = ?""",
            [second],
        )
    command = ["copy", "--from", "embedded", "--to", "cloudflare"]
    said = CliRunner().invoke(main, command, env=small.environ)
    assert said.exit_code == 0, said.output
    assert "2 items are cut there: they are larger than a row of D1." in said.stdout
    told = json.loads(CliRunner().invoke(main, [*command, "--json"], env=small.environ).stdout)
    assert (told["items_cut"], told["rows_written"]) == (2, 0)
    with small.side("embedded") as ours, small.side("cloudflare") as theirs:
        for table, key in (("items", "id"), ("item_versions", "item_id")):
            both = (side.database.query(f"SELECT * FROM {table}").rows for side in (ours, theirs))
            whole, cut = ({row[key]: row for row in found} for found in both)
            changed = {id for id in whole if whole[id] != cut[id]}
            assert changed == {first if table == "items" else second}
            [id] = changed
            assert whole[id]["content_html"].startswith(cut[id]["content_html"])
            assert 1_990_000 < len(cut[id]["content_html"]) < 2_000_000
            assert cut[id]["content_omitted"].startswith("4,40")
            assert whole[id] == {**cut[id], **{n: whole[id][n] for n in ("content_html", "content_omitted")}}
    back = small.emptied(tmp_path / "another")
    again = back.copy("cloudflare", "embedded")
    assert again.items_cut == 0
    assert same(back.contents("embedded"), small.contents("cloudflare"))


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
ROWS = st.dictionaries(
    TEXT, st.tuples(st.none() | TEXT, st.integers(-(2**53), 2**53), st.none() | TEXT), max_size=12
)


@hypothesis_settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(some=ROWS)
def test_any_row_is_the_same_on_the_other_side(empty: House, some: dict[str, Any]) -> None:
    with empty.side("embedded") as ours, empty.side(empty.away) as theirs:
        for side in (ours, theirs):
            side.database.batch([Statement("DELETE FROM hosts"), Statement("DELETE FROM feeds")])
            side.objects.delete_many([MARKER, "copies/into-postgres.json"])
        if some:
            made = [
                feed(key, url=key, title=title, consecutive_failures=number, rhythm=text)
                for key, (title, number, text) in some.items()
            ]
            insert(ours.database, "feeds", *made)
        copied = copy(ours, theirs, progress=Quiet())
        assert copied.tables["feeds"].count == len(some)
        assert rows(theirs.database, "feeds") == rows(ours.database, "feeds")
        assert fingerprint(theirs.database, "feeds", item_bytes=MAX_VALUE_BYTES) == copied.tables["feeds"]
