"""Copies that are refused: a target in use or with other data, a live run, a side that is not configured."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import CopyRefused, DatabaseUnavailable, SettingsError
from rss_pipeline.features.copy.service import MARKER, open_side
from rss_pipeline_tests.features.copy.houses import (
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
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

pytestmark = FORKS


def test_a_target_that_was_used_since_is_left_alone(small: House) -> None:
    small.copy("embedded", "cloudflare")
    with small.side("cloudflare") as side:
        side.database.query("UPDATE feeds SET last_etag = 'newer' WHERE id = 'f2'")
    before = small.contents("cloudflare")
    with pytest.raises(
        CopyRefused, match=r"was used since it was copied \(feeds has changed\).*empty database"
    ):
        small.copy("embedded", "cloudflare")
    assert same(small.contents("cloudflare"), before)


@pytest.mark.parametrize("held", ["row", "object"])
def test_a_target_with_other_data_is_left_alone(small: House, tmp_path: Path, held: str) -> None:
    other = small.emptied(tmp_path / "other")
    with other.side("embedded") as side:
        if held == "row":
            insert(side.database, "feeds", feed("mine"))
        else:
            side.objects.put("backups/mine/x.xml", b"", content_type="application/xml")
    before = other.contents("embedded")
    wanted = r"already holds (1 feeds|objects): .*RSS_PIPELINE_HOME"
    with pytest.raises(CopyRefused, match=wanted):
        other.copy("cloudflare", "embedded")
    assert same(other.contents("embedded"), before)


def test_an_unfinished_copy_of_another_home_is_left_alone(small: House, tmp_path: Path) -> None:
    small.killed("embedded", "cloudflare", "feeds", 1)
    other = small.emptied(tmp_path / "other")
    with other.side("embedded") as side:
        insert(side.database, "feeds", feed("mine"))
    with pytest.raises(CopyRefused, match=r"is a copy of embedded .*home.*, not of embedded .*other"):
        other.copy("embedded", "cloudflare")


@pytest.mark.parametrize("side_name", ["embedded", "cloudflare"])
def test_while_a_run_is_alive_on_either_side_nothing_is_copied(small: House, side_name: str) -> None:
    with small.side(side_name) as side:
        lease = {"token": "t", "run_id": "run-7", "feeds": "[]", "hosts": "[]"}
        later = instant(datetime.now(UTC) + timedelta(minutes=3))
        insert(side.database, "leases", {**lease, "expires_at": later})
    with pytest.raises(CopyRefused, match=f"run run-7 is at work in {side_name}"):
        small.copy("embedded", "cloudflare")
    with small.side("cloudflare") as side:
        assert (rows(side.database, "feeds"), objects(side.objects)) == ([], {})
        assert side.objects.get(MARKER) is None
    with small.side(side_name) as side:
        side.database.query("UPDATE leases SET expires_at = '2020-01-01T00:00:00Z'")
    small.copy("embedded", "cloudflare")


def test_what_changes_in_the_target_meanwhile_is_reported_at_the_end(small: House) -> None:
    class Meddling(Quiet):
        def begin(self, step: str, total: int) -> None:
            if step == "objects":
                with small.side("cloudflare") as side:
                    insert(side.database, "items", item("theirs", "f0"))

    with pytest.raises(CopyRefused, match="items differs after the copy: 3 rows in embedded, 4 in cloud"):
        small.copy("embedded", "cloudflare", progress=Meddling())


def test_a_side_that_is_not_configured_is_a_sentence(
    small: House, tmp_path: Path, cloudflare: Cloudflare
) -> None:
    def refused(side: str, *, home: Path = small.home, stores: Mapping[str, str] | None = None) -> str:
        environ = {**small.environ, "RSS_PIPELINE_HOME": str(home), **(stores or {})}
        with (
            pytest.raises(SettingsError) as caught,
            open_side(environ, side, cwd=tmp_path, as_source=True),
        ):
            pass
        return str(caught.value)

    without = refused("cloudflare", stores={"R2_BUCKET": ""})
    assert without.startswith("R2_BUCKET: not set; a copy from or to cloudflare needs all 6: D1_PROXY_URL, ")
    assert refused("postgres+folder") == "DATABASE_URL: not set; a copy from or to postgres+folder needs it"
    nowhere = tmp_path / "nowhere"
    wanted = f"there is no {nowhere}/rss.sqlite to copy from; name the right folder"
    assert wanted in refused("embedded", home=nowhere)
    wanted = f"there is no {nowhere}/objects to copy from; name the right folder"
    url = {"DATABASE_URL": "postgresql://127.0.0.1:1/rss"}
    assert wanted in refused("postgres+folder", home=nowhere, stores=url)
    assert not nowhere.exists()
    another = {"S3_BUCKET": "b", "S3_ACCESS_KEY_ID": "a", "S3_SECRET_ACCESS_KEY": "s"}
    assert "write postgres+r2 or postgres+s3" in refused("postgres", stores=url | another)
    cloudflare.wipe()
    with (
        pytest.raises(DatabaseUnavailable, match="rss-pipeline migrate"),
        small.side("cloudflare"),
    ):
        pass
