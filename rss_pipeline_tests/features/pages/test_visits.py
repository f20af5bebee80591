"""A page as a source: visits, what is stored of them, and that nothing comes twice or from no list."""

import json
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline_tests.features.pages.site import TITLES, WORDS, entries, link, page
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST, OTHER = "127.0.0.2", "127.0.0.3"
ENTRY = '<article class="post"><h2><a href="{0}">{1}</a></h2>{2}<p>' + WORDS + "</p></article>"
DATE = '<time datetime="2026-01-1{n}">2026-01-1{n}</time>'
LOGIN = page('<form><input type="password"></form>', title="Log in")


def listed(*numbers: int, around: str = "", date: str = "", kind: str = "post") -> bytes:
    """A page with these entries, in this order."""
    main = "".join(
        ENTRY.replace("post", kind).format(link(n), f"The title of entry {n}", date.format(n=n))
        for n in numbers
    )
    return page(main, around=around).encode()


def serve(server: FeedServer, *bodies: bytes | Answer, path: str = "/news/") -> str:
    """The URL of a page that shows these, one after the other."""
    answers = [Answer(body=each) if isinstance(each, bytes) else each for each in bodies]
    return server.route(HOST, path, *answers)


def days(pipeline: Pipeline, count: int) -> None:
    for _ in range(count):
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(days=1)


def titles(pipeline: Pipeline, id: str) -> list[str]:
    rows = pipeline.rows("SELECT title FROM items WHERE feed_id = ? ORDER BY arrived", id)
    return [row["title"] for row in rows]


def test_a_page_s_entries_are_items_with_links_as_their_identity(
    pipeline: Pipeline, server: FeedServer
) -> None:
    image = f'<img src="/photos/{{n}}.jpg" width="400" height="300">{DATE}'
    url = serve(server, listed(*range(6), date=image))
    id = pipeline.register(url, "news", page="auto")
    pipeline.poll()
    [first, *_] = items = pipeline.items(id)
    address = server.url(HOST, link(0))
    assert len(items) == 6
    assert first["guid"] == address.partition(":")[2]
    assert (first["link"], first["title"]) == (address, "The title of entry 0")
    assert (first["pub_date"], first["pub_date_source"]) == ("2026-01-10T00:00:00Z", "feed")
    assert first["content_html"] == f"<p>{WORDS}</p>"
    assert json.loads(first["enclosures"])[0]["url"] == server.url(HOST, "/photos/0.jpg")
    assert pipeline.tasks()[0] == server.url(HOST, "/photos/0.jpg")
    assert (pipeline.feed(id)["title"], pipeline.feed(id)["last_error"]) == ("News", None)


def test_an_entry_without_a_date_has_that_of_its_first_sight_for_ever(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = serve(server, listed(*range(5)), listed(9, *range(5)), listed(9, *range(5), around="<p>3 hits</p>"))
    id = pipeline.register(url, "news", page="confirmed")
    began = pipeline.clock.now
    days(pipeline, 3)
    dates = {row["title"]: row["pub_date"] for row in pipeline.items(id)}
    assert dates["The title of entry 0"][:10] == f"{began:%Y-%m-%d}"
    assert dates["The title of entry 9"][:10] == f"{began + timedelta(days=1):%Y-%m-%d}"
    # The top of the page is the newest.
    assert titles(pipeline, id) == [f"The title of entry {n}" for n in (4, 3, 2, 1, 0, 9)]


def test_a_page_that_changes_around_its_list_brings_nothing(pipeline: Pipeline, server: FeedServer) -> None:
    changing = [
        listed(
            *range(5),
            around=f'<aside><a href="/ads/{n}?nonce={n}">Advert {n}</a> {n} hits</aside>',
            date=DATE,
        )
        for n in range(4)
    ]
    id = pipeline.register(serve(server, *changing), "news", page="auto")
    days(pipeline, 4)
    assert len(pipeline.items(id)) == 5
    assert (len(pipeline.reports(id)), len(pipeline.backups(id))) == (1, 4)


def test_a_list_that_is_not_certain_is_stored_once_it_is_confirmed(
    pipeline: Pipeline, server: FeedServer
) -> None:
    body = page(
        f"<p>{WORDS * 20}</p><div>"
        + "".join(f'<div><a href="{link(n)}">{title}</a></div>' for n, title in enumerate(TITLES))
        + "</div>"
    ).encode()
    id = pipeline.register(serve(server, body), "news", page="auto")
    pipeline.poll()
    feed = pipeline.feed(id)
    assert (feed["last_error_kind"], pipeline.items(id)) == ("no_list", [])
    assert "page: confirmed" in feed["last_error"]
    assert len(pipeline.backups(id)) == 1
    pipeline.feeds[0]["page"] = "confirmed"
    pipeline.write_registry()
    # The same bytes are read anew by other settings, at once.
    pipeline.poll()
    assert [item["title"] for item in pipeline.items(id)] == list(TITLES)
    assert pipeline.feed(id)["last_error"] is None


@pytest.mark.parametrize(
    "body",
    [
        LOGIN.encode(),
        listed(),
        listed(3, 4),
        listed(3, 4, 5, date=DATE),
        page(entries(kind="other")).replace("/news/", "/shop/x/").encode(),
    ],
)
def test_a_list_that_is_lost_is_an_error_and_stores_nothing(
    pipeline: Pipeline, server: FeedServer, body: bytes
) -> None:
    good = listed(*range(8), date=DATE)
    url = serve(server, good, body, listed(8, *range(7), date=DATE))
    id = pipeline.register(url, "news", page="auto")
    days(pipeline, 2)
    feed = pipeline.feed(id)
    assert (feed["last_error_kind"], len(pipeline.items(id))) == ("list_lost", 8), feed["last_error"]
    assert "8" in feed["last_error"]
    assert len(pipeline.backups(id)) == 2
    days(pipeline, 1)
    assert (pipeline.feed(id)["last_error"], len(pipeline.items(id))) == (None, 9)


def test_a_redesigned_page_goes_on_where_its_entries_are_known_and_says_so(
    pipeline: Pipeline, server: FeedServer
) -> None:
    new = "".join(
        f'<div class="row"><span><a href="{link(n)}">The title of entry {n}</a></span></div>'
        for n in (9, *range(6))
    )
    url = serve(server, listed(*range(6), date=DATE), page(f"<section>{new}</section>").encode())
    id = pipeline.register(url, "news", page="auto")
    days(pipeline, 2)
    feed = pipeline.feed(id)
    assert (feed["last_error"], len(pipeline.items(id))) == (None, 7)
    assert feed["warning_kinds"] == '["redesigned"]'
    assert "2026-03-03" in feed["warning"]


def test_streams_of_a_page_select_by_fields_and_by_xpath(pipeline: Pipeline, server: FeedServer) -> None:
    streams = {"fourth": {"title": "*entry 3"}, "last": {"xpath": "//item[contains(link, '/4-')]"}}
    url = serve(server, listed(*range(5), date=DATE))
    id = pipeline.register(url, "news", page={"item": "article.post", "title": "h2"}, streams=streams)
    pipeline.poll()
    rows = pipeline.rows(
        "SELECT m.stream, i.title FROM item_streams AS m JOIN items AS i ON i.id = m.item_id ORDER BY 1"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("fourth", "The title of entry 3"),
        ("last", "The title of entry 4"),
    ]
    assert (len(pipeline.items(id)), pipeline.feed(id)["warning"]) == (5, None)


def test_selectors_that_died_are_named_with_what_they_would_be(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = serve(server, listed(*range(5), date=DATE), listed(9, *range(5), date=DATE, kind="card"))
    id = pipeline.register(url, "news", page={"item": "article.post", "author": "em"})
    days(pipeline, 1)
    assert "author: 0 of 5 (em)" in pipeline.feed(id)["warning"]
    days(pipeline, 1)
    feed = pipeline.feed(id)
    assert (feed["last_error_kind"], len(pipeline.items(id))) == ("list_lost", 5)
    assert "item: 0 (article.post)" in feed["last_error"]
    assert 'write item: "article.card"' in feed["last_error"]


def test_a_feed_at_the_page_s_address_brings_no_entry_again(pipeline: Pipeline, server: FeedServer) -> None:
    feed = (
        '<?xml version="1.0"?><rss version="2.0"><channel><title>Now a feed</title>'
        + "".join(
            f"<item><guid>{n}</guid><title>T {n}</title><link>{server.url(HOST, link(n))}</link></item>"
            for n in (9, *range(5))
        )
        + "</channel></rss>"
    ).encode()
    id = pipeline.register(serve(server, listed(*range(5), date=DATE), feed), "news", page="auto")
    days(pipeline, 2)
    assert (len(pipeline.items(id)), pipeline.feed(id)["last_error"]) == (6, None)
    assert "remove `page`" in pipeline.feed(id)["warning"]


@pytest.mark.slow
def test_the_items_of_a_page_come_back_from_its_backups_alone(pipeline: Pipeline, server: FeedServer) -> None:
    bodies = [
        listed(*range(5), date=DATE),
        listed(5, *range(5), date=DATE),
        LOGIN.encode(),
        listed(6, 5, *range(5), kind="row"),
        listed(7, 6, 5, *range(4), kind="row"),
    ]
    id = pipeline.register(serve(server, *bodies), "news", page="auto")
    days(pipeline, len(bodies))
    assert len(pipeline.items(id)) == 8
    before, known = shown(pipeline, id), pipeline.feed(id)["page_known"]
    pipeline.database.close()
    for path in pipeline.settings.home.glob("rss.sqlite*"):
        path.unlink()
    command(pipeline, "restore")
    pipeline.database = connect(pipeline.settings)
    assert (shown(pipeline, id), pipeline.feed(id)["page_known"]) == (before, known)


def command(pipeline: Pipeline, *arguments: str) -> None:
    """A command of the pipeline's installation."""
    home, file = str(pipeline.settings.home), str(pipeline.settings.feeds_file)
    done = CliRunner().invoke(main, arguments, env={"RSS_PIPELINE_HOME": home, "RSS_FEEDS_FILE": file})
    assert done.exit_code == 0, done.output


def shown(pipeline: Pipeline, id: str) -> list[dict[str, Any]]:
    """All that readers see of the items."""
    own = {"arrived", "images_extracted_at"}
    return [{name: value for name, value in row.items() if name not in own} for row in pipeline.items(id)]


def test_of_a_day_s_documents_without_news_the_newest_alone_is_kept(
    pipeline: Pipeline, server: FeedServer
) -> None:
    bodies = [listed(*range(5), around=f"<p>{n} hits</p>", date=DATE) for n in range(7)]
    bodies[2] = listed(*range(6), date=DATE)
    id = pipeline.register(serve(server, *bodies), "news", page="auto")
    taken = []
    for _ in range(7):
        pipeline.poll(all_feeds=True)
        taken.append(pipeline.backups(id)[-1])
        pipeline.clock.turn(hours=4)
    command(pipeline, "clean", "--yes")
    # At noon, 16 and 20 o'clock; 0, 4, 8 and 12 o'clock. The first and the third brought items.
    assert pipeline.backups(id) == [taken[0], taken[2], taken[6]]


def test_robots_txt_is_requested_once_a_day_for_pages_alone_also_behind_a_redirect(
    pipeline: Pipeline, server: FeedServer
) -> None:
    server.route(HOST, "/robots.txt", Answer(body=b"User-agent: *\nDisallow: /kept/\n"))
    server.route(OTHER, "/robots.txt", Answer(body=b"User-agent: *\nDisallow: /away/\n"))
    server.route(OTHER, "/away/", Answer(body=listed(*range(5), date=DATE)))
    there = server.url(OTHER, "/away/")
    ids = [
        pipeline.register(serve(server, listed(*range(5), date=DATE)), "open", page="auto"),
        pipeline.register(serve(server, listed(*range(5), date=DATE), path="/kept/"), "kept", page="auto"),
        pipeline.register(
            serve(server, Answer(status=302, headers={"Location": there}), path="/led/"), "led", page="auto"
        ),
    ]
    pipeline.poll()
    pipeline.clock.turn(hours=2)
    pipeline.poll(all_feeds=True)
    assert [pipeline.feed(id)["last_error_kind"] for id in ids] == [None, "robots", "robots"]
    assert OTHER in pipeline.feed("led")["last_error"]
    asked = [request.target for host in (HOST, OTHER) for request in server.asked(host)]
    assert sorted(asked) == ["/led/", "/led/", "/news/", "/news/", "/robots.txt", "/robots.txt"]
    pipeline.clock.turn(days=1)
    pipeline.poll(all_feeds=True)
    assert [request.target for request in server.asked(OTHER)].count("/robots.txt") == 2
