"""Downloads of images: every task ends in the right state, with the right object, items untouched."""

import hashlib
import signal
from typing import Any

import pytest

from rss_pipeline.errors import NetworkUnavailable, ObjectStoreUnavailable
from rss_pipeline.pipeline.session import fetch_policy
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline_tests.pipeline.images.images_of_feeds import collect, image_rows
from rss_pipeline_tests.support.pictures import AVIF, GIF, JPEG, SVG, WEBP, png
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

GUID_HASH = hashlib.md5(b"item", usedforsecurity=False).hexdigest()[:8]


def archived(home: Pipeline) -> list[str]:
    return [info.key for info in home.objects.list("images/")]


def test_images_of_every_kind_are_archived_by_what_they_are_and_not_by_what_is_said_of_them(
    home: Pipeline, server: FeedServer
) -> None:
    bodies = {"png": png(), "jpg": JPEG, "gif": GIF, "webp": WEBP, "avif": AVIF, "svg": SVG}
    said: dict[str, dict[str, str]] = {
        "png": {"Content-Type": "text/plain"},
        "jpg": {},
        "webp": {"Content-Type": "image/jpeg"},
    }
    urls = [
        server.route(f"127.0.1.{number}", f"/{kind}", Answer(body=body, headers=said.get(kind, {})))
        for number, (kind, body) in enumerate(bodies.items(), start=1)
    ]
    collect(home, server, *urls)
    before = home.rows("SELECT * FROM items")
    done = home.download()
    types = {"jpg": "image/jpeg", "svg": "image/svg+xml"}
    for position, (kind, row) in enumerate(image_rows(home).items()):
        assert (row["status"], row["attempts"], row["last_error"]) == ("success", 0, None)
        assert row["r2_key"] == f"images/feed/{GUID_HASH}/{position}.{kind}"
        found = home.objects.get(row["r2_key"])
        assert found is not None
        assert found[0] == bodies[kind]
        assert row["bytes"] == len(bodies[kind])
        assert found[1].content_type == types.get(kind, f"image/{kind}")
        size = (2, 2) if kind == "avif" else (1, 1)
        assert (row["width"], row["height"]) == size
        assert found[1].metadata == {"task-id": row["id"], "pixels": f"{size[0]}x{size[1]}"}
    assert (done.archived, done.bytes) == (6, sum(map(len, bodies.values())))
    assert home.rows("SELECT * FROM items") == before
    assert home.rows("SELECT * FROM leases") == []


@pytest.mark.slow
def test_what_fails_says_why_and_fails_for_good_at_the_third_attempt(
    home: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = "127.0.1.6"
    answers = {
        "page": Answer(body=b"<!doctype html><title>Log in</title>" + b" " * 5000),
        "gone": Answer(status=404),
        "slow": Answer(body=png(), drip=(1, 0.2)),
        "huge": Answer(body=b"\x89PNG\r\n\x1a\n" + b"\0" * 40_000_000),
        "cut": Answer(body=png() + b"x" * 5000, cut_after=1000),
        "loop": Answer(status=302, headers={"Location": "/loop"}),
        "nothing": Answer(body=b""),
    }
    urls = [
        server.route(f"127.0.1.{number}", f"/{name}", answer)
        for number, (name, answer) in enumerate(answers.items(), start=1)
    ]
    fine = server.route("127.0.1.100", "/fine", Answer(body=png()))
    collect(home, server, *urls, fine, f"http://127.0.1.101:{server.port}/refused")
    with monkeypatch.context() as impatient:
        impatient.setattr(fetch_policy, "IMAGE_SECONDS", 2.0)
        done = home.download()
    assert loop in image_rows(home)["loop"]["last_error"]
    words = {
        "page": "web page",
        "gone": "404",
        "slow": "within 2 s",
        "huge": "40,000,008 bytes",
        "cut": "before",
        "loop": "loop",
        "nothing": "with nothing instead",
        "refused": "refused",
    }
    for name, said in words.items():
        row = image_rows(home)[name]
        assert (row["status"], row["attempts"], row["r2_key"]) == ("pending", 1, None), name
        assert said in row["last_error"], name
    assert image_rows(home)["fine"]["status"] == "success"
    assert (done.failed_attempts, done.failed, done.archived) == (8, 0, 1)

    server.route("127.0.1.3", "/slow", Answer(status=404))  # One wait is enough.
    home.download()
    assert {row["attempts"] for row in image_rows(home).values()} == {0, 1}, "not at once"
    home.clock.turn(minutes=40)
    home.download()
    assert image_rows(home)["gone"]["attempts"] == 2
    home.clock.turn(days=1)
    home.download()
    assert image_rows(home)["gone"]["attempts"] == 2
    home.clock.turn(days=1)
    done = home.download()
    assert {row["status"] for name, row in image_rows(home).items() if name in words} == {"failed"}
    assert done.failed == 8
    assert {(feed, url) for feed, url, *_ in done.failures} == {
        ("feed", image_rows(home)[name]["original_url"]) for name in words
    }
    home.clock.turn(days=30)
    before = len(server.requests)
    home.download()
    assert len(server.requests) == before


class Down(FolderStore):
    """A folder on a disk that is full from the `after`th image on."""

    after = 0

    def put(self, key: str, *rest: Any, **named: Any) -> bool:
        if key.startswith("images/"):
            self.after -= 1
            if self.after < 0:
                raise ObjectStoreUnavailable("object folder: no space left on device")
        return super().put(key, *rest, **named)


@pytest.mark.parametrize("after", [0, 3])
def test_an_object_store_that_is_down_for_an_hour_costs_no_attempt(
    home: Pipeline, server: FeedServer, after: int
) -> None:
    collect(home, server, *(server.route("127.0.1.1", f"/{n}", Answer(body=png(1 + n))) for n in range(6)))
    store = Down(home.settings.objects_path)
    store.after = after
    for _ in range(4):
        with pytest.raises(ObjectStoreUnavailable):
            home.download(objects=store)
        home.clock.turn(minutes=15)
    assert len(archived(home)) == after
    assert {row["attempts"] for row in image_rows(home).values()} == {0}
    asked = len(server.requests)
    home.download()
    assert len(archived(home)) == 6
    assert len(server.requests) - asked <= 6 - after, "what lies there is adopted, not asked for again"
    assert {(row["status"], row["attempts"]) for row in image_rows(home).values()} == {("success", 0)}


def test_our_own_outage_costs_no_attempt_and_dead_hosts_do_once_a_feed_has_answered(
    home: Pipeline, server: FeedServer
) -> None:
    dead = [f"http://dead-{n}.invalid/{n}" for n in range(1, 4)]
    collect(home, server, *dead)
    with pytest.raises(NetworkUnavailable):
        home.download()
    for row in image_rows(home).values():
        assert (row["status"], row["attempts"]) == ("pending", 0)
        assert row["last_error"].startswith("our own network was down: no attempt is counted. ")
    home.clock.turn(minutes=6)
    with pytest.raises(NetworkUnavailable):
        home.download()  # No feed has answered since.
    home.poll(all_feeds=True)
    home.clock.turn(minutes=6)
    assert home.download().failed_attempts == 0, "the second pause is twice the first one"
    home.clock.turn(minutes=6)
    assert home.download().failed_attempts == 3
    assert {row["attempts"] for row in image_rows(home).values()} == {1}


def test_two_items_with_guids_that_share_a_hash_keep_their_images_apart(
    home: Pipeline, server: FeedServer
) -> None:
    collect(home, server, server.route("127.0.1.1", "/1", Answer(body=png(2))))
    home.download()
    (key,) = archived(home)
    before = home.objects.get(key)
    # Another item's image is where this one's would: what a shared hash comes to.
    home.database.query("UPDATE image_tasks SET status = 'pending', r2_key = NULL, id = 'another'")
    home.download()
    assert home.objects.get(key) == before
    (row,) = image_rows(home).values()
    assert row["r2_key"] == "images/feed/447b7147ac1bd07d/0.png".replace(
        "447b7147ac1bd07d", _hash("item")[:16]
    )


def _hash(guid: str) -> str:
    import hashlib

    return hashlib.md5(guid.encode(), usedforsecurity=False).hexdigest()


def test_images_of_a_feed_that_is_forgotten_while_they_come_are_left_to_no_one(
    home: Pipeline, server: FeedServer
) -> None:
    def forget(request: Request) -> Answer:
        home.database.query("DELETE FROM image_tasks")
        return Answer(body=png())

    collect(home, server, server.route("127.0.1.1", "/1", forget))
    home.download()
    assert archived(home) == []


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 1, 7, 19])
def test_killed_at_any_moment_each_image_is_stored_once_and_attempts_are_true(
    home: Pipeline, server: FeedServer, prepared: Prepared, after: int
) -> None:
    fine = [server.route(f"127.0.1.{1 + n % 4}", f"/{n}", Answer(body=png(1 + n))) for n in range(20)]
    bad = [server.route("127.0.1.9", f"/bad{n}", Answer(status=404)) for n in range(3)]
    collect(home, server, *fine, *bad)
    module = "rss_pipeline_tests.pipeline.images.dying_download"
    killed = prepared.start(module, str(home.settings.home), str(after))
    assert killed.wait() == -signal.SIGKILL
    home.lapse_leases()
    there = set(archived(home))
    assert len(there) == after
    # The server may come to the dead run's last requests only now.
    home.set(user_agent="the next run")
    home.download()
    assert len(archived(home)) == 20
    assert there <= set(archived(home))
    of_next = [r.target for r in server.requests if r.headers["user-agent"] == "the next run"]
    asked_again = [target for target in of_next if "bad" not in target]
    assert len(asked_again) == 20 - after
    rows = image_rows(home)
    assert {rows[str(n)]["status"] for n in range(20)} == {"success"}
    assert sorted(row["r2_key"] for row in rows.values() if row["r2_key"]) == archived(home)
    assert {rows[f"bad{n}"]["attempts"] for n in range(3)} == {1}
