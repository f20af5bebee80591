"""Bodies on pages: images that are archived, links to the others, and nothing that moves or is requested."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.collector.sanitize.html import safe_html, with_link_rel
from rss_pipeline.collector.sanitize.item_body import LINK_REL
from rss_pipeline.reader.page_html import PlacedImage, page_html
from rss_pipeline_tests.support.cost import costs_less_than

ARCHIVED = "https://archive.invalid/"
LAZY = 'loading="lazy" decoding="async"'
OUT = 'rel="noopener noreferrer" target="_blank"'


def archive(sizes: dict[str, ImageSize | None]) -> Callable[[str], PlacedImage | None]:
    def placed(src: str) -> PlacedImage | None:
        name = src.removeprefix("https://x.example/")
        return PlacedImage(f"/api/images/{name}", sizes[name]) if name in sizes else None

    return placed


def shown(html: str, *, shows: bool = False, **sizes: ImageSize | None) -> str:
    """The HTML of a publisher on a page; `a=None` is an archived https://x.example/a of unknown size."""
    cleaned = safe_html(html, bases=("https://x.example/",))
    assert cleaned is not None
    return page_html(with_link_rel(cleaned, LINK_REL), placed=archive(sizes), shows_publishers_images=shows)


def image_link(url: str, words: str) -> str:
    return f'<a class="image-link" href="{url}" {OUT} dir="auto">{words}</a>'


def test_an_archived_image_is_shown() -> None:
    assert shown('<img src="/a" alt="A cat">', a=ImageSize(6, 4)) == (
        f'<img src="/api/images/a" width="6" height="4" alt="A cat" {LAZY}>'
    )


@pytest.mark.parametrize(
    ("attributes", "size", "expected"),
    [
        ("", (600, 400), 'width="600" height="400"'),
        ("width=300", (600, 400), 'width="300" height="200"'),
        ("height=200", (600, 400), 'width="300" height="200"'),
        # The browser takes the proportions of the file, so other ones would move the text.
        ("width=300 height=10", (600, 400), 'width="300" height="200"'),
        ("width=300px", (600, 400), 'width="300" height="200"'),
        ("width=100%", (600, 400), 'width="600" height="400"'),
        ("width=99999 height=5000000", (600, 400), 'width="600" height="400"'),
        ("width=2", (60_000, 1), 'width="2" height="1"'),
        ("width=300 height=200", None, 'width="300" height="200"'),
        ("width=300", None, 'class="unsized"'),
        ("width=300 height=auto", None, 'class="unsized"'),
        ("width=300 height=20000", None, 'class="unsized"'),
        ("", None, 'class="unsized"'),
    ],
)
def test_an_image_says_its_size_with_the_proportions_of_the_file(
    attributes: str, size: tuple[int, int] | None, expected: str
) -> None:
    found = shown(f"<img src=/a {attributes}>", a=ImageSize(*size) if size else None)
    assert found == f'<img src="/api/images/a" {expected} alt="" {LAZY}>'


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<img src="/b">', f" {image_link('https://x.example/b', 'Image at x.example')} "),
        (
            '<img src="http://Y.example:81/b?c&d" alt=" A <cat> ">',
            f" {image_link('http://Y.example:81/b?c&amp;d', 'Image at y.example: A &lt;cat&gt;')} ",
        ),
        ('<img src="https://[/b" alt=c>', "c"),
        ("<img alt=c>", "c"),
        ("<img>", ""),
        ('<img src="mailto:a@x.example">', ""),
    ],
)
def test_an_image_that_is_not_archived_is_a_link(html: str, expected: str) -> None:
    assert shown(html) == expected


def test_an_image_in_its_own_address_is_shown_for_nothing_is_requested() -> None:
    assert shown('<img src="data:image/png;base64,AA" width="6" height="4" alt="A">') == (
        f'<img src="data:image/png;base64,AA" width="6" height="4" alt="A" {LAZY}>'
    )


def test_an_image_in_a_link_is_a_link_behind_it() -> None:
    first = image_link("https://x.example/b", "Image at x.example")
    second = image_link("https://x.example/c", "Image at x.example: C")
    found = shown('<a href="/page">one <img src="/b"> two <img src="/c" alt=C></a> three')
    assert found == (f'<a href="https://x.example/page" {OUT}>one Image two C</a> {first}  {second}  three')


def test_a_link_to_its_own_image_is_one_link() -> None:
    assert shown('<a href="/b.png"><img src="/b.png"></a>') == (
        f'<a href="https://x.example/b.png" {OUT}>Image at x.example</a>'
    )


def test_no_link_is_within_another() -> None:
    depth = most = 0

    class Depth(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            nonlocal depth, most
            depth += tag == "a"
            most = max(most, depth)

        def handle_endtag(self, tag: str) -> None:
            nonlocal depth
            depth -= tag == "a"

    html = (
        '<a href="/1"><b><img src="/b"><i>x</a><img src="/c"></i></b>'
        '<a name=n><img src="/d"></a><a href="/e">y'
    )
    Depth().feed(shown(html))
    assert (depth, most) == (0, 1)


def test_with_the_preference_publishers_send_their_images_and_learn_no_page() -> None:
    assert shown('<img src="/b" width=3 height=2 srcset="/c 2x">', shows=True) == (
        f'<img src="https://x.example/c" referrerpolicy="no-referrer" width="3" height="2" alt="" {LAZY}>'
    ).replace("/c", "/b")
    assert "unsized" in shown('<img src="/b">', shows=True)


@pytest.mark.parametrize("shows", [True, False])
@pytest.mark.parametrize("size", ["width=1 height=1", "width=0 height=0", "width=1 height=0", "height=1px"])
def test_an_image_that_counts_readers_is_left_out(size: str, shows: bool) -> None:
    assert shown(f"a<img src=https://count.example/p {size}>b", shows=shows) == "ab"


def test_audio_and_video_are_requested_once_they_are_played() -> None:
    html = (
        '<audio src="/a" autoplay></audio><video poster="/p" width=99999 height=9>'
        '<source src="/v" type="video/mp4"><track src="/t"></video>'
    )
    assert shown(html) == (
        '<audio src="https://x.example/a" controls="" preload="none"></audio>'
        '<video controls="" height="9" preload="none">'
        '<source src="https://x.example/v" type="video/mp4"></video>'
    )
    assert 'poster="https://x.example/p"' in shown(html, shows=True)


def test_a_poster_is_shown_where_it_is_archived() -> None:
    html = '<video src="/v" poster="/p"></video>'
    assert ' poster="/api/images/p"' in shown(html, p=ImageSize(6, 4))
    assert "poster" not in shown(html)


def test_a_player_of_another_site_is_a_link_that_says_which_frame_it_has() -> None:
    assert shown('<iframe src="https://www.youtube.com/embed/abcDEF123_-?start=9"></iframe>') == (
        '<a class="embedded video" data-frame="https://www.youtube-nocookie.com/embed/abcDEF123_-?autoplay=1'
        '&amp;start=9" data-origin="" href="https://www.youtube.com/watch?v=abcDEF123_-&amp;t=9s"'
        f" {OUT}>Video at YouTube</a>"
    )
    other = '<iframe src="https://maps.example/"></iframe>'
    assert shown(other) == f'<a href="https://maps.example/" {OUT}>Embedded page at maps.example</a>'


def test_a_publisher_s_link_is_no_frame_of_its_choice() -> None:
    html = '<a class="embedded" data-frame="https://evil.example/" href="{}">x</a><iframe></iframe>'
    assert shown(html.format("https://evil.example/")) == f'<a href="https://evil.example/" {OUT}>x</a>'
    assert "evil" not in shown(html.format("https://vimeo.com/1"))


def test_links_to_footnotes_stay_on_the_page() -> None:
    found = shown('<a href="#n">1</a><a name="n">a</a><img id="m" src="/a"><a href="#m">b</a>', a=None)
    to_note, to_image = re.findall('<a href="#([^"]+)" rel="noopener noreferrer">', found)
    assert f'<span id="{to_note}">a</span>' in found
    assert f' id="{to_image}"' in found
    assert "_blank" not in found


def test_formulas_and_drawings_are_as_they_are() -> None:
    html = '<svg viewBox="0 0 2 1" width="2"><path d="M0 0"></path></svg><math alttext="x"><mi>x</mi></math>'
    assert shown(html) == html


def test_a_picture_is_its_image() -> None:
    html = '<picture><source srcset="/big 2x" type="image/webp"><img src="/a"></picture>'
    assert shown(html, a=ImageSize(1, 2)).count("<") == 1


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<a href="/b">c</a>', f'<a href="https://x.example/b" {OUT}>c</a>'),
        ('<a href="mailto:a@x.example">c</a>', f'<a href="mailto:a@x.example" rel="{LINK_REL}">c</a>'),
        ('<a name="top">c</a>', "<span>c</span>"),
        ("<main><nav>a</nav></main>", "<div><div>a</div></div>"),
        ("<h1>a</h1><h2>b</h2>", "<h2>a</h2><h3>b</h3>"),
        ("<h4>a</h4><h5>b</h5>", "<h2>a</h2><h3>b</h3>"),
        ("<h1>a</h1><h6>b</h6>", "<h2>a</h2><h6>b</h6>"),
        ("a<hr>b", "a<hr>b"),
        ('<p lang="en-GB" dir="rtl">a</p>', '<p lang="en-GB" dir="rtl">a</p>'),
        ('<p lang="x&gt;" title="<img src=/b>">a</p>', None),
        ("a &lt;img src=/b&gt; b", "a &lt;img src=/b&gt; b"),
    ],
)  # fmt: skip
def test_what_an_item_says_of_its_parts_fits_into_the_page(html: str, expected: str | None) -> None:
    found = shown(html)
    if expected is None:
        assert found.startswith("<p title=")
        assert "image-link" not in found
    else:
        assert found == expected


@pytest.mark.slow
def test_a_page_of_5000_images_is_made_in_a_second() -> None:
    html = "".join(f'<p><a href="/p{n}"><img src="/i{n}.png" alt="a&amp;b"></a></p>' for n in range(5_000))
    with costs_less_than(5):
        found = shown(html)
    assert found.count('class="image-link"') == 5_000
    assert not re.search("<img", found)


def test_attributes_and_tags_without_end_take_no_time() -> None:
    for html in ("<p " + 'a="b" ' * 100_000, "<" * 500_000, '<p title="' + "x" * 900_000):
        with costs_less_than(2):
            page_html(html, placed=archive({}), shows_publishers_images=False)


NOTE = (
    '<p>Claim<sup id="r1"><a href="#n1">1</a></sup></p>'
    '<ol><li id="n1">Source <a href="#r1">back</a></li></ol>'
)
BASES = ("https://x.example/posts/1", "https://x.example/", "https://x.example/feed")
_ID = re.compile(r"user-content-[0-9a-f]{8}-(\d+)-[^\"]*")


def noted(html: str, *, bases: tuple[str | None, ...] = BASES) -> str:
    """The HTML of a publisher on a page, with the addresses of its item; our ids by their numbers."""
    cleaned = safe_html(html, bases=bases)
    assert cleaned is not None
    cleaned = with_link_rel(cleaned, LINK_REL)
    found = page_html(cleaned, placed=archive({}), shows_publishers_images=False)
    assert found.count(' id="') == len(re.findall(f' id="{_ID.pattern}"', found)), found
    return _ID.sub(r"note-\1", found)


ON_PAGE = (
    f'<p>Claim<sup id="note-2"><a href="#note-1" rel="{LINK_REL}">1</a></sup></p>'
    f'<ol><li id="note-1">Source <a href="#note-2" rel="{LINK_REL}">back</a></li></ol>'
)


@pytest.mark.parametrize(
    "html",
    [
        NOTE,
        NOTE.replace("#n1", "https://x.example/posts/1#n1").replace("#r1", "https://X.example/posts/1#r1"),
        NOTE.replace('id="n1"', 'id="n1" id="other"').replace('id="r1"', "id=r1 class=x"),
        NOTE.replace("n1", "fn:1").replace("r1", "fnref:1"),
        NOTE.replace("n1", "fußnote").replace("r1", "zurück"),
        NOTE.replace("n1", "a b").replace("#a b", "#a%20b"),
        NOTE.replace("n1", "list").replace("r1", "main"),
        NOTE + '<p id="unused"></p>',
    ],
    ids=["as usual", "absolute", "more attributes", "colons", "letters", "a space", "our ids", "unused"],
)
def test_a_footnote_keeps_its_place_whatever_its_publisher_calls_it(html: str) -> None:
    assert noted(html).replace("<p></p>", "") == ON_PAGE


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<a href="#n">x</a>', f'<a href="https://x.example/posts/1#n" {OUT}>x</a>'),
        (
            '<a href="/posts/2#n">x</a><b id="n">y</b>',
            f'<a href="https://x.example/posts/2#n" {OUT}>x</a><b>y</b>',
        ),
        ('<a href="#">x</a><b id="">y</b>', f'<a href="https://x.example/posts/1#" {OUT}>x</a><b>y</b>'),
    ],
)
def test_a_link_to_no_part_of_the_article_leads_to_its_page(html: str, expected: str) -> None:
    assert noted(html) == expected


def test_no_id_of_a_publisher_is_one_on_our_page() -> None:
    tags = ["p", "i", "ol", "li", "table", "td", "th", "pre", "h2", "a", "img", "audio", "video", "details"]
    html = "".join(f'<{tag} id="list" name="say" id=x>x</{tag}>' for tag in tags)
    media = '<video id="list" src="/v"><source id="list" src="/w"></video><audio id=list src=/a></audio>'
    found = noted(f"{html}{media}<a href='#other'>x</a><b id='other'>y</b>")
    assert re.findall(r' (?:id|name)="[^"]*"', found) == [' id="note-1"']
    # Nor where the item's addresses are not known.
    assert " name=" not in noted(html, bases=())


def test_what_scrolls_in_itself_is_reached_by_keyboard() -> None:
    group = 'tabindex="0" role="group" aria-label='
    assert shown("<table><tr><td>a</td></tr></table>") == (
        f'<div class="scrolls" {group}"Table"><table><tbody><tr><td>a</td></tr></tbody></table></div>'
    )
    assert shown('<pre lang="en">a</pre>') == f'<pre lang="en" {group}"Preformatted text">a</pre>'
    formula = '<math display="block"><mi>x</mi></math>'
    assert shown(formula) == formula.replace('block"', 'block" tabindex="0"')
    # A table in a table scrolls with it.
    nested = shown("<table><tr><td><table><tr><td>a</td></tr></table></td></tr></table><table></table>")
    assert nested.count('class="scrolls"') == nested.count("</table></div>") == 2
    assert nested.index("</table></td>") < nested.index("</table></div>")


def test_many_footnotes_take_no_time() -> None:
    note = '<a id="r{n}" href="#n{n}">x</a><span id="n{n}"></span>'
    with costs_less_than(5):
        found = noted("".join(note.format(n=n) for n in range(2_400)))
    assert found.count(' id="note-') == 2_400
