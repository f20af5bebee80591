"""Sizes of images from their first bytes, as a browser shows them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.fetch.image_body import HEAD_BYTES, image_size
from rss_pipeline.collector.fetch.image_types import (
    AVIF,
    BMP,
    GIF,
    HEIC,
    ICO,
    JPEG,
    PNG,
    SVG,
    WEBP,
    ImageType,
    image_type,
)
from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.cost import costs_less_than


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def exif(orientation: int, order: str = ">") -> bytes:
    """An APP1 segment with a maker's tag and the orientation."""
    mark = b"MM\0*" if order == ">" else b"II*\0"
    entries = struct.pack(order + "HHIHH", 0x010F, 3, 1, 7, 0) + struct.pack(
        order + "HHIHH", 0x0112, 3, 1, orientation, 0
    )
    return segment(0xE1, b"Exif\0\0" + mark + struct.pack(order + "IH", 8, 2) + entries + bytes(4))


def jpeg(width: int, height: int, *before: bytes, frame: int = 0xC2) -> bytes:
    header = segment(frame, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
    return b"\xff\xd8" + b"".join(before) + header + segment(0xDA, b"\1\1\0\0\x3f\0") + b"\xff\xd9"


def box(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(body), name) + body


def heif(brand: bytes, *properties: bytes, used: bytes, item: int = 7, version: int = 0) -> bytes:
    """An image with a primary item that has the properties of these places, behind another item's."""
    id_format = ">H" if version == 0 else ">I"
    other = struct.pack(id_format, 1) + b"\1\1"
    own = struct.pack(id_format, item) + bytes([len(used)]) + used
    ipma = bytes([version, 0, 0, 0]) + struct.pack(">I", 2) + other + own
    iprp = box(b"iprp", box(b"ipco", b"".join(properties)) + box(b"ipma", ipma))
    pitm = box(b"pitm", bytes([version, 0, 0, 0]) + struct.pack(id_format, item))
    return pictures.ftyp(brand)[:16] + box(b"meta", bytes(4) + box(b"hdlr", bytes(20)) + pitm + iprp)


def extent(width: int, height: int) -> bytes:
    return box(b"ispe", bytes(4) + struct.pack(">II", width, height))


def webp(name: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + name + struct.pack("<I", len(body)) + body


def svg(attributes: str, before: str = "") -> bytes:
    root = f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>'
    return f'{before}{root}<rect width="9" height="9"/></svg>'.encode()


SIZES = [
    ("png", PNG, pictures.png(640, 3), (640, 3)),
    ("gif", GIF, b"GIF89a" + struct.pack("<HH", 640, 480), (640, 480)),
    ("bmp", BMP, pictures.BMP, (1, 1)),
    ("bmp from its top", BMP, pictures.BMP[:18] + struct.pack("<ii", 5, -4), (5, 4)),
    ("jpeg", JPEG, jpeg(640, 480), (640, 480)),
    ("jpeg, baseline", JPEG, jpeg(640, 480, frame=0xC0), (640, 480)),
    ("jpeg behind a profile", JPEG, jpeg(6, 4, *[segment(0xE2, bytes(65_000))] * 9), (6, 4)),
    ("jpeg with filling", JPEG, jpeg(6, 4, b"\xff\xff\xff" + segment(0xE0, b"JFIF\0")[1:]), (6, 4)),
    ("jpeg upside down", JPEG, jpeg(6, 4, exif(3)), (6, 4)),
    ("jpeg on its side", JPEG, jpeg(6, 4, exif(6)), (4, 6)),
    ("jpeg on its side, little end", JPEG, jpeg(6, 4, exif(8, "<")), (4, 6)),
    ("jpeg with a table before its frame", JPEG, jpeg(6, 4, segment(0xC4, bytes(20))), (6, 4)),
    ("webp", WEBP, webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640 | 0x4000, 480)), (640, 480)),
    ("webp, lossless", WEBP, webp(b"VP8L", b"\x2f" + struct.pack("<I", 639 | 479 << 14)), (640, 480)),
    ("webp, extended", WEBP, webp(b"VP8X", bytes(4) + b"\x7f\2\0" + b"\xdf\1\0"), (640, 480)),
    ("avif", AVIF, heif(b"avif", extent(1, 2), extent(640, 480), used=b"\x82"), (640, 480)),
    ("heic, turned", HEIC, heif(b"heic", extent(6, 4), box(b"irot", b"\3"), used=b"\1\x82"), (4, 6)),
    ("heic, upside down", HEIC, heif(b"heic", extent(6, 4), box(b"irot", b"\2"), used=b"\1\x82"), (6, 4)),
    ("avif with long ids", AVIF, heif(b"avif", extent(6, 4), used=b"\1", item=70_000, version=1), (6, 4)),
    ("svg", SVG, svg('width="640" height="480px" viewBox="0 0 1 1"'), (640, 480)),
    ("svg of a view", SVG, svg("viewBox='-1 0,320.4 200' width=\"100%\""), (320, 200)),
    ("svg with a border", SVG, svg('stroke-width="9" width="6" height="4"'), (6, 4)),
    ("svg behind a prolog", SVG, svg('width="6" height="4"', '<?xml version="1.0"?><!-- svg -->'), (6, 4)),
]


@pytest.mark.parametrize(("kind", "body", "size"), [each[1:] for each in SIZES], ids=[s[0] for s in SIZES])
def test_the_size_is_that_of_the_file(kind: ImageType, body: bytes, size: tuple[int, int]) -> None:
    assert image_size(kind, body) == ImageSize(*size)


@pytest.mark.parametrize(
    ("body", "size"),
    [
        (pictures.JPEG, (1, 1)),
        (pictures.GIF, (1, 1)),
        (pictures.WEBP, (1, 1)),
        (pictures.WEBP_LOSSLESS, (1, 1)),
        (pictures.AVIF, (2, 2)),
        (pictures.SVG, (1, 1)),
    ],
)
def test_images_that_programs_wrote_are_read(body: bytes, size: tuple[int, int]) -> None:
    kind = image_type(body)
    assert kind is not None
    assert image_size(kind, body) == ImageSize(*size)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (PNG, pictures.png(0, 5)),
        (PNG, pictures.png(1, 1)[:20]),
        (GIF, b"GIF89a\x10\0"),
        (JPEG, jpeg(6, 0)),
        (JPEG, b"\xff\xd8" + segment(0xDA, b"\1\1\0\0\x3f\0") + jpeg(6, 4)[2:]),
        (JPEG, b"\xff\xd8\xff\xe0\0\0" * 9),
        (JPEG, jpeg(6, 4, *[segment(0xE2, bytes(65_000))] * (HEAD_BYTES // 65_000 + 1))),
        (WEBP, webp(b"VP8 ", bytes(20))),
        (AVIF, heif(b"avif", extent(6, 4), used=b"\2")),
        (AVIF, heif(b"avif", extent(6, 4), used=b"\0")),
        (AVIF, pictures.ftyp(b"avif")),
        (SVG, svg("")),
        (SVG, svg('width="5em" height="100%"')),
        (SVG, svg('width="0" height="0"')),
        (SVG, svg('width="999999" height="1"')),
        (ICO, pictures.ICO),
    ],
)
def test_what_does_not_name_its_size_has_none(kind: ImageType, body: bytes) -> None:
    assert image_size(kind, body) is None


@given(st.sampled_from([each[1:3] for each in SIZES]), st.data())
def test_no_broken_image_raises(image: tuple[ImageType, bytes], data: st.DataObject) -> None:
    kind, body = image
    at = data.draw(st.integers(0, min(len(body), 400)))
    noise = data.draw(st.binary(max_size=8))
    image_size(kind, body[:at] + noise + body[at + len(noise) :])
    image_size(kind, body[:at])


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (AVIF, box(b"meta", bytes(4) + box(b"free", b"") * 120_000)),
        (AVIF, heif(b"avif", used=b"\1" * 200)[:-1] + bytes(1_000_000)),
        (JPEG, b"\xff\xd8" + b"\xff" * 1_000_000),
        (JPEG, b"\xff\xd8" + b"\xff\x01" * 500_000),
        (JPEG, b"\xff\xd8" + segment(0xE1, b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 65_535)) * 30_000),
        (SVG, b"<svg " + b"width " * 150_000),
        (SVG, b"<svg viewBox='" + b"1 " * 400_000),
    ],
)
def test_an_image_that_is_made_to_be_read_for_long_is_not(kind: ImageType, body: bytes) -> None:
    with costs_less_than(2):
        assert image_size(kind, body) is None
