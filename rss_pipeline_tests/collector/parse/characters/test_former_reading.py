"""Texts as a former codec would have read their bytes, where it could."""

import pytest

from rss_pipeline.collector.parse.characters.former_reading import former_readings


def readings(text: str, codec: str, *formers: str | None) -> list[str]:
    return [read(text) for read in former_readings(codec, formers)]


def test_a_text_is_what_the_former_codec_made_of_its_bytes() -> None:
    assert readings("não", "cp1252", "cp1250", None) == ["năo"]
    assert readings("Пример", "koi8-r", "cp1251", "koi8-r", "cp1251", "cp866") == ["рТЙНЕТ", "Ё╥╔═┼╥"]
    assert readings("例え", "cp932", "cp1252") == ["—á‚¦"]


@pytest.mark.parametrize(
    ("text", "codec", "former"), [("Пример", "koi8-r", "utf-8"), ("a&amp;b", "cp1252", "cp1251")]
)
def test_what_it_could_not_decode_or_reads_alike_is_unchanged(text: str, codec: str, former: str) -> None:
    assert readings(text, codec, former) == [text]


@pytest.mark.parametrize(
    ("codec", "former"),
    [("utf-16-le", "cp1252"), ("cp1252", "utf-16-le"), ("cp1252", "cp1252"), ("cp1252", None)],
)
def test_there_is_no_reading_by_the_same_codec_nor_beside_utf_16(codec: str, former: str | None) -> None:
    assert readings("não", codec, former) == []
