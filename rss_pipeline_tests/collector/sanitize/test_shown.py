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
    above = shown("<p>Text</p>", SOUND, THUMBNAIL)
    assert files_beside(above or "", (SOUND, THUMBNAIL)) == [SOUND]
