"""Bad pages, by a list of feeds and by a user's own word: each is named for what it is."""

from ipaddress import ip_network
from typing import Any

import pytest

from rss_pipeline_tests.features.pages.site import TITLES, WORDS, entries, page
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.reader.test_searches import searched
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

opml: Any = pytest.importorskip("rss_pipeline.features.opml.service")

HOST = "127.0.0.2"
WEEK = "".join(f'<td><a href="/2026-05-{{0}}{day}">{{0}}{day}</a></td>' for day in range(1, 8))
SCRIPTED = "".join(
    f'<article><h2><a href="javascript:open({n})">{title}</a></h2><p>{WORDS}</p></article>'
    for n, title in enumerate(TITLES)
)
MENU = "".join(f'<a href="/menu/{n}">Department of things {n}</a>' for n in range(200))
REFUSED = {
    "scripts": ('<html><body><div id="root"></div><script src="/a.js"></script></body></html>', "a browser"),
    "frames": ("<html><frameset><frame src=a.html></frameset></html>", "other pages in frames"),
    "calendar": (
        page(f"<table><tr>{'<tr>'.join(map(WEEK.format, range(4)))}</table>"),
        "no title of their own",
    ),
    "only-scripts-as-links": (page(SCRIPTED), "no group of them looks like entries"),
}
TAKEN = {
    "relative": (page(entries(date="<i>{n} hours ago</i>")), "/news/1-entry", None),
    "no-year": (page(entries(date="<i>May {n}</i>")), "/news/1-entry", None),
    "menus": (page(entries(), around=f"<nav>{MENU}</nav>"), "/news/1-entry", "2026-02-11"),
    "base": (
        page(entries().replace('"/news/', '"'), head='<base href="/there/">'), "/there/1-entry", "2026-02-11"
    ),
    "other-host": (
        page(entries().replace("/news/1-entry", "//b.example/1")), "http://b.example/1", "2026-02-11"
    ),
}  # fmt: skip
MIXED = (
    entries().replace("/news/2-entry", "javascript:open(2)").replace("/news/3-entry", "mailto:a@b.example")
)


@pytest.mark.slow
def test_bad_pages_are_named_and_of_others_the_entries_alone_are_stored(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    ann = signed_in(pipeline.database, "ann", clock=pipeline.clock)
    pages = {name: html for name, (html, *_) in (REFUSED | TAKEN).items()} | {"mixed": page(MIXED)}
    urls = {
        name: server.route(HOST, f"/{name}/news/", Answer(body=html.encode())) for name, html in pages.items()
    }
    outlines = "".join(f'<outline text="x" htmlUrl="{url}" rssp:page="auto"/>' for url in urls.values())
    head = '<opml xmlns:rssp="https://rss-pipeline.invalid/opml"><body>'
    done = opml.import_list(ann, f"{head}{outlines}</body></opml>".encode(), settings=pipeline.settings)
    assert done.added == len(pages)
    pipeline.rows("UPDATE feeds SET registered = 1")
    pipeline.poll()
    feeds = {row["url"]: row for row in pipeline.rows("SELECT * FROM feeds")}
    for name, (_, said) in REFUSED.items():
        feed = feeds[urls[name]]
        assert (feed["last_error_kind"], pipeline.items(feed["id"])) == ("no_list", [])
        assert said in feed["last_error"]
    for name, (_, link, day) in TAKEN.items():
        feed = feeds[urls[name]]
        items = {item["title"]: item for item in pipeline.items(feed["id"])}
        assert (feed["last_error"], sorted(items)) == (None, sorted(TITLES))
        item = items[TITLES[1]]
        assert item["link"] == (link if "://" in link else server.url(HOST, link))
        assert item["pub_date_raw"] == day
        assert item["pub_date_source"] == ("fetched" if day is None else "feed")
    links = {item["link"] for item in pipeline.items(feeds[urls["mixed"]]["id"])}
    assert links == {server.url(HOST, f"/news/{n}-entry") for n in (0, 1, 4, 5)}

    for name, (html, said) in REFUSED.items():
        url = server.route(HOST, f"/by-hand/{name}/news/", Answer(body=html.encode()))
        found = searched(pipeline, url).result
        pipeline.clock.turn(hours=2)
        assert found is not None
        if name == "calendar":
            assert found.offer is not None
            assert (found.outcome, found.offer["is_sure"]) == ("offered", False)
            assert said in " ".join(found.offer["evidence"])
        else:
            assert found.outcome == "failed"
            assert said in (found.error or "")
