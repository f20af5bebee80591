"""Elements that a reader does not show: what is shown in their place, on every door."""

import re
from urllib.parse import urljoin

import pytest

from rss_pipeline.collector.sanitize.embeds import FRAME_HOSTS, player
from rss_pipeline.collector.sanitize.html import plain_text, safe_html, text_of, with_images
from rss_pipeline.pipeline.read.frames import item_page
from rss_pipeline.pipeline.read.terminal_text import item_text
from rss_pipeline_tests.support.cost import costs_less_than

PAGE = "https://site.example/posts/1"
BASES = (None, PAGE, "https://site.example/", "https://site.example/feed")


def shown(html: str) -> str:
    """As pages, apps and topics have it."""
    return safe_html(html, bases=BASES) or ""


def texts(html: str) -> list[str]:
    """As `item`, summaries and titles, and the search have it: the words of each."""
    found = [
        " ".join(block.text for block in item_text(html, bases=BASES).blocks),
        text_of(html, limit=1_000),
        plain_text(html),
    ]
    return [" ".join(re.sub(r" ?\[\d+\]", "", text).split()) for text in found]


@pytest.mark.parametrize(
    ("html", "href", "words"),
    [
        ('<iframe width=560 src="https://www.youtube.com/embed/abcDEF123_-?rel=0" allowfullscreen></iframe>',
         "https://www.youtube.com/watch?v=abcDEF123_-", "Video at YouTube"),
        ('<iframe src="//www.youtube-nocookie.com/embed/abcDEF123_-" title="YouTube video player"></iframe>',
         "https://www.youtube.com/watch?v=abcDEF123_-", "Video at YouTube"),
        ('<iframe data-src="https://player.vimeo.com/video/76979871" title="A film"></iframe>',
         "https://vimeo.com/76979871", "Video at Vimeo: A film"),
        ('<iframe src="about:blank" data-cookie-src="https://open.spotify.com/embed/track/4uLU6hM"></iframe>',
         "https://open.spotify.com/track/4uLU6hM", "Audio at Spotify"),
        ('<iframe src="https://www.maps.example/m?a=1&amp;b=2" title="The town">x <b>y</b></iframe>',
         "https://www.maps.example/m?a=1&amp;b=2", "Embedded page at maps.example: The town"),
        ('<iframe src="/chart?<script>"></iframe>',
         "https://site.example/chart?&lt;script&gt;", "Embedded page at site.example"),
        ('<iframe src="https://user:secret@x.example/"></iframe>', "https://user:secret@x.example/",
         "Embedded page at x.example"),
        ('<embed src="https://x.example/e.swf" type="application/x-shockwave-flash">',
         "https://x.example/e.swf", "Embedded page at x.example"),
        ('<object data="/paper.pdf" type="application/pdf">No plug-in.</object>',
         "https://site.example/paper.pdf", "Embedded page at site.example"),
        ('<object><param name="movie" value="https://www.youtube.com/v/abcDEF123_-">'
         '<embed src="https://www.youtube.com/v/abcDEF123_-"></object>',
         "https://www.youtube.com/watch?v=abcDEF123_-", "Video at YouTube"),
        ('<embed src="http://www.youtube.com/v/abcDEF123_-&amp;hl=en&fs=1">',
         "https://www.youtube.com/watch?v=abcDEF123_-", "Video at YouTube"),
        ('<amp-youtube data-videoid="abcDEF123_-" width=1 height=1></amp-youtube>',
         "https://www.youtube.com/watch?v=abcDEF123_-", "Video at YouTube"),
        ('<lite-youtube videoid="abcDEF123_-"></lite-youtube>',
         "https://www.youtube.com/watch?v=abcDEF123_-", "Video at YouTube"),
        ('<amp-iframe src="https://x.example/a"></amp-iframe>', "https://x.example/a",
         "Embedded page at x.example"),
        ('<amp-twitter data-tweetid="88" width=9 height=9></amp-twitter>', "https://x.com/i/status/88",
         "Embedded page at x.com"),
        ('<amp-soundcloud data-trackid="24"></amp-soundcloud>',
         "https://w.soundcloud.com/player/?url=https%3A%2F%2Fapi.soundcloud.com%2Ftracks%2F24",
         "Audio at SoundCloud"),
        ('<blockquote class="instagram-media" data-instgrm-permalink="https://www.instagram.com/p/A_b/"></blockquote>',
         "https://www.instagram.com/p/A_b/", "Embedded page at instagram.com"),
        ('<blockquote class="tiktok-embed" cite="https://www.tiktok.com/@a/video/1"><section></section></blockquote>',
         "https://www.tiktok.com/@a/video/1", "Embedded page at tiktok.com"),
        ('<div class="fb-post" data-href="https://www.facebook.com/a/posts/1"></div>',
         "https://www.facebook.com/a/posts/1", "Embedded page at facebook.com"),
        ('<script src="https://gist.github.com/u/0a.js?file=a.py"></script>', "https://gist.github.com/u/0a",
         "Embedded page at gist.github.com"),
        ("<iframe srcdoc='<p>made here</p>'></iframe>", PAGE, "Embedded page at site.example"),
    ],
)  # fmt: skip
def test_a_frame_or_plug_in_leaves_a_link_with_the_name_of_its_site(html: str, href: str, words: str) -> None:
    assert re.fullmatch(
        f'<p>see</p> <a (?:class="embedded" )?href="{re.escape(href)}">{re.escape(words)}</a>',
        shown(f"<p>see</p>{html}"),
    )
    for text in texts(f"<p>see</p>{html}"):
        # Without the address of its page a relative one has no site.
        known = words.removesuffix(" at site.example") if "//" not in html else words
        assert text.startswith(f"see {known}") or "srcdoc" in html, text


def test_the_page_of_an_opened_item_has_the_link_of_a_frame() -> None:
    item = {
        **dict.fromkeys(("title", "feed_title", "author", "authors", "base_url", "feed_link", "feed_url")),
        "link": PAGE, "pub_date": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    page = item_page(item, "<p>see</p><iframe src='https://www.youtube.com/embed/abcDEF123_-'></iframe>")
    assert "https://www.youtube.com/watch?v=abcDEF123_-" in page
    assert "Video at YouTube" in page
    assert page.count("<iframe") == 1


@pytest.mark.parametrize(
    "html",
    [
        '<iframe src="https://tags.example/ns.html" width=0 height=0></iframe>',
        '<iframe src="https://tags.example/ns.html" style="display: none; visibility:hidden"></iframe>',
        '<iframe src="https://tags.example/ns.html" style="width:1px;height:1px"></iframe>',
        "<iframe src='javascript:alert(1)'></iframe><iframe src=about:blank></iframe><iframe></iframe>",
        "<iframe hidden src=https://tags.example/></iframe><object></object><embed>",
        "<object data=https://x.example/ width=1 height=1></object>",
    ],
)
def test_a_frame_that_readers_do_not_see_leaves_nothing(html: str) -> None:
    assert shown(f"a{html}b") == "ab"


def test_a_post_that_is_written_here_stays_as_it_is() -> None:
    said = '<blockquote class="instagram-media" data-instgrm-permalink="https://i.example/p/"><p>A post</p>'
    assert shown(said) == "<blockquote><p>A post</p></blockquote>"
    assert (
        shown('<blockquote class="tiktok-embed" cite="javascript:alert(1)"></blockquote>')
        == "<blockquote></blockquote>"
    )
    assert shown('<blockquote cite="https://x.example/"></blockquote>') == "<blockquote></blockquote>"
    assert shown('<script src="https://gist.github.com.evil.example/u/0a.js"></script>') == ""


def test_a_list_of_tasks_says_which_are_done() -> None:
    html = '<ul><li><input type="checkbox" checked > a<li><input type=checkbox> b</ul><input type=text>'
    assert shown(html) == "<ul><li>\u2611 a</li><li>\u2610 b</li></ul>"
    assert texts(html) == ["\u2611 a \u2610 b", "\u2611 a \u2610 b", "a b"]


def test_links_of_parts_of_a_picture_and_buttons_that_are_pictures_stay() -> None:
    html = (
        '<img src=m.png usemap="#m"><map name=m><area href="/north" alt="North &amp; east" coords="1,2,3,4">'
        '<AREA href="/north"><area nohref><area href="javascript:x"><area href="https://o.example/"></map>'
        '<input type="image" src="b.png" alt="Buy" onerror=x>'
    )
    assert shown(html) == (
        '<img src="https://site.example/posts/m.png">'
        ' <a href="https://site.example/north">North &amp; east</a>'
        '  <a href="https://o.example/">o.example</a> <img src="https://site.example/posts/b.png" alt="Buy">'
    )
    assert all("North & east o.example" in text for text in texts(html))


def test_a_player_has_controls_in_every_app() -> None:
    assert shown("<audio src=a.mp3 autoplay></audio>") == (
        '<audio src="https://site.example/posts/a.mp3" controls=""></audio>'
    )


def test_a_file_that_is_embedded_is_shown_as_what_it_is() -> None:
    assert shown('<embed src="a.png"><object data="b" type="image/svg+xml" title="B"></object>') == (
        '<img src="https://site.example/posts/a.png" alt=""><img src="https://site.example/posts/b" alt="B">'
    )
    assert shown('<embed src="a.mp3"><object data="b" type="video/mp4">x</object>') == (
        '<audio src="https://site.example/posts/a.mp3" controls=""></audio>'
        '<video src="https://site.example/posts/b" controls=""></video>'
    )
    with_fallback = '<object data="a.svg" type="image/svg+xml"><img src="a.png" alt="A"></object>'
    assert shown(with_fallback) == '<img src="https://site.example/posts/a.png" alt="A">'


def test_a_player_of_the_table_is_found_again_from_its_page() -> None:
    for url in (
        "https://www.youtube.com/embed/abcDEF123_-?start=30", "https://youtu.be/abcDEF123_-?t=30s",
        "https://www.youtube.com/shorts/abcDEF123_-", "https://m.youtube.com/watch?v=abcDEF123_-",
        "https://www.youtube.com/embed/videoseries?list=PL0-_", "https://player.vimeo.com/video/1?h=a1",
        "https://www.dailymotion.com/embed/video/x7", "https://geo.dailymotion.com/player.html?video=x7",
        "https://player.twitch.tv/?video=v1&parent=x", "https://player.twitch.tv/?channel=a_b",
        "https://clips.twitch.tv/embed?clip=A-b", "https://embed.ted.com/talks/lang/de/a_b",
        "https://archive.org/embed/a.b", "https://player.bilibili.com/player.html?bvid=BV1",
        "https://rutube.ru/play/embed/1/", "https://streamable.com/e/a1",
        "https://w.soundcloud.com/player/?url=https%3A//api.soundcloud.com/tracks/1&color=%23f00",
        "https://open.spotify.com/embed-podcast/episode/a1", "https://open.spotify.com/embed/show/a1",
        "https://bandcamp.com/EmbeddedPlayer/album=1/size=large/", "https://widget.deezer.com/widget/dark/track/1",
        "https://www.mixcloud.com/widget/iframe/?feed=%2Fa%2Fb%2F",
        "https://embed.podcasts.apple.com/us/podcast/a/id1?i=2",
    ):  # fmt: skip
        found = player(url)
        assert found is not None, url
        assert player(found.page) == found
        assert any(found.frame.startswith(f"{host}/") for host in FRAME_HOSTS)


@pytest.mark.parametrize(
    "url",
    [
        "https://www.youtube.com.evil.example/embed/abcDEF123_-",
        "https://www.youtube.com@evil.example/embed/abcDEF123_-",
        "https://evil.example/https://www.youtube.com/embed/abcDEF123_-",
        "https://www.youtube.com/embed/abcDEF123_-/../../redirect",
        "https://www.youtube.com/embed/live_stream?channel=UC1",
        "javascript:https://www.youtube.com/embed/abcDEF123_-",
        "https://video.example/videos/embed/abcDEF123_-",
        "http://[",
    ],
)
def test_other_addresses_are_of_no_player(url: str) -> None:
    assert player(url) is None


@pytest.mark.parametrize(
    ("html", "images"),
    [
        ("<noscript><img src=a.jpg></noscript>", ["a.jpg"]),
        ("<p>x<noscript><figure><img src=a.jpg><figcaption>A</figcaption></figure></noscript>", ["a.jpg"]),
        # Lazy loading: the picture is shown, or waits for a script.
        ("<img src=data:image/gif;base64,R0 data-src=a.jpg><noscript><img src=a.jpg></noscript>", ["a.jpg"]),
        ("<img data-lazy-src=a-300x200.jpg><noscript><img src=a.jpg></noscript>", ["a-300x200.jpg"]),
        ("<img class=lazy src=data:image/gif;base64,R0 alt=A><noscript><img src=a.jpg alt=A></noscript>",
         ["a.jpg"]),
        ("<img src=/i/blank.gif data-x=1><noscript><img src=a.jpg></noscript>", ["a.jpg"]),
        ("<noscript><img src=a.jpg></noscript><img data-src=a.jpg?w=300>", ["a.jpg?w=300"]),
        ("<img src=https://cdn.example/w_300/a.jpg><noscript><img src=https://cdn.example/w_1200/a.jpg></noscript>",
         ["https://cdn.example/w_300/a.jpg"]),
        ("<p><img src=a.jpg></p><p>words</p><noscript><img src=a.jpg></noscript>", ["a.jpg"]),
        ("<amp-anim src=a.gif><noscript><img src=a.gif></noscript></amp-anim>", ["a.gif"]),
        ("<amp-img src=a.jpg><noscript><img src=a.jpg></noscript></amp-img>", ["a.jpg"]),
        # Others.
        ("<img src=a.jpg><noscript><img src=b.jpg></noscript>", ["a.jpg", "b.jpg"]),
        ("<img src=data: alt=A>words<noscript><img src=a.jpg></noscript>", [None, "a.jpg"]),
        ("<img data-src=1.jpg><noscript><img src=1.jpg></noscript>"
         "<img src=data:,><noscript><img src=2.jpg></noscript>", ["1.jpg", "2.jpg"]),
        ("<noscript><img src=a.jpg></noscript><noscript><img src=a.jpg></noscript>", ["a.jpg"]),
        ("<noscript>Switch scripts on, <a href=/help>please</a>.</noscript>", []),
        ("<noscript><img src=https://count.example/p.gif width=1 height=1></noscript>", []),
        ("<noscript><img src=https://count.example/p.gif style='display:none'></noscript>", []),
        ("<noscript><iframe src=https://tags.example/ height=0 width=0></iframe></noscript>", []),
    ],
)  # fmt: skip
def test_a_noscript_leaves_the_picture_that_nothing_beside_it_shows(
    html: str, images: list[str | None]
) -> None:
    found = shown(html)
    assert "noscript" not in found
    assert "Switch" not in found
    shown_images = [re.search('src="([^"]*)"', each) for each in re.findall("<img[^>]*>", found)]
    assert [each and each[1] for each in shown_images] == [each and urljoin(PAGE, each) for each in images], (
        found
    )


def test_a_noscript_leaves_the_video_that_a_script_would_load() -> None:
    video = "<iframe src=https://www.youtube.com/embed/abcDEF123_-></iframe>"
    assert shown(f"<div>{video}</div><noscript>{video}</noscript>").count("<a ") == 1
    assert shown(f"<noscript>{video}</noscript>").count('<a class="embedded"') == 1


def test_a_video_without_a_file_leaves_its_poster_and_one_with_a_file_has_it() -> None:
    assert shown("<video poster=p.jpg title=P><source src=blob:x></video>") == (
        '<img src="https://site.example/posts/p.jpg" alt="P">'
    )
    lazy = shown("<video data-src=v.mp4 data-poster=p.jpg></video>")
    assert 'src="https://site.example/posts/v.mp4"' in lazy
    assert 'poster="https://site.example/posts/p.jpg"' in lazy
    assert shown("<video><source data-src=v.mp4></video>") == (
        '<video controls=""><source src="https://site.example/posts/v.mp4"></video>'
    )
    archived = with_images(shown("<video src=v.mp4 poster=p.jpg#x></video>"), lambda url: f"/kept?{url}&")
    assert 'poster="/kept?https://site.example/posts/p.jpg&amp;#x"' in archived


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<text>hello</text> <g>there</g>", "hello there"),
        ("<p>a <list><line>b</line></list></p>", "<p>a b</p>"),
        ("<p title='<text>'>a <SUM>b</SUM></p>", '<p title="&lt;text&gt;">a b</p>'),
        ("<svg><text>a</text><path/></svg><text>b</text>", None),
        ("<noembed><b>a</b></noembed><noframes><b>b</b></noframes>c", "c"),
        ("<custom-tag>a <my:tag>b</my:tag></custom-tag>", "a b"),
    ],
)
def test_an_element_with_a_name_of_svg_or_mathml_leaves_its_text(html: str, expected: str | None) -> None:
    found = shown(html)
    if expected is None:
        assert found.endswith("</svg>b")
    else:
        assert found == expected


FOOTNOTE = (
    '<p>Claim<sup id="fnref1"><a href="{}#fn1">1</a></sup></p>'
    '<ol><li id="fn1">Source <a href="{}#fnref1">back</a></li></ol>'
)


@pytest.mark.parametrize("page", ["", PAGE, "/posts/1", "http://site.example/posts/1/", "1"])
def test_a_footnote_stays_in_its_text(page: str) -> None:
    found = shown(FOOTNOTE.format(page, page))
    ids = re.findall(' id="(user-content-[^"]+)"', found)
    assert len(ids) == 2
    assert re.findall('href="#([^"]+)"', found) == ids[::-1]
    assert "href=" not in re.sub('href="#[^"]*"', "", found)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p id=a>x</p><a href=#b>y</a>", f'<p>x</p><a href="{PAGE}#b">y</a>'),
        ("<p id=a>x</p><a href=https://other.example/#a>y</a>",
         '<p>x</p><a href="https://other.example/#a">y</a>'),
        ("<p id=a>x</p><a href=#>y</a>", f'<p>x</p><a href="{PAGE}#">y</a>'),
    ],
)  # fmt: skip
def test_a_fragment_of_nothing_in_the_text_leads_to_the_article(html: str, expected: str) -> None:
    assert shown(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<a href='#%C3%BCber'>a</a><h2 id='über'>b</h2>",
        "<a href='#a&amp;b'>a</a><h2 id='a&amp;b'>b</h2>",
        "<a href=#top>a</a><a name=top>b</a>",
        "<a href=#x>a</a><h2 id=user-content-x>b</h2>",
        "<a href='#a b'>a</a><p id='a b'>b</p>",
    ],
)
def test_the_target_of_a_fragment_is_found_as_a_browser_finds_it(html: str) -> None:
    found = shown(html)
    [id] = re.findall(' id="([^"]+)"', found)
    assert re.fullmatch("[A-Za-z0-9_.-]+", id)
    assert f'href="#{id}"' in found


def test_ids_are_none_of_a_page_s_and_no_other_item_s() -> None:
    first, second = shown(FOOTNOTE.format("", "")), shown(FOOTNOTE.format("", "") + "<p>other</p>")
    ids = [set(re.findall(' id="([^"]+)"', each)) for each in (first, second)]
    assert not ids[0] & ids[1]
    assert shown(FOOTNOTE.format("", "")) == first, "it depends on the HTML only"
    clobbering = "<p id=list>a</p><a id=say name=body>b</a><img id=user-content-x name=cookie>"
    assert shown(f"{clobbering}<a href=#x2>c</a><p id=x2></p>").count(" id=") == 1
    assert "name=" not in shown(f"{clobbering}<a href=#body>c</a>")


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "<iframe src=https://x.example/{n}></iframe>", "<noscript><img src=/{n}.png></noscript>",
        "<img src=/{n}.png><noscript><img src=/{n}-300x200.png></noscript>", "<noscript><img src=/{n}.png>",
        "<a href=#a{n}>x</a><p id=a{n}>y</p>", "<object data=/a{n}.pdf><img></object>",
        "<video poster=/p{n}.jpg></video>", "<text a='", "<script>math/tex", "<amp-img src=a{n}>",
        "<svg><path d=M0 /></svg>", "<math><mi>x</mi></math>", "<svg></p><zz/>",
    ],
)  # fmt: skip
def test_replacing_is_linear(part: str) -> None:
    html = "".join(part.format(n=n) for n in range(9_000))
    with costs_less_than(6):
        shown(html)
        texts(html)
