"""The contract of collector.parse.characters.decode: the rules in their order, each with the document that
needs it."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from rss_pipeline.collector.parse.characters.charsets import UNICODE_LABELS, codecs_for_label
from rss_pipeline.collector.parse.characters.decode import decode

ZH = "今天的新闻：北京举行人工智能大会，参加者来自世界各地。"
TW = "今天的新聞：台北舉行人工智慧大會，參加者來自世界各地。"
JA = "今日のニュース：東京で人工知能の会議が開催されました。①"
KO = "오늘의 뉴스: 서울에서 인공지능 회의가 열렸습니다."
RU = "Сегодняшние новости: в Москве прошла конференция по искусственному интеллекту."
UK = "Уряд учора оголосив про новий закон. Погода завтра буде гарною в Україні."
EL = "Η κυβέρνηση ανακοίνωσε χθες τον νέο νόμο."
PT = "O presidente não confirmou a participação na reunião, mas as negociações estão avançando."
DE = "Größere Änderungen wären für Österreich möglich, sagte der Bürgermeister von München."
PL = "Rząd ogłosił wczoraj nowe przepisy. Premier powiedział, że zmiany będą korzystne."
CS = "Prezident včera podepsal zákon, který výrazně změní důchody. Řešení je příliš rychlé."
HU = "A kormány bejelentette az új törvényt, amely jövőre lép életbe. A szőlő jól termett, a fűtés drágul."
TR = "Hükümet dün yeni yasayı açıkladı. Muhalefet değişikliğin çok hızlı olduğunu söylüyor."
FR = "Les actualités du jour : la conférence sur l’intelligence artificielle a été organisée à Paris."


def rss(title: str, *, encoding: str | None = None, language: str = "") -> str:
    declared = f' encoding="{encoding}"' if encoding else ""
    spoken = f"<language>{language}</language>" if language else ""
    inner = f"<channel>{spoken}<title>{title}</title></channel>"
    return f'<?xml version="1.0"{declared}?><rss version="2.0">{inner}</rss>'


LABELLED = [
    ("gb2312", "gb18030", "gb18030", ZH + "镕喆"),
    ("GBK", "gb18030", "gb18030", ZH),
    ("Shift_JIS", "cp932", "cp932", JA),
    ("x-sjis", "cp932", "cp932", JA),
    ("euc-kr", "cp949", "cp949", KO + "똠방각하"),
    ("iso-8859-1", "cp1252", "cp1252", FR),
    ("us-ascii", "cp1252", "cp1252", FR),
    ("big5", "cp950", "cp950", TW),
    ("big5", "big5hkscs", "big5hkscs", TW + "嘅𠺢"),
    ("euc-jp", "euc_jp", "euc_jp", JA[:-1]),
    ("euc-jp", "euc_jis_2004", "euc_jis_2004", JA),
    ("windows-1251", "cp1251", "cp1251", RU),
    ("koi8-r", "koi8-r", "koi8-r", RU),
    ("utf-8", "utf-8", "utf-8", ZH),
    ("csISOLatin2", "iso8859-2", "iso8859-2", PL),
    ("sun_eu_greek", "iso8859-7", "iso8859-7", EL),
    ("iso88599", "cp1254", "cp1254", TR),
    # Codecs of Python that the web does not know.
    ("cp850", "cp850", "cp850", PT),
    ("IBM852", "cp852", "cp852", PL),
    ("mac-latin2", "mac-latin2", "mac-latin2", PL),
    ("johab", "johab", "johab", KO),
]


def test_every_label_of_the_web_means_a_codec_except_those_that_mean_none() -> None:
    none = {label for label in LABELS if not codecs_for_label(label) and label not in UNICODE_LABELS}
    assert {LABELS[label] for label in none} == {"replacement", "x-user-defined", "utf-16be", "utf-16le"}


@pytest.mark.parametrize(("label", "written_in", "expected", "text"), LABELLED)
def test_a_label_means_the_superset_the_web_means(
    label: str, written_in: str, expected: str, text: str
) -> None:
    by_declaration = decode(rss(text, encoding=label).encode(written_in))
    assert (by_declaration.charset, by_declaration.rule) == (expected, "declaration")
    assert text in by_declaration.text
    by_header = decode(rss(text).encode(written_in), content_type=f'text/xml; charset="{label}"')
    assert (by_header.charset, by_header.rule) == (expected, "http")
    assert text in by_header.text
    assert codecs.lookup(by_header.charset).name == by_header.charset


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_bom_decides_against_header_and_declaration(codec: str) -> None:
    body = ("\ufeff" + rss(ZH, encoding="gb2312")).encode(codec)
    read = decode(body, content_type="text/xml; charset=big5")
    assert (read.charset, read.rule, read.text) == (codec, "bom", rss(ZH, encoding="gb2312"))


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_the_pattern_of_nuls_shows_utf_16_and_32_without_bom(codec: str) -> None:
    read = decode(rss(ZH).encode(codec), content_type="text/xml; charset=utf-8")
    assert (read.charset, read.rule, read.text) == (codec, "nul-pattern", rss(ZH))


def test_the_header_comes_before_the_declaration() -> None:
    read = decode(rss(ZH, encoding="big5").encode("gb18030"), content_type="text/xml; charset=gbk")
    assert (read.charset, read.rule) == ("gb18030", "http")
    assert ZH in read.text


def test_a_header_under_which_most_is_undecodable_gives_way_to_the_declaration() -> None:
    read = decode(rss(ZH, encoding="gb2312").encode("gb18030"), content_type="text/xml; charset=utf-8")
    assert (read.charset, read.rule, read.replaced) == ("gb18030", "declaration", 0)
    one_letter = decode(
        rss("café", encoding="iso-8859-1").encode("cp1252"), content_type="text/xml; charset=utf-8"
    )
    assert (one_letter.charset, one_letter.rule) == ("cp1252", "declaration")


@pytest.mark.parametrize("label", ["iso-8859-1", "us-ascii", "windows-1251", "gb2312"])
def test_valid_utf_8_beats_another_label(label: str) -> None:
    read = decode(rss(ZH, encoding=label).encode(), content_type=f"text/xml; charset={label}")
    assert (read.charset, read.rule) == ("utf-8", "utf-8")
    assert ZH in read.text


@pytest.mark.parametrize("label", ["iso-8859-1", "us-ascii", "windows-1251"])
def test_utf_8_that_is_cut_in_one_place_beats_the_label_of_a_one_byte_charset(label: str) -> None:
    body = rss(RU + "“quoted” Größe", encoding=label).encode().replace("“".encode(), "“".encode()[:2])
    decoded = decode(body)
    assert (decoded.charset, decoded.replaced, decoded.mislabelled) == ("utf-8", 1, label)
    assert RU in decoded.text
    # Where as much is none of it, the label counts.
    mixed = rss("déjà vu, señor, naïve, ", encoding=label).encode("latin-1") + RU[:15].encode()
    assert decode(mixed).charset == codecs_for_label(label)[0]


def test_undeclared_utf_8_is_utf_8() -> None:
    assert (decode(rss(ZH).encode()).charset, decode(rss(ZH).encode()).rule) == ("utf-8", "utf-8")


def test_undeclared_utf_8_cut_within_a_character_or_with_a_bad_byte_is_utf_8_still() -> None:
    cut = decode(rss("é").encode()[: rss("é").index("é")] + "中".encode()[:2])
    spoilt = decode(rss(ZH + "|").encode().replace(b"|", b"\x85 "))
    assert [(each.charset, each.rule, each.replaced) for each in (cut, spoilt)] == [("utf-8", "utf-8", 1)] * 2


@pytest.mark.parametrize("label", ["utf-16", "UTF-16LE", "utf-32"])
def test_a_utf_16_label_on_bytes_that_begin_with_a_tag_is_ignored(label: str) -> None:
    read = decode(rss(ZH, encoding=label).encode(), content_type=f"text/xml; charset={label}")
    assert (read.charset, read.rule) == ("utf-8", "utf-8")


@pytest.mark.parametrize(
    "label",
    [
        "unicode_escape",
        "raw_unicode_escape",
        "utf-7",
        "idna",
        "punycode",
        "rot13",
        "hex",
        "undefined",
        "x",
        "cp037",
    ],
)
def test_a_codec_that_is_no_charset_is_not_obeyed(label: str) -> None:
    read = decode(rss("a\\u0041+AEE-").encode(), content_type=f"text/xml; charset={label}")
    assert (read.charset, read.rule) == ("utf-8", "utf-8")
    assert "a\\u0041+AEE-" in read.text


@pytest.mark.parametrize(
    ("encoding", "text"), [("utf-8", ZH), ("utf-8", "plain"), ("gb2312", ZH), ("shift_jis", JA)]
)
def test_a_few_undecodable_bytes_are_replaced_within_the_declared_codec(encoding: str, text: str) -> None:
    clean = rss(text + "|", encoding=encoding)
    written = {"gb2312": "gb18030", "shift_jis": "cp932"}.get(encoding, encoding)
    body = clean.encode(written).replace(b"|", b"\x85 ")
    read = decode(body)
    assert (read.charset, read.rule, read.replaced) == (written, "declaration", 1)
    assert text + "\ufffd " in read.text


EXCERPTS = "".join(
    f"<item><title>It’s “{n}”</title><description>“No”, and so|</description></item>" for n in range(20)
)
"""UTF-8 with 120 whole sequences; `|` is for what is none."""
CESU_8 = b"\xed\xa0\xbd\xed\xb8\x80"
"""An emoji as two halves of a surrogate pair, each in three bytes."""


@pytest.mark.parametrize("by", ["header", "declaration", "both"])
@pytest.mark.parametrize(
    ("text", "bad", "replaced"),
    [
        (EXCERPTS, b"\xe2\x80", 20),
        (EXCERPTS, CESU_8, 120),
        (EXCERPTS, b"caf\xe9 \x93no\x94", 60),
        ("é|", b"\xe2\x80", 1),
        ("Café, élève, à|", CESU_8, 6),
        (ZH.replace("，", "，|"), b"\xe4\xb8", 1),
    ],
    ids=["cut quotes", "emoji in CESU-8", "windows-1252 within", "one", "one emoji", "cut in Chinese"],
)
def test_utf_8_that_is_labelled_so_stays_utf_8_where_places_of_it_are_bad(
    by: str, text: str, bad: bytes, replaced: int
) -> None:
    source = rss(text, encoding=None if by == "header" else "UTF-8")
    body = source.encode().replace(b"|", bad)
    read = decode(body, content_type=None if by == "declaration" else "text/xml; charset=utf-8")
    rule = "declaration" if by == "declaration" else "http"
    assert (read.charset, read.rule, read.replaced) == ("utf-8", rule, replaced)
    assert read.mislabelled is None
    assert read.text == body.decode("utf-8", "replace")
    for whole in text.split("|"):
        assert whole in read.text


def test_utf_8_stays_utf_8_also_beside_a_declaration_of_another_charset() -> None:
    body = rss(EXCERPTS, encoding="iso-8859-1").encode().replace(b"|", b"\xe2\x80")
    read = decode(body, content_type="text/xml; charset=utf-8")
    assert (read.charset, read.rule) == ("utf-8", "http")


def test_undeclared_utf_8_stays_utf_8_where_places_of_it_are_bad() -> None:
    body = rss(EXCERPTS).encode().replace(b"|", CESU_8)
    assert (decode(body).charset, decode(body).rule) == ("utf-8", "utf-8")


MISLABELLED = [
    (ZH, "gb18030"),
    (TW, "cp950"),
    (JA, "cp932"),
    (JA[:-1], "euc_jp"),
    (JA[:-1], "iso2022_jp"),
    (KO, "cp949"),
    (RU, "cp1251"),
    (RU, "koi8-r"),
    (EL, "cp1253"),
    (FR, "cp1252"),
    (DE, "cp1252"),
    (PL, "cp1250"),
    (TR, "cp1254"),
]


@pytest.mark.parametrize("by", ["header", "declaration", "both"])
@pytest.mark.parametrize(("text", "codec"), MISLABELLED)
def test_a_document_of_another_charset_that_is_labelled_utf_8_is_detected(
    by: str, text: str, codec: str
) -> None:
    source = rss(text, encoding=None if by == "header" else "UTF-8")
    read = decode(
        source.encode(codec), content_type=None if by == "declaration" else "text/xml; charset=utf-8"
    )
    assert (read.charset, read.rule, read.replaced) == (codec, "detected", 0)
    assert read.text == source
    assert (read.mislabelled or "").lower() == "utf-8"


@pytest.mark.parametrize(
    ("written_in", "declared", "header", "mislabelled"),
    [
        ("utf-8", "iso-8859-1", None, "iso-8859-1"),
        ("utf-8", "iso-8859-1", "gb2312", "gb2312"),
        ("utf-8", "gb2312", "utf-8", None),
        ("gb18030", "gb2312", "utf-8", None),
        ("utf-8", "utf-16", None, "utf-16"),
        ("utf-8", None, "x-unheard-of", "x-unheard-of"),
        ("utf-8", "UTF8", "utf8mb4", None),
        ("utf-16", "UTF-16", "utf-16", None),
        ("utf-8", None, None, None),
        ("gb18030", None, None, None),
    ],
)
def test_a_document_is_mislabelled_where_no_label_of_it_is_its_charset(
    written_in: str, declared: str | None, header: str | None, mislabelled: str | None
) -> None:
    body = rss(ZH, encoding=declared).encode(written_in)
    read = decode(body, content_type=header and f"text/xml; charset={header}")
    assert ZH in read.text
    assert read.mislabelled == mislabelled
    assert decode(rss("plain", encoding=declared).encode("ascii")).mislabelled is None, (
        "ASCII is the same in all"
    )


def test_a_replacement_character_the_publisher_wrote_is_not_counted() -> None:
    assert decode(rss("a\ufffdb", encoding="utf-8").encode().replace(b"b", b"\xff", 1)).replaced == 1
    assert decode(rss("a\ufffdb", encoding="utf-8").encode()).replaced == 0


UNDECLARED = [
    (ZH, "gb18030"),
    (TW, "cp950"),
    (JA[:-1], "euc_jp"),
    (JA, "cp932"),
    (KO, "cp949"),
    (RU, "cp1251"),
    (RU, "koi8-r"),
    (FR, "cp1252"),
]


LATIN = [
    (PT, "cp1252"),
    ("A ção já não é só de São João", "cp1252"),
    (DE, "cp1252"),
    (PL, "cp1250"),
    (PL, "iso8859-2"),
    (CS, "cp1250"),
    (HU, "cp1250"),
    (TR, "cp1254"),
]


@pytest.mark.parametrize(("text", "codec"), LATIN)
def test_latin_text_is_read_by_the_letters_that_one_language_has_together(text: str, codec: str) -> None:
    assert text in decode(rss(text).encode(codec)).text


@pytest.mark.parametrize(
    ("text", "codec", "language"), [(RU, "koi8-r", "ru"), (UK, "koi8-u", "uk"), (PL, "iso8859-2", "pl")]
)
def test_of_the_codecs_of_a_language_the_best_fitting_is_chosen(text: str, codec: str, language: str) -> None:
    read = decode(rss(text, language=language).encode(codec))
    assert (read.charset, read.rule) == (codec, "detected")
    assert text in read.text


NOISE = (
    "ошТ#т%хщ:г^_ЗґЖ^шаэґщґі^Д#лжэЯЛМсдЛ%%ьнФщТиЦЮЫУЪ;ПОь%ПЪфхігхчвИжег%СхопЕЫЖ—ЛМзлаліжї%^Э!ТЕФС№УС~чХШЭхС!в"
    "?мз!К!УнЗк%ж#бД%~И№ЫкомАЫнМЩЕ^%айшй:иызЧАхъЫ~:_ФдвмуєЬъЧЫДШФъД:_Ы«ДЫН;єрух!ЫО!юЧ!мБЯБгх%_ЛГез^їє"
)
"""The detector has no opinion of it: too many capitals and signs within words."""


def test_where_the_detector_has_no_opinion_the_last_codec_decides_and_then_the_language() -> None:
    document = rss(NOISE)
    body = document.encode("cp1251")
    assert decode(body).rule == "fallback"
    for hint, language, rule in (
        ("cp1251", None, "hint"),
        (None, "uk", "detected"),
        ("cp1251", "el", "hint"),
    ):
        read = decode(body, hint=hint, language=language)
        assert (read.text, read.rule) == (document, rule)
    assert decode(body, hint="cp932", language="ja").rule == "fallback", "neither decodes every byte"


@pytest.mark.parametrize("language", ["", " ", "-", "none", "xx"])
def test_an_empty_or_unknown_language_is_none(language: str) -> None:
    document = rss(RU, language=language or " ")
    assert decode(document.encode("koi8-r")).text == document
    assert decode(rss(RU).replace("<title>", "<language/><title>").encode("cp1251")).charset == "cp1251"


@pytest.mark.parametrize(("text", "codec"), UNDECLARED)
def test_an_undeclared_document_is_detected(text: str, codec: str) -> None:
    read = decode(rss(text).encode(codec))
    assert (read.charset, read.rule, read.replaced) == (codec, "detected", 0)
    assert text in read.text


def test_detection_looks_at_the_whole_document() -> None:
    read = decode(rss("plain " * 20_000 + ZH).encode("gb18030"))
    assert (read.charset, read.rule) == ("gb18030", "detected")


SHORT = "中文测试"


@pytest.mark.parametrize(
    ("text", "codec"), [(SHORT, "gb18030"), ("테스트", "cp949"), ("測試", "cp950"), ("тест", "koi8-r")]
)
def test_the_codec_that_last_served_a_short_feed_decides_between_close_candidates(
    text: str, codec: str
) -> None:
    read = decode(rss(text).encode(codec), hint=codec)
    assert (read.charset, read.rule) == (codec, "hint")
    assert text in read.text


@pytest.mark.parametrize(
    ("text", "codec", "language"),
    [
        (SHORT, "gb18030", "zh-CN"),
        ("테스트", "cp949", "ko"),
        ("測試", "cp950", "zh-tw"),
        ("тест", "cp1251", "ru"),
    ],
)
def test_the_language_decides_where_there_is_no_hint(text: str, codec: str, language: str) -> None:
    for read in (
        decode(rss(text).encode(codec), language=language),
        decode(rss(text, language=language).encode(codec)),
    ):
        assert (read.charset, read.rule) == (codec, "detected")
        assert text in read.text


def test_a_hint_is_a_codec_of_its_own_and_never_utf_16() -> None:
    text = "嘅𠺢測試"
    read = decode(rss(text).encode("big5hkscs"), hint="big5hkscs")
    assert (read.charset, read.rule) == ("big5hkscs", "hint")
    assert text in read.text
    even = rss(NOISE).encode("cp1251")
    assert len(even + b" " * (len(even) % 2)) % 2 == 0
    assert decode(even + b" " * (len(even) % 2), hint="utf-16-le").rule == "fallback"


def test_a_hint_does_not_outweigh_a_clear_detection() -> None:
    read = decode(rss(RU * 20).encode("cp1251"), hint="gb18030")
    assert (read.charset, read.rule) == ("cp1251", "detected")


def test_a_hint_is_for_undeclared_documents_only() -> None:
    read = decode(rss(ZH, encoding="gb2312").encode("gb18030"), hint="big5")
    assert (read.charset, read.rule) == ("gb18030", "declaration")


def test_what_nothing_explains_is_windows_1252_with_replacement_and_marked() -> None:
    read = decode(bytes(range(0x80, 0x100)) * 3 + b"\x81\x8d\xff\xfe")
    assert (read.charset, read.rule) == ("cp1252", "fallback")
    assert read.replaced > 0


@given(
    st.binary(max_size=300),
    st.sampled_from([None, "text/xml; charset=gbk", "text/xml; charset=utf-8", "charset="]),
)
def test_no_bytes_make_it_raise_and_every_text_can_be_stored(body: bytes, content_type: str | None) -> None:
    read = decode(body, content_type=content_type, hint="cp932")
    read.text.encode()
    codecs.lookup(read.charset)


@pytest.mark.slow
@given(
    st.text(st.characters(codec="gb18030", exclude_categories=["Cs", "Cc"], min_codepoint=0x4E00), min_size=1)
)
def test_a_declared_document_comes_back_as_it_was_written(text: str) -> None:
    body = rss(text, encoding="gb2312").encode("gb18030")
    read = decode(body)
    assert text in read.text or read.charset == "utf-8"
