"""The extraction of an article: what the reader gets of a page, and pages that have none."""

import re

import pytest

from rss_pipeline.features.full_text.extract import extract_article
from rss_pipeline.features.full_text.model import Extracted
from rss_pipeline.features.full_text.walls import AboutItem
from rss_pipeline_tests.features.full_text.made import MadePage, around, article, hostile_pages, paragraphs_of

URL = "https://paper.example/2026/bridge"


def extracted(html: str, content_type: str = "text/html; charset=utf-8") -> Extracted:
    return extract_article(html.encode(), content_type, URL)


def test_an_article_has_its_paragraphs_links_and_images_and_nothing_of_menu_and_foot() -> None:
    found = extracted(article(image="/bridge.jpg"))
    assert found.verdict == "article"
    lines = found.text.split("\n")
    assert [each for each in paragraphs_of() if each in lines] == [lines[0], *lines[2:]]
    assert '<a href="https://paper.example/source">The source</a>' in found.html
    assert 'src="https://paper.example/bridge.jpg"' in found.html
    for beside in ("Imprint", "Sport", "The harbour bridge"):
        assert beside not in found.text


def test_what_runs_is_not_in_an_article() -> None:
    hostile = (
        "<p onclick='x()'>"
        + "One more sentence of it. " * 9
        + "<a href='javascript:x()'>a</a></p><script>x()</script>"
    )
    found = extracted(article().replace("</article>", f"{hostile}<img src=/x.png onerror=x()></article>"))
    assert found.verdict == "article"
    for each in ("onclick", "javascript", "onerror", "<script"):
        assert each not in found.html


def test_references_are_resolved_against_the_base_of_the_page() -> None:
    page = article(image="bridge.jpg").replace("<title>", '<base href="https://cdn.example/a/"><title>')
    assert 'src="https://cdn.example/a/bridge.jpg"' in extracted(page).html


@pytest.mark.parametrize("charset", ["windows-1251", "koi8-r"])
def test_an_article_is_read_by_the_charset_that_its_page_names(charset: str) -> None:
    text = "".join(
        f"<p>Мост номер {n} через реку открыли утром, и город вышел на набережную {n}.</p>" for n in range(12)
    )
    page = around(f"<article>{text}</article>", head=f'<meta charset="{charset}">')
    found = extract_article(page.encode(charset), "text/html", URL)
    assert found.verdict == "article"
    assert "вышел на набережную 7" in found.text


@pytest.mark.parametrize("page", hostile_pages(), ids=lambda page: page.name)
def test_a_page_in_place_of_an_article_is_none(page: MadePage) -> None:
    found = extract_article(page.body, page.content_type, URL)
    assert found.verdict != "article"
    assert (found.html, found.text) == ("", "")
    kind = page.name.rpartition(" ")[0]
    if kind in ("login", "paywall", "consent", "robot_check", "error_page", "list", "stub", "scripts"):
        assert found.verdict == kind


def test_an_article_about_cookies_and_subscriptions_is_one() -> None:
    said = "The court said that sites which use cookies need consent, and that subscribers only pay once."
    page = article().replace("<article>", f"<article><p>{said}</p>")
    assert said in extracted(page).text


def test_a_page_that_says_nothing_of_the_item_is_another_one() -> None:
    page = article().encode()
    title = "Parliament votes on tariffs for aluminium"
    about = AboutItem(title=title, text="Members debated tariffs until midnight before their vote.")
    assert extract_article(page, "text/html", URL, about=about).verdict == "other_page"
    ours = AboutItem(title="The harbour bridge", text=" ".join(paragraphs_of()[0].split()[:12]))
    assert extract_article(page, "text/html", URL, about=ours).verdict == "article"


def test_a_link_to_another_article_between_the_paragraphs_is_left_out() -> None:
    page = article().replace(
        "</p><p>", '</p><p><a href="/other">Read more: another story of today</a></p><p>', 1
    )
    assert "another story" not in extracted(page).text


TALK = (
    "<p>Comment: the weather on the island in June was bad, and nobody came to the beach with a boat.</p>"
    * 30
)
GUESTS = "".join(
    f"<article><footer>guest {n}, <time>2026-11-03</time></footer>{TALK}</article>" for n in range(3)
)
COMMENTS = {
    "articles in the article": f"{GUESTS}</article>",
    "articles in a section of it": f"<section><h2>Comments</h2>{GUESTS}</section></article>",
    "articles beside main": f"</article></main>{GUESTS}<main>",
    "articles in a section beside main": f"</article></main><section>{GUESTS}</section><main>",
    "articles after the article": f"</article>{GUESTS}",
    "schema.org": f"<div itemscope itemtype='https://schema.org/Comment'>{TALK}</div></article>",
    "schema.org of before": f"<div itemscope itemtype='http://schema.org/UserComments'>{TALK}</div></article>",
    "a role": f"<div role='comment'>{TALK}</div></article>",
    "microformats": f"<div class='h-entry'><div class='u-comment h-cite'>{TALK}</div></div></article>",
    "an id": f"</article><section id='comments'>{TALK}</section>",
    "a class": f"</article><div class='discourse-comments'>{TALK}</div>",
    "details": f"<h2>3 comments</h2><details open><summary>guest</summary>{TALK}</details></article>",
    "a list": f"</article><h2>Kommentare (4)</h2><ul><li>{TALK}</li><li>{TALK}</li></ul>",
}


@pytest.mark.parametrize("comments", COMMENTS.values(), ids=COMMENTS)
def test_comments_of_readers_are_neither_in_an_article_nor_in_its_place(comments: str) -> None:
    lines = extracted(article().replace("</article>", comments)).text.split("\n")
    assert [each for each in paragraphs_of() if each not in lines] == []
    assert [each for each in lines if "weather on the island" in each] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<article><p>The site of the harbour</p>", "</article>"),
        (f"<article><p>{paragraphs_of(2)[0]}</p>", "</article>"),
        ("<section class='commentary'>", "</section>"),
        ("<article><h1>The harbour bridge</h1><section><h2>Discussion</h2>", "</section></article>"),
    ],
    ids=["an article in a frame", "in a frame with a text", "a commentary", "a part of it"],
)
def test_what_only_looks_like_comments_stays(before: str, after: str) -> None:
    page = (
        article().replace("<article>", f"{before}<article>", 1).replace("</article>", f"</article>{after}", 1)
    )
    assert paragraphs_of()[3] in extracted(page).text


STAND_IN = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
PICTURES = {
    "data-src": "<figure><img data-src='/w.jpg'></figure>",
    "a stand-in": f"<figure><img src='{STAND_IN}' data-src='/w.jpg'></figure>",
    "another name": f"<img src='{STAND_IN}' data-deferred='/w.jpg'>",
    "another set": f"<img src='{STAND_IN}' data-late-srcset='/s.jpg 100w, /w.jpg 800w'>",
    "a late source": f"<picture><source data-srcset='/w.jpg 800w'><img src='{STAND_IN}'></picture>",
    "amp-img": "<amp-img src='/w.jpg' width=800 height=600></amp-img>",
    "amp-img with its noscript": "<amp-img src='/w.jpg'><noscript><img src='/w.jpg'></noscript></amp-img>",
    "an own element": "<site-picture data-src='/w.jpg'></site-picture>",
    "an own element, escaped": "<late-picture><noscript>&lt;img src='/w.jpg'&gt;</noscript></late-picture>",
    "noscript": f"<div><img src='{STAND_IN}'><noscript><img src='/w.jpg'></noscript></div>",
    "noscript in full size": "<img data-src='/w-90x60.jpg'><noscript><img src='/w.jpg'></noscript>",
    "in a button": "<figure><button><img src='/w.jpg'> Enlarge</button></figure>",
    "picture in a button": "<figure><button><picture><img src='/w.jpg'></picture></button></figure>",
    "picture in a link": "<figure><a href='/w'><picture><img src='/w.jpg'></picture></a></figure>",
    "in a list": "<ul><li><img src='/w.jpg'></li></ul>",
    "twice": "<img class='wide' src='/w.jpg'><img class='narrow' src='/w.jpg'>",
}


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_a_picture_of_an_article_is_shown_as_in_a_browser(picture: str) -> None:
    found = extracted(article().replace("</p><p>", f"</p>{picture}<p>", 1))
    assert re.findall('<img src="([^"]*)"', found.html) == ["https://paper.example/w.jpg"]
    assert "Enlarge" not in found.text


@pytest.mark.parametrize(
    "picture",
    [
        "<img src='https://pixel.example/t.gif' width=1 height=1>",
        "<div style='background-image: url(/w.jpg)'></div>",
        "<ul><li><a href='/share'><img src='/icon.png'></a></li></ul>",
    ],
    ids=["a tracker", "a background", "icons to share"],
)
def test_what_is_no_picture_of_an_article_is_not_in_it(picture: str) -> None:
    assert "<img" not in extracted(article().replace("</p><p>", f"</p>{picture}<p>", 1)).html


@pytest.mark.parametrize(
    ("title", "text", "on_page", "verdict"),
    [
        ("Ferry runs again", "since last week's storm", "en", "other_page"),
        ("The harbour bridge", "is open to the council and the teacher", "en", "article"),
        ("今日の東京の天気", "", "大阪の火災で住民が避難した。消防は夜まで活動を続けた。", "other_page"),
        ("今日の東京の天気", "", "東京は晴れる。昼から気温が上がり、夜は涼しくなる。", "article"),
    ],
)
def test_a_text_without_a_word_of_the_item_is_another_one(
    title: str, text: str, on_page: str, verdict: str
) -> None:
    """The title of its page does not count: it is there also where the text is that of comments."""
    page = article(title=title)
    if on_page != "en":
        page = around(f"<article><h1>{title}</h1>{f'<p>{on_page}</p>' * 20}</article>", title=title)
    about = AboutItem(title=title, text=text)
    assert extract_article(page.encode(), "text/html", URL, about=about).verdict == verdict
