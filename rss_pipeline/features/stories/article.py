"""An item as the judgement of pairs needs it: words, names, numbers and facts of its title and text."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise

from rss_pipeline.features.stories import paired, vocabulary
from rss_pipeline.features.stories.facts import Facts, read_facts
from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.words import (
    PAIRED_SCRIPTS,
    SENTENCE_ENDS,
    TOKEN,
    bare,
    hashed,
    language_of,
    script,
    stem,
)

TEXT_CHARACTERS = 800
"""Characters of a text that are read: news has its event in its beginning."""
PAIRED_CHARACTERS = 400
"""The same for scripts of pairs, whose characters say more."""
TEMPLATE_WORDS = 90
"""Words of a text that are aligned with another's."""
TEMPLATE_CHARACTERS = 170
"""The same for scripts of pairs."""
HEAD, LEAST_COMPOUND = 6, 7
"""Letters of a word's beginning, and of the word at least."""
_TITLE_TIMES = 3
CALENDAR = frozenset(map(stem, [*vocabulary.MONTHS, *vocabulary.WEEKDAYS, *vocabulary.OTHER_WEEKDAYS]))


@dataclass(slots=True)
class Article:
    """The beginning of an item, read. Its facts are read when they are needed first: mostly, words tell two
    items apart."""

    language: str
    is_paired: bool
    terms: dict[int, int]
    """The count of each term, by its hash; those of the title count three times."""
    words: tuple[str, ...]
    """The words of the title and of the text's beginning as they are aligned (or characters)."""
    title_length: int
    """The number of these that are the title's."""
    known: frozenset[str]
    """Stems of all words (or pairs of characters)."""
    title_names: dict[str, float]
    """Stems of the title's names with their weight, 0.5 for a doubtful one (or its pairs of characters)."""
    names: frozenset[str]
    """Stems of names, of title and text."""
    long_names: tuple[str, ...]
    """Names of six letters and more, for such as carry an ending in the other text."""
    reading: Callable[[], Facts]
    """Reads the facts."""
    characters: int
    """The length of title and text."""
    shown: dict[str, str] = field(default_factory=dict)
    """Names as they are written, by stem."""
    located: frozenset[str] = frozenset()
    """Stems of names behind a word as "in" or "near"."""
    lead: frozenset[str] = frozenset()
    """Pairs of characters of the title and of as much of the text as is aligned."""
    title_stems: tuple[str, ...] = ()
    """Stems of the title's words that say something."""
    subject: frozenset[str] = frozenset()
    """Stems of the title but for numbers, months and weekdays: equal where a title stands."""
    weighed: tuple[str, ...] = ()
    """Words whose rarity counts: all, or those of the title in scripts of pairs."""
    heads: frozenset[str] = frozenset()
    """Beginnings of long words: compounds of one thing begin alike."""
    numbered: dict[str, set[str]] = field(default_factory=dict)
    """The numbers beside a noun, by its stem: but for those of tolls, which rise."""
    places: dict[str | tuple[str, ...], int] = field(default_factory=dict)
    """The places of runs of words, made where they are needed first (pair.py)."""
    _facts: Facts | None = None

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            # What it reads is not needed any more.
            self._facts, self.reading = self.reading(), Facts
        return self._facts


def read(entry: Entry, *, is_kept: bool = False) -> Article:
    """Return the article of an item's title and plain text; without its terms if those are kept."""
    title = " ".join(entry.title.split())[:300]
    text = _beginning(title, entry.text)
    name = script(f"{title} {text}")
    language = language_of(entry.language, name)
    if name in PAIRED_SCRIPTS:
        return _read_paired(title, text, language, is_spaced=name == "hangul", is_kept=is_kept)
    return _read_spaced(title, text, language, is_kept=is_kept)


def _beginning(title: str, text: str) -> str:
    text = " ".join(text[: 2 * TEXT_CHARACTERS + len(title)].split())
    if title and text.startswith(title):
        text = text[len(title) :].lstrip(" .:-–—|")
    return text[:TEXT_CHARACTERS]


def _read_spaced(title: str, text: str, language: str, *, is_kept: bool) -> Article:
    head, body = TOKEN.findall(title), TOKEN.findall(text)
    head_words, body_words = list(map(_word, head)), list(map(_word, body))
    body_caps, lower, names, shown = _cases(body, language)
    title_names = _title_names(head, language, body_caps, lower, shown)
    title_words = [word for word, token in zip(head_words, head, strict=True) if token[-1].isalnum()]
    text_words = [word for word, token in zip(body_words, body, strict=True) if token[-1].isalnum()]
    terms: dict[int, int] = {}
    if not is_kept:
        _count(terms, title_words, _TITLE_TIMES)
        _count(terms, text_words, 1)
    title_stems = [stem(word) for word in title_words if word not in vocabulary.FUNCTION_WORDS]
    all_names = names.union(title_names)
    known = set(map(stem, text_words))
    known.update(map(stem, title_words))
    words = (*title_words, *text_words[:TEMPLATE_WORDS])
    before_places = vocabulary.BEFORE_PLACES.get(language, vocabulary.BEFORE_ANY_PLACE)
    return Article(
        language=language,
        is_paired=False,
        terms=terms,
        words=words,
        title_length=len(title_words),
        known=frozenset(known),
        title_names=title_names,
        names=frozenset(all_names),
        title_stems=tuple(dict.fromkeys(title_stems)),
        subject=frozenset(each for each in title_stems if each[0].isalpha()) - CALENDAR,
        weighed=tuple(sorted(known.union(all_names, title_stems))),
        long_names=tuple(sorted(name for name in all_names if len(name) >= 5)),
        reading=partial(read_facts, (head, head_words), (body, body_words), all_names),
        characters=len(title) + len(text),
        heads=frozenset(word[:HEAD] for word in (*title_words, *text_words) if len(word) >= LEAST_COMPOUND),
        shown=shown,
        numbered=_numbered(words),
        located=frozenset(
            key
            for before, word in pairwise(words)
            if before in before_places and (key := stem(word)) in all_names
        ),
    )


_BESIDE = 2
"""Words behind a number of which one is what it counts."""


def _numbered(words: tuple[str, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for at, word in enumerate(words):
        if not (word[0].isdigit() or word in vocabulary.SPELLED):
            continue
        value = str(vocabulary.SPELLED.get(word, word))
        for noun in words[at + 1 : at + 1 + _BESIDE]:
            if noun[0].isdigit():
                break
            if noun not in vocabulary.FUNCTION_WORDS and stem(noun) not in vocabulary.TOLLS:
                found.setdefault(stem(noun), set()).add(value)
    return found


def _read_paired(title: str, text: str, language: str, *, is_spaced: bool, is_kept: bool) -> Article:
    text = text[:PAIRED_CHARACTERS]
    found = paired.read(title, text, TEMPLATE_CHARACTERS)
    terms = Counter[int]()
    if not is_kept:
        terms.update(map(hashed, found.text_pairs))
        for pair in found.title_pairs:
            terms[hashed(pair)] += _TITLE_TIMES
    if is_spaced:
        head, body = title.split(), text.split()[:TEMPLATE_WORDS]
    else:
        head, body = list(found.title), list(found.text[:TEMPLATE_CHARACTERS])
    return Article(
        language=language,
        is_paired=True,
        terms=terms,
        words=(*head, *body),
        title_length=len(head),
        known=frozenset(found.title_pairs) | frozenset(found.text_pairs),
        title_names=dict.fromkeys(found.title_pairs, 1.0),
        names=frozenset(found.words),
        title_stems=tuple(dict.fromkeys(found.title_pairs)),
        subject=frozenset(each for each in found.title_pairs if not paired.WEEKDAY.match(each)),
        weighed=tuple(dict.fromkeys(found.title_pairs)),
        long_names=(),
        lead=found.lead,
        reading=found.facts,
        # A character of these scripts says as much as two to three letters.
        characters=int(2.5 * (len(title) + len(text))),
    )


@lru_cache(16_384)
def _word(token: str) -> str:
    return (token[-1].isalnum() and bare(token)) or token


def _count(terms: dict[int, int], words: list[str], times: int) -> None:
    before = 0
    for key in map(_key, words):
        if not key:
            before = 0
            continue
        terms[key] = terms.get(key, 0) + times
        if before:
            both = (before * 0x9E3779B1 + key) & 0xFFFFFFFF
            terms[both] = terms.get(both, 0) + times
        before = key


@lru_cache(16_384)
def _key(word: str) -> int:
    """The term of a word, 0 for one that says nothing."""
    if word in vocabulary.FUNCTION_WORDS or (len(word) == 1 and not word.isdigit()):
        return 0
    return hashed(stem(word))


@lru_cache(16_384)
def _may_name(word: str) -> bool:
    """True for a `bare` word that is no function word, number, month or day."""
    return (
        len(word) > 1
        and word not in vocabulary.FUNCTION_WORDS
        and word not in vocabulary.SPELLED
        and word not in vocabulary.ROUND_NUMBERS
        and word not in vocabulary.ORDINALS
        and word not in vocabulary.MONTHS
        and word not in vocabulary.WEEKDAYS
        and word not in vocabulary.COUNTED
        and word not in vocabulary.SCALES
    )


def _is_code(token: str) -> bool:
    return token[0].isalpha() and token[-1].isdigit()


def _cases(tokens: list[str], language: str) -> tuple[dict[str, float], set[str], set[str], dict[str, str]]:
    """The weights of words with a capital within sentences, words in lower case, names, their spelling."""
    caps: dict[str, float] = {}
    lower: set[str] = set()
    names: set[str] = set()
    shown: dict[str, str] = {}
    is_start = True
    before = ""
    for token in tokens:
        first = token[0]
        if first.isupper():
            word = bare(token)
            if _may_name(word):
                weight = _weight(token, before, language)
                if not is_start or _is_code(token) or not token[1:].islower():
                    key = stem(word)
                    caps[key] = max(weight, caps.get(key, 0.0))
                    if weight >= 0.5:
                        names.add(key)
                        shown.setdefault(key, token)
        elif first.isalpha():
            lower.add(stem(token))
        if token not in {"-", "/", "%", ","}:
            is_start = token in SENTENCE_ENDS
        before = token
    return caps, lower, names, shown


def _weight(token: str, before: str, language: str) -> float:
    """1 for a name, less where a capital says little: German nouns."""
    if language != "de" or _is_code(token):
        return 1.0
    word = bare(token)
    if word in vocabulary.COMMON_GERMAN or word.endswith(vocabulary.GERMAN_ENDINGS):
        return 0.2
    if before[:1].isupper():
        return 1.0
    lead = bare(before) if before[:1].isalpha() else ""
    if lead in _BEFORE_NAMES:
        return 1.0
    if lead in _BEFORE_NOUNS or (
        lead and lead not in vocabulary.FUNCTION_WORDS and lead.endswith(_ADJECTIVES)
    ):
        return 0.3
    return 0.7


_BEFORE_NAMES = frozenset(["in", "bei", "aus", "nach", "gegen", "fur", "von"])
_BEFORE_NOUNS = frozenset(
    [
        "der",
        "die",
        "das",
        "den",
        "dem",
        "des",
        "ein",
        "eine",
        "einen",
        "einem",
        "einer",
        "eines",
        "kein",
        "keine",
        "mehr",
        "viele",
        "zum",
        "zur",
        "im",
        "am",
        "vom",
        "ins",
    ]
)
_ADJECTIVES = ("e", "en", "er", "es", "em")


def _title_names(
    tokens: list[str], language: str, caps: dict[str, float], lower: set[str], shown: dict[str, str]
) -> dict[str, float]:
    words = [token for token in tokens if token[0].isalpha() and len(token) > 3]
    with_capital = sum(token[0].isupper() for token in words)
    all_caps = sum(token.isupper() for token in words) * 2 > len(words)
    hides = all_caps or (len(words) > 2 and with_capital >= 0.8 * len(words) and language != "de")
    found: dict[str, float] = {}
    is_start = True
    before = ""
    for token in tokens:
        word = bare(token) if token[-1].isalnum() else ""
        if word and token[0].isupper() and _may_name(word):
            key = stem(word)
            if _is_code(token):
                weight = 1.0
            elif key in caps:
                weight = caps[key]
            elif hides:
                # Each word has a capital: that is no sign of a name.
                weight = 0.0
            elif is_start:
                weight = 0.0 if key in lower else 0.5 * _weight(token, before, language)
            else:
                weight = _weight(token, before, language)
            if weight >= 0.3:
                found[key] = max(weight, found.get(key, 0.0))
                shown.setdefault(key, token)
        if token not in {"-", "/", "%", ","}:
            is_start = token in SENTENCE_ENDS
        before = token
    return found
