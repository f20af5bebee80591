"""The stories of the last days, in memory: candidates from an inverted index, and the decision.

    window = load(path, database=identity) or Window()      # window_file.py
    window.restore(entry, story)                            # an item that was decided before
    decision = window.decide(entry)                         # the next one, by its arrival number
    window.forget(before)                                   # what came before that moment
    save(window, path, database=identity)

The same items in the same order give the same decisions, whether the window was saved and loaded between
them or not. It does no I/O but to read items from the file it was loaded from.
"""

from array import array
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nlargest
from itertools import islice
from math import sqrt
from operator import itemgetter

from rss_pipeline.features.stories import copies, kept
from rss_pipeline.features.stories.article import Article, read
from rss_pipeline.features.stories.boilerplate import Boilerplate, without
from rss_pipeline.features.stories.common import Weights
from rss_pipeline.features.stories.frequencies import Frequencies, Vector
from rss_pipeline.features.stories.judge import VERSION, margin
from rss_pipeline.features.stories.model import WINDOW, Decision, Entry, Evidence
from rss_pipeline.features.stories.pair import Likeness, common_words, compare, is_series
from rss_pipeline.features.stories.postings import Postings
from rss_pipeline.features.stories.words import hashed, may_be_one_language

__all__ = ["CLOSED_AFTER", "VERSION", "Window", "why"]

CLOSED_AFTER = 72 * 3600.0
"""Seconds without news after which nothing joins a story."""
_LATE = 48 * 3600.0
"""Seconds after which a further report of an event is less likely than another event."""
_TIMELESS = 0.7
"""The nearness of two items of which one has no time."""
MOST_ITEMS = 100_000
"""Items of a window; with more, the oldest leave it."""
KEPT_TERMS = 46
HEAVY_TERMS = 32
LOOKED_UP_OF_PAIRS = 64
"""Heavy terms by which an item is looked up in scripts of pairs, of which one name has several."""
NAME_TERMS = 16
"""Names among the heavy terms."""
MOST_STORIES = 3
MOST_MEMBERS = 3
MOST_IN_MEAN = 30
MOST_WALKED = 400
"""Items of a term, the latest, that are looked at: so 10,000 of one template cost no more."""
LOOKED_AT = 6
LEAST_COSINE = 0.03
LEAST_COSINE_OF_PAIRS = 0.06
"""The same for scripts of pairs, which all texts have more of in common."""
AGAIN = 1.0
"""So much higher is the line for a further item of a feed that has one in the story."""
LEAST_PART = 0.5
"""The part of the cosine of the likest story that another one needs to be judged beside it."""
READ_CHARACTERS, READ_BYTES = 1_000, 1_300
"""The part of a text that is read and kept: a character of three bytes says as much as some letters."""
_WHOLE = 255
"""The weight 1, as it is kept."""
_SPARE_ITEMS = 2_000
_KEPT_ARTICLES = 600
_KEPT_MEANS = 200


@dataclass(slots=True)
class Story:
    """A story of two and more."""

    id: str
    began: float
    latest: float
    """Times of its first item and of its latest one; -1 for unknown ones."""
    members: "array[int]" = field(default_factory=lambda: array("I"))
    feeds: set[int] = field(default_factory=set)


class Mean:
    """The sum of the vectors of a story's latest members, in whole numbers: so it is the same however it came
    about."""

    __slots__ = ("square", "total")

    def __init__(self) -> None:
        self.total: dict[int, int] = {}
        self.square = 0
        """The square of its length."""

    def add(self, terms: "array[int]", weights: "array[int]", sign: int = 1) -> None:
        total, square = self.total, self.square
        for term, weight in zip(terms, weights, strict=True):
            before = total.get(term, 0)
            total[term] = after = before + sign * weight
            square += after * after - before * before
        self.square = square


class Window:
    """Items of a week, each with its story. `decide` takes them in their order of arrival."""

    def __init__(self) -> None:
        self.arrived = 0
        """The highest arrival number of an item that was taken in."""
        self.frequencies = Frequencies()
        self.boilerplate = Boilerplate()
        self.first = 0
        """The number of the first item that is kept; those of the others follow."""
        self.kept = kept.Kept()
        self.feeds = array("I")
        self.times = array("d")
        self.seen = array("d")
        self.story_of = array("I")
        """The number of the story, which is that of an item."""
        self.vector_ends = array("I", (0,))
        self.vector_terms = array("I")
        self.vector_weights = array("B")
        """The heaviest terms of each item, heaviest first; then its keys of copies, with the weight 0."""
        self.stories: dict[int, Story] = {}
        self._numbers: dict[str, int] = {}
        """Stories by the id of their first item."""
        self.full: frozenset[str] = frozenset()
        """Ids of stories that take no more."""
        self.postings = Postings()
        self._articles: OrderedDict[int, Article] = OrderedDict()
        self._means: OrderedDict[int, Mean] = OrderedDict()

    def __len__(self) -> int:
        return len(self.feeds)

    def learn(self, entries: Iterable[Entry]) -> None:
        """Take in document frequencies alone."""
        for entry in entries:
            article = read(_cut(entry))
            self.frequencies.add(article.language, article.terms)

    def decide(self, entry: Entry) -> Decision:
        """Return the story of the item, and keep the item; where it is, if it is known already."""
        entry = _cut(entry)
        known = self._number(entry.id)
        if known is not None:
            self.arrived = max(self.arrived, entry.arrived)
            return Decision(item=entry.id, story=self._id_of(self._story(known)))
        repeated = self.boilerplate.repeated(entry.feed, entry.text)
        said = _said(entry, repeated)
        article = read(said)
        vector = self.frequencies.vector(article.language, article.terms)
        keys = copies.keys(said)
        joined = self._copy(said, keys) or self._event(said, article, vector)
        number, decision = joined or (None, Decision(item=entry.id, story=entry.id))
        self._keep(entry, repeated, article, vector, keys, number)
        return decision

    def restore(self, entry: Entry, story: str | None) -> None:
        """Take in an item as it was decided before: a member of the story of that id, or alone."""
        entry = _cut(entry)
        if self._number(entry.id) is not None:
            self.arrived = max(self.arrived, entry.arrived)
            return
        repeated = self.boilerplate.repeated(entry.feed, entry.text)
        said = _said(entry, repeated)
        article = read(said)
        vector = self.frequencies.vector(article.language, article.terms)
        self._keep(entry, repeated, article, vector, copies.keys(said), None)
        if story is not None:
            self.move(entry.id, story)

    def move(self, id: str, story: str | None) -> None:
        """Put an item into a story, or out of all; for those that come later. Nothing, if it is not kept."""
        number = self._number(id)
        if number is None:
            return
        before = self._story(number)
        if story is not None and self._id_of(before) == story:
            return
        self._leave(number, before)
        if story is None or (story == id and story not in self._numbers):
            return
        into = self._numbers.get(story)
        if into is None:
            into = self._number(story)
            if into is not None:
                into = self._story(into)
        if into is None:
            # Its first item left the window, or the database.
            into = number
            self._found(into, story)
        else:
            self._join(number, into)

    def forget(self, before: float) -> None:
        """Drop the items that came before that moment, in seconds since 1970."""
        count = 0
        for seen in self.seen:
            if seen >= before:
                break
            count += 1
        self._drop(count)

    def index(self, stories: dict[int, Story]) -> None:
        """Make what follows from the columns, which were set."""
        self.stories = stories
        self._numbers = {each.id: number for number, each in stories.items()}
        if not stories:
            return
        for at, story in enumerate(self.story_of):
            known = stories.get(story)
            if known is not None:
                known.members.append(self.first + at)
                known.feeds.add(self.feeds[at])

    def large(self, least: int) -> list[str]:
        """The ids of stories with so many items here."""
        return [each.id for each in self.stories.values() if len(each.members) >= least]

    def entry(self, number: int) -> Entry:
        """The item of a number."""
        return kept.readable(self.kept[number - self.first])[0]

    # Items that are kept

    def _keep(
        self,
        entry: Entry,
        repeated: tuple[int, ...],
        article: Article,
        vector: Vector,
        keys: list[int],
        story: int | None,
    ) -> None:
        number = self.first + len(self.feeds)
        self.kept.append(kept.packed(entry, repeated))
        self.feeds.append(hashed(entry.feed))
        self.times.append(-1.0 if entry.time is None else entry.time)
        self.seen.append(entry.seen)
        self.story_of.append(number)
        heaviest = list(islice(vector.items(), KEPT_TERMS))
        terms = [term for term, _ in heaviest]
        keys = [*keys, hashed(f"id {entry.id}")]
        self.vector_terms.extend([*terms, *keys])
        self.vector_weights.extend([max(1, round(weight * _WHOLE)) for _, weight in heaviest])
        self.vector_weights.extend([0] * len(keys))
        self.vector_ends.append(len(self.vector_terms))
        self.postings.add(number, {*_sought(article, vector), *keys})
        self.arrived = max(self.arrived, entry.arrived)
        self.frequencies.add(article.language, article.terms)
        self._remember(number, article)
        if story is not None:
            self._join(number, story)
        if len(self.feeds) >= MOST_ITEMS + _SPARE_ITEMS:
            self._drop(_SPARE_ITEMS)

    def _drop(self, count: int) -> None:
        if not count:
            return
        self.first += count
        self.kept.forget(count)
        start = self.vector_ends[count]
        for column in (self.feeds, self.times, self.seen, self.story_of):
            del column[:count]
        del self.vector_terms[:start], self.vector_weights[:start]
        self.vector_ends = array("I", (end - start for end in self.vector_ends[count:]))
        self.postings.forget(self.first)
        for number, story in list(self.stories.items()):
            if story.members[0] >= self.first:
                continue
            story.members = array("I", (each for each in story.members if each >= self.first))
            story.feeds = {self.feeds[each - self.first] for each in story.members}
            self._means.pop(number, None)
            if not story.members:
                del self.stories[number]
                del self._numbers[story.id]

    def _number(self, id: str) -> int | None:
        for number in self.postings.latest(hashed(f"id {id}"), 20, self.first):
            if self.entry(number).id == id:
                return number
        return None

    def _story(self, number: int) -> int:
        return self.story_of[number - self.first]

    def _id_of(self, story: int) -> str:
        known = self.stories.get(story)
        if known is not None:
            return known.id
        id = self.entry(story).id
        while id in self._numbers:
            # Its story goes on without it.
            id += "'"
        return id

    def _join(self, number: int, story: int) -> None:
        if story not in self.stories:
            self._found(story, self._id_of(story))
        joined, time = self.stories[story], self.times[number - self.first]
        mean = self._means.get(story)
        if mean is not None and number > joined.members[-1]:
            mean.add(*self._vector(number))
            if len(joined.members) >= MOST_IN_MEAN:
                mean.add(*self._vector(joined.members[-MOST_IN_MEAN]), -1)
        else:
            self._means.pop(story, None)
        insort(joined.members, number)
        joined.feeds.add(self.feeds[number - self.first])
        joined.latest = max(joined.latest, time)
        self.story_of[number - self.first] = story

    def _found(self, number: int, id: str) -> None:
        time = self.times[number - self.first]
        self.stories[number] = Story(id, time, time, array("I", (number,)), {self.feeds[number - self.first]})
        self._numbers[id] = number

    def _leave(self, number: int, story: int) -> None:
        left = self.stories.pop(story, None)
        if left is None:
            return
        self._means.pop(story, None)
        self.story_of[number - self.first] = number
        left.members.remove(number)
        left.feeds = {self.feeds[each - self.first] for each in left.members}
        if not left.members:
            del self._numbers[left.id]
            return
        if story == number:
            # It keeps its id without its first item, but not that one's number.
            story = left.members[0]
            for each in left.members:
                self.story_of[each - self.first] = story
        self.stories[story] = left
        self._numbers[left.id] = story

    def _article(self, number: int) -> Article:
        found = self._articles.get(number)
        if found is None:
            found = read(_said(*kept.readable(self.kept[number - self.first])))
            self._remember(number, found)
        return found

    def _remember(self, number: int, article: Article) -> None:
        self._articles[number] = replace(article, terms={})
        if len(self._articles) > _KEPT_ARTICLES:
            self._articles.popitem(last=False)

    # Copies

    def _copy(self, entry: Entry, keys: list[int]) -> tuple[int, Decision] | None:
        tried: set[int] = set()
        for key in keys:
            for number in self.postings.latest(key, 20, self.first):
                if number in tried:
                    continue
                tried.add(number)
                if entry.time is not None and abs(entry.time - self.times[number - self.first]) > WINDOW:
                    continue
                other = _said(*kept.readable(self.kept[number - self.first]))
                kind = copies.kind_of_copy(entry, other)
                story = self._story(number)
                if kind is not None and not self._is_full(story):
                    evidence = Evidence(kind=kind, nearest=other.id, cosine=1.0)
                    return story, Decision(
                        item=entry.id, story=self._id_of(story), score=1.0, evidence=evidence
                    )
        return None

    def _is_full(self, story: int) -> bool:
        return story in self.stories and self.stories[story].id in self.full

    # Events

    def _event(self, entry: Entry, article: Article, vector: Vector) -> tuple[int, Decision] | None:
        if sum(not word[0].isdigit() for word in article.known) < 3:
            return None
        best: tuple[float, int, int, Likeness] | None = None
        near = self._near(entry, article, vector)
        mine = self.frequencies.weights(article.language, article.weighed) if near else {}
        for cosine, story, members in near:
            judged = self._judge(article, mine, cosine, members, entry)
            if judged is not None and (best is None or judged[0] > best[0]):
                best = (judged[0], story, judged[1], judged[2])
        if best is None:
            return None
        over, story, number, likeness = best
        evidence = Evidence(
            kind="event",
            nearest=self.entry(number).id,
            names=likeness.names,
            numbers=likeness.shown_numbers,
            terms=common_words(
                article, self._article(number), partial(self.frequencies.weights, article.language)
            ),
            cosine=likeness.cosine,
        )
        return story, Decision(item=entry.id, story=self._id_of(story), score=over, evidence=evidence)

    def _near(
        self, entry: Entry, article: Article, vector: Vector
    ) -> list[tuple[float, int, list[tuple[float, int]]]]:
        """The stories most like the item: the cosine with their mean, their number, their members found with
        their own cosine and negative number, the nearest first."""
        found: dict[int, float] = {}
        for term in _sought(article, vector, LOOKED_UP_OF_PAIRS if article.is_paired else HEAVY_TERMS):
            weight = vector[term] ** 2
            for number in self.postings.latest(term, MOST_WALKED, self.first):
                found[number] = found.get(number, 0.0) + weight
        looked = nlargest(LOOKED_AT * 3, found.items(), key=itemgetter(1, 0))
        feed = hashed(entry.feed)
        stories: dict[int, list[int]] = {}
        for number, _ in looked:
            story = self._story(number)
            if story in stories:
                stories[story].append(number)
            elif len(stories) < LOOKED_AT and self._may_join(entry, feed, story):
                stories[story] = [number]
        near = []
        for story in stories:
            known = story in self.stories
            cosine = self._cosine_with_mean(vector, story) if known else self._cosine_with(vector, story)
            if cosine >= LEAST_COSINE:
                near.append((cosine, story))
        near.sort(key=lambda each: (-each[0], each[1]))
        return [
            (
                cosine,
                story,
                sorted(((self._cosine_with(vector, each), -each) for each in stories[story]), reverse=True),
            )
            for cosine, story in near[:MOST_STORIES]
            if cosine >= LEAST_PART * near[0][0]
        ]

    def _may_join(self, entry: Entry, feed: int, story: int) -> bool:
        """False for a closed story, and for one of the same feed alone: its items are a series, a column or
        a live page, and join as copies only."""
        known = self.stories.get(story)
        if known is None:
            at = story - self.first
            if self.feeds[at] == feed:
                return False
            began = latest = self.times[at]
        else:
            if known.feeds == {feed} or known.id in self.full:
                return False
            began, latest = known.began, known.latest
        if entry.time is None or began < 0:
            return True
        return abs(entry.time - latest) <= CLOSED_AFTER or began <= entry.time <= latest

    def _cosine_with_mean(self, vector: Vector, story: int) -> float:
        mean = self._means.get(story)
        if mean is None:
            mean = self._means[story] = Mean()
            if len(self._means) > _KEPT_MEANS:
                self._means.popitem(last=False)
            for number in self.stories[story].members[-MOST_IN_MEAN:]:
                mean.add(*self._vector(number))
        get = mean.total.get
        return sum([weight * get(term, 0) for term, weight in vector.items()]) / sqrt(mean.square or 1)

    def _vector(self, number: int) -> tuple["array[int]", "array[int]"]:
        at = number - self.first
        start, end = self.vector_ends[at], self.vector_ends[at + 1]
        return self.vector_terms[start:end], self.vector_weights[start:end]

    def _cosine_with(self, vector: Vector, number: int) -> float:
        get = vector.get
        terms, weights = self._vector(number)
        return sum([get(term, 0.0) * weight for term, weight in zip(terms, weights, strict=True)]) / _WHOLE

    def _judge(
        self,
        article: Article,
        mine: Weights,
        cosine: float,
        nearest: list[tuple[float, int]],
        entry: Entry,
    ) -> tuple[float, int, Likeness] | None:
        """The distance above the line, with the nearest member; None for a story that is not joined."""
        likenesses: list[Likeness] = []
        own = hashed(entry.feed)
        voices = {own}
        weights = partial(self.frequencies.weights, article.language)
        best = -1
        for near, negative in nearest:
            number = -negative
            feed = self.feeds[number - self.first]
            other = self._article(number)
            if article.is_paired and near < LEAST_COSINE_OF_PAIRS:
                continue
            if feed == own and is_series(article, other):
                return None
            if feed in voices or other.is_paired != article.is_paired:
                continue
            if not may_be_one_language(other.language, article.language):
                continue
            # A feed has one voice: it cannot join by itself what others keep apart. Items of the item's own
            # feed have none.
            voices.add(feed)
            theirs = self.frequencies.weights(other.language, other.weighed)
            soon = _soon(entry.time, self.times[number - self.first])
            likenesses.append(compare(article, other, near, mine, theirs, weights, soon))
            best = number if best < 0 else best
            if len(likenesses) == MOST_MEMBERS:
                break
        if not likenesses:
            return None
        over = margin(likenesses, cosine, article.characters, is_paired=article.is_paired)
        known = self.stories.get(self._story(best))
        if known is not None and own in known.feeds:
            over -= AGAIN
        return (over, best, likenesses[0]) if over >= 0 else None


def _sought(article: Article, vector: Vector, most: int = HEAVY_TERMS) -> list[int]:
    """The terms by which an item is found: names first, as a long text has many words that are as rare."""
    names = set(map(hashed, article.names))
    found = [term for term in vector if term in names][:NAME_TERMS]
    found += [term for term in islice(vector, most) if term not in found]
    return found[:most]


def _soon(one: float | None, other: float) -> float:
    if one is None or other < 0:
        return _TIMELESS
    return max(0.0, 1.0 - abs(one - other) / _LATE)


def why(one: Entry, other: Entry) -> Evidence:
    """The names, numbers and words that two items have in common: nothing of a third one."""
    one, other = _cut(one), _cut(other)
    mine, theirs = read(one), read(other)
    likeness = compare(
        mine, theirs, 0.0, _equal_weights(mine.weighed), _equal_weights(theirs.weighed), _equal_weights
    )
    return Evidence(
        kind=copies.kind_of_copy(one, other) or "event",
        nearest=other.id,
        names=likeness.names,
        numbers=likeness.shown_numbers,
        terms=common_words(mine, theirs, _equal_weights),
    )


def _equal_weights(words: Iterable[str]) -> dict[str, float]:
    return dict.fromkeys(words, 1.0)


def _cut(entry: Entry) -> Entry:
    """The part of an item that is read, and kept."""
    text = entry.text[:READ_CHARACTERS].replace("\0", " ")
    if not text.isascii():
        text = text.encode("utf-8", "surrogatepass")[:READ_BYTES].decode("utf-8", "ignore")
    return replace(entry, title=entry.title[: kept.TITLE_CHARACTERS], text=text)


def _said(entry: Entry, repeated: tuple[int, ...]) -> Entry:
    """The item without what its feed repeats."""
    return replace(entry, text=without(entry.text, repeated)) if repeated else entry
