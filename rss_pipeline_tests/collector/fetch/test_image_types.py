"""Bytes decide: each kind of image by its own rule, and words for what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.fetch import image_types as types
from rss_pipeline.collector.fetch.image_types import (
    PROLOG_BYTES,
    SIGNATURE_BYTES,
    ImageType,
    image_type,
    may_become_an_image,
    not_an_image,
)
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.cost import costs_less_than
from rss_pipeline_tests.support.pictures import ftyp

SVG = pictures.SVG.decode()
ILLUSTRATOR = (
    '<?xml version="1.0" encoding="utf-8"?>\r\n<!-- Generator: Adobe Illustrator, <b>SVG</b> Export -->\r\n'
    '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd" [\r\n'
    '<!ENTITY ns_svg "http://www.w3.org/2000/svg">\r\n<!ENTITY a "<svg>">\r\n]>\r\n'
)

KINDS = {
    "jpg": pictures.JPEG,
    "png": pictures.PNG,
    "gif": pictures.GIF,
    "gif, 1987": b"GIF87a" + pictures.GIF[6:],
    "webp": pictures.WEBP,
    "webp, lossless": pictures.WEBP_LOSSLESS,
    "avif": pictures.AVIF,
    "avif, a sequence": ftyp(b"avis", b"msf1"),
    "avif, compatible only": ftyp(b"mif1", b"miaf", b"avif"),
    "heic": ftyp(b"heic", b"mif1", b"heic"),
    "heic, compatible only": ftyp(b"mif1", b"mif1", b"heic"),
    "heic, which codec not said": ftyp(b"mif1", b"mif1"),
    "bmp": pictures.BMP,
    "ico": pictures.ICO,
    "svg": pictures.SVG,
    "svg, BOM": b"\xef\xbb\xbf" + pictures.SVG,
    "svg, blanks": b"\n\t  " + pictures.SVG,
    "svg, declared": b'<?xml version="1.0"?>' + pictures.SVG,
    "svg, of Illustrator": (ILLUSTRATOR + SVG).encode(),
    "svg, comments that name HTML": b"<!-- <html> --><!-- -->" + pictures.SVG,
    "svg, prefixed": b'<svg:svg xmlns:svg="http://www.w3.org/2000/svg"/>',
    "svg, a short DOCTYPE": b"<!DOCTYPE svg>" + pictures.SVG,
    "svg, UTF-16 with BOM": SVG.encode("utf-16"),
    "svg, UTF-16 little-endian": SVG.encode("utf-16-le"),
    "svg, UTF-16 big-endian": ("<?xml version='1.0' encoding='utf-16'?>" + SVG).encode("utf-16-be"),
}

NOTHING = {
    "an HTML page": pictures.HTML,
    "an HTML page that holds an svg": pictures.HTML.replace(b"<body>", b"<body>" + pictures.SVG),
    "an HTML page that begins with an svg": b"<!doctype html>" + pictures.SVG,
    "HTML by its root": b"<html>" + pictures.SVG,
    "a feed": b"<?xml version='1.0'?><rss version='2.0'><channel>" + pictures.SVG,
    "another element's name": b"<svgfont>",
    "text that begins with BM": b"BMW presents its new car, and it is as long as a header of theirs.",
    "a cursor": b"\0\0\2\0" + pictures.ICO[4:],
    "an icon without images": b"\0\0\1\0\0\0" + b"\0" * 30,
    "a RIFF that is a sound": b"RIFF\x24\0\0\0WAVEfmt ",
    "a video": ftyp(b"isom", b"iso2", b"mp41"),
    "a video that calls avif compatible": ftyp(b"mp42", b"avif"),
    "JSON": b'{"error": "no such image"}',
    "a part of a signature": b"\x89PNG",
    "nothing": b"",
}


@pytest.mark.parametrize(("name", "body"), KINDS.items(), ids=KINDS)
def test_each_kind_is_recognized(name: str, body: bytes) -> None:
    kind = image_type(body)
    assert kind is not None
    assert kind.extension == name.partition(",")[0]


@pytest.mark.parametrize("body", NOTHING.values(), ids=NOTHING)
def test_what_is_no_image_is_none(body: bytes) -> None:
    assert image_type(body) is None


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        (types.JPEG, "image/jpeg"),
        (types.SVG, "image/svg+xml"),
        (types.AVIF, "image/avif"),
        (types.ICO, "image/x-icon"),
    ],
)
def test_a_kind_names_its_content_type(kind: ImageType, content_type: str) -> None:
    assert kind.content_type == content_type


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("svg")])
@given(rest=st.binary(max_size=2 * SIGNATURE_BYTES))
def test_what_follows_the_head_changes_nothing(name: str, rest: bytes) -> None:
    head = KINDS[name][:SIGNATURE_BYTES]
    assert image_type(head + rest) == image_type(head)


@pytest.mark.parametrize("name", [name for name in KINDS if name.startswith("svg")])
def test_a_cut_svg_may_still_become_one(name: str) -> None:
    whole = KINDS[name]
    for end in range(4, len(whole)):
        head = whole[:end]
        assert image_type(head) is not None or may_become_an_image(head), head


@pytest.mark.parametrize(
    "head",
    [
        pictures.HTML,
        b"<html>",
        b"plain text",
        b"{}",
        b"<!DOCTYPE html >",
        b"<?xml version='1.0'?><rss>",
        pictures.PNG[1:],
    ],
)
def test_a_page_need_not_be_read_to_its_end(head: bytes) -> None:
    assert not may_become_an_image(head)


def test_a_comment_without_end_is_read_so_far_and_no_further() -> None:
    assert may_become_an_image(b"<!--" + b"-" * 1000)
    assert not may_become_an_image(b"<!--" + b"." * PROLOG_BYTES)


@given(st.binary(max_size=300))
def test_no_bytes_raise(body: bytes) -> None:
    image_type(body)
    may_become_an_image(body)
    assert not_an_image("cdn.example", body).endswith(" instead of an image.")


@given(st.text(max_size=300))
def test_no_page_is_an_image_whatever_it_holds(text: str) -> None:
    assert image_type(f"<!DOCTYPE html><html><body>{text}<svg></svg>".encode("utf-8", "replace")) is None


@pytest.mark.parametrize(
    "hostile",
    [
        b"<!---->" * 20_000,
        b"<!DOCTYPE svg [" * 9_000,
        b"<!DOCTYPE svg [" + b"] " * 60_000,
        b" " * 100_000,
        b"<" + b"a" * 100_000,
        b"<??>" * 30_000,
    ],
)
def test_a_hostile_beginning_takes_no_time(hostile: bytes) -> None:
    with costs_less_than(0.5):
        image_type(hostile)
        may_become_an_image(hostile)
        not_an_image("cdn.example", hostile)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (pictures.HTML, "a web page"),
        (b"\xef\xbb\xbf \n<HTML>", "a web page"),
        (b"<!-- x --><!doctype HTML>", "a web page"),
        (b"<script>location='/'</script>", "a web page"),
        (b"", "nothing"),
        (b" \n ", "nothing"),
        (b'{"error": 1}', "JSON"),
        (b'[{"a": 1}]', "JSON"),
        (b"Not found", "plain text"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "XML that is no SVG"),
        (b"%PDF-1.7", "a PDF"),
        (ftyp(b"isom"), "a video"),
        (b"II*\0\x08\0\0\0", "a TIFF, which browsers do not show,"),
        (b"\0\0\2\0\1\0", "a mouse cursor"),
        (b"\x93\x00\x01\x02", "bytes of an unknown type"),
    ],
)
def test_a_person_reads_what_came_instead(body: bytes, words: str) -> None:
    sentence = f"cdn.example answered 200 with {words} instead of an image."
    assert not_an_image("cdn.example", body) == sentence
