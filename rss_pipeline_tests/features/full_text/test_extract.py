"""The extraction of an article: what the reader gets of a page, and pages that have none."""

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
