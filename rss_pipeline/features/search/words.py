"""Texts as the search index takes them: words apart, in one form.

SQLite's tokenizer unicode61 finds the words of scripts that put spaces between them, in lower case and
without the diacritics of Latin, Greek and Cyrillic. Texts in scripts without spaces come to it as overlapping
pairs of characters, and the last character of a run alone: so words of two characters and more are found, by
two neighbours or a chain of them, and those of one as the start of a pair.

Pairs and not triples: triples make the index larger than the text (1.3 times against 1.1, for Chinese and
Japanese), take half as long again to write, and find no words of two characters, which most Chinese words
are.
"""

import re
import unicodedata
from operator import add

_MAY_BE_PAIRED = re.compile("[\u0e00-\u1fff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+")
"""All that is paired and more, in few ranges: most texts have none of it, and that is seen at once."""
_PAIRED = re.compile(
    "["
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0edf"  # Thai, Lao
    "\u0f00\u0f40-\u0fbc\u1000-\u109f\u1780-\u17d3"  # Tibetan, Myanmar, Khmer
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\u1100-\u11ff\uac00-\ud7af"  # Korean: its words carry endings
    "]+"
)
_INVISIBLE = ("\u00ad", "\u200c", "\u200d", "\u2060", "\ufeff")
"""Characters within a word that are not part of it."""
_MARK = "\ue000"
"""The first character of the index's own words (writing.py)."""
_MOST_CACHED = 50_000


def normal(text: str) -> str:
    """The text in one form: full-width letters as letters, accents as part of theirs, nothing invisible."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    for character in (*_INVISIBLE, _MARK):
        if character in text:
            text = text.replace(character, "")
    return text


def spaced(text: str) -> str:
    """The text for the index: runs of scripts without spaces as pairs."""
    if text.isascii():
        return text
    return _MAY_BE_PAIRED.sub(_of_part, normal(text))


def _of_part(part: re.Match[str]) -> str:
    return _PAIRED.sub(_as_pairs, part[0])


def _as_pairs(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(map(add, text, text[1:]))} {text[-1]} "


def phrase(text: str) -> str | None:
    """The FTS5 phrase for a text of a query, None for one without words.

    Its last character, where it is of a script without spaces, may be followed by others in an item.
    """
    text = spaced(text.replace(_MARK, ""))
    words = [word for word in text.split() if any(map(_is_of_word, word))]
    if not words:
        return None
    is_open = _PAIRED.fullmatch(words[-1]) is not None and len(words[-1]) == 1
    if is_open and len(words) > 1 and _PAIRED.fullmatch(words[-2]) and len(words[-2]) == 2:
        # The end of a run, which the pair before it has already.
        words, is_open = words[:-1], False
    quoted = " ".join(words).replace('"', '""')
    return f'"{quoted}"*' if is_open else f'"{quoted}"'


def _is_of_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM"


class _Folded(dict[int, str]):
    """Each character in lower case and without diacritics, as one character."""

    def __missing__(self, code: int) -> str:
        lower = chr(code).lower()
        parts = unicodedata.normalize("NFKD", lower)
        bare = unicodedata.normalize(
            "NFC", "".join(each for each in parts if not "\u0300" <= each <= "\u036f")
        )
        found = next((each for each in (bare, lower) if len(each) == 1), chr(code))
        if len(self) < _MOST_CACHED:
            self[code] = found
        return found


_FOLDED = _Folded()


def folded(text: str) -> str:
    """The text for comparisons, in lower case and without diacritics; each character keeps its place."""
    return text.lower() if text.isascii() else text.translate(_FOLDED)


_SPACED_WORD = "[^\\W_\u0e00-\u1fff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
"""A letter or digit of a script that puts spaces between words."""
_PIECE = re.compile(f"{_SPACED_WORD}+|[^\\W_]")


def pattern(text: str) -> str | None:
    """A regular expression for a text of a query in a `folded` text, None for one without words."""
    pieces = _PIECE.findall(folded(normal(text)))
    if not pieces:
        return None
    found, before = "", None
    for piece in pieces:
        is_word = re.fullmatch(f"{_SPACED_WORD}+", piece) is not None
        if before is not None:
            found += "[\\W_]{1,9}" if is_word and before else "[\\W_]{0,9}"
        found += re.escape(piece)
        if before is None and is_word:
            found = f"(?<!{_SPACED_WORD}){found}"
        before = is_word
    return f"{found}(?!{_SPACED_WORD})" if before else found
