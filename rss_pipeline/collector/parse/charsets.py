"""Charset labels with the codecs that they mean on the web, and the usual codecs of languages.

Only names: bytes are decoded in `decode.py`.
"""

from collections.abc import Mapping

UNICODE_LABELS: frozenset[str] = frozenset(
    f"{name}{order}"
    for name in ("utf-16", "utf16", "utf-32", "utf32", "ucs-2", "ucs-4")
    for order in ("", "le", "-le", "be", "-be")
) | {"iso-10646-ucs-2", "iso-10646-ucs-4", "unicode", "csunicode"}
"""Labels of encodings with NUL bytes. Such a document is recognised by BOM or NUL pattern; the label alone is
ignored (0 of 877 items were read from a UTF-8 body that was declared as utf-16)."""

# The codec, and a wider one for a document that the first cannot decode: the web's Big5 includes HKSCS,
# its EUC-JP the NEC row with the circled digits.
_CODECS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "utf-8": (("utf-8",), "utf-8 utf8 unicode-1-1-utf-8 utf_8 x-unicode20utf8 utf-8-sig cp65001"),
    "gb18030": (
        ("gb18030",),
        "gb18030 gbk gb2312 gb_2312 gb2312-80 gb_2312-80 x-gbk cp936 ms936 windows-936 csgb2312 chinese "
        "iso-ir-58 csiso58gb231280 euc-cn x-euc-cn gb-2312 utf-8/gb2312",
    ),
    "big5": (
        ("cp950", "big5hkscs"),
        "big5 big-5 big5-hkscs big5hkscs cn-big5 csbig5 x-x-big5 cp950 windows-950",
    ),
    "cp932": (
        ("cp932",),
        "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j cp932 csshiftjis windows-932 x-ms-cp932",
    ),
    "euc_jp": (("euc_jp", "euc_jis_2004"), "euc-jp x-euc-jp eucjp euc_jp ujis cseucpkdfmtjapanese"),
    "iso2022_jp": (("iso2022_jp", "iso2022_jp_ext"), "iso-2022-jp csiso2022jp"),
    "cp949": (
        ("cp949",),
        "euc-kr euckr x-euc-kr ks_c_5601-1987 ks_c_5601-1989 ksc_5601 ksc5601 ks_c_5601 korean cp949 uhc "
        "windows-949 cseuckr ms949 iso-ir-149",
    ),
    "cp1252": (
        ("cp1252",),
        "iso-8859-1 iso8859-1 iso_8859-1 iso88591 latin1 latin-1 l1 us-ascii ascii ansi_x3.4-1968 cp819 "
        "windows-1252 cp1252 x-cp1252 iso-ir-100 cp-1252 windows1252 ansi",
    ),
    "iso8859-2": (("iso8859-2",), "iso-8859-2 iso8859-2 iso_8859-2 iso88592 latin2 l2"),
    "iso8859-3": (("iso8859-3",), "iso-8859-3 iso8859-3 iso_8859-3 latin3"),
    "iso8859-4": (("iso8859-4",), "iso-8859-4 iso8859-4 iso_8859-4 latin4"),
    "iso8859-5": (("iso8859-5",), "iso-8859-5 iso8859-5 iso_8859-5 cyrillic"),
    "iso8859-6": (("iso8859-6",), "iso-8859-6 iso8859-6 iso_8859-6 arabic"),
    "iso8859-7": (("iso8859-7",), "iso-8859-7 iso8859-7 iso_8859-7 greek greek8"),
    "iso8859-8": (("iso8859-8",), "iso-8859-8 iso8859-8 iso_8859-8 iso-8859-8-i hebrew"),
    "iso8859-10": (("iso8859-10",), "iso-8859-10 iso8859-10 latin6"),
    "iso8859-13": (("iso8859-13",), "iso-8859-13 iso8859-13"),
    "iso8859-14": (("iso8859-14",), "iso-8859-14 iso8859-14"),
    "iso8859-15": (("iso8859-15",), "iso-8859-15 iso8859-15 iso_8859-15 latin9 l9"),
    "iso8859-16": (("iso8859-16",), "iso-8859-16 iso8859-16"),
    "cp874": (("cp874",), "windows-874 tis-620 iso-8859-11 iso8859-11 dos-874 cp874"),
    "cp1250": (("cp1250",), "windows-1250 cp1250 x-cp1250 cp-1250 windows1250"),
    "cp1251": (("cp1251",), "windows-1251 cp1251 x-cp1251 cp-1251 win-1251 windows1251 win1251"),
    "cp1253": (("cp1253",), "windows-1253 cp1253"),
    "cp1254": (("cp1254",), "windows-1254 cp1254 iso-8859-9 iso8859-9 iso_8859-9 latin5 l5"),
    "cp1255": (("cp1255",), "windows-1255 cp1255"),
    "cp1256": (("cp1256",), "windows-1256 cp1256"),
    "cp1257": (("cp1257",), "windows-1257 cp1257"),
    "cp1258": (("cp1258",), "windows-1258 cp1258"),
    "koi8-r": (("koi8-r",), "koi8-r koi8_r koi koi8 cskoi8r"),
    "koi8-u": (("koi8-u",), "koi8-u koi8_u koi8-ru"),
    "cp866": (("cp866",), "ibm866 cp866 866"),
    "mac-roman": (("mac-roman",), "macintosh mac x-mac-roman macroman"),
    "mac-cyrillic": (("mac-cyrillic",), "x-mac-cyrillic x-mac-ukrainian"),
}

_BY_LABEL: Mapping[str, tuple[str, ...]] = {
    label: codecs for codecs, labels in _CODECS.values() for label in labels.split()
}

MULTIBYTE: frozenset[str] = frozenset(
    {
        "gb18030",
        "cp950",
        "big5hkscs",
        "cp932",
        "euc_jp",
        "euc_jis_2004",
        "iso2022_jp",
        "iso2022_jp_ext",
        "cp949",
    }
)

DETECTABLE: tuple[str, ...] = (
    "gb18030",
    "cp950",
    "big5hkscs",
    "cp932",
    "euc_jp",
    "euc_jis_2004",
    "cp949",
    "cp1252",
    "cp1251",
    "koi8-r",
    "cp1250",
    "iso8859-2",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp874",
)
"""The codecs that detection may find in an undeclared document, the likelier first."""

LATIN: frozenset[str] = frozenset({"cp1252", "cp1250", "iso8859-2", "cp1254", "cp1257"})

_BY_LANGUAGE: Mapping[str, tuple[str, ...]] = {
    "zh": ("gb18030",),
    "ja": ("cp932", "euc_jp", "euc_jis_2004"),
    "ko": ("cp949",),
    "ru": ("cp1251", "koi8-r"),
    "uk": ("cp1251", "koi8-u"),
    "bg": ("cp1251",),
    "sr": ("cp1251", "cp1250"),
    "be": ("cp1251",),
    "pl": ("cp1250", "iso8859-2"),
    "cs": ("cp1250", "iso8859-2"),
    "sk": ("cp1250", "iso8859-2"),
    "hu": ("cp1250", "iso8859-2"),
    "hr": ("cp1250", "iso8859-2"),
    "sl": ("cp1250", "iso8859-2"),
    "ro": ("cp1250", "iso8859-2"),
    "el": ("cp1253",),
    "tr": ("cp1254",),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "fa": ("cp1256",),
    "th": ("cp874",),
}
_TRADITIONAL = ("tw", "hk", "mo", "hant")


def codecs_for_label(label: str) -> tuple[str, ...]:
    """Python codecs for a charset label, the first the usual one; empty for a label not on the list.

    An allow-list (after https://encoding.spec.whatwg.org/#names-and-labels): `codecs.lookup` of a server's
    label would also find unicode_escape, utf-7 and idna.
    """
    return _BY_LABEL.get(label.strip().strip("\"'").strip().lower(), ())


def codecs_for_language(language: str) -> tuple[str, ...]:
    """Legacy codecs usual for a language tag (`zh-TW`, `ja`); Western for a language that is not listed."""
    parts = language.strip().lower().replace("_", "-").split("-")
    if parts[0] == "zh" and any(part in _TRADITIONAL for part in parts[1:]):
        return ("cp950", "big5hkscs")
    return _BY_LANGUAGE.get(parts[0], ("cp1252",))
