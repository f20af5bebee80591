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
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import sqrt
from operator import mul

from rss_pipeline.features.stories import copies, records, reissues
from rss_pipeline.features.stories.article import Article, read
from rss_pipeline.features.stories.boilerplate import Boilerplate, Titles, without
from rss_pipeline.features.stories.common import Weights
from rss_pipeline.features.stories.frequencies import Frequencies, Vector
from rss_pipeline.features.stories.judge import VERSION, margin, margin_alone
from rss_pipeline.features.stories.model import MOST_JOINS, WINDOW, Decision, Entry, Evidence, Join
from rss_pipeline.features.stories.pair import (
    Likeness,
    common_words,
    compare,
    compare_facts,
    compare_words,
    is_series,
    says_its_title,
)
from rss_pipeline.features.stories.segments import Items
from rss_pipeline.features.stories.words import hashed, may_be_one_language

__all__ = ["CLOSED_AFTER", "VERSION", "Window", "why"]

CLOSED_AFTER = 72 * 3600.0
"""Seconds without news after which nothing joins a story."""
_A_DAY = 86_400.0
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
MOST_STORIES = 2
MOST_MEMBERS = 5
SURE = 4.0
"""So far above the line, neither further members of a story nor less like stories are judged."""
MOST_FURTHER, MOST_TO_JOIN = 3, 16
"""Members of a story, the nearest of so many latest ones, that are compared once an item has joined it,
beside those that were judged."""
MOST_IN_MEAN = 30
SAMPLED = 32
"""Items whose texts others are packed with, which makes those a sixth shorter."""
MOST_COMPARED = 20
"""Items with one key of copies, the latest, that are compared."""
MOST_WALKED = 400
"""Items of a term, the latest, that are looked at: so 10,000 of one template cost no more."""
LOOKED_AT = 6
LEAST_COSINE = 0.03
LEAST_COSINE_OF_PAIRS = 0.06
"""The same for scripts of pairs, which all texts have more of in common."""
LEAST_COSINE_OF_REISSUES, MOST_REISSUES = 0.3, 3
"""The least cosine of the same item again, and the items of its feed, the nearest, that are compared."""
AGAIN = 0.5
"""So much higher is the line for a further item of a feed that has one in the story: so one that repeats what
others say is in it once."""
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
    feeds: set[int] | None = None
    """Hashes of its members' feeds; None while nobody has asked."""


class Mean:
    """The sum of the vectors of a story's latest members, in whole numbers: so it is the same however it came
    about."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total: dict[int, int] = {}

    @property
    def length(self) -> float:
        return sqrt(sum(map(mul, self.total.values(), self.total.values())) or 1)

    def add(self, terms: "array[int]", weights: bytes, sign: int = 1) -> None:
        total = self.total
        get = total.get
        for term, weight in zip(terms, weights, strict=True):
            total[term] = get(term, 0) + sign * weight


class Window:
    """Items of a week, each with its story. `decide` takes them in their order of arrival."""

    def __init__(self) -> None:
        self.arrived = 0
        """The highest arrival number of an item that was taken in."""
        self.frequencies = Frequencies()
        self.boilerplate = Boilerplate()
        self.titles = Titles()
        self.counts: tuple[str, list[int]] = "", []
        """The file that has the counts of both, if there is one, and their lengths there (bytes)."""
        self.items = Items()
        self.samples = [(0, b"")]
        """Texts of some items, with which others are packed, and the number of the first one of those."""
        self.stories: dict[int, Story] = {}
        """By number, which is that of an item."""
        self._story_of: dict[int, int] = {}
        """The story of each member; one that is in none is one by itself, of its own number."""
        self._numbers: dict[str, int] = {}
        """Stories by the id of their first item."""
        self.full: frozenset[str] = frozenset()
        """Ids of stories that take no more."""
        self._articles: OrderedDict[int, Article] = OrderedDict()
        self._means: OrderedDict[int, Mean] = OrderedDict()
        self._compared: dict[int, tuple[Likeness, int]] = {}
        """By number, the likenesses of the item that is decided, and the characters that were compared."""

    def __len__(self) -> int:
        return len(self.items)

    @staticmethod
    def most() -> int:
        """The number of items that it never exceeds: no older one counts where it is made anew."""
        return MOST_ITEMS + _SPARE_ITEMS - 1

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
        repeated = () if entry.is_closed else self.boilerplate.repeated(entry.feed, entry.text)
        said = _said(entry, repeated)
        article = read(said)
        vector = self.frequencies.vector(article.language, article.terms)
        keys = copies.keys(said)
        self._compared.clear()
        joined = self._copy(said, keys)
        if joined is None:
            likest = self._likest(article, vector)
            joined = self._reissue(said, vector, likest) or self._event(said, article, vector, likest)
        if joined is None:
            number, decision = None, Decision(item=entry.id, story=entry.id)
        else:
            number, decision, copied = joined
            decision = self._with_events(decision, said, article, vector, number, copied)
        if entry.is_closed:
            # Who guesses its text learns nothing: it is in no count, and nothing joins it.
            self.arrived = max(self.arrived, entry.arrived)
        else:
            self._keep(entry, repeated, article, vector, keys, number)
        return decision

    def restore(self, entry: Entry, story: str | None) -> None:
        """Take in an item as it was decided before: a member of the story of that id, or alone."""
        entry = _cut(entry)
        if entry.is_closed or self._number(entry.id) is not None:
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
            named = self._number(story)
            if named is not None and self._id_of(self._story(named)) == story:
                into = self._story(named)
        if into is None:
            # Its first item left the window, or the database, or the story.
            into = number
            self._found(into, story)
        else:
            self._join(number, into)

    def forget(self, before: float) -> None:
        """Drop the items that came before that moment, in seconds since 1970."""
        self._dropped(self.items.forget(before))
        self.titles.forget(int((before + WINDOW) / _A_DAY))

    def load(self, stories: dict[int, Story]) -> None:
        """Take these stories of the items."""
        self.stories = stories
        self._numbers = {each.id: number for number, each in stories.items()}
        self._story_of = {member: number for number, each in stories.items() for member in each.members}

    def large(self, least: int) -> list[str]:
        """The ids of stories with so many items here."""
        return [each.id for each in self.stories.values() if len(each.members) >= least]

    def entry(self, number: int) -> Entry:
        """The item of a number."""
        return self._kept(number)[0]

    def _kept(self, number: int) -> tuple[Entry, tuple[int, ...]]:
        return records.entry(self._text(number), self.items.time(number))

    def _text(self, number: int) -> bytes:
        """The item as `records.entry` takes it; nothing where its file was damaged since it was written."""
        sample = next(sample for start, sample in reversed(self.samples) if number >= start)
        return records.text(self.items.record(number), sample)

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
        heaviest = list(islice(vector.items(), KEPT_TERMS))
        terms = [term for term, _ in heaviest]
        weights = [max(1, round(weight * _WHOLE)) for _, weight in heaviest]
        number = self.items.add(
            hashed(entry.feed),
            -1.0 if entry.time is None else entry.time,
            entry.seen,
            records.packed(entry, repeated, terms, weights, self.samples[-1][1]),
            {*_sought(article, vector), *keys, hashed(f"id {entry.id}")},
        )
        self.arrived = max(self.arrived, entry.arrived)
        if copies.is_bare(entry):
            self.titles.add(entry.feed, copies.letters(entry.title), _day(entry))
        self.frequencies.add(article.language, article.terms)
        article.terms = {}
        self._remember(number, article)
        if story is not None:
            self._join(number, story)
        # Of what left the window nothing is kept for longer than another one.
        start, sample = self.samples[-1]
        if start < self.items.first or (not sample and number == start + SAMPLED - 1):
            some = range(max(self.items.first, number - SAMPLED), number + 1)
            self.samples.append((number + 1, records.sampled(map(self._text, some))))
        if len(self.items) >= MOST_ITEMS + _SPARE_ITEMS:
            self._dropped(self.items.drop(_SPARE_ITEMS))

    def _dropped(self, first: int) -> None:
        """Forget what the stories have of items before that number."""
        for number, story in list(self.stories.items()):
            if story.members[0] >= first:
                continue
            gone = bisect_left(story.members, first)
            for each in story.members[:gone]:
                del self._story_of[each]
            del story.members[:gone]
            story.feeds = None
            self._means.pop(number, None)
            if not story.members:
                del self.stories[number]
                del self._numbers[story.id]
        while len(self.samples) > 1 and self.samples[1][0] <= first:
            del self.samples[0]

    def _number(self, id: str) -> int | None:
        for number in self.items.latest(hashed(f"id {id}"), MOST_COMPARED):
            if self.entry(number).id == id:
                return number
        return None

    def _story(self, number: int) -> int:
        return self._story_of.get(number, number)

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
        joined = self.stories[story]
        mean = self._means.get(story)
        if mean is not None and number > joined.members[-1]:
            mean.add(*self._vector(number))
            if len(joined.members) >= MOST_IN_MEAN:
                mean.add(*self._vector(joined.members[-MOST_IN_MEAN]), -1)
        else:
            self._means.pop(story, None)
        insort(joined.members, number)
        if joined.feeds is not None:
            joined.feeds.add(self.items.feed(number))
        joined.latest = max(joined.latest, self.items.time(number))
        self._story_of[number] = story

    def _found(self, number: int, id: str) -> None:
        time = self.items.time(number)
        self.stories[number] = Story(id, time, time, array("I", (number,)))
        self._story_of[number] = number
        self._numbers[id] = number

    def _leave(self, number: int, story: int) -> None:
        left = self.stories.pop(story, None)
        if left is None:
            return
        self._means.pop(story, None)
        del self._story_of[number]
        left.members.remove(number)
        left.feeds = None
        if not left.members:
            del self._numbers[left.id]
            return
        if story == number:
            # It keeps its id without its first item, but not that one's number.
            story = left.members[0]
            for each in left.members:
                self._story_of[each] = story
        self.stories[story] = left
        self._numbers[left.id] = story

    def _article(self, number: int) -> Article:
        found = self._articles.get(number)
        if found is None:
            found = read(_said(*self._kept(number)), is_kept=True)
            self._remember(number, found)
        return found

    def _remember(self, number: int, article: Article) -> None:
        self._articles[number] = article
        if len(self._articles) > _KEPT_ARTICLES:
            self._articles.popitem(last=False)

    # Copies

    def _copy(self, entry: Entry, keys: list[int]) -> tuple[int, Decision, list[int]] | None:
        copies = self._copies(entry, keys)
        first = next(copies, None)
        if first is None:
            return None
        number, kind, nearest = first
        joins = {self.items.feed(number): (number, Join(kind=kind, items=(nearest,)))}
        for other, other_kind, id in copies:
            joins.setdefault(self.items.feed(other), (other, Join(kind=other_kind, items=(id,))))
            if len(joins) == MOST_JOINS:
                break
        story = self._story(number)
        decision = Decision(
            item=entry.id,
            story=self._id_of(story),
            score=1.0,
            evidence=Evidence(kind=kind, nearest=nearest, cosine=1.0),
            joins=tuple(join for _, join in joins.values()),
        )
        return story, decision, [other for other, _ in joins.values()]

    def _copies(self, entry: Entry, keys: list[int]) -> Iterator[tuple[int, str, str]]:
        """The items of one story that an item is a copy of, each with its number, how, and its id."""
        tried: set[int] = set()
        found: int | None = None
        for key in keys:
            for number in self.items.latest(key, MOST_COMPARED):
                story = self._story(number)
                if number in tried or found not in (None, story):
                    continue
                tried.add(number)
                if entry.time is not None and abs(entry.time - self.items.time(number)) > WINDOW:
                    continue
                other = _said(*self._kept(number))
                kind: str | None = copies.kind_of_copy(entry, other)
                if kind == "text" and copies.is_bare(entry) and self._stands(entry, other):
                    kind = None
                if (
                    kind is None
                    and self._may_replace(entry, number)
                    and reissues.is_at_one_address(other, entry)
                ):
                    kind = "reissue"
                if kind is not None and not self._is_full(story):
                    if other.feed == entry.feed and reissues.is_changed(other, entry):
                        kind = "reissue"
                    found = story
                    yield number, kind, other.id

    def _stands(self, entry: Entry, other: Entry) -> bool:
        """True if one of the feeds had the title before, as a column has it each week."""
        title, day = copies.letters(entry.title), _day(entry)
        return self.titles.had(entry.feed, title, day) > 0 or self.titles.had(other.feed, title, day) > 1

    def _is_full(self, story: int) -> bool:
        return story in self.stories and self.stories[story].id in self.full

    # The same item again

    def _may_replace(self, entry: Entry, number: int) -> bool:
        return (
            self.items.feed(number) == hashed(entry.feed)
            and entry.time is not None
            and abs(entry.time - self.items.time(number)) < reissues.WITHIN
        )

    def _reissue(
        self, entry: Entry, vector: Vector, likest: list[int]
    ) -> tuple[int, Decision, list[int]] | None:
        """Join the item of its feed that it replaces."""
        near = [
            (cosine, number)
            for number in likest
            if self._may_replace(entry, number)
            and (cosine := self._cosine_with(vector, number)) >= LEAST_COSINE_OF_REISSUES
        ]
        for cosine, number in sorted(near, reverse=True)[:MOST_REISSUES]:
            other, story = _said(*self._kept(number)), self._story(number)
            if reissues.is_reissue(other, entry) and not self._is_full(story):
                decision = Decision(
                    item=entry.id,
                    story=self._id_of(story),
                    score=1.0,
                    evidence=Evidence(kind="reissue", nearest=other.id, cosine=cosine),
                    joins=(Join(kind="reissue", items=(other.id,)),),
                )
                return story, decision, [number]
        return None

    # Events

    def _likest(self, article: Article, vector: Vector) -> list[int]:
        most = LOOKED_UP_OF_PAIRS if article.is_paired else HEAVY_TERMS
        sought = [(vector[term] ** 2, term) for term in _sought(article, vector, most)]
        return self.items.likest(sought, 3 * LOOKED_AT, MOST_WALKED)

    def _event(
        self, entry: Entry, article: Article, vector: Vector, likest: list[int]
    ) -> tuple[int, Decision, list[int]] | None:
        if not _says_enough(article):
            return None
        best: tuple[float, int, list[int]] | None = None
        near = self._near(entry, vector, likest)
        mine = self.frequencies.weights(article.language, article.weighed) if near else {}
        for cosine, story, members in near:
            judged = self._judge(article, mine, cosine, members, entry)
            if judged is not None and (best is None or judged[0] > best[0]):
                best = (judged[0], story, judged[1])
                if judged[0] >= SURE:
                    break
        if best is None:
            return None
        over, story, judged_members = best
        (likeness, _), ids = (
            self._compared[judged_members[0]],
            [self.entry(each).id for each in judged_members],
        )
        evidence = Evidence(
            kind="event",
            nearest=ids[0],
            names=likeness.names,
            numbers=likeness.shown_numbers,
            terms=common_words(
                article,
                self._article(judged_members[0]),
                partial(self.frequencies.weights, article.language),
            ),
            cosine=likeness.cosine,
        )
        decision = Decision(
            item=entry.id,
            story=self._id_of(story),
            score=over,
            evidence=evidence,
            joins=(Join(kind="event", items=tuple(ids)),),
        )
        return story, decision, []

    def _with_events(
        self,
        decision: Decision,
        entry: Entry,
        article: Article,
        vector: Vector,
        story: int,
        copied: list[int],
    ) -> Decision:
        """The decision with the members of its story that the item would join by themselves: those that were
        judged, and of the others the nearest ones."""
        if len(copied) == MOST_JOINS or not _says_enough(article):
            return decision
        voices = {hashed(entry.feed), *map(self.items.feed, copied)}
        known = self.stories.get(story)
        members = [story] if known is None else known.members[-MOST_TO_JOIN:]
        texts = self.frequencies.totals.get(article.language, 0)
        alone = partial(margin_alone, is_paired=article.is_paired, texts=texts)
        found = [
            (over, number)
            for number, (likeness, characters) in self._compared.items()
            if self._story(number) == story
            and self.items.feed(number) not in voices
            and self._is_of_its_time(entry, number)
            and (over := alone(likeness, characters)) >= 0
        ]
        voices.update(self.items.feed(number) for number in self._compared)
        further = sorted(
            (
                (self._cosine_with(vector, number), number)
                for number in members
                if self.items.feed(number) not in voices and self._is_of_its_time(entry, number)
            ),
            reverse=True,
        )
        mine = self.frequencies.weights(article.language, article.weighed) if further else {}
        for near, number in further[:MOST_FURTHER]:
            feed = self.items.feed(number)
            if near < LEAST_COSINE or feed in voices or not self._may_be_compared(article, near, number):
                continue
            likeness, one, other = self._pair(article, mine, near, number, entry)
            if alone(likeness, one.characters) < 0:
                continue
            compare_facts(likeness, one, other)
            if (over := alone(likeness, one.characters)) >= 0:
                voices.add(feed)
                found.append((over, number))
        if not found:
            return decision
        found.sort(reverse=True)
        joins = (*decision.joins[: len(copied)], *(self._join_with(number) for _, number in found))
        return replace(decision, joins=joins[:MOST_JOINS])

    def _join_with(self, number: int) -> Join:
        return Join(kind="event", items=(self.entry(number).id,))

    def _is_of_its_time(self, entry: Entry, number: int) -> bool:
        time = self.items.time(number)
        return entry.time is None or time < 0 or abs(entry.time - time) <= CLOSED_AFTER

    def _near(
        self, entry: Entry, vector: Vector, likest: list[int]
    ) -> list[tuple[float, int, list[tuple[float, int]]]]:
        """The stories most like the item: the cosine with their mean, their number, their members found with
        their own cosine and negative number, the nearest first."""
        feed = hashed(entry.feed)
        stories: dict[int, list[int]] = {}
        for number in likest:
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
            if self.items.feed(story) == feed:
                return False
            began = latest = self.items.time(story)
        else:
            if known.feeds is None:
                known.feeds = set(map(self.items.feed, known.members))
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
        return sum([weight * get(term, 0) for term, weight in vector.items()]) / mean.length

    def _vector(self, number: int) -> tuple["array[int]", bytes]:
        return records.vector(self.items.record(number))

    def _cosine_with(self, vector: Vector, number: int) -> float:
        get = vector.get
        terms, weights = self._vector(number)
        return sum([get(term, 0.0) * weight for term, weight in zip(terms, weights, strict=True)]) / _WHOLE

    def _cosine_of(self, one: Article, other: Article) -> float:
        mine, theirs = (self.frequencies.vector(each.language, each.terms) for each in (one, other))
        return sum([weight * theirs.get(term, 0.0) for term, weight in mine.items()])

    def _judge(
        self,
        article: Article,
        mine: Weights,
        cosine: float,
        nearest: list[tuple[float, int]],
        entry: Entry,
    ) -> tuple[float, list[int]] | None:
        """The distance above the line, with the members that were heard, the nearest first; None for a story
        that is not joined."""
        likenesses: list[Likeness] = []
        own = hashed(entry.feed)
        voices = {own}
        over, judged = -1.0, list[int]()
        known = self.stories.get(self._story(-nearest[0][1]))
        again = AGAIN if known is not None and known.feeds is not None and own in known.feeds else 0.0
        members = 1 if known is None else len(known.members)
        texts = self.frequencies.totals.get(article.language, 0)
        characters = article.characters

        def above(some: list[Likeness]) -> float:
            is_paired = article.is_paired
            over = margin(some, cosine, characters, is_paired=is_paired, members=members, texts=texts)
            return over - again

        for near, negative in nearest:
            number = -negative
            feed = self.items.feed(number)
            if feed == own and is_series(article, self._article(number)):
                return None
            if feed in voices or not self._may_be_compared(article, near, number):
                continue
            # A feed has one voice: it cannot join by itself what others keep apart. Items of the item's own
            # feed have none.
            voices.add(feed)
            likeness, one, other = self._pair(article, mine, near, number, entry)
            if one is not article:
                cosine, characters = min(cosine, likeness.cosine), min(characters, one.characters)
            if len(nearest) == 1 and above([likeness]) < 0:
                return None
            compare_facts(likeness, one, other)
            self._compared[number] = likeness, one.characters
            likenesses.append(likeness)
            judged.append(number)
            over = above(likenesses)
            if len(likenesses) == MOST_MEMBERS or over >= SURE:
                break
        return (over, judged) if over >= 0 else None

    def _may_be_compared(self, article: Article, near: float, number: int) -> bool:
        other = self._article(number)
        return (
            other.is_paired == article.is_paired
            and may_be_one_language(other.language, article.language)
            and near >= (LEAST_COSINE_OF_PAIRS if article.is_paired else 0.0)
        )

    def _pair(
        self, article: Article, mine: Weights, near: float, number: int, entry: Entry
    ) -> tuple[Likeness, Article, Article]:
        """The likeness by words with another item, and both as they were compared: by their texts alone where
        a title that both have says nothing of them."""
        one, other = article, self._article(number)
        if article.title_length and article.subject == other.subject:
            texts_alone = [read(replace(each, title="")) for each in (entry, _said(*self._kept(number)))]
            # Without their title, two items may be in two scripts.
            is_comparable = all(each.is_paired == article.is_paired for each in texts_alone)
            if is_comparable and not all(says_its_title(each, article.subject) for each in texts_alone):
                one, other = texts_alone
                near = self._cosine_of(one, other)
        theirs = self.frequencies.weights(other.language, other.weighed)
        own = mine if one is article else self.frequencies.weights(one.language, one.weighed)
        weights, soon = (
            partial(self.frequencies.weights, article.language),
            _soon(entry.time, self.items.time(number)),
        )
        return compare_words(one, other, near, own, theirs, weights, soon), one, other


def _says_enough(article: Article) -> bool:
    """True for an article with some words that may be of an event."""
    return sum(not word[0].isdigit() for word in article.known) >= 3


def _sought(article: Article, vector: Vector, most: int = HEAVY_TERMS) -> list[int]:
    """The terms by which an item is found: names first, as a long text has many words that are as rare."""
    names = set(map(hashed, article.names))
    found = [term for term in vector if term in names][:NAME_TERMS]
    found += [term for term in islice(vector, most) if term not in found]
    return found[:most]


def _day(entry: Entry) -> int:
    return int((entry.seen if entry.time is None else entry.time) / _A_DAY)


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
    kind: str = copies.kind_of_copy(one, other) or "event"
    if one.feed == other.feed and (kind != "event" or reissues.is_reissue(other, one)):
        kind = "reissue" if reissues.is_changed(other, one) else kind
    return Evidence(
        kind=kind,
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
    return replace(entry, title=entry.title[: records.TITLE_CHARACTERS], text=text)


def _said(entry: Entry, repeated: tuple[int, ...]) -> Entry:
    """The item without what its feed repeats."""
    return replace(entry, text=without(entry.text, repeated)) if repeated else entry
