"""The stories of the last days, in memory: candidates from an inverted index, and the decision."""

from array import array
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from heapq import nlargest
from math import log, sqrt
from operator import itemgetter
from zlib import compress, decompress

from rss_pipeline.features.stories import copies
from rss_pipeline.features.stories.article import Article, read
from rss_pipeline.features.stories.boilerplate import Boilerplate
from rss_pipeline.features.stories.judge import margin
from rss_pipeline.features.stories.model import WINDOW, Decision, Entry, Evidence
from rss_pipeline.features.stories.pair import Likeness, compare, rarity
from rss_pipeline.features.stories.words import hashed, may_be_one_language

CLOSED_AFTER = 72 * 3600.0
"""Seconds without news after which nothing joins a story."""
MOST_TERMS = 200
KEPT_TERMS = 100
HEAVY_TERMS = 50
MOST_STORIES = 3
MOST_MEMBERS = 3
MOST_IN_MEAN = 30
MOST_WALKED = 400
"""Items of a term, the latest first, that are looked at: so 10,000 of one template cost no more."""
LOOKED_AT = 12
LEAST_COSINE = 0.10
_BUCKETS = 1 << 20
_MASK = _BUCKETS - 1
_KEPT_ARTICLES = 2_000
Vector = dict[int, float]


class Frequencies:
    """The number of texts of a language with each term: learned as items come."""

    def __init__(self) -> None:
        self._seen = array("I", bytes(4 * _BUCKETS))
        self._totals: dict[str, int] = {}

    def add(self, language: str, terms: Iterable[int]) -> None:
        self._totals[language] = self._totals.get(language, 0) + 1
        salt, seen = hashed(language), self._seen
        for term in terms:
            seen[(term ^ salt) & _MASK] += 1

    def rarity(self, language: str, term: int) -> float:
        return rarity(self._totals.get(language, 0), self._seen[(term ^ hashed(language)) & _MASK])

    def vector(self, language: str, terms: dict[int, int]) -> Vector:
        """The heaviest terms with their weights, heaviest first; of length 1."""
        salt, seen, total = hashed(language), self._seen, self._totals.get(language, 0) + 101
        weighed = [
            ((1.0 + log(times)) * log(total / (seen[(term ^ salt) & _MASK] + 0.5)), term)
            for term, times in terms.items()
        ]
        weighed.sort(reverse=True)
        del weighed[MOST_TERMS:]
        length = sqrt(sum(weight * weight for weight, _ in weighed)) or 1.0
        return {term: weight / length for weight, term in weighed}


class Postings:
    """Numbers of items by hash, the latest first."""

    def __init__(self) -> None:
        self._heads = array("i", (-1,)) * _BUCKETS
        self._next = array("i")
        self._hash = array("I")
        self._item = array("I")

    def add(self, item: int, hashes: Iterable[int]) -> None:
        heads = self._heads
        for each in hashes:
            bucket = each & _MASK
            self._next.append(heads[bucket])
            heads[bucket] = len(self._hash)
            self._hash.append(each)
            self._item.append(item)

    def latest(self, term: int, most: int) -> list[int]:
        found: list[int] = []
        at = self._heads[term & _MASK]
        while at >= 0 and len(found) < most:
            if self._hash[at] == term:
                found.append(self._item[at])
            at = self._next[at]
        return found


class Window:
    """Items of a week, each with its story. `decide` takes them in their order of arrival."""

    def __init__(self) -> None:
        self.frequencies = Frequencies()
        self._postings = Postings()
        self._ids: list[str] = []
        self._packed: list[bytes] = []
        self._feeds = array("I")
        self._times = array("d")
        self._stories = array("I")
        self._vector_ends = array("Q", (0,))
        self._vector_terms = array("I")
        self._vector_weights = array("H")
        self._members: dict[int, array[int]] = {}
        """Stories of two and more, by their first item."""
        self._latest: dict[int, float] = {}
        self._articles: OrderedDict[int, Article] = OrderedDict()
        self._means: OrderedDict[int, Vector] = OrderedDict()
        self._boilerplate = Boilerplate()

    def __len__(self) -> int:
        return len(self._ids)

    def learn(self, entries: Iterable[Entry]) -> None:
        """Take in document frequencies alone."""
        for entry in entries:
            article = read(entry)
            self.frequencies.add(article.language, article.terms)

    def decide(self, entry: Entry) -> Decision:
        """Return the story of the item, and keep the item."""
        article = self._read(entry)
        keys = copies.keys(entry)
        vector = self.frequencies.vector(article.language, article.terms)
        number = len(self._ids)
        decision, story = self._copy(entry, keys), -1
        if decision is None:
            decision = self._event(entry, article, vector)
        if decision is None:
            story, made = number, Decision(item=entry.id, story=entry.id)
        else:
            story, made = decision
        self._keep(entry, article, vector, keys, number, story)
        return made

    def _keep(
        self, entry: Entry, article: Article, vector: Vector, keys: list[int], number: int, story: int
    ) -> None:
        self._ids.append(entry.id)
        self._packed.append(_pack(entry))
        self._feeds.append(hashed(entry.feed))
        self._times.append(entry.time if entry.time is not None else -1.0)
        self._stories.append(story)
        kept = list(vector.items())[:KEPT_TERMS]
        self._vector_terms.extend(term for term, _ in kept)
        self._vector_weights.extend(int(weight * 65_535) for _, weight in kept)
        self._vector_ends.append(len(self._vector_terms))
        self._postings.add(number, [*list(vector)[:HEAVY_TERMS], *keys])
        self.frequencies.add(article.language, article.terms)
        self._boilerplate.add(entry.feed, entry.text)
        self._remember(number, article)
        if story != number:
            members = self._members.setdefault(story, array("I", (story,)))
            members.append(number)
            self._means.pop(story, None)
            if entry.time is not None:
                self._latest[story] = max(entry.time, self._latest.get(story, self._times[story]))

    # Copies

    def _copy(self, entry: Entry, keys: list[int]) -> tuple[int, Decision] | None:
        tried: set[int] = set()
        for key in keys:
            for number in self._postings.latest(key, 20):
                if number in tried:
                    continue
                tried.add(number)
                if entry.time is not None and abs(entry.time - self._times[number]) > WINDOW:
                    continue
                kind = copies.kind_of_copy(entry, self._entry(number))
                if kind is not None:
                    story = self._stories[number]
                    evidence = Evidence(kind=kind, nearest=self._ids[number], cosine=1.0)
                    return story, Decision(
                        item=entry.id, story=self._ids[story], score=1.0, evidence=evidence
                    )
        return None

    # Events

    def _event(self, entry: Entry, article: Article, vector: Vector) -> tuple[int, Decision] | None:
        if len(article.known) < 3:
            return None
        near = self._near(entry, vector)
        best: tuple[float, int, int, Likeness] | None = None
        for cosine, story, numbers in near:
            judged = self._judge(entry, article, vector, cosine, story, numbers)
            if judged is not None and (best is None or judged[0] > best[0]):
                best = (judged[0], story, judged[1], judged[2])
        if best is None:
            return None
        over, story, number, likeness = best
        evidence = Evidence(
            kind="event",
            nearest=self._ids[number],
            names=likeness.names,
            numbers=likeness.shown_numbers,
            cosine=likeness.cosine,
        )
        return story, Decision(item=entry.id, story=self._ids[story], score=over, evidence=evidence)

    def _near(self, entry: Entry, vector: Vector) -> list[tuple[float, int, list[int]]]:
        """The stories most like the item: the cosine with their mean, their number, their members found."""
        found: dict[int, float] = {}
        for term in list(vector)[:HEAVY_TERMS]:
            weight = vector[term] ** 2
            for number in self._postings.latest(term, MOST_WALKED):
                found[number] = found.get(number, 0.0) + weight
        looked = nlargest(LOOKED_AT * 2, found.items(), key=itemgetter(1))
        stories: dict[int, list[int]] = {}
        for number, _ in looked:
            story = self._stories[number]
            if story in stories:
                stories[story].append(number)
            elif len(stories) < LOOKED_AT and self._is_open(entry, story):
                stories[story] = [number]
        near = []
        for story, numbers in stories.items():
            cosine = self._cosine(vector, story)
            if cosine >= LEAST_COSINE:
                near.append((cosine, story, numbers))
        near.sort(key=lambda each: (-each[0], each[1]))
        return near[:MOST_STORIES]

    def _is_open(self, entry: Entry, story: int) -> bool:
        if entry.time is None or self._times[story] < 0:
            return True
        latest = self._latest.get(story, self._times[story])
        return abs(entry.time - latest) <= CLOSED_AFTER or (self._times[story] <= entry.time <= latest)

    def _cosine(self, vector: Vector, story: int) -> float:
        if story not in self._members:
            return self._cosine_with(vector, story)
        mean = self._means.get(story)
        if mean is None:
            mean = self._mean(self._members[story][-MOST_IN_MEAN:])
            self._means[story] = mean
            if len(self._means) > _KEPT_ARTICLES:
                self._means.popitem(last=False)
        return sum(weight * mean.get(term, 0.0) for term, weight in vector.items())

    def _mean(self, numbers: "array[int]") -> Vector:
        total: Vector = {}
        for number in numbers:
            for at in range(self._vector_ends[number], self._vector_ends[number + 1]):
                term = self._vector_terms[at]
                total[term] = total.get(term, 0.0) + self._vector_weights[at]
        length = sqrt(sum(weight * weight for weight in total.values())) or 1.0
        return {term: weight / length for term, weight in total.items()}

    def _cosine_with(self, vector: Vector, number: int) -> float:
        start, end = self._vector_ends[number], self._vector_ends[number + 1]
        get = vector.get
        return (
            sum(
                get(term, 0.0) * weight
                for term, weight in zip(
                    self._vector_terms[start:end], self._vector_weights[start:end], strict=True
                )
            )
            / 65_535
        )

    def _judge(
        self, entry: Entry, article: Article, vector: Vector, cosine: float, story: int, numbers: list[int]
    ) -> tuple[float, int, Likeness] | None:
        """The distance above the line, with the nearest member; None for a story that is not joined."""
        feed = hashed(entry.feed)
        if any(self._feeds[number] == feed for number in self._members.get(story, (story,))):
            # Items of one feed are a series, a column or a live page: they join as copies only.
            return None
        nearest = nlargest(LOOKED_AT, ((self._cosine_with(vector, number), -number) for number in numbers))
        likenesses: list[Likeness] = []
        voices: set[int] = set()
        best = -1
        for near, negative in nearest:
            other = self._article(-negative)
            if self._feeds[-negative] in voices or not may_be_one_language(other.language, article.language):
                continue
            # A feed has one voice: it cannot join by itself what others keep apart.
            voices.add(self._feeds[-negative])
            likenesses.append(compare(article, other, near, self._weight))
            best = -negative if best < 0 else best
            if len(likenesses) == MOST_MEMBERS:
                break
        if not likenesses:
            return None
        over = margin(likenesses, cosine, article.characters)
        return (over, best, likenesses[0]) if over >= 0 else None

    def _weight(self, name: str, article: Article) -> float:
        return self.frequencies.rarity(article.language, hashed(name))

    # Items that are kept

    def _read(self, entry: Entry) -> Article:
        return read(replace(entry, text=self._boilerplate.without(entry.feed, entry.text)))

    def _entry(self, number: int) -> Entry:
        return _unpack(self._packed[number], self._ids[number])

    def _article(self, number: int) -> Article:
        found = self._articles.get(number)
        if found is None:
            found = self._read(self._entry(number))
            self._remember(number, found)
        return found

    def _remember(self, number: int, article: Article) -> None:
        self._articles[number] = replace(article, terms={})
        if len(self._articles) > _KEPT_ARTICLES:
            self._articles.popitem(last=False)


def _pack(entry: Entry) -> bytes:
    fields = (
        entry.feed,
        entry.title[:300],
        entry.link or "",
        str(entry.published or ""),
        entry.language or "",
        entry.text[:1_000],
    )
    return compress("\0".join(each.replace("\0", " ") for each in fields).encode("utf-8", "surrogatepass"), 1)


def _unpack(packed: bytes, id: str) -> Entry:
    feed, title, link, published, language, text = (
        decompress(packed).decode("utf-8", "surrogatepass").split("\0")
    )
    return Entry(
        id=id,
        feed=feed,
        title=title,
        text=text,
        link=link or None,
        published=float(published) if published else None,
        language=language or None,
    )
