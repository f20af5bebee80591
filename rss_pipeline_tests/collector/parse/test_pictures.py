"""The pictures that a feed names beside the HTML of its items: found in every format, in one order."""

import pytest

from rss_pipeline.collector.images.find import item_images
from rss_pipeline.collector.models.item import Enclosure, Item
from rss_pipeline.collector.parse.image_references import is_tracker_url, shows_picture
from rss_pipeline.collector.parse.pictures import picture_key
from rss_pipeline_tests.collector.parse.documents import atom, entry, json_feed, only, rss, rss_item
from rss_pipeline_tests.support.cost import costs_less_than

LARGE = "https://example.com/large.jpg"
SOUND = Enclosure(url="https://example.com/a.mp3", type="audio/mpeg")


def ill_formed(fields: str) -> Item:
    """The item as the tolerant parser reads it."""
    return only(rss(f"<item><guid>1</guid>{fields}</item></b>"))


def images(item: Item) -> list[str]:
    return [
        url.removeprefix("https://example.com") for url in item_images(item, "https://example.com/", None)
    ]


@pytest.mark.parametrize(
    "fields",
    [
        '<media:content url="/large.jpg"/>',
        '<media:content url="/large.jpg" width="140"><media:credit>C</media:credit></media:content>',
        '<media:content url="/large.jpg" type="jpg"/>',
        '<media:content url="/large.jpg?w=9#x" width="9" height="9" medium=""/>',
        '<media:group><media:content url="/large.jpg" medium="image" type=""/></media:group>',
        '<media:content url="/large.jpg" width="140"/><media:content url="/small.jpg" width="70"/>',
        '<media:content url="/small.jpg" width="70"/><media:content url="/large.jpg" width="140"/>',
        '<media:content url="/a.mp4" width="9" height="9"/><media:content url="/large.jpg"/>',
        '<media:content url="/large.jpg" medium="image"/><media:thumbnail url="/large-150x150.jpg"/>',
        '<media:content url="/img/1x1.gif" medium="image"/><media:thumbnail url="/large.jpg"/>',
        '<media:thumbnail url="/tracking/pixel.png?a=1"/><itunes:image href="/large.jpg"/>',
    ],
)
def test_a_picture_of_media_rss_is_the_items_picture_whatever_is_said_of_it(fields: str) -> None:
    for item in (rss_item(f"<guid>1</guid>{fields}"), entry(fields), ill_formed(fields)):
        assert images(item)[0].startswith("/large.jpg")


def test_a_size_without_a_name_or_type_is_that_of_a_picture() -> None:
    fields = '<media:content url="/resize/77" width="640" height="480"/>'
    for item in (rss_item(f"<guid>1</guid>{fields}"), entry(fields), ill_formed(fields)):
        assert images(item) == ["/resize/77"]
    for other in (
        'url="/v.mp4"',
        'url="/v" medium="video"',
        'url="/v" duration="9"',
        'url="/v" type="video/mp4"',
    ):
        item = rss_item(f'<guid>1</guid><media:content width="640" height="480" {other}/>')
        assert images(item) == []
        assert len(item.enclosures) == 1


@pytest.mark.parametrize(
    "image",
    [
        "<image>/large.jpg</image>",
        f"<image> {LARGE}?w=1 </image>",
        "<image><url>/large.jpg</url></image>",
        '<image href="/large.jpg"/>',
        '<image url="/large.jpg"/>',
        '<itunes:image href="/large.jpg"/>',
    ],
)
def test_the_image_of_an_rss_item_is_its_picture(image: str) -> None:
    assert images(rss_item(f"<guid>1</guid>{image}"))[0].startswith("/large.jpg")
    if "url" not in image and "<image href" not in image:
        assert images(ill_formed(image))[0].startswith("/large.jpg")


def test_a_caption_is_no_image() -> None:
    assert rss_item("<guid>1</guid><image>A picture of Mars</image>").enclosures == ()


def test_the_image_of_an_rdf_item_is_its_picture() -> None:
    text = (
        '<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:media="http://search.yahoo.com/mrss/"><channel><title>T</title></channel>'
        '<item rdf:about="https://example.com/1"><title>t</title>{}</item></rdf:RDF>'
    )
    for image in (
        '<image rdf:resource="/large.jpg"/>',
        "<image>/large.jpg</image>",
        '<media:content url="/large.jpg"/>',
    ):
        assert images(only(text.format(image))) == ["/large.jpg"]


@pytest.mark.parametrize("rel", ["alternate", "enclosure"])
@pytest.mark.parametrize(
    "media", ['<media:thumbnail url="/large.jpg"/>', '<media:content url="/large.jpg" medium="image"/>']
)
def test_media_elements_within_a_link_are_the_items(media: str, rel: str) -> None:
    link = f'<link rel="{rel}" type="audio/mpeg" href="/a.mp3">{media}</link>'
    media_rss = 'xmlns:media="http://search.yahoo.com/mrss/"'
    item = only(atom(f"<entry><id>1</id>{link}</entry>", media_rss))
    assert images(item) == ["/large.jpg"]
    assert item.enclosures[:-1] == ((SOUND,) if rel == "enclosure" else ())
    text = atom(f"<entry><id>1</id>{link}</entry></b>", media_rss)
    assert images(only(text)) == ["/large.jpg"]


@pytest.mark.parametrize(
    "picture",
    [
        '<media:content url="/large.jpg" medium="image"/>',
        '<media:content url="/large.jpg" type="image/jpeg" width="9"/>',
        '<media:thumbnail url="/large.jpg"/>',
        '<itunes:image href="/large.jpg"/>',
    ],
)
def test_a_sound_hides_no_picture_and_comes_first(picture: str) -> None:
    fields = (
        f'<enclosure url="/a.mp3" type="audio/mpeg"/>{picture}<media:content url="/a.mp3" medium="audio"/>'
    )
    for item in (rss_item(f"<guid>1</guid>{fields}"), ill_formed(fields)):
        assert [each.url for each in item.enclosures] == [SOUND.url, LARGE]
    shown = rss_item(f"<guid>1</guid>{fields}<description>&lt;img src='/b.jpg'></description>")
    assert shown.enclosures == (SOUND,), "an item that shows a picture needs no other"
    attachment = {"url": "/a.mp3", "mime_type": "audio/mpeg"}
    read = only(json_feed({"id": "1", "image": "/large.jpg", "attachments": [attachment]}))
    assert [each.url for each in read.enclosures] == [SOUND.url, LARGE]


def test_the_order_is_media_content_thumbnail_image_enclosure_by_type_enclosure_by_name() -> None:
    fields = [
        '<enclosure url="/name.jpg"/>',
        '<enclosure url="/type" type="image/png"/>',
        "<image>/image.jpg</image>",
        '<media:thumbnail url="/thumbnail.jpg"/>',
        '<media:content url="/media.jpg"/>',
    ]
    expected = [["/media.jpg", "/thumbnail.jpg"], ["/thumbnail.jpg"], ["/image.jpg"], [], []]
    for left in range(len(fields)):
        some = fields[: len(fields) - left]
        own = ["/type", "/name.jpg"] if left < 4 else ["/name.jpg"]
        for item in (rss_item("<guid>1</guid>" + "".join(some)), ill_formed("".join(some))):
            assert images(item) == [*expected[left], *own]


def test_pictures_in_several_sizes_count_once_and_other_pictures_each() -> None:
    sizes = "".join(
        f'<media:content width="{n}" url="/m/5.jpg?width={n}&amp;s=h{n}"/>' for n in (140, 700, 460)
    )
    assert images(rss_item(f"<guid>1</guid>{sizes}")) == ["/m/5.jpg?width=700&s=h700"]
    photos = "".join(f'<media:content url="/p/{n}.png" type="image/png" medium="image"/>' for n in (1, 2, 3))
    for item in (rss_item(f"<guid>1</guid>{photos}"), ill_formed(photos)):
        assert images(item) == ["/p/1.png", "/p/2.png", "/p/3.png"]


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("https://e.example/a.jpg", "http://e.example/a.jpg?w=9&v=2", True),
        ("https://e.example/a-300x200.jpg", "https://e.example/a-scaled.jpg", True),
        ("https://b.example/x/s72-c/a.png", "https://b.example/x/s1600/a.png", True),
        (
            "https://e.example/_next/image?url=%2Fa.jpg&w=64",
            "https://e.example/_next/image?w=9&url=%2Fa.jpg",
            True,
        ),
        ("https://e.example/a.jpg", "https://e.example/b.jpg", False),
        ("https://e.example/a.jpg", "https://f.example/a.jpg", False),
        ("https://e.example/show.php?n=1&w=2", "https://e.example/show.php?n=2&w=2", False),
        ("https://e.example/thumb.png?id=1", "https://e.example/thumb.png?id=2", False),
        ("https://e.example/2024-10.jpg", "https://e.example/2024-11.jpg", False),
    ],
)
def test_the_sizes_of_one_picture_are_recognized_by_their_urls(one: str, other: str, are_same: bool) -> None:
    assert (picture_key(one) == picture_key(other)) is are_same


@pytest.mark.parametrize(
    "url",
    [
        "https://t.example/blank.gif",
        "https://t.example/x/rss-1x1.gif",
        "https://t.example/pixel?id=7",
        "https://pixel.example/b.gif?host=1",
        "https://stats.example/7",
        "https://news.example/img/tracking/feed-pixel.png?story=1",
        "https://vg09.met.vgwort.de/na/0123",
        "https://feeds.feedburner.com/~r/Name/~4/abc",
    ],
)
def test_a_tracker_without_a_size_takes_no_picture_away(url: str) -> None:
    assert is_tracker_url(url)
    html = f"&lt;p>x&lt;/p>&lt;img src='{url}' alt=''/>"
    fields = f'<description>{html}</description><media:thumbnail url="/large.jpg"/>'
    for item in (rss_item(f"<guid>1</guid>{fields}"), ill_formed(fields)):
        assert images(item) == ["/large.jpg"]
    read = only(json_feed({"id": "1", "content_html": f"<img src='{url}'>", "image": "/large.jpg"}))
    assert images(read) == ["/large.jpg"]
    assert images(only(json_feed({"id": "1", "image": url, "banner_image": "/large.jpg"}))) == ["/large.jpg"]


@pytest.mark.parametrize(
    "url",
    ["show-space.png", "space.jpg", "google-pixel.jpg", "red-dot.png", "a/track/9/cover.png", "clear.webp"],
)
def test_a_name_like_a_placeholders_is_a_picture_where_nothing_else_is_there(url: str) -> None:
    item = rss_item(f"<guid>1</guid><description>&lt;img src='/{url}'></description>")
    assert images(item) == [f"/{url}"]
    lazy = rss_item(f"<guid>1</guid><description>&lt;img src='/space.png' data-src='/{url}'></description>")
    assert images(lazy) == [f"/{url}"]


def test_attributes_are_read_as_html_has_them() -> None:
    assert shows_picture("""<img data-meta='{"caption": "a > b"}' src="/s.jpg">""")
    assert not shows_picture("""<img alt="width > 9" width=1 height='1' src="/s.jpg">""")


@pytest.mark.parametrize(
    "part", ["<img ", "<img '", '<img a="', "a", "a ", "<source srcset=a ", "/tracking", "-"]
)
def test_the_search_for_a_picture_takes_time_by_the_length(part: str) -> None:
    with costs_less_than(2):
        shows_picture("<img " + part * (400_000 // len(part)))
        is_tracker_url("https://e.example/" + part * (400_000 // len(part)))
        picture_key("https://e.example/" + part * (400_000 // len(part)))


def test_untyped_attachments_of_json_are_pictures_by_their_names() -> None:
    item = only(json_feed({"id": "1", "attachments": [{"url": "/a.jpg"}, {"url": "/b.pdf"}]}))
    assert images(item) == ["/a.jpg"]
    assert [each.url for each in item.enclosures] == [
        "https://example.com/b.pdf",
        "https://example.com/a.jpg",
    ]
