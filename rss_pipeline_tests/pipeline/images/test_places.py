"""The places of images: public ones in a bucket of their own, of private feeds where no one sees them."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from rss_pipeline.errors import DatabaseFull
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.images.places import Moved, move, move_private, to_move
from rss_pipeline.storage.objects import public_url
from rss_pipeline_tests.support.checked import checked
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.s3_server import S3Server, rclone, s3_server

if TYPE_CHECKING:
    from rss_pipeline.features.health.model import Finding

PUBLIC = "public"


def installation(home: Path, server: FeedServer, **settings: Any) -> Pipeline:
    """One that may visit feeds of the test's server without a setting that makes them private."""
    port = urlsplit(server.url("127.0.0.1", "/")).port or 80
    return Pipeline(
        home,
        allow_networks=(ip_network("127.0.0.0/8"),),
        allow_ports=frozenset({port}),
        image_host_delay_seconds=0.0,
        **settings,
    )


def collect(pipeline: Pipeline, server: FeedServer, *guids: str) -> None:
    """A visit of two feeds with an image in each item; one of them has a password."""
    image = server.url("127.0.0.41", "/i")
    for guid in guids:
        server.route("127.0.0.41", f"/i/{guid}.png", Answer(body=png()))
    for place, id in enumerate(("open", "secret"), start=42):
        url = server.route(f"127.0.0.{place}", "/feed", Answer(body=rss(*guids, image=image)))
        if not any(feed["id"] == id for feed in pipeline.feeds):
            pipeline.register(
                url, id, allow_private=False, **({"headers": {"X": "y"}} if id == "secret" else {})
            )
    pipeline.poll(all_feeds=True)
    pipeline.download()
    pipeline.clock.turn(hours=3)


def public(pipeline: Pipeline) -> "list[Finding]":
    return checked(
        {"public_objects"},
        pipeline.database,
        now=pipeline.clock(),
        settings=pipeline.settings,
        objects=pipeline.objects,
    )


def in_bucket(s3: S3Server, bucket: str) -> set[str]:
    """The first two parts of the keys in it."""
    with closing(s3.store().client) as client:
        listed = client.list_objects_v2(Bucket=bucket).get("Contents", ())
    return {"/".join(found["Key"].split("/")[:2]) for found in listed}


@pytest.mark.slow
def test_public_images_move_into_a_bucket_of_their_own_and_private_ones_never_do(
    tmp_path: Path, server: FeedServer
) -> None:
    program = rclone()
    if program is None:
        pytest.skip("rclone is not installed: there is no store with the S3 API besides R2's")
    with s3_server(program, tmp_path) as s3:
        before = installation(tmp_path, server, objects_server=s3.settings())
        collect(before, server, "a")
        before.objects.put("topics/t.json", b"{}", content_type="application/feed+json")
        before.objects.put("images/unknown/x/0.png", b"x", content_type="image/png")
        old = {row["feed_id"]: row["r2_key"] for row in keys(before)}
        assert old["open"].startswith("images/open/")
        assert old["secret"].startswith("images/secret/")
        feeds = before.feeds
        before.close()
        with closing(s3.store().client) as client:
            client.create_bucket(Bucket=PUBLIC)
        address = server.url("127.0.0.50", "").rstrip("/")
        after = installation(
            tmp_path, server, objects_server=replace(s3.settings(), public_bucket=PUBLIC, public_url=address)
        )
        after.feeds, after.clock.now = feeds, before.clock()
        assert after.objects.get(old["open"]) is not None, "until it is moved it is where it was"
        assert sum(info.key == old["open"] for info in after.objects.list("")) == 1
        assert to_move(after.database, after.objects) == Moved(private=1, public=2)
        [wrong] = public(after)
        assert "rss-pipeline move-images" in wrong.fix

        assert move(after.database, after.objects) == Moved(private=1, public=2)
        assert move(after.database, after.objects) == Moved()
        collect(after, server, "a", "b")
        assert in_bucket(s3, PUBLIC) == {"images/open", "topics/t.json"}
        assert in_bucket(s3, "feeds") == {
            *("backups/open", "backups/secret", "private-images/secret"),
            "images/unknown",
        }
        stored = {row["r2_key"] for row in keys(after)}
        assert old["open"] in stored, "addresses in published topics stay what they were"
        assert public_url(after.objects, old["open"]) == f"{address}/{old['open']}"
        assert len(stored) == 4
        for key in stored:
            assert after.objects.get(key) is not None
            assert (public_url(after.objects, key) is None) == ("secret" in key)

        for info in after.objects.list(""):
            if info.key.startswith(("images/open/", "topics/")):
                found = after.objects.get(info.key) or (b"", info)
                server.route("127.0.0.50", f"/{quote(info.key)}", Answer(body=found[0]))
        [fine] = public(after)
        assert (fine.state, fine.found) == ("ok", "without a key, only public ones can be read")
        assert after.objects.delete_many(stored) == {}
        assert in_bucket(s3, PUBLIC) == {"topics/t.json"}
        after.close()


def test_what_strangers_can_read_is_tried_and_a_feed_that_becomes_private_takes_its_images_away(
    tmp_path: Path, server: FeedServer
) -> None:
    """A folder that a web server shows."""
    address = server.url("127.0.0.50", "").rstrip("/")
    pipeline = installation(tmp_path, server, objects_public_url=address)
    collect(pipeline, server, "a")
    assert sorted(info.key.split("/")[0] for info in pipeline.objects.list("")) == [
        *("backups", "backups", "images", "private-images")
    ]

    def shown(*prefixes: str) -> None:
        for info in pipeline.objects.list(""):
            body, _ = pipeline.objects.get(info.key) or (b"", info)
            answer = Answer(body=body) if info.key.startswith(prefixes) else Answer(body=b"Welcome!")
            server.route("127.0.0.50", f"/{quote(info.key)}", answer)

    def strangers() -> list[tuple[str, str]]:
        return [(each.state, each.found) for each in public(pipeline)]

    shown("images/")
    assert strangers() == [("ok", "without a key, only public ones can be read")]
    shown("images/", "backups/", "private-images/")
    [(state, found)] = strangers()
    assert (state, "everybody can read backups of documents, images of private feeds" in found) == (
        "failure",
        True,
    )
    assert f"{address}/backups/" in found
    shown("nothing")
    [(state, found)] = strangers()
    assert (state, found.partition(" at ")[0]) == ("warning", "images cannot be read")

    pipeline.database.query("UPDATE feeds SET needs_access = 1")
    assert strangers()[-1][0] == "failure"
    assert move_private(pipeline.database, pipeline.objects) == 1
    assert list(pipeline.objects.list("images/")) == []
    assert {row["r2_key"].split("/")[0] for row in keys(pipeline)} == {"private-images"}
    assert all(pipeline.objects.get(row["r2_key"]) for row in keys(pipeline))
    pipeline.close()


@pytest.mark.parametrize("entry", [{"headers": {"X": "y"}}, {"allow_private": True}])
def test_a_feed_that_becomes_private_has_no_image_in_the_public_place_after_the_next_sync(
    tmp_path: Path, server: FeedServer, entry: dict[str, Any]
) -> None:
    pipeline = installation(tmp_path, server, objects_public_url=server.url("127.0.0.50", "").rstrip("/"))
    collect(pipeline, server, "a", "b")
    assert len(list(pipeline.objects.list("images/"))) == 2
    next(feed for feed in pipeline.feeds if feed["id"] == "open").update(entry)
    pipeline.write_registry()
    pipeline.sync()
    assert list(pipeline.objects.list("images/")) == []
    assert {row["r2_key"].split("/")[0] for row in keys(pipeline)} == {"private-images"}
    assert all(pipeline.objects.get(row["r2_key"]) for row in keys(pipeline))
    pipeline.close()


class FullForKeys:
    """A database without room for the longer keys of moved images."""

    def __init__(self, real: Database) -> None:
        self.query, self.close, self._real = real.query, real.close, real

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if any(statement.name == "record moved images" for statement in statements):
            raise DatabaseFull("there is no room for a row")
        return self._real.batch(statements)


def test_in_a_full_database_images_that_are_to_move_stay_readable_and_move_once_there_is_room(
    tmp_path: Path, server: FeedServer
) -> None:
    pipeline = installation(tmp_path, server, objects_public_url=server.url("127.0.0.50", "").rstrip("/"))
    collect(pipeline, server, "a", "b")
    pipeline.database.query("UPDATE feeds SET needs_access = 1")
    before = keys(pipeline)
    full = FullForKeys(pipeline.database)
    objects = {info.key for info in pipeline.objects.list("")}
    with pytest.raises(DatabaseFull):
        move(full, pipeline.objects)
    assert (keys(pipeline), {info.key for info in pipeline.objects.list("")}) == (before, objects)
    assert move(pipeline.database, pipeline.objects) == Moved(private=2)
    assert {row["r2_key"].split("/")[0] for row in keys(pipeline)} == {"private-images"}
    # As after a move that was killed before it removed what it had copied.
    for row in keys(pipeline):
        pipeline.objects.copy(row["r2_key"], row["r2_key"].removeprefix("private-"))
    with pytest.raises(DatabaseFull):
        move(full, pipeline.objects)
    assert all(pipeline.objects.get(row["r2_key"]) for row in keys(pipeline))
    pipeline.close()


def keys(pipeline: Pipeline) -> list[dict[str, str]]:
    return pipeline.rows(
        "SELECT feed_id, r2_key FROM image_tasks JOIN items ON items.id = item_id WHERE r2_key IS NOT NULL"
    )
