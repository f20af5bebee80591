"""Downloads of images: every task ends in the right state, with the right object, items untouched."""

import hashlib
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import pytest

from rss_pipeline.errors import NetworkUnavailable, ObjectStoreUnavailable
from rss_pipeline.pipeline.session import fetch_policy
from rss_pipeline.pipeline.triggers.images import decide_fresh, decide_retries, most_at_once
from rss_pipeline.pipeline.triggers.runs import JobRun, Start
from rss_pipeline.storage.backends.folder import FolderStore
from rss_pipeline.storage.images.claims import ImagesDue
from rss_pipeline_tests.support.pictures import AVIF, GIF, JPEG, SVG, WEBP, png
from rss_pipeline_tests.support.pipeline import NOON, Pipeline
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

FEED_HOST = "127.0.0.2"
GUID_HASH = hashlib.md5(b"item", usedforsecurity=False).hexdigest()[:8]


def document(*images: str, guid: str = "item") -> bytes:
    """A feed of one item that shows these images."""
    shown = "".join(f'&lt;img src="{url}"&gt;' for url in images)
    return (
        '<?xml version="1.0"?><rss version="2.0"><channel><title>A feed</title>'
        f"<link>http://{FEED_HOST}/</link><item><guid>{guid}</guid>"
        f"<link>http://{FEED_HOST}/page-of-{guid}</link><description>{shown}</description></item>"
        "</channel></rss>"
    ).encode()


@pytest.fixture
def home(pipeline: Pipeline) -> Pipeline:
    """A pipeline that pauses between no two images."""
    pipeline.set(image_host_delay_seconds=0.0)
    return pipeline


def collect(home: Pipeline, server: FeedServer, *images: str, id: str = "feed", guid: str = "item") -> None:
    url = server.route(FEED_HOST, f"/{id}", Answer(body=document(*images, guid=guid)))
    home.register(url, id)
    home.poll()


def image_rows(home: Pipeline) -> dict[str, dict[str, Any]]:
    """Task rows by the last part of their URL."""
    rows = home.rows("SELECT * FROM image_tasks ORDER BY position")
    return {row["original_url"].rpartition("/")[2]: row for row in rows}


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


def picky(wanted: Callable[[str | None], bool]) -> Callable[[Request], Answer]:
    """A host that gives its images to those that come from the right place."""

    def answer(request: Request) -> Answer:
        return Answer(body=png()) if wanted(request.headers.get("referer")) else Answer(status=403)

    return answer


def test_a_host_that_refuses_hotlinks_is_told_its_own_origin_then_the_item(
    home: Pipeline, server: FeedServer
) -> None:
    own = server.route("127.0.1.1", "/own", picky(lambda referer: referer == server.url("127.0.1.1", "/")))
    site = f"http://{FEED_HOST}/"
    item = server.route("127.0.1.2", "/item", picky(lambda referer: referer == site))
    never = server.route("127.0.1.3", "/never", picky(lambda _: False))
    server.route(FEED_HOST, "/feed", Answer(body=document(own, item, never)))
    home.register(server.url(FEED_HOST, "/feed"), "feed")
    home.poll()
    home.database.query("UPDATE feeds SET allow_private = 0")
    home.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    home.download()
    rows = image_rows(home)
    assert (rows["own"]["status"], rows["item"]["status"]) == ("success", "success")
    assert (rows["never"]["status"], rows["never"]["attempts"]) == ("pending", 1)
    asked = [r.headers.get("referer") for r in server.requests if r.target == "/never"]
    assert asked == [None, server.url("127.0.1.3", "/"), site]


@pytest.mark.parametrize("address", ["/feed?token=1", "/feed", "moved"])
def test_a_feed_whose_address_may_hold_a_token_sends_no_referer_at_all(
    address: str, home: Pipeline, server: FeedServer
) -> None:
    never = server.route("127.0.1.3", "/never", picky(lambda _: False))
    url = server.route(FEED_HOST, address.replace("moved", "/feed"), Answer(body=document(never)))
    if address == "/feed":
        url = url.replace("//", "//me:secret@")
    home.register(url, "feed", allow_private=False)
    home.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    home.poll()
    if address == "moved":
        home.database.query("UPDATE feeds SET fetch_url = url || '?token=1'")
    home.download()
    assert [r.headers.get("referer") for r in server.requests if r.target == "/never"] == [None]


def test_an_item_reaches_no_server_of_ours_and_no_private_host_that_its_feed_does_not_name(
    home: Pipeline, server: FeedServer
) -> None:
    ui = server.url("127.0.0.1", "/graphql?query=mutation")
    with FeedServer() as at_home:
        own = at_home.route(FEED_HOST, "/own", Answer(body=png()))
        other = at_home.route("127.0.1.1", "/other", Answer(body=png()))
        url = at_home.route(FEED_HOST, "/feed", Answer(body=document(ui, own, other)))
        home.set(port=server.port, allow_networks=(ip_network("127.0.0.1/32"),))
        home.register(url, "feed", allow_private=True)
        home.poll()
        home.download()
        assert (image_rows(home)["own"]["status"], len(at_home.requests)) == ("success", 2)
        assert "`allow_private: [127.0.1.1]`" in image_rows(home)["other"]["last_error"]
        home.feeds[0]["allow_private"] = ["127.0.0.0/8"]
        home.write_registry()
        home.sync()
        home.clock.turn(hours=24)
        home.download()
    rows = image_rows(home)
    assert rows["other"]["status"] == "success"
    refused = [row["last_error"] for row in rows.values() if row["status"] != "success"]
    assert [("the UI of this installation" in each, "never allowed" in each) for each in refused] == [
        (True, True)
    ]
    assert server.most_open == {}
    home.register(server.url("127.0.0.1", "/feed"), "at-the-ui")
    home.poll()
    [found] = home.database.query("SELECT last_error FROM feeds WHERE id = 'at-the-ui'").rows
    assert "never allowed" in found["last_error"]
    assert server.most_open == {}


def test_what_a_feed_of_the_world_names_at_home_is_never_asked(home: Pipeline, server: FeedServer) -> None:
    shown = server.route("127.0.1.1", "/shown", Answer(body=png()))
    home.register(server.route(FEED_HOST, "/feed", Answer(body=document(shown))), "feed")
    home.poll()
    server.forget()
    home.feeds[0]["allow_private"] = False
    home.write_registry()
    home.sync()
    home.download()
    home.clock.turn(hours=24)
    home.poll()
    assert server.most_open == {}
    row = image_rows(home)["shown"]
    assert (row["status"], row["attempts"]) == ("pending", 1)
    assert "127.0.1.1 is this machine itself" in row["last_error"]
    [found] = home.database.query("SELECT last_error_kind, last_error FROM feeds").rows
    assert found["last_error_kind"] == "blocked_address"
    assert "write `allow_private: true` for this feed in feeds.yaml" in found["last_error"]


def test_a_private_feeds_pages_are_named_to_nobody(home: Pipeline, server: FeedServer) -> None:
    collect(home, server, server.route("127.0.1.1", "/never", picky(lambda _: False)))
    home.download()
    asked = [r.headers.get("referer") for r in server.requests if r.target == "/never"]
    assert asked == [None, server.url("127.0.1.1", "/")]


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
    assert {row["attempts"] for row in image_rows(home).values()} == {0, 1}, "an hour has to pass first"
    home.clock.turn(hours=1)
    home.download()
    assert image_rows(home)["gone"]["attempts"] == 2
    home.clock.turn(hours=7)
    home.download()
    assert image_rows(home)["gone"]["attempts"] == 2
    home.clock.turn(hours=1)
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


def test_a_host_that_says_too_many_gets_its_pause_and_the_others_do_not_wait(
    home: Pipeline, server: FeedServer
) -> None:
    home.set(images_per_host=1)
    busy = [
        server.route(
            "127.0.1.1", f"/{n}", Answer(status=429, headers={"Retry-After": "1800"}), Answer(body=png())
        )
        for n in range(5)
    ]
    other = server.route("127.0.1.2", "/other", Answer(body=png()))
    collect(home, server, *busy, other)
    home.download()
    (first,) = [r.target for r in server.requests if r.host == "127.0.1.1"]
    attempts = {f"/{name}": row["attempts"] for name, row in image_rows(home).items()}
    assert attempts == {**{f"/{n}": 0 for n in range(5)}, first: 1, "/other": 0}
    assert image_rows(home)["other"]["status"] == "success"
    home.clock.turn(minutes=29)
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 1
    home.clock.turn(minutes=2)
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 2, "every path says it once"


@pytest.mark.parametrize("retry_after", ["1800", "0"])
def test_a_host_that_is_busy_and_says_until_when_is_asked_once_a_run(
    home: Pipeline, server: FeedServer, retry_after: str
) -> None:
    home.set(images_per_host=1)
    busy = Answer(status=503, headers={"Retry-After": retry_after})
    collect(home, server, *(server.route("127.0.1.1", f"/{n}", busy) for n in range(5)))
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 1
    assert sorted(row["attempts"] for row in image_rows(home).values()) == [0, 0, 0, 0, 1]
    home.clock.turn(minutes=10)
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) == 1


def test_a_host_whose_images_lead_to_one_that_says_too_many_is_left_alone_with_it(
    home: Pipeline, server: FeedServer
) -> None:
    home.set(images_per_host=1)
    there = server.route("127.0.1.2", "/busy", Answer(status=429, headers={"Retry-After": "1800"}))
    led = Answer(status=302, headers={"Location": there})
    collect(home, server, *(server.route("127.0.1.1", f"/{n}", led) for n in range(5)))
    home.download()
    assert len([r for r in server.requests if r.host == "127.0.1.2"]) == 1
    assert len([r for r in server.requests if r.host == "127.0.1.1"]) <= 5, "each at most once"
    home.clock.turn(minutes=29)
    before = len(server.requests)
    home.download()
    assert len(server.requests) == before


def test_a_feed_that_opts_out_has_no_images_asked_for(home: Pipeline, server: FeedServer) -> None:
    collect(home, server, server.route("127.0.1.1", "/1", Answer(body=png())))
    home.feeds[0]["images"] = False
    home.write_registry()
    home.sync()
    assert home.download().archived == 0
    home.feeds[0]["images"] = True
    home.write_registry()
    home.sync()
    assert home.download().archived == 1


class Down(FolderStore):
    """A folder whose disk is full, from the `after`th image on."""

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
    dead = [f"http://127.0.3.{n}:{server.port}/{n}" for n in range(1, 4)]
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
    assert home.download().failed_attempts == 3
    assert {row["attempts"] for row in image_rows(home).values()} == {1}


def test_two_items_whose_guids_share_a_hash_keep_their_images_apart(
    home: Pipeline, server: FeedServer
) -> None:
    collect(home, server, server.route("127.0.1.1", "/1", Answer(body=png(2))))
    home.download()
    (key,) = archived(home)
    before = home.objects.get(key)
    # Another item's image lies where this one's would: what a shared hash comes to.
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


def test_images_of_a_feed_that_is_forgotten_while_they_come_are_left_to_nobody(
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


def due(fresh: int = 0, retries: int = 0, *, waited: int = 0, live: tuple[str, ...] = ()) -> ImagesDue:
    oldest = datetime.fromtimestamp(NOON.timestamp() - 60 * waited, UTC).isoformat() if fresh else None
    return ImagesDue(fresh=fresh, retries=retries, oldest_fresh_at=oldest, live_run_ids=live)


RUNNING = [JobRun(run_id="r" * 8, state="running", started_at=datetime(2026, 3, 2, 11, 0, tzinfo=UTC))]


@pytest.mark.parametrize(
    ("decide", "waiting", "runs", "starts"),
    [
        (decide_fresh, due(), [], False),
        (decide_fresh, due(1, waited=1), [], False),
        (decide_fresh, due(1, waited=2), [], True),
        (decide_fresh, due(100), [], True),
        (decide_fresh, due(100), [JobRun(run_id="q", state="waiting")], False),
        (decide_fresh, due(100), RUNNING, True),
        (decide_fresh, due(100, live=("r" * 8,)), RUNNING, False),
        (decide_fresh, due(0, 5), [], False),
        (decide_retries, due(5, waited=9), [], False),
        (decide_retries, due(0, 1), [], True),
        (decide_retries, due(0, 1, live=("r" * 8,)), RUNNING, False),
        (
            decide_retries,
            due(0, 1),
            [JobRun(run_id="f", state="failed", ended_at=NOON)],
            False,
        ),
    ],
)
def test_when_a_download_starts(
    decide: Callable[..., object], waiting: ImagesDue, runs: list[JobRun], starts: bool
) -> None:
    assert isinstance(decide(waiting, runs, now=NOON), Start) is starts


def running(*ids: str) -> list[JobRun]:
    return [
        JobRun(run_id=id, state="running", started_at=datetime(2026, 3, 2, 11, 0, tzinfo=UTC)) for id in ids
    ]


@pytest.mark.parametrize(
    ("waiting", "runs", "starts"),
    [
        (due(100, live=("a",)), running("a"), True),
        (due(99, waited=9, live=("a",)), running("a"), False),
        (due(100, live=("a", "b")), running("b", "a"), False),
        (due(100, live=("a",)), running("dead", "a"), True),
        (due(100, live=("a",)), [JobRun(run_id="q", state="waiting"), *running("a")], False),
        (due(100, live=("a",)), [*running("a"), JobRun(run_id="f", state="failed", ended_at=NOON)], False),
    ],
    ids=["a second", "few wait", "two run", "one of them is dead", "one is about to", "after a failure"],
)
def test_a_second_download_starts_beside_the_first_where_many_wait_and_two_may_run(
    waiting: ImagesDue, runs: list[JobRun], starts: bool
) -> None:
    assert isinstance(decide_fresh(waiting, runs, now=NOON, at_once=2), Start) is starts


def test_downloads_at_once_are_a_quarter_of_the_shards() -> None:
    found = [most_at_once(shards) for shards in (1, 4, 7, 8, 16, 64, 1024)]
    assert found == [1, 1, 1, 2, 4, 8, 8]
