"""The writer of stories: new items are decided once each, in the order of arrival, by one process at a time.

How far it is, is one row of the database, changed in the batch that stores the members: a writer with a lease
that ran out stores nothing. The window is a file beside the database; where it is lost, it is filled from the
items of the last days, which keep the stories that are stored.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.stories import sql, views
from rss_pipeline.features.stories.lease import Lease, hold, member
from rss_pipeline.features.stories.model import COPIES, WINDOW, Decision, Join
from rss_pipeline.features.stories.moves import Earlier, mend
from rss_pipeline.features.stories.sql import Ends, Item, Member, Place
from rss_pipeline.features.stories.window import VERSION, Window
from rss_pipeline.features.stories.window_file import load, save
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import compact

MOST_MEMBERS = 200
"""Members of a story: it is closed then, and what still comes begins another one."""
_LARGE = 10
"""Members of a story in a window with which it may be full."""
LEAST_CHARACTERS = 50
"""Characters of a title and a text with which an item may be on an event: copies have any."""
_NAMES = 12


@dataclass(slots=True, kw_only=True)
class Done:
    """The work of one call."""

    decided: int = 0
    joined: int = 0
    days: dict[date, int] = field(default_factory=dict)
    """Members that were added, by the day on which they came in (UTC)."""
    is_complete: bool = True
    """False where the time was over: the next call goes on."""
    not_written: str | None = None
    """The reason for which the window's file was not written. The next call makes the window anew."""


@contextmanager
def without_collector() -> Iterator[None]:
    """A time in which Python looks for no cycles. Decisions make none, and many objects: to look through them
    takes a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@without_collector()
def catch_up(
    database: Database,
    objects: ObjectStore,
    path: Path,
    *,
    is_over: Callable[[], bool] = lambda: False,
    ends: Ends | None = None,
) -> Done:
    """Decide the items that came in since the last call; `path` is the window's file. `is_over` ends
    it early.

    Raises:
        StoriesBusy: another process is at it.
        NewerMethod: a newer version decides here; this one would undo its order.
    """
    ends = ends or sql.ends(database)
    done = Done()
    if not ends.is_behind:
        return done
    with hold(database, ends) as lease:
        mend(lease, objects, path)
        if 0 < ends.writer.version < VERSION:
            # What was hidden by an older method, or before there were views.
            database.batch(views.of_all())
        earlier = Earlier.of(lease, objects) if lease.writer.is_restored else None
        now = datetime.fromisoformat(ends.now)
        since = now - timedelta(seconds=WINDOW)
        window = load(path, database=lease.window_of)
        # A window that is ahead is of a database that was put back from an older copy.
        if window is None or window.arrived > ends.writer.arrived:
            window = Window()
        window.forget(since.timestamp())
        at, is_rebuilt = _start(database, window, ends, since), False
        while True:
            items = sql.behind(database, at, up_to=ends.arrived, since=since, done=ends.writer.arrived)
            if not items or is_over():
                break
            new = [item for item in items if item.arrived > lease.writer.arrived]
            # What a restore brings back may be of today.
            if lease.writer.again_to or (new and earlier) or any(item.is_back(now) for item in new):
                _decide_again(lease, earlier or Earlier.of(lease, objects), ends, done, is_over)
                return done
            decided = _decided(database, window, items, up_to=ends.writer.arrived)
            if not is_rebuilt and any(_went(decision) for _, decision in decided):
                window, is_rebuilt = Window(), True
                at = _start(database, window, ends, since)
                continue
            at = max(item.arrived for item in items)
            lease.commit(_members(database, decided, done, window), arrived=max(at, lease.writer.arrived))
            done.decided += len(decided)
        done.is_complete = not items
        if done.is_complete and earlier is not None:
            earlier.make(window)
            lease.commit(arrived=ends.arrived, **earlier.end())
        elif done.is_complete and lease.writer.arrived < ends.arrived:
            lease.commit(arrived=ends.arrived)
        try:
            save(window, path, database=lease.window_of)
        except DatabaseUnavailable as error:
            done.not_written = str(error)
    return done


def _start(database: Database, window: Window, ends: Ends, since: datetime) -> int:
    """The arrival number behind which the window is brought up to date. Of what is decided, only the newest
    items count that it keeps: the others of a million would leave it again."""
    start, decided = max(window.arrived, int(since.timestamp()) * 1_000_000 - 1), ends.writer.arrived
    if start >= decided:
        return start
    return sql.before_newest(database, start, up_to=decided, since=since, most=window.most())


def _decide_again(
    lease: Lease, earlier: Earlier, ends: Ends, done: Done, is_over: Callable[[], bool]
) -> None:
    """Decide what came back from backups, day by day in the order in which it was fetched, each day with the
    items of the week before it. What users have said of it came back with them, so nothing follows that."""
    database = lease.database
    arrived, up_to = lease.writer.arrived, lease.writer.again_to or ends.arrived
    window, last = Window(), date.min
    for day in sql.days_behind(database, arrived, up_to=up_to, after=lease.writer.again):
        if done.decided and is_over():
            done.is_complete = False
            return
        before = max(last + timedelta(days=1), day - timedelta(seconds=WINDOW))
        for each in [before + timedelta(days=n) for n in range((day - before).days + 1)]:
            window.forget(datetime(each.year, each.month, each.day, tzinfo=UTC).timestamp() - WINDOW)
            for items in _between(sql.fetched_on(database, each, up_to=up_to), earlier, window):
                decided = _decided(database, window, items, up_to=arrived if each == day else up_to)
                members = _members(database, decided, done, window)
                lease.commit(members, arrived=arrived, follows=False)
                done.decided += len(decided)
        last = day
        lease.commit(arrived=arrived, again=str(day), again_to=up_to)
    earlier.make(window)
    lease.commit(arrived=up_to, again="", again_to=0, **earlier.end())
    done.is_complete = up_to == ends.arrived


def _between(pages: Iterable[list[Item]], earlier: Earlier, window: Window) -> Iterator[list[Item]]:
    """The items between moves, which are made again."""
    for items in pages:
        while items:
            earlier.make(window, before=items[0].fetched_at)
            some = earlier.part(items)
            yield some
            items = items[len(some) :]


def _went(decision: Decision) -> bool:
    """True for a new item that the window has in a story: it went from the database, and came again."""
    return decision.evidence is None and decision.story != decision.item


def _decided(
    database: Database, window: Window, items: list[Item], *, up_to: int
) -> list[tuple[Item, Decision]]:
    """Take these items into the window, and return the decisions on those that had none."""
    large = {*window.large(_LARGE), *(item.story for item in items if item.story is not None)}
    window.full = sql.full(database, sorted(large), most=MOST_MEMBERS)
    found = []
    for item in items:
        if item.arrived <= up_to or item.story is not None:
            window.restore(item.entry, item.story)
        elif item.began:
            window.restore(item.entry, item.entry.id)
            found.append((item, Decision(item=item.entry.id, story=item.entry.id)))
        else:
            found.append((item, window.decide(item.entry)))
    return found


def _members(
    database: Database, decided: list[tuple[Item, Decision]], done: Done, window: Window
) -> list[Member]:
    """The rows of those that join another item; an item joins the story that this one has in the database,
    whatever the window calls it: an operator may have moved it."""
    joins = [(item, decision) for item, decision in decided if decision.evidence is not None]
    nearest = {decision.evidence.nearest for _, decision in joins if decision.evidence is not None}
    known = sql.places(database, sorted(nearest))
    many = sorted({place.story for place in known.values() if place.members >= MOST_MEMBERS})
    full = sql.full(database, many, most=MOST_MEMBERS)
    known |= {
        id: replace(place, members=MOST_MEMBERS - 1)
        for id, place in known.items()
        if place.story in many and place.story not in full
    }
    texts = {item.entry.id: len(item.entry.text) for item, _ in decided}
    others = sql.entries(database, [id for id in known if id not in texts and not known[id].members])
    texts |= {id: len(entry.text) for id, entry in others.items()}
    members = [
        # What followed it before it went does so again.
        member(item.entry.id, item.entry.id, item.entry.id, len(item.entry.text), ordinal=0)
        for item, _ in decided
        if item.began
    ]
    for item, decision in joins:
        evidence = decision.evidence
        assert evidence is not None
        near, found = evidence.nearest, decision.joins
        place = known.get(near)
        if len(item.entry.title) + len(item.entry.text) < LEAST_CHARACTERS:
            # So few words could be of any event.
            found = tuple(join for join in found if join.kind != "event")
        if place is not None and place.members >= MOST_MEMBERS:
            # A story that was filled in this call goes on in another one, among those that did not fit.
            near = next((join.items[0] for join in found if _is_open(join, known, place.story)), "")
            place = known.get(near)
            window.move(item.entry.id, None if place is None else place.story)
            if place is None:
                known[item.entry.id] = Place(story=item.entry.id, article=item.entry.id, members=0)
                continue
        if place is None or not found:
            # The other item went meanwhile.
            window.move(item.entry.id, None)
            continue
        if place.members == 0:
            members.append(member(near, place.story, place.article, texts[near]))
            place = replace(place, members=1)
        first = known.get(found[0].items[0])
        article = first.article if first is not None and found[0].kind in COPIES else item.entry.id
        shown = {**asdict(evidence), "score": round(decision.score, 3), "cosine": round(evidence.cosine, 3)}
        for name in ("names", "numbers", "terms"):
            shown[name] = list(shown.get(name, ()))[:_NAMES]
        members.append(
            member(
                item.entry.id,
                place.story,
                article,
                len(item.entry.text),
                evidence=compact({**shown, "nearest": near}),
                joins=found,
            )
        )
        counted = Place(
            story=place.story, article=place.article, members=place.members + (not item.entry.is_closed)
        )
        for id, each in known.items():
            if each.story == place.story:
                known[id] = replace(each, members=counted.members)
        known[near] = counted
        known[item.entry.id] = replace(counted, article=article)
        day = datetime.fromtimestamp(item.entry.seen, UTC).date()
        done.days[day] = done.days.get(day, 0) + 1
        done.joined += 1
    return members


def _is_open(join: Join, known: Mapping[str, Place], full: str) -> bool:
    """True for a join with an item alone that is in another story than this one, which is full."""
    place = known.get(join.items[0])
    return len(join.items) == 1 and place is not None and full != place.story and place.members < MOST_MEMBERS
