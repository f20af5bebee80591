"""Texts as words: tokens with their case, light stems, scripts and languages.

Scripts without spaces are no words here: paired.py has them.
"""

import re
import unicodedata
from functools import lru_cache
from zlib import crc32

TOKEN = re.compile(
    r"CVE-\d{4}-\d+|#\d+|[^\W\d_]{1,4}-?\d{1,4}(?![\w])|\d+(?:[.,:]\d+)*[^\W\d_]{0,4}(?![^\W\d_])"
    r"|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[$€£¥₩%‰°,]|[.!?…:;|\"“”„«»()\[\]]|[-–—/]"
)
"""A number with its points, a word with its apostrophes, a mark that matters."""
SENTENCE_ENDS = frozenset('.!?…:;|"“”„«»()[]')
"""Marks after which a capital letter says nothing."""
_APOSTROPHE = re.compile("['’]")
_SUFFIXES = (
    ("ements", 4), ("ations", 4), ("ement", 4), ("ation", 4), ("ings", 4), ("ments", 4), ("ment", 4),
    ("ing", 4),
    ("ies", 3), ("ern", 4), ("eur", 5), ("ers", 4), ("est", 5), ("ed", 4), ("es", 4), ("en", 4), ("er",
    4), ("em", 5),
    ("ly", 4), ("as", 4), ("os", 4), ("ee", 4), ("e", 4), ("s", 4), ("n", 5), ("a", 4), ("o", 4),
)  # fmt: skip
"""Endings that are cut, with the least length of what is left before them."""

_CHARACTERS = {
    "kana": "\u3041-\u30ff\u31f0-\u31ff",
    "hangul": "\u1100-\u11ff\uac00-\ud7af",
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "thai": "\u0e00-\u0eff",
    "cyrillic": "\u0400-\u052f",
    "arabic": "\u0600-\u06ff",
    "hebrew": "\u0590-\u05ff",
    "greek": "\u0370-\u03ff",
    "indic": "\u0900-\u0d7f",
}
_SCRIPTS = {name: re.compile(f"[{characters}]+") for name, characters in _CHARACTERS.items()}
_BLOCKS = {
    name: {
        block
        for first, last in zip(characters[::3], characters[2::3], strict=True)
        for block in range(ord(first) >> 8, (ord(last) >> 8) + 1)
    }
    for name, characters in _CHARACTERS.items()
}
"""The higher bytes of a script's characters: scripts without one in a text are not looked for."""
_WITHOUT_SPACES = frozenset({"han", "kana", "thai"})
PAIRED_SCRIPTS = _WITHOUT_SPACES | {"hangul"}
"""Scripts that are read by pairs of characters."""
_LANGUAGES_OF = {
    "han": {"zh", "yue", "wuu"}, "kana": {"ja"}, "hangul": {"ko"}, "thai": {"th", "lo"},
    "cyrillic": {"ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg"},
    "arabic": {"ar", "fa", "ur", "ps", "ckb", "ug"}, "hebrew": {"he", "yi", "iw"}, "greek": {"el"},
}  # fmt: skip
_ONE_LANGUAGE = {"han": "zh", "kana": "ja", "hangul": "ko"}
PAIRED_LANGUAGES = frozenset(_ONE_LANGUAGE.values())
_SCRIPT_NAMES = frozenset({"latin", "cyrillic", "greek", "arabic", "hebrew", "thai", "indic"})
_LONGEST = 400


def script(text: str) -> str:
    """The script that most of the text is in: `kana` for Japanese, `latin` where no other is found."""
    if text.isascii():
        return "latin"
    sample = text[:_LONGEST]
    blocks = set(sample.encode("utf-16-be", "surrogatepass")[::2])
    counts = {
        name: count
        for name, each in _SCRIPTS.items()
        if not blocks.isdisjoint(_BLOCKS[name]) and (count := sum(map(len, each.findall(sample))))
    }
    if not counts:
        return "latin"
    # A character of these says as much as some letters do.
    ideographic = counts.get("han", 0) + counts.get("kana", 0)
    if ideographic and counts.get("kana", 0) * 8 >= ideographic:
        return "kana" if ideographic * 4 >= _letters(sample) else "latin"
    best = max(counts, key=lambda name: (counts[name], name))
    weight = 4 if best in PAIRED_SCRIPTS else 2
    most = counts[best] * weight
    return best if most >= len(sample) or most >= _letters(sample) else "latin"


_NO_SPACES = re.compile(f"[{''.join(_CHARACTERS[name] for name in sorted(_WITHOUT_SPACES))}]")


def without_spaces(token: str) -> bool:
    """True for characters of a script without spaces."""
    return _NO_SPACES.match(token) is not None


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def language_of(declared: str | None, script_name: str) -> str:
    """The language as its first subtag if it is written in this script, else the script's name.

    Half of the world's feeds are declared English by the program that writes them.
    """
    code = (declared or "").strip().lower().replace("_", "-").partition("-")[0]
    languages = _LANGUAGES_OF.get(script_name)
    script_name = _ONE_LANGUAGE.get(script_name, script_name)
    if not code.isalpha() or len(code) > 3:
        return script_name
    if languages is None:
        other = any(code in each for each in _LANGUAGES_OF.values())
        return script_name if other else code
    return code if code in languages else script_name


def may_be_one_language(one: str, other: str) -> bool:
    """True for equal languages, and where one of them is not known."""
    return one == other or one in _SCRIPT_NAMES or other in _SCRIPT_NAMES


@lru_cache(16_384)
def bare(word: str) -> str:
    """The word in one case, without accents and what an apostrophe joins to it."""
    word = word.casefold()
    if not word.isascii():
        decomposed = unicodedata.normalize("NFKD", word)
        word = "".join(each for each in decomposed if not "\u0300" <= each <= "\u036f")
        word = unicodedata.normalize("NFC", word)
    parts = _APOSTROPHE.split(word)
    if len(parts) > 1:
        # l'acteur, d'emploi; Pryce's, don't.
        word = parts[-1] if len(parts[0]) <= 2 and len(parts[-1]) > 2 else parts[0]
    return word


@lru_cache(16_384)
def stem(word: str) -> str:
    """The `bare` word without a common ending."""
    word = bare(word)
    for suffix, least in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= least - (len(suffix) > 2):
            return word[: -len(suffix)]
    return word


@lru_cache(32_768)
def hashed(text: str) -> int:
    """32 bits that are the same in each process."""
    return crc32(text.encode("utf-8", "surrogatepass"))
