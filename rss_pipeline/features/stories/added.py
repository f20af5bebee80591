"""The sentence of each item of a story that adds most to those before it."""

import re
from collections.abc import Iterable, Iterator

from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.vocabulary import FUNCTION_WORDS
from rss_pipeline.features.stories.words import PAIRED_SCRIPTS, TOKEN, script, stem

LEAST_WORDS, LEAST_PART = 3, 0.4
"""The words of a sentence that are new at least, and the part of its words."""
_ENDS = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")


def added(entries: Iterable[Entry]) -> Iterator[str]:
    """By item, in this order, the sentence; empty for one that adds nothing, and for the first."""
    known: set[str] = set()
    for entry in entries:
        is_first = not known
        known |= _words(entry.title)
        sentences = {each: _words(each) for each in map(str.strip, _ENDS.split(entry.text))}
        new = {each: len(words - known) for each, words in sentences.items()}
        told = [each for each in new if new[each] >= max(LEAST_WORDS, LEAST_PART * len(sentences[each]))]
        yield "" if is_first else max(told, key=lambda each: new[each], default="")
        known.update(*sentences.values())


def _words(text: str) -> set[str]:
    found = set[str]()
    for token in TOKEN.findall(text):
        if not token.isascii() and script(token) in PAIRED_SCRIPTS:
            found.update(token[at : at + 2] for at in range(len(token) - 1))
        elif token[-1].isalnum() and (key := stem(token)) not in FUNCTION_WORDS:
            found.add(key)
    return found
