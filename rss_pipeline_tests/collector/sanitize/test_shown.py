"""The contract of collector.sanitize.shown: the picture of an item is shown once, above its text or in it."""

from collections.abc import Sequence

import pytest

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.sanitize.shown import files_beside, lead_image, shown_html

BASES = (None, "https://site.example/2026/post/", "https://site.example/", "https://site.example/feed")
SOUND = Enclosure(url="https://cdn.example/1.mp3", type="audio/mpeg")
THUMBNAIL = Enclosure(url="https://img.example/thumb.jpg", type="image/*")
ABOVE = '<p><img src="https://img.example/thumb.jpg" alt=""></p>'


def shown(text: str | None, *enclosures: Enclosure) -> str | None:
    return shown_html(text, enclosures, bases=BASES)


@pytest.mark.parametrize("others", [(), (SOUND,)], ids=["alone", "beside a sound"])
def test_a_picture_beside_the_text_is_shown_above_it(others: Sequence[Enclosure]) -> None:
    assert shown("<p>Text</p>", *others, THUMBNAIL) == f"{ABOVE}<p>Text</p>"
    assert shown(None, *others, THUMBNAIL) == ABOVE
    assert lead_image("<p>Text</p>", (*others, THUMBNAIL), bases=BASES) == THUMBNAIL.url


def test_an_item_that_shows_an_image_has_none_above_it() -> None:
    for html in ('<img src="https://img.example/other.jpg">', '<p><img data-src="/a.jpg"></p>'):
        assert "thumb" not in (shown(html, THUMBNAIL) or "")
        assert lead_image(html, (THUMBNAIL,), bases=BASES) is None


@pytest.mark.parametrize(
    "tracker",
    [
        '<img src="https://stats.example/hit?p=1">',
        '<img src="https://t.example/x.png" style="width:1px;height:1px">',
        '<img src="/img/blank.gif" alt="">',
    ],
)
def test_a_tracker_is_no_picture_that_the_text_shows(tracker: str) -> None:
    assert (shown(f"<p>Text</p>{tracker}", THUMBNAIL) or "").startswith(f"{ABOVE}<p>Text</p>")


def test_a_tracker_is_never_shown_above_the_text() -> None:
    pixel = Enclosure(url="https://img.example/tracking/pixel.gif?id=1", type="image/gif")
    assert shown("<p>Text</p>", pixel) == "<p>Text</p>"
    assert shown("<p>Text</p>", pixel, THUMBNAIL) == f"{ABOVE}<p>Text</p>"


def test_the_poster_of_a_video_is_shown_by_the_video() -> None:
    video = '<video src="https://v.example/v.mp4" poster="https://img.example/{}" controls=""></video>'
    assert shown(video.format("p.jpg")) == video.format("p.jpg")
    assert shown(video.format("thumb.jpg?w=640"), THUMBNAIL) == video.format("thumb.jpg?w=640")
    assert shown(video.format("p.jpg"), THUMBNAIL) == ABOVE + video.format("p.jpg")
    unknown = '<amp-video poster="https://img.example/thumb.jpg"></amp-video>'
    assert shown(unknown) == '<img src="https://img.example/thumb.jpg" alt="">'


def test_an_enclosure_is_a_picture_by_its_type_or_its_name() -> None:
    for picture in (
        Enclosure(url=THUMBNAIL.url),
        Enclosure(url=THUMBNAIL.url, type="image/jpeg", length=9),
        Enclosure(url=THUMBNAIL.url, type="application/octet-stream"),
    ):
        assert shown("<p>Text</p>", SOUND, picture) == f"{ABOVE}<p>Text</p>"
    for other in (SOUND, Enclosure(url="https://x.example/a.pdf"), Enclosure(url="https://x.example/a")):
        assert shown("<p>Text</p>", other) == "<p>Text</p>"


def test_an_image_that_the_sanitizer_drops_is_shown_above_the_text() -> None:
    html = '<p>Text</p><template><img src="real.jpg"></template>'
    assert shown(html) == '<p><img src="https://site.example/2026/post/real.jpg" alt=""></p><p>Text</p>'


def test_html_that_cannot_be_read_safely_gives_none() -> None:
    assert shown("<b>" * 2_000, THUMBNAIL) is None


def test_a_picture_that_is_shown_is_no_file_as_well() -> None:
    picture = Enclosure(url="https://img.example/a-300x200.jpg", type="image/jpeg")
    further = Enclosure(url="https://img.example/b.jpg", type="image/jpeg")
    html = shown('<img src="https://img.example/a.jpg?x=1">', SOUND, picture, further)
    assert files_beside(html or "", (SOUND, picture, further)) == [SOUND, further]
    assert files_beside(html or "", (SOUND, picture, THUMBNAIL)) == [SOUND], "a thumbnail is no file"
    above = shown("<p>Text</p>", SOUND, THUMBNAIL)
    assert files_beside(above or "", (SOUND, THUMBNAIL)) == [SOUND]
