"""The detection of a page's list without selectors: what is found, how sure it is, and what is none."""

import json
import time
from collections.abc import Sequence
from datetime import date

import pytest

from rss_pipeline.features.pages.detect import detect
from rss_pipeline.features.pages.known import Known
from rss_pipeline.features.pages.links import identity
from rss_pipeline.features.pages.model import Detected
from rss_pipeline.features.pages.page import decode_page
from rss_pipeline_tests.features.pages.site import TITLES, URL, WORDS, entries, link, links, page


def found(html: str, url: str = URL) -> list[str]:
    return [entry.link for entry in detect(html, url).entries]


def titles(detected: Detected) -> list[str | None]:
    return [entry.title for entry in detected.entries]


def test_a_list_of_dated_articles_is_certain_and_has_all_that_a_reader_wants() -> None:
    html = page(
        entries().replace("<p>", '<img src="a.png" width="300"><span class="author">by Ann Lee</span><p>', 1)
    )
    detected = detect(html, URL)
    assert detected.verdict == "certain"
    assert found(html) == links()
    assert titles(detected) == list(TITLES)
    assert [entry.date for entry in detected.entries] == [date(2026, month, 11) for month in range(1, 7)]
    first = detected.entries[0]
    assert (first.image, first.author) == ("https://example.org/news/a.png", "Ann Lee")
    assert first.text is not None
    assert WORDS in first.text


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        ("<p>{n} January 2026</p>", ""),
        ('<p>Thu {n} Jan 2026 · <a href="/a">Ann</a></p>', "Thu {n} Jan 2026 · Ann "),
        ('<time datetime="2026-01-0{n}">{n} days ago</time>', ""),
        ("<p>Posted on 2026-01-0{n}</p>", "Posted on 2026-01-0{n} "),
        ("<p>Meets again</p><p>2026-01-0{n}</p>", "Meets again 2026-01-0{n} "),
        ("<p>01/0{n}/2026</p>", "01/0{n}/2026 "),
    ],
)
def test_a_date_above_a_text_is_no_part_of_it_if_it_was_read(shown: str, kept: str) -> None:
    found = detect(page(entries(date=shown)), URL).entries
    assert [entry.text for entry in found] == [f"{kept.format(n=n)}{WORDS}" for n in range(1, 7)]


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        ('<a href="{link}">Read more</a>', ""),
        ('<p><a href="{link}#c">{n} Briefe</a></p><p><a class="m" href="{link}">Weiterlesen »</a></p>', ""),
        ('<p><a href="{link}">Lire la suite <span>de {title}</span></a></p>', ""),
        ('<p>See <a href="/bridge">the plan</a></p>', " See the plan"),
        ('<p><a href="{link}">All parts</a> are long.</p>', " All parts are long."),
        ('<p><a href="{link}">{own}</a></p>', " {own}"),
    ],
)
def test_links_to_the_entry_that_end_most_texts_are_no_part_of_them(end: str, kept: str) -> None:
    own = ("By day", "By night", "In May", "In the town", "On foot", "By bus")
    values = [{"link": link(n), "title": title, "n": n + 2, "own": own[n]} for n, title in enumerate(TITLES)]
    form = '<li><h2><a href="{link}">{title}</a></h2><p>' + WORDS + "</p>" + end + "</li>"
    html = page(f"<ul>{''.join(form.format(**each) for each in values)}</ul>")
    texts = [entry.text for entry in detect(html, URL).entries]
    assert texts == [WORDS + kept.format(**each) for each in values]


@pytest.mark.parametrize(
    "main",
    [
        pytest.param(
            "<table>"
            + "".join(
                f"<tr><td>No. {n}</td><td>2026-01-0{n + 1}</td><td>{title}</td>"
                f'<td><a href="{link(n)}">PDF</a></td></tr>'
                for n, title in enumerate(TITLES)
            )
            + "</table>",
            id="the rows of a table, whose links all say PDF",
        ),
        pytest.param(
            "".join(
                f'<a class="card" href="{link(n)}"><img src="i.png"><h3>{title}</h3><p>{WORDS}</p>'
                f"<span>{n + 1} March 2026</span></a>"
                for n, title in enumerate(TITLES)
            ),
            id="cards that are one link each",
        ),
        pytest.param(
            "<h1>Index of /news</h1><table><tr><td><a href='/'>Parent directory</a></td><td></td></tr>"
            + "".join(
                f'<tr><td><a href="{link(n)}">{title}</a></td><td>2026-01-0{n + 1} 10:11</td></tr>'
                for n, title in enumerate(TITLES)
            )
            + "</table>",
            id="an index with a link to what is above the page",
        ),
        pytest.param(
            "<div>"
            + "".join(
                f'<h3><a href="{link(n)}">{title}</a></h3><p>March {n + 1}, 2026</p><p>{WORDS}</p>'
                for n, title in enumerate(TITLES)
            )
            + "</div>",
            id="headings and texts without an element around each",
        ),
        pytest.param(
            "".join(
                f"<h2>202{6 - n // 3}</h2><ul>"
                + "".join(
                    f'<li><span>Mar 0{k + 1}</span> <a href="{link(k)}">{TITLES[k]}</a></li>'
                    for k in range(n, n + 3)
                )
                + "</ul>"
                for n in (0, 3)
            ),
            id="an archive by years",
        ),
    ],
)
def test_a_list_is_found_in_each_of_the_usual_forms(main: str) -> None:
    detected = detect(page(main), URL)
    assert detected.verdict == "certain"
    assert [entry.link for entry in detected.entries] == links()
    assert titles(detected) == list(TITLES)
    assert all(entry.date for entry in detected.entries)


def test_the_files_of_entries_are_none_whatever_their_links_look_like() -> None:
    rows = "".join(
        f"<tr><td>{n}.03.2026</td><td>No. {n}</td><td><a href='{link(n)}.html'>The decision on case {n}</a>"
        f"<br>{WORDS}</td><td><a href='{link(n)}.pdf'>PDF, {20 + n} KB</a></td></tr>"
        for n in range(1, 13)
    )
    assert found(page(f"<table>{rows}</table>")) == [
        f"https://example.org{link(n)}.html" for n in range(1, 13)
    ]


def test_a_pinned_entry_that_looks_different_belongs_to_the_list() -> None:
    title = "The office is closed on Friday"
    pinned = f'<article class="top"><h2><a href="{link(8)}">{title}</a></h2><b>1 May 2026</b></article>'
    assert found(page(pinned + entries())) == ["https://example.org/news/8-entry", *links()]


def test_the_first_entry_of_a_dated_list_may_be_shown_larger() -> None:
    lead = f'<a href="{link(8)}"><img></a><h1><a href="{link(8)}">Snow</a></h1>{{}}<p>{WORDS}</p>'
    dated = page(f"<div>{lead.format('<b>1 May 2026</b>')}</div><div>{entries()}</div>")
    assert found(dated) == [f"https://example.org{link(8)}", *links()]
    assert detect(dated, URL).entries[0].date == date(2026, 5, 1)
    undated = page(f"<div>{lead.format('')}</div><div>{entries()}</div>")
    assert found(undated) == [f"https://example.org{link(8)}", *links()]
    assert found(undated.replace(WORDS, "", 1)) == links()


def test_the_jobs_of_each_department_are_one_list() -> None:
    sections = "".join(
        f'<section class="department"><h3>{department}</h3>'
        + "".join(f'<div class="job"><a href="{link(n)}">{TITLES[n]}</a> Berlin</div>' for n in numbers)
        + "</section>"
        for department, numbers in (("Roads", (0, 1)), ("Parks", (2, 3)), ("Schools", (4, 5)))
    )
    assert found(page(sections), "https://example.org/work") == links()


@pytest.mark.parametrize(("end", "is_taken"), [("/apply", False), (".pdf", True)])
def test_of_two_links_the_one_with_the_title_is_the_entry_unless_the_other_is_a_document(
    end: str, is_taken: bool
) -> None:
    items = "".join(
        f'<div class="job"><p><a href="{link(n)}{end}">Apply</a></p>'
        f'<a href="{link(n)}"><h5>{title}</h5><i>Berlin</i></a></div>'
        for n, title in enumerate(TITLES)
    )
    assert found(page(items)) == [f"{each}{end if is_taken else ''}" for each in links()]


def test_the_year_of_a_date_is_that_of_the_heading_above_it() -> None:
    items = "".join(f'<li>0{n + 1}-05 <a href="{link(n)}">{TITLES[n]}</a></li>' for n in range(3))
    detected = detect(page(f"<h2>2024</h2><ul>{items}</ul>"), URL)
    assert [entry.date for entry in detected.entries] == [date(2024, n, 5) for n in (1, 2, 3)]


def test_the_year_above_a_list_is_no_part_of_its_first_date() -> None:
    items = "".join(f'<li>May {9 - n} <a href="{link(n)}">{TITLES[n]}</a></li>' for n in range(3))
    detected = detect(page(f"<h2>2024</h2><ul>{items}</ul>"), URL)
    assert [entry.date for entry in detected.entries] == [date(2024, 5, n) for n in (9, 8, 7)]


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("<dt>{date}</dt><dd>{title}</dd>", id="a term and what it is"),
        pytest.param("<p>{date}</p><h3>{title}</h3>", id="a date above each heading"),
        pytest.param(f"<p>{{date}}</p><h3>{{title}}</h3><div>{WORDS}</div>", id="and a text below"),
        pytest.param(f"<b>{{date}}</b> {{title}}<br>{WORDS}<hr>", id="no element around anything"),
        pytest.param("<h3>{title}</h3><p>{date}</p>", id="a date below each heading"),
    ],
)
def test_of_entries_without_an_element_around_them_each_has_its_own_date(form: str) -> None:
    rows = "".join(
        form.format(date=f"2026-05-0{9 - n}", title=f'<a href="{link(n)}">{title}</a>')
        for n, title in enumerate(TITLES)
    )
    detected = detect(page(f"<dl>{rows}</dl>" if "<dt>" in form else rows), URL)
    assert [entry.date for entry in detected.entries] == [date(2026, 5, 9 - n) for n in range(len(TITLES))]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("٠{n} يناير ٢٠٢٦", date(2026, 1, 1)),
        ("{n} ledna 2026", date(2026, 1, 1)),
        ("{n}. tammikuuta 2026", date(2026, 1, 1)),
        ("2026. január {n}.", date(2026, 1, 1)),
        ("2026 m. sausio {n} d.", date(2026, 1, 1)),
        ("令和8年1月{n}日", date(2026, 1, 1)),
        ("２０２６年１月{n}日", date(2026, 1, 1)),
        ("01/0{n}/2026", None),
        ("yesterday", None),
        ("{n} hours ago", None),
        ("March {n}", None),
        ("31.0{n}.2026", date(2026, 1, 31)),
        ("2026年1月{n}日", date(2026, 1, 1)),
        ("{n} de enero de 2026", date(2026, 1, 1)),
        ("Wed {n} January 2026", date(2026, 1, 1)),
        ("<time>Updated 2026-05-05</time> <i>2026-01-0{n}</i>", date(2026, 1, 1)),
    ],
)
def test_a_date_is_read_in_many_forms_and_never_guessed(shown: str, expected: date | None) -> None:
    detected = detect(page(entries(date=f"<p>{shown}</p>")), URL)
    assert detected.entries[0].date == expected


def test_the_other_dates_of_a_page_decide_whether_the_day_comes_first() -> None:
    html = page(entries(date="<p>0{n}/05/2026</p>").replace("06/05/2026", "26/05/2026"))
    assert detect(html, URL).entries[0].date == date(2026, 5, 1)


@pytest.mark.parametrize("charset", ["euc_jp", "windows-1251", "utf-8"])
def test_the_charset_of_a_meta_element_is_read_where_the_header_names_none(charset: str) -> None:
    title = "Новости города" if charset == "windows-1251" else "図書館のお知らせ"
    html = page(entries(titles=[title, *TITLES])).replace('charset="utf-8"', f'charset="{charset}"')
    text = decode_page(html.encode(charset), "text/html").text
    assert detect(text, URL).entries[0].title == title


def test_relative_links_are_resolved_against_base_href_and_the_final_address() -> None:
    html = page(entries(), head='<base href="//cdn.example.net/site/">').replace(
        'href="/news/', 'href="news/'
    )
    assert found(html)[0] == "https://cdn.example.net/site/news/0-entry"
    assert found(page(entries()), "http://moved.example/x/y")[0] == "http://moved.example/news/0-entry"


def test_javascript_and_mail_links_are_no_entries() -> None:
    bad = "".join(
        f'<article><h2><a href="{each}">Some title that is long</a></h2></article>'
        for each in ("javascript:a()", "mailto:a@example.org", "tel:123")
    )
    assert found(page(entries() + bad)) == links()


def test_an_entry_may_link_to_another_host() -> None:
    html = page(entries().replace(f'href="{link(2)}"', 'href="https://other.example/report"'))
    assert "https://other.example/report" in found(html)


def test_the_versions_of_a_changelog_on_one_page_are_entries_by_their_fragments() -> None:
    main = "".join(
        f'<h2 id="v1.{n}"><a href="#v1.{n}">Version 1.{n}</a> <small>2026-02-0{n}</small></h2>'
        f"<ul><li>{WORDS}</li></ul>"
        for n in range(6, 0, -1)
    )
    detected = detect(page(main), "https://example.org/changelog")
    assert detected.verdict == "certain"
    assert [entry.link for entry in detected.entries][:2] == [
        "https://example.org/changelog#v1.6",
        "https://example.org/changelog#v1.5",
    ]


def test_json_ld_fills_in_what_the_page_does_not_show() -> None:
    posts = [
        {
            "@type": "BlogPosting",
            "url": each,
            "datePublished": "2026-04-02T10:00:00Z",
            "author": {"name": "Ann"},
        }
        for each in links()
    ]
    head = f'<script type="application/ld+json">{json.dumps({"blogPost": posts})}</script>'
    entry = detect(page(entries(date=""), head=head), URL).entries[0]
    assert (entry.date, entry.author) == (date(2026, 4, 2), "Ann")


def test_the_feeds_that_a_page_names_are_listed_whatever_its_list() -> None:
    head = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
    assert detect(page(entries(), head=head), URL).feeds == ("https://example.org/feed.xml",)
    assert detect(page("", head=head), URL).feeds == ("https://example.org/feed.xml",)


DEPARTMENTS = "".join(f'<li><a href="/d/{n}">The department of things no. {n}</a></li>' for n in range(200))
PLACES = ("Aldgate", "Baker Street", "Camden", "Deptford", "Elephant Road", "Fulham")


def things(dates: Sequence[str], titles: Sequence[str] = PLACES) -> str:
    """A list of branches or people, each with a date."""
    return page(
        "".join(
            f'<div><h3><a href="/place/{n}">{title}</a></h3><p>High Street {n}</p><p>{day}</p></div>'
            for n, (title, day) in enumerate(zip(titles, dates, strict=True))
        )
    )


IN_DISORDER = ("2025-04-02", "2025-11-30", "2025-01-15", "2025-06-08", "2025-02-21", "2025-09-09")
FAR_APART = [f"{1990 - 2 * n}-05-04" for n in range(6)]
DAYS = [f"1{n} May 2026" for n in range(6)]
FIND = "https://example.org/find-us"


ARTICLE = f"<h1>A bridge across the river</h1>{f'<p>{WORDS} {WORDS} {WORDS}</p>' * 9}"
MENU = "".join(f'<li><a href="/topic/{n}">Topic {n}</a></li>' for n in range(80))


OTHERS = f"<section><h2>More</h2>{entries(titles=TITLES[:3])}</section>"
OG, LONG = '<meta property="og:type" content="article">', "A bridge is built across the river at last"
COMMENTS = "".join(
    f'<li class="comment"><b>Ann</b> <time datetime="2026-03-0{n}">March {n}</time>'
    f'<p>{WORDS}</p><a href="?reply={n}">Reply</a></li>'
    for n in range(1, 9)
)
WEEK = "<tr>" + "".join(f'<td><a href="/day/{day}">{day}</a></td>' for day in range(7)) + "</tr>"


SECTIONS = ("report", "pay", "permits", "councillors", "schools", "housing", "jobs-and-careers")


def tiles(count: int, *, below: str = "", title: str = "", tag: str = "h3") -> str:
    """Buttons of a home page: a heading, a text, an address of a word."""
    return "".join(
        f'<div class="tile"><{tag}><a href="{below}/{name}">{title}{name.title()}</a></{tag}>'
        f"<p>{WORDS}</p></div>"
        for name in SECTIONS[:count]
    )


CARDS = "".join(
    f'<article><img src="{n}.jpg"><h3><a href="/news/{n}-a-card">{each}</a></h3></article>'
    for n, each in enumerate(TITLES[:5])
)
HOME = "https://example.org/"
IN_MENU = "".join(f'<a href="/the-town-and-its-{name}">{name}</a>' for name in SECTIONS)


@pytest.mark.parametrize(
    "html",
    [
        pytest.param(tiles(4) + CARDS, id="four buttons and five cards"),
        pytest.param(tiles(4).replace("h3>", "b>") + CARDS, id="buttons without headings"),
        pytest.param(CARDS + tiles(7), id="more buttons, below the cards"),
        pytest.param(tiles(3, tag="h2") + CARDS, id="a hero"),
        pytest.param(tiles(7), id="buttons alone"),
        pytest.param(tiles(7, below="/products", title="The bag of strong cotton for "), id="products"),
        pytest.param(tiles(7, below="/category", title="All that was written about "), id="categories"),
        pytest.param(tiles(7, below="/features"), id="features of a product"),
        pytest.param(
            f"<nav>{IN_MENU}</nav>" + tiles(7, below="/the-town-and-its").replace("-its/", "-its-"),
            id="what is in a menu, too",
        ),
        pytest.param("".join(f'<a href="/t/{each}">{each}</a> ' for each in WORDS.split()), id="tags"),
    ],
)
def test_the_buttons_of_a_home_page_are_never_certain_and_its_news_are_found(html: str) -> None:
    detected = detect(page(html), HOME)
    assert detected.verdict != "certain"
    if CARDS in html:
        assert all("/news/" in (entry.link or "") for entry in detected.entries)


@pytest.mark.parametrize(
    ("html", "url"),
    [
        pytest.param(page(ARTICLE), URL + "a-bridge", id="an article"),
        pytest.param(page(ARTICLE + OTHERS), URL + "a-bridge", id="an article with others below it"),
        pytest.param(page(f"<ul>{MENU}</ul>"), "https://example.org/", id="a menu longer than any list"),
        pytest.param(page(entries()), URL + "a-bridge-is-built-across", id="an address of many words"),
        pytest.param(page(entries()), URL + "2026/05/bridge.html", id="an address with a day and a name"),
        pytest.param(
            page(f"<h1>{LONG}</h1><p>{WORDS}</p>{entries()}", head=OG, title=f"{LONG} - The Paper"),
            "https://example.org/4711",
            id="a short article with others below it, at any address",
        ),
        pytest.param(page(f"<form>{entries()}<input type=password></form>"), URL, id="a login"),
        pytest.param(page(entries(date="<b>€ 19.90</b>")), "https://example.org/shop/", id="a shop"),
        pytest.param(page(entries()), "https://example.org/docs/", id="documentation"),
        pytest.param(page(entries()), "https://docs.example.org/whatsnew", id="and its own host"),
        pytest.param(page(entries(date="")), "https://example.org/team/", id="people, things, answers"),
        pytest.param(
            page(entries(date="") + '<a href="/cart">Cart</a>'), "https://example.org/", id="a shop's home"
        ),
        pytest.param(page(entries()), "https://example.org/?s=bridge", id="the results of a search"),
        pytest.param(
            page(f"<p>{WORDS}</p><ol>{COMMENTS}</ol>"), URL + "a-bridge", id="an article's comments"
        ),
        pytest.param(page(entries(), title="404 - Page not found"), URL, id="an error page"),
        pytest.param(page(f"<table>{WEEK * 5}</table>"), URL, id="a calendar"),
        pytest.param(things(["Closed on 27 May 2026"] * 6), FIND, id="branches with one date"),
        pytest.param(things(IN_DISORDER), FIND, id="dates in no order: people, by their names"),
        pytest.param(things(FAR_APART), FIND, id="dates far apart: what was opened when"),
        pytest.param(things(sorted(IN_DISORDER)), "https://example.org/branches", id="an address of places"),
        pytest.param(things([""] * 6, DAYS), FIND, id="days as titles"),
        pytest.param(
            page(entries().replace("h2>", "b>").replace("/news/", "/p/") + f"<ul>{DEPARTMENTS}</ul>"),
            URL,
            id="a menu longer than the dated list",
        ),
        pytest.param(
            page(entries(date="") + f"<ul>{DEPARTMENTS}</ul>"), URL, id="and longer than one with headings"
        ),
        pytest.param(page(f"<p>{WORDS}</p>"), URL, id="no links"),
        pytest.param("", URL, id="nothing"),
        pytest.param('{"version": 1}', URL, id="no page"),
    ],
)
def test_a_page_without_a_list_is_never_certain(html: str, url: str) -> None:
    assert detect(html, url).verdict != "certain"


@pytest.mark.parametrize(
    ("html", "url"),
    [
        pytest.param(page(f"<h1>News</h1>{entries()}", head=OG), URL, id="a list that says it is an article"),
        pytest.param(page(entries(date="<b>1 May 2026</b>")), URL + "today", id="news of one day"),
        pytest.param(page(entries()), URL + "2026/05/", id="an archive of a month"),
        pytest.param(
            page(entries().replace("/news/", "/releases/tag/")), "https://example.org/releases", id="releases"
        ),
        pytest.param(page(entries()), URL + "all-our-latest-press-releases", id="a long name of a list"),
        pytest.param(
            things(IN_DISORDER, TITLES), "https://example.org/jobs/berlin", id="jobs by their names"
        ),
        pytest.param(
            page(entries(date="<b>1{n} May 2026</b>")), "https://example.org/log-book", id="oldest first"
        ),
    ],
)
def test_dates_of_entries_are_dates_of_news_where_all_else_says_so(html: str, url: str) -> None:
    assert detect(html, url).verdict == "certain"


def test_a_menu_that_is_longer_than_the_list_is_no_list() -> None:
    assert found(page(f"<nav><ul>{DEPARTMENTS}</ul></nav>{entries(date='')}")) == links()


def test_a_page_that_scripts_make_says_that_it_needs_a_browser() -> None:
    detected = detect('<html><body><div id="root"></div><script src="app.js"></script></body></html>', URL)
    assert detected.verdict == "none"
    assert "needs a browser" in detected.evidence[0]


def test_a_page_of_frames_says_so() -> None:
    html = '<html><frameset cols="20%,80%"><frame src="a.html"><frame src="b.html"></frameset></html>'
    assert "frames" in detect(html, URL).evidence[0]


def test_what_changes_around_the_entries_changes_none_of_them() -> None:
    advert = '<div class="ad-{0}"><a href="https://ads.example/{0}">Buy {0} now, it is cheap</a></div>'
    one = detect(page(entries(), around=advert.format(1)), URL)
    two = detect(
        page(advert.format(7) + entries().replace("</article>", "<i>12 comments</i></article>")), URL
    )
    assert [(each.link, each.title, each.date) for each in one.entries] == [
        (each.link, each.title, each.date) for each in two.entries
    ]


REDESIGNED = "<div><section>" + "".join(
    f'<div class="row"><div><div><b><a href="{link(n)}">{title}</a></b></div></div><div>{WORDS}</div></div>'
    for n, title in enumerate(("A quite new entry", *TITLES[:5]), start=9)
) + "</section></div>"  # fmt: skip


def known_of(urls: Sequence[str]) -> Known:
    return Known.of_list([identity(url) for url in urls])


def test_a_redesigned_list_is_known_by_its_links() -> None:
    known = known_of([f"https://example.org{link(n)}" for n in range(10, 15)])
    assert detect(page(REDESIGNED), "https://example.org/").verdict == "ask"
    again = detect(page(REDESIGNED), "https://example.org/", known=known)
    assert again.verdict == "certain"
    assert [entry.link for entry in again.entries] == [f"https://example.org{link(n)}" for n in range(9, 15)]


def test_a_sidebar_that_looks_like_a_redesigned_list_is_none_of_it() -> None:
    known = known_of(links()[1:])
    beside = entries(titles=[f"An old {title}" for title in TITLES[:4]]).replace("/news/", "/news/1")
    html = page(f'<div class="first">{entries()}</div><div class="second">{beside}</div>')
    assert [entry.link for entry in detect(html, URL, known=known).entries] == links()


def test_a_list_that_is_longer_now_is_judged_by_as_many_entries_as_it_had() -> None:
    known = known_of(links(4))
    others = [f"https://example.org/other/{n}" for n in range(6)]
    assert known.is_same_list([others[0], *links(3), *others[1:]])
    assert not known.is_same_list([*others[:3], *links(3)])


def test_a_list_that_was_taken_is_its_links_where_no_structure_shows_it_any_more() -> None:
    known = known_of(links(4))
    one, two, three, four = (f'<a href="{each}">The entry of {each}</a>' for each in links(4))
    html = page(f"<h2>{one}</h2><p>{WORDS}</p><div><b>{two}</b></div><ul><li>{three}</li></ul><i>{four}</i>")
    assert detect(html, URL, known=known).verdict != "certain"
    again = detect(html, URL, known=known, was_taken=True)
    assert (again.verdict, [entry.link for entry in again.entries]) == ("certain", links(4))
    assert detect(html, URL, known=known_of(links()), was_taken=True).verdict != "certain"


def test_a_list_with_none_of_the_known_links_has_to_be_confirmed() -> None:
    assert (
        detect(page(entries()), URL, known=known_of(["https://example.org/old/1", *links(2)])).verdict
        == "ask"
    )


@pytest.mark.slow
def test_detection_takes_time_by_the_size_of_the_page() -> None:
    def seconds(count: int) -> float:
        html = page(
            "<ul>"
            + "".join(f'<li><a href="/p/{n}">Title no. {n}</a> 2026-01-02</li>' for n in range(count))
            + "</ul>"
        )
        began = time.thread_time()
        assert len(detect(html, URL).entries) == count
        return time.thread_time() - began

    few, many = (min(seconds(count) for _ in range(5)) for count in (400, 1_600))
    assert many < 8 * few
