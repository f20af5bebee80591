"""A URL of an image is requested at most once a day, however many items of however many feeds show it, and
once more within the hour after its first failure."""

from datetime import timedelta
from ipaddress import ip_network
from typing import Any

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.hold import HostGap
from rss_pipeline.storage.backends.connect import open_objects
from rss_pipeline.storage.feeds.stored_holds import keep_holds
from rss_pipeline_tests.pipeline.images.images_of_feeds import FEED_HOST
from rss_pipeline_tests.support.pictures import JPEG, png
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

IMAGES, OTHERS = "127.0.1.1", "127.0.1.2"
TASKS = "SELECT t.*, i.feed_id, i.guid FROM image_tasks AS t JOIN items AS i ON i.id = t.item_id"


def show(
    home: Pipeline,
    server: FeedServer,
    id: str,
    shown: dict[str, str],
    *,
    host: str = FEED_HOST,
    **options: Any,
) -> None:
    """A feed with items that each show these HTML images, collected."""
    items = "".join(
        f"<item><guid>{guid}</guid><link>http://{host}/{guid}</link><description>{html}</description></item>"
        for guid, html in shown.items()
    )
    body = f'<?xml version="1.0"?><rss version="2.0"><channel><title>x</title>{items}</channel></rss>'
    url = server.route(host, f"/{id}", Answer(body=body.encode()))
    if id not in {feed["id"] for feed in home.feeds}:
        home.register(url, id, **options)
    home.poll(all_feeds=True)


def img(*urls: str) -> str:
    return "".join(f'&lt;img src="{url}"&gt;' for url in urls)


def requested(server: FeedServer, *hosts: str) -> list[str]:
    return [request.target for request in server.requests if request.host in (hosts or (IMAGES, OTHERS))]


def tasks(home: Pipeline, part: str = "") -> dict[str, dict[str, Any]]:
    """Task rows by feed and guid."""
    rows = home.rows(f"{TASKS} WHERE t.original_url LIKE '%{part}%'")
    return {f"{row['feed_id']}/{row['guid']}": row for row in rows}


def open_loopback(home: Pipeline, server: FeedServer) -> None:
    """Loopback is the world, and no feed opens anything."""
    home.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))


def test_items_that_show_one_image_have_an_object_each_of_one_request_a_day(
    home: Pipeline, server: FeedServer
) -> None:
    logo = server.route(IMAGES, "/logo", Answer(body=png(3)), Answer(body=JPEG))
    own = [server.route(IMAGES, f"/{n}", Answer(body=png(9))) for n in range(3)]
    show(home, server, "a", {"1": img(logo, own[0]), "2": img(own[1], logo + "#top"), "3": img(logo)})
    show(home, server, "b", {"1": img(logo.replace("http", "HTTP"), own[2])}, host="127.0.0.3")
    done = home.download()
    assert sorted(requested(server)) == ["/0", "/1", "/2", "/logo"]
    assert done.archived == 7
    found = tasks(home, "/logo")
    assert {row["status"] for row in found.values()} == {"success"}
    assert len({row["r2_key"] for row in found.values()}) == 4
    for row in found.values():
        stored = home.objects.get(row["r2_key"])
        assert stored is not None
        assert (stored[0], stored[1].content_type) == (png(3), "image/png")
        assert stored[1].metadata["task-id"] == row["id"]
        assert (row["bytes"], row["width"], row["height"]) == (len(png(3)), 3, 1)
    assert home.feed("b")["day_image_bytes"] == len(png(3)) + len(png(9))

    server.forget()
    home.clock.turn(hours=23)
    show(home, server, "b", {"2": img(logo), "3": img(logo)}, host="127.0.0.3")
    assert home.download().archived == 2
    assert requested(server) == []
    assert {row["bytes"] for row in tasks(home, "/logo").values()} == {len(png(3))}
    home.clock.turn(hours=2)
    show(home, server, "b", {"4": img(logo), "5": img(logo)}, host="127.0.0.3")
    home.download()
    assert requested(server) == ["/logo"], "it may have changed"
    assert tasks(home, "/logo")["b/5"]["bytes"] == len(JPEG)
    [kept] = home.rows("SELECT count(*) AS n FROM image_urls")
    assert kept["n"] <= 5, "what is over is dropped"


def test_what_a_url_came_to_counts_for_all_items_that_show_it(home: Pipeline, server: FeedServer) -> None:
    gone = server.route(IMAGES, "/gone", Answer(status=404))
    busy = server.route(
        OTHERS, "/busy", Answer(status=429, headers={"Retry-After": "600"}), Answer(body=png())
    )
    show(home, server, "a", {"1": img(gone, busy), "2": img(gone, busy)})
    home.download()
    assert sorted(requested(server)) == ["/busy", "/gone"]
    home.clock.turn(minutes=20)
    show(home, server, "b", {"1": img(gone), "2": img(busy)}, host="127.0.0.3")
    done = home.download()
    assert len(requested(server)) == 2, "an answer of this day is known"
    assert done.failed_attempts == 1
    assert {row["attempts"] for row in tasks(home, "/gone").values()} == {1}
    assert {row["attempts"] for row in tasks(home, "/busy").values()} == {0}, (
        "its host is full, not the image"
    )
    assert len({row["last_error"] for row in tasks(home, "/gone").values()}) == 1
    first = home.clock.now - timedelta(minutes=20)
    for part, pause in (("/gone", timedelta(minutes=40)), ("/busy", timedelta(days=1))):
        assert {row["next_attempt_at"] for row in tasks(home, part).values()} <= {
            instant(first + pause + timedelta(seconds=n)) for n in range(-5, 5)
        }
    # One request is the second attempt of all, and then none is soon: not for later items either.
    home.clock.turn(minutes=21)
    home.download()
    assert sorted(requested(server)) == ["/busy", "/gone", "/gone"]
    assert {row["attempts"] for row in tasks(home, "/gone").values()} == {2}
    home.clock.turn(hours=5)
    show(home, server, "b", {"3": img(gone)}, host="127.0.0.3")
    home.download()
    home.clock.turn(minutes=41)
    home.download()
    assert len(requested(server)) == 3
    # A user who waits for it gets one attempt more in an hour.
    home.database.query(
        "UPDATE image_tasks SET next_attempt_at = NULL, last_error_kind = 'requested' WHERE id = ?",
        [tasks(home, "/gone")["b/1"]["id"]],
    )
    home.download()
    assert len(requested(server)) == 4
    home.clock.turn(hours=19)
    home.download()
    assert sorted(requested(server)) == ["/busy", "/busy", "/gone", "/gone", "/gone"]
    assert {row["status"] for row in tasks(home, "/busy").values()} == {"success"}


def test_a_feed_that_has_its_most_bytes_of_the_day_waits_and_its_neighbour_has_the_image(
    home: Pipeline, server: FeedServer
) -> None:
    logo = server.route(IMAGES, "/logo", Answer(body=png(padded_to=600_000)))
    home.set(image_mb_per_day=1)
    show(home, server, "a", {guid: img(logo) for guid in "1234"})
    show(home, server, "b", {"1": img(logo)}, host="127.0.0.3")
    home.download()
    found = tasks(home)
    assert sum(row["status"] == "success" for id, row in found.items() if id.startswith("a")) == 2
    assert found["b/1"]["status"] == "success"
    home.clock.turn(hours=13)
    home.download()
    assert sum(row["status"] == "success" for row in tasks(home).values()) == 5
    assert requested(server) == ["/logo"]


def test_what_only_one_feed_may_reach_is_given_to_none_that_may_not(
    home: Pipeline, server: FeedServer
) -> None:
    plan = server.route(FEED_HOST, "/plan", Answer(body=png()))
    show(home, server, "inside", {"1": img(plan)}, allow_private=True)
    show(home, server, "world", {"1": img(plan)}, host="127.0.0.3")
    show(home, server, "beside", {"1": img(plan)})
    home.database.query("UPDATE feeds SET allow_private = 0, private_hosts = NULL WHERE id = 'world'")
    for _ in range(2):
        home.download()
        found = tasks(home)
        assert [found[id]["status"] for id in ("inside/1", "beside/1")] == ["success", "success"]
        assert (found["world/1"]["status"], found["world/1"]["r2_key"]) == ("pending", None)
        assert "allow_private" in found["world/1"]["last_error"]
        assert requested(server, FEED_HOST).count("/plan") == 1
        # The same where the image is there already.
        home.database.query(
            """UPDATE image_tasks SET status = 'pending', r2_key = NULL, attempts = 0, next_attempt_at = NULL
            WHERE id NOT IN (SELECT task_id FROM image_urls)"""
        )


def test_an_image_of_the_world_is_requested_once_for_private_feeds_and_others(
    home: Pipeline, server: FeedServer
) -> None:
    open_loopback(home, server)
    home.set(objects_public_url="https://files.example")
    store = open_objects(home.settings)
    urls = [server.route(IMAGES, f"/{n}", Answer(body=png())) for n in range(3)]
    inside: dict[str, Any] = {"allow_private": ["10.0.0.0/8"]}
    # At once; the private one first; the private one last.
    show(home, server, "secret", {"1": img(urls[0], urls[1])}, **inside)
    show(home, server, "open", {"1": img(urls[0], urls[2])}, host="127.0.0.3", allow_private=False)
    home.download(objects=store)
    show(home, server, "secret", {"2": img(urls[2])})
    show(home, server, "open", {"2": img(urls[1])}, host="127.0.0.3")
    assert home.download(objects=store).archived == 2
    assert sorted(requested(server)) == ["/0", "/1", "/2"]
    keys = [(row["feed_id"], row["r2_key"].split("/")[0]) for row in home.rows(TASKS)]
    assert sorted(keys) == [("open", "images")] * 3 + [("secret", "private-images")] * 3
    assert all(store.get(row["r2_key"]) for row in home.rows(TASKS))


def test_an_image_that_is_not_in_the_store_any_more_is_requested_again(
    home: Pipeline, server: FeedServer
) -> None:
    logo = server.route(IMAGES, "/logo", Answer(body=png()))
    show(home, server, "a", {"1": img(logo)})
    home.download()
    home.objects.delete_many([tasks(home)["a/1"]["r2_key"]])
    show(home, server, "a", {"2": img(logo)})
    home.download()
    assert tasks(home)["a/2"]["status"] == "success"
    assert requested(server) == ["/logo", "/logo"]


def test_what_a_host_needed_is_its_first_request_the_next_day_and_for_a_month(
    home: Pipeline, server: FeedServer
) -> None:
    open_loopback(home, server)
    page = f"http://{FEED_HOST}/"
    urls = [
        server.route(
            IMAGES,
            f"/{n}",
            lambda request: (
                Answer(body=png()) if request.headers.get("referer") == page else Answer(status=403)
            ),
        )
        for n in range(3)
    ]

    def referers() -> list[str | None]:
        home.download()
        sent = [request.headers.get("referer") for request in server.asked(IMAGES)]
        server.forget()
        return sent

    show(home, server, "a", {"1": img(urls[0])}, allow_private=False)
    assert referers() == [None]
    home.clock.turn(hours=1)
    assert referers() == [page]
    home.clock.turn(days=2)
    show(home, server, "a", {"2": img(urls[1])})
    assert referers() == [page]
    home.clock.turn(days=29)
    show(home, server, "a", {"3": img(urls[2])})
    assert referers() == [None]
    home.clock.turn(hours=1)
    assert referers() == [page]
    assert {row["status"] for row in tasks(home).values()} == {"success"}


def test_what_redirects_of_several_images_lead_to_is_requested_once_a_day(
    home: Pipeline, server: FeedServer
) -> None:
    open_loopback(home, server)
    found = server.route(OTHERS, "/found", Answer(body=png(3)))
    gone = server.route(OTHERS, "/gone", Answer(status=404))
    between = server.route(OTHERS, "/between", Answer(status=302, headers={"Location": found}))
    places = {"f": found, "g": gone, "b": between}
    urls = {
        f"{letter}{n}": server.route(
            IMAGES, f"/{letter}{n}", Answer(status=302, headers={"Location": places[letter]})
        )
        for letter in places
        for n in range(4)
    }
    first = [urls[name] for name in urls if name[1] < "2"]
    show(home, server, "a", {"1": img(*first), "2": img(urls["f2"], found)}, allow_private=False)
    home.download()
    assert sorted(requested(server, OTHERS)) == ["/between", "/found", "/gone"]
    assert sorted(requested(server, IMAGES)) == ["/b0", "/b1", "/f0", "/f1", "/f2", "/g0", "/g1"]
    rows = tasks(home)
    assert len(home.rows("SELECT 1 FROM image_tasks WHERE status = 'success'")) == 6
    assert {row["attempts"] for row in home.rows(f"{TASKS} WHERE original_url LIKE '%/g%'")} == {1}
    assert all(home.objects.get(row["r2_key"]) for row in rows.values() if row["r2_key"])

    home.clock.turn(hours=23)
    later = [urls[name] for name in ("f2", "f3", "g3", "b3")]
    show(home, server, "b", {"1": img(*later)}, host="127.0.0.3", allow_private=False)
    assert home.download().archived == 3
    assert sorted(requested(server, OTHERS)[3:]) == ["/gone"], "the second attempt of what failed"
    assert sorted(requested(server, IMAGES)[7:]) == ["/b3", "/f3", "/g0", "/g1", "/g3"]
    home.clock.turn(hours=2)
    show(home, server, "b", {"2": img(urls["f0"], urls["f1"])}, host="127.0.0.3")
    assert home.download().archived == 2
    assert sorted(requested(server, OTHERS)[4:]) == ["/found"], "it may have changed"


def test_images_that_lead_to_each_other_fail_and_a_private_feed_s_neighbours_wait_for_nothing(
    home: Pipeline, server: FeedServer
) -> None:
    open_loopback(home, server)
    plan = server.route(OTHERS, "/plan", Answer(body=png()))
    round_and = server.route(IMAGES, "/round", Answer(status=302, headers={"Location": "/about"}))
    about = server.route(IMAGES, "/about", Answer(status=302, headers={"Location": "/round"}))
    led = [
        server.route(IMAGES, f"/{name}", Answer(status=302, headers={"Location": plan}))
        for name in ("inside", "world")
    ]
    show(home, server, "a", {"1": img(round_and, about), "2": img(led[1])}, allow_private=False)
    show(home, server, "in", {"1": img(led[0])}, host="127.0.0.3", allow_private=["10.0.0.0/8"])
    home.download()
    assert {row["last_error"] for row in home.rows(f"{TASKS} WHERE guid = '1' AND feed_id = 'a'")} == {
        f"{IMAGES} redirects in a loop."
    }
    assert {row["attempts"] for row in home.rows(f"{TASKS} WHERE t.original_url LIKE '%ou%'")} == {1}
    assert tasks(home, "/world")["a/2"]["status"] == tasks(home, "/inside")["in/1"]["status"] == "success"


def test_an_image_waits_after_the_feed_of_its_host_as_after_another_image(
    home: Pipeline, server: FeedServer
) -> None:
    """A limit by rate counts all requests."""
    picture = server.route(FEED_HOST, "/picture", Answer(body=png()))
    show(home, server, "a", {"1": img(picture)})
    now = home.clock()
    gap = HostGap(host=FEED_HOST, gap=timedelta(minutes=20), since=now, asked_at=now - timedelta(days=1))
    keep_holds(home.database, "image_holds", gaps=[gap], now=now)
    home.clock.turn(minutes=15)
    home.download()
    assert requested(server, FEED_HOST) == ["/a"]
    home.clock.turn(minutes=6)
    home.download()
    assert requested(server, FEED_HOST) == ["/a", "/picture"]
