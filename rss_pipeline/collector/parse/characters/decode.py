"""The decoding of a document's bytes to text, with the codec and the rule that chose it.

Of XML, only the declaration and the language tag are read. Nothing is repaired except undecodable bytes,
which become U+FFFD.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rss_pipeline.collector.parse.characters.charsets import (
    DETECTABLE,
    LATIN,
    MULTIBYTE,
    UNICODE_LABELS,
    codecs_for_hint,
    codecs_for_label,
    codecs_for_language,
)

Rule = Literal["bom", "nul-pattern", "http", "utf-8", "declaration", "detected", "hint", "fallback"]

# The UTF-32 marks come first: the UTF-16 one is the beginning of the UTF-32 one.
_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_DECLARATION = re.compile(
    rb"<\?xml\b[^>]{0,200}?\bencoding\s*+=\s*+(?:[\"']\s*+)?([A-Za-z0-9][A-Za-z0-9._:/-]*)"
)
_DECLARED_WITHIN = 4096
_CHARSET = re.compile(r"charset\s*+=\s*+(?:[\"']\s*+)?([^\s;\"',]+)", re.IGNORECASE)
_LANGUAGE = re.compile(
    rb"<(?:dc:)?language>\s*+(?:<!\[CDATA\[\s*+)?([A-Za-z_-]{2,20})|xml:lang\s*=\s*[\"']([A-Za-z_-]{2,20})"
    rb"|\"language\"\s*:\s*\"([A-Za-z_-]{2,20})\""
)
# Nothing that can be the second byte of a character in Shift_JIS, GBK or Big5 (0x40 to 0x7e).
_MARKUP = re.compile(rb"<[\x00-\x7f]{0,2000}?>|(?<=[\x00-\x7f])[\x00-\x3f]{2,}")
_HIGH = re.compile(rb"[\x80-\xff]")
_HIGH_PAIR = re.compile(rb"[\x80-\xff]{2}")
_MULTIBYTE_UTF8 = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Text of UTF-8 in which each undecodable byte is half a surrogate pair.
_BAD_BYTES = re.compile("[\udc80-\udcff]+")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")

# Eight characters of GBK that happen to be valid UTF-8 together are rarer than one document in a million.
_UTF8_BEYOND_DOUBT = 8
_FEW_BYTES = 3
_TOLERABLE = 0.1
_SHORT = 1000
_CLOSE_SHORT, _CLOSE_LONG = 0.1, 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A document's text, and the rule that decoded it."""

    text: str
    """Without BOM; can always be encoded as UTF-8."""
    charset: str
    """The Python codec that decoded it."""
    rule: Rule
    replaced: int = 0
    """The number of undecodable places that became U+FFFD."""
    mislabelled: str | None = None
    """The label of the Content-Type or the XML declaration, where each that there is names another codec."""


def decode(
    body: bytes, *, content_type: str | None = None, hint: str | None = None, language: str | None = None
) -> Decoded:
    """Decode a document by the first rule that applies.

    BOM; NUL pattern of UTF-16/32 (XML 1.0, appendix F); charset of the Content-Type; XML declaration;
    valid UTF-8; detection; windows-1252. Valid UTF-8 with multibyte sequences beats a label of a
    one-byte charset, also with a few bad places, and damaged UTF-8 stays UTF-8. `hint` is the codec that
    last decoded this feed, `language` its language tag (read from the document if not given): they decide
    only between close candidates of the detection. Never raises.
    """
    labels = _labels(body, content_type)
    decoded = _decode(body, labels, hint, language)
    if not labels or decoded.text.isascii() or any(_is_named(decoded.charset, label) for label, _ in labels):
        return decoded
    return replace(decoded, mislabelled=labels[0][0])


def former_readings(body: bytes, codec: str, formers: Iterable[str | None]) -> Iterator[str]:
    """The document's text by each of these codecs that is not its own; none beside UTF-16 and UTF-32."""
    if not codecs_for_hint(codec):
        return
    names = dict.fromkeys(name for former in formers for name in codecs_for_hint(former)[:1])
    yield from (_replacing(body, name, "fallback").text for name in names if name != codec)


def _decode(body: bytes, labels: list[tuple[str, Rule]], hint: str | None, language: str | None) -> Decoded:
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return _replacing(body[len(mark) :], codec, "bom")
    if wide := _nul_pattern(body):
        return _replacing(body, wide, "nul-pattern")

    labelled = _labelled(body, labels)
    if b"\x1b$" in body and all(codec == "utf-8" for codec, _ in labelled):
        # ISO-2022-JP is ASCII byte for byte, and the escape itself is no character of a document.
        labelled = []
    elif body.isascii():
        codec, rule = labelled[0] if labelled else ("utf-8", "utf-8")
        return Decoded(text=body.decode("ascii"), charset=codec, rule=rule)

    utf8 = _strictly(body, "utf-8")
    if utf8 is not None and labelled and labelled[0][0] == "utf-8":
        return _decoded(utf8, *labelled[0])
    sequences = 0 if utf8 is None else len(_MULTIBYTE_UTF8.findall(body))
    # If one label fits except for some bytes, another may fit completely: few losses come second.
    tolerable: list[Decoded] = []
    few: list[Decoded] = []
    for codec, rule in labelled:
        beaten = codec not in MULTIBYTE or sequences >= _UTF8_BEYOND_DOUBT
        if utf8 is not None and sequences and codec != "utf-8" and beaten:
            return _decoded(utf8, "utf-8", "utf-8")
        if utf8 is None and codec != "utf-8" and codec not in MULTIBYTE and _is_utf8_beyond_doubt(body):
            # As without its bad places: else one excerpt cut within a character would be mojibake for all.
            return _replacing(body, "utf-8", "utf-8")
        text = utf8 if codec == "utf-8" else _strictly(body, codec)
        if text is not None:
            return _decoded(text, codec, rule)
        if codec == "utf-8" and (damaged := _damaged_utf8(body, rule)):
            tolerable.append(damaged)
            break
        lossy = _replacing(body, codec, rule)
        others = _beyond_ascii(lossy.text)
        if lossy.replaced <= others * _TOLERABLE or (
            lossy.replaced <= _FEW_BYTES and others > lossy.replaced
        ):
            tolerable.append(lossy)
            break
        if lossy.replaced <= _FEW_BYTES:
            few.append(lossy)
    if tolerable or few:
        return (tolerable or few)[0]
    if utf8 is not None and b"\x1b$" not in body:
        return _decoded(utf8, "utf-8", "utf-8")
    if utf8 is None and (nearly := _nearly_utf8(body)):
        return nearly
    return _detected(body, hint, language or _language(body)) or _replacing(body, "cp1252", "fallback")


def _nul_pattern(body: bytes) -> str | None:
    match [byte != 0 for byte in body[:4]]:
        case [True, False, False, False]:
            return "utf-32-le"
        case [False, False, False, True]:
            return "utf-32-be"
        case [True, False, True, False]:
            return "utf-16-le"
        case [False, True, False, True]:
            return "utf-16-be"
        case _:
            return None


def _labels(body: bytes, content_type: str | None) -> list[tuple[str, Rule]]:
    """The labels of the header and of the declaration, in that order."""
    labels: list[tuple[str, Rule]] = []
    if content_type and (found := _CHARSET.search(content_type)):
        labels.append((found[1], "http"))
    if declared := _DECLARATION.search(body[:_DECLARED_WITHIN]):
        labels.append((declared[1].decode("ascii"), "declaration"))
    return labels


def _is_named(codec: str, label: str) -> bool:
    if label.lower() in UNICODE_LABELS:
        return codec.startswith(("utf-16", "utf-32"))
    return codec in codecs_for_label(label)


def _labelled(body: bytes, labels: list[tuple[str, Rule]]) -> list[tuple[str, Rule]]:
    """The codecs that the labels name; wider variants if needed."""
    named: list[tuple[str, Rule]] = []
    for label, rule in labels:
        # The checks above have excluded UTF-16 and UTF-32.
        if label.lower() in UNICODE_LABELS:
            continue
        if variants := codecs_for_label(label):
            fitting = (
                codec for codec in variants if len(variants) > 1 and _strictly(body, codec) is not None
            )
            named.append((next(fitting, variants[0]), rule))
    return named


def _strictly(body: bytes, codec: str) -> str | None:
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        return None


def _decoded(text: str, codec: str, rule: Rule, replaced: int = 0) -> Decoded:
    # Some codecs (cp932, gb18030) can encode half a surrogate pair, which no store can keep; UTF-8 cannot.
    if codec != "utf-8" and not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    return Decoded(text=text.removeprefix("\ufeff"), charset=codec, rule=rule, replaced=replaced)


def _replacing(body: bytes, codec: str, rule: Rule) -> Decoded:
    text = _strictly(body, codec)
    if text is not None:
        return _decoded(text, codec, rule)
    text = body.decode(codec, "replace")
    meant = body.count("\ufffd".encode()) if codec == "utf-8" else 0
    return _decoded(text, codec, rule, max(1, text.count("\ufffd") - meant))


def _damaged_utf8(body: bytes, rule: Rule) -> Decoded | None:
    """Labelled UTF-8 with bad places, as many as it has whole multibyte sequences at most.

    In text of another charset some bytes happen to be whole sequences, and at least 2.6 times as many are
    none. A run of bad bytes is one place (an emoji in CESU-8 has six) where it is not beside such sequences.
    """
    lossy = _replacing(body, "utf-8", rule)
    if _beyond_ascii(lossy.text) - lossy.replaced >= lossy.replaced:
        return lossy
    whole, runs = _whole_and_bad(body)
    return lossy if whole >= runs else None


def _is_utf8_beyond_doubt(body: bytes) -> bool:
    """True for UTF-8 with bad places that has at least four whole sequences for each of them."""
    whole, runs = _whole_and_bad(body)
    return whole >= max(_UTF8_BEYOND_DOUBT, 4 * runs)


def _nearly_utf8(body: bytes) -> Decoded | None:
    """Undeclared UTF-8 that was cut within a character, or has a few bad places among many good ones."""
    lossy = _replacing(body, "utf-8", "utf-8")
    if lossy.replaced <= _beyond_ascii(lossy.text) * _TOLERABLE:
        return lossy
    whole, runs = _whole_and_bad(body)
    if whole >= max(runs, _UTF8_BEYOND_DOUBT):
        return lossy
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body, final=False)
    except UnicodeDecodeError:
        return None
    return lossy


def _whole_and_bad(body: bytes) -> tuple[int, int]:
    """The multibyte sequences in stretches beyond ASCII that are UTF-8 from end to end, and the runs of bad
    bytes.

    In 130 texts of other charsets there were at least 19 times as many runs.
    """
    text = body.decode("utf-8", "surrogateescape")
    stretches = _BEYOND_ASCII.findall(text)
    whole = sum(len(stretch) for stretch in stretches if not _BAD_BYTES.search(stretch))
    return whole, len(_BAD_BYTES.findall(text))


def _beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _language(body: bytes) -> str | None:
    found = _LANGUAGE.search(body)
    return None if found is None else next(tag for tag in found.groups() if tag).decode("ascii")


def _detected(body: bytes, hint: str | None, language: str | None) -> Decoded | None:
    """The result of charset-normalizer for the document, of the codecs that decode all of it.

    Where it has no opinion, `hint` decides, then the codecs of the language.
    """
    if b"\x1b$" in body and (text := _strictly(body, "iso2022_jp")) is not None:
        return _decoded(text, "iso2022_jp", "detected")
    last = codecs_for_hint(hint)
    spoken = codecs_for_language(language) if language else ()
    candidates = {
        codec: text
        for codec in dict.fromkeys((*DETECTABLE, *last, *spoken))
        if (text := _strictly(body, codec)) is not None
    }
    # Tags and digits are the same in every candidate and would only weaken the evidence.
    evidence = _MARKUP.sub(b" ", body)
    if not _HIGH_PAIR.search(evidence):
        # Letters that are always single among ASCII are accents: no script but Latin has that.
        candidates = {codec: text for codec, text in candidates.items() if codec in LATIN}
    if not candidates:
        return None
    ranks = _ranks(evidence, list(candidates))
    ranked = sorted(ranks, key=lambda codec: ranks[codec])
    short = len(_HIGH.findall(evidence)) < _SHORT
    margin = _CLOSE_SHORT if short else _CLOSE_LONG
    close = [codec for codec in ranked if ranks[codec][0] - ranks[ranked[0]][0] <= margin]
    if not ranked or (short and ranks[ranked[0]][1] == 0):
        # Too little text to detect a language: every codec that decodes it is close.
        close += [codec for codec in candidates if codec not in close]
    if (served := next((codec for codec in last if codec in close), None)) is not None:
        return _decoded(candidates[served], served, "hint")
    usual = [codec for codec in (*ranked, *spoken) if codec in spoken and codec in close]
    if not usual and ranked:
        # A language's own letters distinguish the Latin codecs; the detector takes "não" for "năo".
        usual = [codec for codec in close if codec in LATIN] if ranked[0] in LATIN else ranked
    if not usual:
        return None
    chosen = (
        usual[0] if usual[0] not in LATIN else likeliest_latin({each: candidates[each] for each in usual})
    )
    return _decoded(candidates[chosen], chosen, "detected")


def _ranks(evidence: bytes, candidates: list[str]) -> dict[str, tuple[float, float]]:
    """The detector's mess and language score of each candidate that it finds possible; less is better."""
    # Imported by the first such document: each parser process holds what is imported, and most see none.
    import charset_normalizer

    found = charset_normalizer.from_bytes(evidence, cp_isolation=candidates, enable_fallback=False)
    ranks = {_name(match.encoding): (match.chaos, -match.coherence) for match in found}
    for match in found:
        for alias in match.could_be_from_charset:
            ranks.setdefault(_name(alias), (match.chaos, -match.coherence))
    return {codec: ranks[codec] for codec in candidates if codec in ranks}


def _name(codec: str) -> str:
    """charset-normalizer writes koi8_r and iso8859_2 where Python's canonical name has a hyphen."""
    return codec.replace("_", "-") if codec.startswith(("koi8", "iso8859")) else codec


# The letters beyond ASCII of languages in Latin script, and the codec that they point to.
#
# charset-normalizer ranks the Latin codecs by little: most bytes are letters in each of them. The languages
# of one codec share letters that the languages of another do not have together.

_LANGUAGES = (
    ("cp1252", "àáâãçéêíóôõúü"),  # Portuguese
    ("cp1252", "àâæçèéêëîïôùûüÿœ"),  # French
    ("cp1252", "áéíñóúü"),  # Spanish
    ("cp1252", "àáçèéíïòóúü"),  # Catalan
    ("cp1252", "äöüß"),  # German
    ("cp1252", "àèéìíîòóùú"),  # Italian
    ("cp1252", "áèéëíïóöúü"),  # Dutch
    ("cp1252", "åäöé"),  # Swedish, Finnish
    ("cp1252", "æøåéèêóòâôü"),  # Danish, Norwegian
    ("cp1250", "áčďéěíňóřšťúůýž"),  # Czech
    ("cp1250", "áäčďéíĺľňóôŕšťúýž"),  # Slovak
    ("cp1250", "ąćęłńóśźż"),  # Polish
    ("cp1250", "áéíóöőúüű"),  # Hungarian
    ("cp1250", "ăâîşţ"),  # Romanian
    ("cp1250", "čćđšž"),  # Croatian, Slovenian
    ("cp1254", "çğıİöşüâî"),  # Turkish
    ("cp1257", "ąčęėįšųūž"),  # Lithuanian
    ("cp1257", "āčēģīķļņšūž"),  # Latvian
    ("cp1257", "äõöüšž"),  # Estonian
    ("cp1252", "áðéíóúýþæö"),  # Icelandic: last, for Turkish without ç and ü reads like it
)
_FAMILY: Mapping[str, str] = {"iso8859-2": "cp1250"}
_LETTERS = tuple(
    (codec, frozenset(letters + letters.upper().replace("SS", ""))) for codec, letters in _LANGUAGES
)
_MARKS = frozenset("«»„“”‚‘’‹›–—…•·§©®°€£¿¡ºª\u00a0")
_LATIN_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def likeliest_latin(texts: Mapping[str, str]) -> str:
    """The codec, of those that decoded `texts`, in which most letters belong to one language.

    The order of `texts` decides nothing; between equals the more usual language wins, then the first codec.
    """

    def likelihood(codec: str) -> tuple[float, int]:
        letters = [letter for letter in _LATIN_BEYOND_ASCII.findall(texts[codec]) if letter not in _MARKS]
        family = _FAMILY.get(codec, codec)
        shares = [
            (sum(map(own.__contains__, letters)) / max(1, len(letters)), -place)
            for place, (name, own) in enumerate(_LETTERS)
            if name == family
        ]
        return max(shares, default=(0.0, -len(_LETTERS)))

    return max(sorted(texts), key=likelihood)
