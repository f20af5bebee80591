"""Charset labels with the codecs that they mean on the web, and the usual codecs of languages.

Only names: bytes are decoded in `decode.py`.
"""

import codecs
import encodings
from collections.abc import Mapping
from encodings.aliases import aliases
from functools import cache
from pkgutil import iter_modules

from webencodings.labels import LABELS

UNICODE_LABELS: frozenset[str] = frozenset(
    f"{name}{order}"
    for name in ("utf-16", "utf16", "utf-32", "utf32", "ucs-2", "ucs-4")
    for order in ("", "le", "-le", "be", "-be")
) | {"iso-10646-ucs-2", "iso-10646-ucs-4", "unicode", "csunicode"}
"""Labels of encodings with NUL bytes. Such a document is recognised by BOM or NUL pattern; the label alone is
ignored (0 of 877 items were read from a UTF-8 body that was declared as utf-16)."""

# By the web's name of an encoding. The second codec is a wider one, for what the first cannot decode: the
# web's Big5 includes HKSCS, its EUC-JP the NEC row with the circled digits.
_CODECS: Mapping[str, tuple[str, ...]] = {
    "utf-8": ("utf-8",),
    "gbk": ("gb18030",),
    "gb18030": ("gb18030",),
    "big5": ("cp950", "big5hkscs"),
    "shift_jis": ("cp932",),
    "euc-jp": ("euc_jp", "euc_jis_2004"),
    "iso-2022-jp": ("iso2022_jp", "iso2022_jp_ext"),
    "euc-kr": ("cp949",),
    **{f"windows-{page}": (f"cp{page}",) for page in (874, *range(1250, 1259))},
    **{f"iso-8859-{part}": (f"iso8859-{part}",) for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    "iso-8859-8-i": ("iso8859-8",),
    "koi8-r": ("koi8-r",),
    "koi8-u": ("koi8-u",),
    "ibm866": ("cp866",),
    "macintosh": ("mac-roman",),
    "x-mac-cyrillic": ("mac-cyrillic",),
}
_NAMES = frozenset(codec for codecs in _CODECS.values() for codec in codecs)
# Labels of feeds that are no labels of the web, by the encoding that they mean.
_FURTHER_LABELS: Mapping[str, str] = {
    label: name
    for name, labels in {
        "utf-8": "utf_8 utf-8-sig cp65001",
        "gb18030": "cp936 ms936 windows-936 euc-cn x-euc-cn gb-2312 gb2312-80 utf-8/gb2312",
        "big5": "big-5 big5hkscs cp950 windows-950",
        "shift_jis": "cp932 windows-932 x-ms-cp932",
        "euc-jp": "eucjp euc_jp ujis",
        "euc-kr": "euckr x-euc-kr ks_c_5601 cp949 uhc ms949",
        "windows-874": "cp874",
        "windows-1250": "cp-1250 windows1250",
        "windows-1251": "cp-1251 windows1251 win-1251 win1251",
        "windows-1252": "cp-1252 windows1252 latin-1 ansi",
        "iso-8859-15": "latin9",
        "iso-8859-16": "iso8859-16",
        "koi8-u": "koi8_u",
        "macintosh": "macroman",
    }.items()
    for label in labels.split()
}
_ASCII = bytes(range(128))
_NO_CHARSETS = frozenset({"raw-unicode-escape", "unicode-escape", "idna", "punycode", "utf-7", "undefined"})

_EAST_ASIAN = ("gb18030", "cp950", "big5hkscs", "cp932", "euc_jp", "euc_jis_2004", "cp949")
MULTIBYTE: frozenset[str] = frozenset((*_EAST_ASIAN, "iso2022_jp", "iso2022_jp_ext"))

DETECTABLE: tuple[str, ...] = (
    *_EAST_ASIAN,
    "cp1252",
    "cp1251",
    "koi8-r",
    "koi8-u",
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

_WESTERN = "en de fr es pt it nl sv da no nb nn fi is ca gl eu af sq id ms ga cy la lb fo"
_BY_LANGUAGE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_WESTERN.split(), ("cp1252",)),
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
    "lt": ("cp1257",),
    "lv": ("cp1257",),
    "et": ("cp1257", "cp1252"),
    "el": ("cp1253",),
    "tr": ("cp1254",),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "fa": ("cp1256",),
    "th": ("cp874",),
}
_TRADITIONAL = ("tw", "hk", "mo", "hant")


def codecs_for_label(label: str) -> tuple[str, ...]:
    """Python codecs for a charset label, the first the usual one; empty for a label that names no charset.

    The labels of the web (https://encoding.spec.whatwg.org/#names-and-labels) mean what they mean there; any
    other one is a text codec of Python in which ASCII is ASCII. `codecs.lookup` alone would also find
    unicode_escape, utf-7 and idna.
    """
    known = label.strip().strip("\"'").strip().lower()
    if (name := LABELS.get(known) or _FURTHER_LABELS.get(known)) is not None:
        return _CODECS.get(name, ())
    return _of_python(known) if known in _python_labels() else ()


def codecs_for_hint(hint: str | None) -> tuple[str, ...]:
    """Python codecs for the codec that last decoded a feed, or for a label; none for UTF-16 and UTF-32, which
    decode almost any bytes."""
    if hint is None or hint in _NAMES:
        return () if hint is None else (hint,)
    return codecs_for_label(hint)


@cache
def _python_labels() -> frozenset[str]:
    """The labels that Python knows: a lookup of any other would be kept in memory for ever."""
    names = {*aliases, *aliases.values(), *(module.name for module in iter_modules(encodings.__path__))}
    return frozenset(spelling for name in names for spelling in (name, name.replace("_", "-")))


def _of_python(label: str) -> tuple[str, ...]:
    try:
        codec = codecs.lookup(label).name
        is_ascii = codec not in _NO_CHARSETS and _ASCII.decode(codec) == _ASCII.decode("ascii")
    except (LookupError, ValueError):
        return ()
    return (codec,) if is_ascii else ()


def codecs_for_language(language: str) -> tuple[str, ...]:
    """Legacy codecs usual for a language tag (`zh-TW`, `ja`); none for a language that is not listed."""
    parts = language.strip().lower().replace("_", "-").split("-")
    if parts[0] == "zh" and any(part in _TRADITIONAL for part in parts[1:]):
        return ("cp950", "big5hkscs")
    return _BY_LANGUAGE.get(parts[0], ())
