"""One clean: items past their time with their images, old backups, unused feeds, what killed processes left;
and HTML of items that other rules made.

Order and faults are decided here. Which backups expire is storage.backups.expiry's.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from rss_pipeline.batched import batched
from rss_pipeline.errors import (
    CleanRefused,
    DatabaseFull,
    ForgetRefused,
    ObjectStoreUnavailable,
    StorageRejected,
    disk_is_full,
)
from rss_pipeline.features import FEATURES
from rss_pipeline.features.retention import sql as removals
from rss_pipeline.features.retention import sql as retention
from rss_pipeline.features.retention.model import CleanResult
from rss_pipeline.features.retention.refusal import DAY, FEW, MOST_AT_ONCE, Extent, ahead, jump, refusal
from rss_pipeline.held_folders import LEFTOVER_AGE, SOCKETS, socket_root, sweep
from rss_pipeline.pipeline.triggers.daily import Allowance
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.reader.user_backups import back_up_all
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backups import expiry
from rss_pipeline.storage.database import Database, HasReserve, InFile, shrink
from rss_pipeline.storage.feeds import forget
from rss_pipeline.storage.images.places import move_private
from rss_pipeline.storage.installation import far_dates
from rss_pipeline.storage.objects import IMAGES, PRIVATE_IMAGES, ObjectInfo, ObjectStore, Sweeps

if TYPE_CHECKING:
    from rss_pipeline.features.retention.listed import Listed

logger = logging.getLogger(__name__)

BACKUPS_SHARE = 0.5
"""The share of a clean's time that the backups may take; items have the rest."""
USERS_SHARE = 0.6
"""The share that the backups of documents and of users may take together."""
COPIED_AT_ONCE = 8

_AT_ONCE = 1_000
_SLICES_WHERE_FULL = ((False, (50, 5)), (True, (50, retention.SLICE_ITEMS, 5)))
"""Passes over a full database: with tombstones or without, and sizes of slices until one goes through. The
more items, the more room for each tombstone; the fewer, the less room is needed for the log of SQLite."""

_Retire = Callable[[Sequence[str], Sequence[retention.DueImage]], tuple[str, ...]]


def clean(
    database: Database,
    objects: ObjectStore,
    settings: Settings,
    *,
    now: datetime,
    dry_run: bool = False,
    confirmed: bool = False,
    allowance: Allowance | None = None,
    backups_after: str = "",
    progress: Progress | None = None,
) -> CleanResult:
    """Remove what is past its time at `now`; see sql.py. Two at once are harmless.

    It may be ended at any moment; the next one completes it. Memory does not grow with what there is to
    remove. `confirmed`: a person wants it although a refusal (refusal.py) advises against it.
    `backups_after` is `CleanResult.backups_through` of a clean that ran out of time: of 300 million backups
    one clean lists a hundredth, and never came to the last feeds if each began with the first.

    Raises:
        CleanRefused: it was not confirmed, and nothing was removed; backups were put again.
        InfrastructureError: a store cannot work now.
    """
    due = retention.count_due(database, now, keep_days=settings.keep_days)
    before = removals.read_removals(database)
    extent = _extent(database, settings, now=now, items_due=due, before=before)
    cleaning = _Cleaning(
        database=database,
        objects=objects,
        settings=settings,
        now=now,
        allowance=allowance or Allowance(),
        progress=progress or NoProgress(),
        items_due=due,
        before=before,
        is_confirmed=confirmed,
        refusal=None if confirmed else refusal(extent),
        is_after_jump=not confirmed and extent.jumped is not None,
        cleaned=CleanResult(dry_run=dry_run),
    )
    # Backups come first: one that is not put again in time is lost.
    cleaning.backups(after=backups_after)
    cleaning.users()
    cleaning.leftovers()
    cleaning.items()
    cleaning.unused_feeds()
    cleaning.note_removed()
    cleaning.of_features()
    if not dry_run:
        # A feed may have become a private one.
        with _left_where_full("images of feeds that became private are moved by the next clean"):
            move_private(database, objects)
    cleaning.file()
    if not (dry_run or cleaning.cleaned.was_full):
        # Sanitizers need some MB, which the daemon has no use for.
        from rss_pipeline.pipeline.session.renew_html import renew

        with _left_where_full("HTML of items is made by the next clean"):
            renew(database, is_over=cleaning.allowance.is_spent)
    if cleaning.cleaned.refusal is not None and not dry_run:
        raise CleanRefused(cleaning.cleaned.refusal)
    return cleaning.cleaned


def _extent(
    database: Database, settings: Settings, *, now: datetime, items_due: int, before: removals.Removals
) -> Extent:
    of_unused = forget.due_unused_feeds(database, now=now)
    due = items_due + retention.count_others(database, of_unused, now, keep_days=settings.keep_days)
    jumped = jump(removals.days_visited(database), now=now, confirmed=before.confirmed)
    removed = before.since(now - DAY)
    since = 0 if jumped is None else before.since(jumped.after)
    most = max(2 * (due + max(removed, since)), MOST_AT_ONCE * due if due >= FEW else 0) + 1
    last_visit = retention.last_visit(database)
    return Extent(
        now=now,
        last_visit=last_visit,
        ahead=ahead(far_dates(database).values(), now=now, last_visit=last_visit, confirmed=before.confirmed),
        items_due=due,
        items=removals.count_items(database, most=most) if due else 0,
        removed=removed,
        jumped=jumped,
        items_before=removals.count_items(database, most=most, before=jumped.before) if due and jumped else 0,
        removed_since=since,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cleaning:
    database: Database
    objects: ObjectStore
    settings: Settings
    now: datetime
    allowance: Allowance
    progress: Progress
    items_due: int
    before: removals.Removals
    is_confirmed: bool
    refusal: str | None
    """Why nothing may be removed, if there is anything to remove."""
    is_after_jump: bool
    """The clock may have jumped: old backups and unused feeds wait until the visits of three weeks, or a
    person, say that it is right."""
    cleaned: CleanResult

    def _may_remove(self) -> bool:
        """False where nothing may be removed, which is kept; a dry run goes on, and shows the refusal."""
        self.cleaned.refusal = self.refusal
        return self.refusal is None or self.cleaned.dry_run

    def note_removed(self) -> None:
        """Write down how many items are gone, after each slice: those of a clean that is killed count as well
        in what the next ones may remove."""
        removed = self.cleaned.total.items
        if self.cleaned.dry_run or not (self.is_confirmed or removed):
            return
        kept = (
            removals.Removals(confirmed=self.now).and_now(0, self.now)
            if self.is_confirmed
            else self.before.and_now(removed, self.now)
        )
        with _left_where_full("what was removed is not written down"):
            removals.write_removals(self.database, kept)

    def backups(self, *, after: str) -> None:
        needed = expiry.needed_backups(self.database)
        self.progress.begin("backups", len(needed))
        ages = expiry.BackupAges.of(
            backup_days=self.settings.backup_days, rule=self.settings.objects.lifecycle(self.objects)
        )
        listed = self._in_time(self.objects.list(expiry.BACKUPS, after=after), needed)
        thinned = expiry.thinned_backups(self.database)
        due = expiry.due_backups(listed, needed, now=self.now, ages=ages, thinned=thinned)
        with ThreadPoolExecutor(COPIED_AT_ONCE, "clean") as pool:
            for some in batched(due, _AT_ONCE):
                self._renew([one.info for one in some if isinstance(one, expiry.Renew)], pool)
                self._expire([one.info for one in some if isinstance(one, expiry.Expire)])

    def of_features(self) -> None:
        """Let features remove what is past its time, where something may be removed."""
        if self.cleaned.dry_run or self.is_after_jump or self.refusal is not None:
            return
        for feature in FEATURES:
            if feature.clean is not None:
                clean_of = feature.clean.load()
                self.cleaned.refuse(clean_of(self.database, self.objects, self.settings, self.now))

    def users(self) -> None:
        """Back up what users have; also where nothing may be removed."""
        if self.cleaned.dry_run:
            return
        with _left_where_full("what users have is backed up by the next clean"):
            done = back_up_all(
                self.database,
                self.objects,
                now=self.now,
                is_over=lambda: self.allowance.is_spent(USERS_SHARE),
            )
            self.cleaned.users_backed_up = done.written
            self.cleaned.refuse(done.refused)
            self.cleaned.out_of_time |= done.left > 0

    def _in_time(self, listed: Iterable[ObjectInfo], needed: Mapping[str, object]) -> Iterator[ObjectInfo]:
        """Whole feeds only: where a feed is cut off, its last backup listed would pass for its newest."""
        feed_id = key = None
        for info in listed:
            if expiry.feed_of(info.key) != feed_id:
                if self.allowance.is_spent(BACKUPS_SHARE) and key is not None:
                    self.cleaned.out_of_time = True
                    self.cleaned.backups_through = key
                    return
                feed_id = expiry.feed_of(info.key)
                self.progress.advance("backups", int(feed_id in needed))
            key = info.key
            yield info

    def _renew(self, infos: Sequence[ObjectInfo], pool: ThreadPoolExecutor) -> None:
        keys = [info.key for info in infos]
        refused: dict[str, str] = {}
        if not self.cleaned.dry_run:
            for key, reason in zip(keys, pool.map(self._put_again, keys), strict=True):
                if reason is not None:
                    refused[key] = reason
        self.cleaned.refuse(refused)
        self.cleaned.backups_renewed += len(keys) - len(refused)

    def _put_again(self, key: str) -> str | None:
        """The reason why it could not be copied, or None."""
        try:
            self.objects.copy(key, key)
        except KeyError:
            return None  # Another clean, or a person, took it meanwhile.
        except StorageRejected as error:
            return str(error)
        except ObjectStoreUnavailable as error:
            if not disk_is_full(error):
                raise
            return str(error)  # What is removed next makes room.
        return None

    def _expire(self, infos: Sequence[ObjectInfo]) -> None:
        if not infos or not self._may_remove():
            return
        if self.is_after_jump:
            self.cleaned.backups_waiting += len(infos)
            return
        refused = self._delete([info.key for info in infos])
        for info in infos:
            if info.key not in refused:
                removed = self.cleaned.of(expiry.feed_of(info.key))
                removed.backups += 1
                removed.backup_bytes += info.size

    def items(self) -> None:
        left = self.items_due
        self.progress.begin("items", left)
        if left == 0 or not self._may_remove():
            return
        try:
            self._all_items(left)
        except DatabaseFull as error:
            self.cleaned.was_full = True
            self._items_of_full(error)

    def _all_items(self, left: int) -> None:
        keep_days = self.settings.keep_days
        for part in retention.due_slices(self.database, self.now, keep_days=keep_days):
            if self.allowance.is_spent():
                self.cleaned.out_of_time = True
                self.cleaned.items_left = max(left, 0)
                return
            self._retire(part)
            self.note_removed()
            through = 0 if part.is_part else len(part.items)
            left -= through
            self.progress.advance("items", through)

    def _items_of_full(self, error: DatabaseFull) -> None:
        """Items of a database without room for a tombstone. First go those that need none, since their feed
        does not list them any more; the others then give their own room to their tombstones, the more at once
        the more room for each."""
        # Its parser loads what few cleans need.
        from rss_pipeline.features.retention.listed import Listed

        if isinstance(self.database, HasReserve):
            self.database.use_reserve()
        with closing(Listed(self.database, self.objects, self.settings, now=self.now)) as listed:
            for with_tombstones, sizes in _SLICES_WHERE_FULL:
                for most in sizes:
                    try:
                        self._slices_of_full(listed, most, with_tombstones=with_tombstones)
                    except DatabaseFull as again:
                        error = again
                    else:
                        break
                    finally:
                        # In Postgres the room of deleted rows is not free at once.
                        shrink(self.database)
        left = retention.count_due(self.database, self.now, keep_days=self.settings.keep_days)
        self.cleaned.items_left = left
        if left and not (self.cleaned.total.items or self.cleaned.out_of_time):
            raise error

    def _slices_of_full(self, listed: "Listed", most: int, *, with_tombstones: bool) -> None:
        def retire(ids: Sequence[str], tasks: Sequence[retention.DueImage]) -> tuple[str, ...]:
            return retention.retire_where_full(self.database, ids, tasks, with_tombstones=with_tombstones)

        keep_days = self.settings.keep_days
        for part in retention.due_slices(self.database, self.now, keep_days=keep_days, most=most):
            if self.allowance.is_spent():
                self.cleaned.out_of_time = True
                return
            if with_tombstones:
                self._retire(part, by=retire)
            elif ids := {id for id, feed_id in part.items.items() if _is_gone(listed, feed_id, id)}:
                self._retire(_only(part, ids), by=retire)
            self.note_removed()

    def unused_feeds(self) -> None:
        """Remove the feeds that their last subscriber left some days ago. Their backups stay, and their
        partition keys go with the next sync of the registry, as after `forget`."""
        due = forget.due_unused_feeds(self.database, now=self.now)
        if not due or self.is_after_jump or not self._may_remove():
            return
        for id in due:
            if self.allowance.is_spent():
                self.cleaned.out_of_time = True
                return
            self._remove_feed(id)

    def _remove_feed(self, id: str) -> None:
        items, tasks = forget.sizes(self.database, id)
        if (
            not self.cleaned.dry_run
            and forget.begin_removal_of_unused(self.database, id, now=self.now) is None
        ):
            return  # Somebody subscribed to it meanwhile.
        removed = self.cleaned.of(id)
        removed.image_tasks += tasks
        refused: dict[str, str] = {}
        # By their place, so that one is found also where its row is gone: a clean may be killed here.
        stored = (self.objects.list(f"{prefix}{id}/") for prefix in (IMAGES, PRIVATE_IMAGES))
        for some in batched(chain.from_iterable(stored), _AT_ONCE):
            refused |= self._delete([info.key for info in some])
            gone = [info for info in some if info.key not in refused]
            removed.images += len(gone)
            removed.image_bytes += sum(info.size for info in gone)
        if refused:
            return  # The next clean tries again.
        if not self.cleaned.dry_run:
            try:
                forget.begin_forget(self.database, id)
            except ForgetRefused:
                return
        removed.items += items
        self.cleaned.feeds += 1

    def _retire(self, part: retention.Slice, *, by: "_Retire | None" = None) -> None:
        """The items of a slice, by `retention.retire` where nothing else is named."""
        waiting = {task.item_id for task in part.tasks if task.is_live}
        tasks = [task for task in part.tasks if task.item_id not in waiting]
        stored = self._stored(tasks)
        refused = self._delete([key for keys in stored.values() for key in keys])
        intact = [task for task in tasks if refused.keys().isdisjoint(stored[task.id])]
        held = {task.item_id for task in tasks if not refused.keys().isdisjoint(stored[task.id])}
        whole = set() if part.is_part else part.items.keys() - waiting - held
        # Tasks of items that stay for now: none may point at an object that is gone.
        loose = [t for t in intact if t.item_id not in whole and (part.is_part or stored[t.id])]
        gone = whole
        if not self.cleaned.dry_run:
            of_whole = [task for task in tasks if task.item_id in whole]
            gone = set((by or partial(retention.retire, self.database))(sorted(whole), of_whole))
            retention.drop_tasks(self.database, loose)
        self.cleaned.items_waiting += len(waiting | (whole - gone)) if not part.is_part else 0
        self._count(part, gone, [*loose, *(task for task in tasks if task.item_id in gone)])
        for task in tasks:
            removed = self.cleaned.of(part.items[task.item_id])
            for key, size in stored[task.id].items():
                if key not in refused:
                    removed.images += 1
                    removed.image_bytes += size

    def _stored(self, tasks: Sequence[retention.DueImage]) -> dict[str, dict[str, int]]:
        """Task id to the keys of what it stored, with their sizes."""
        stored = {task.id: {task.r2_key: task.size} if task.r2_key else {} for task in tasks}
        for id, images in retention.unrecorded_images(self.database, self.objects, tasks).items():
            stored[id] |= {image.key: image.size for image in images}
        return stored

    def _count(self, part: retention.Slice, gone: Iterable[str], tasks: Iterable[retention.DueImage]) -> None:
        for id in gone:
            removed = self.cleaned.of(part.items[id])
            removed.items += 1
            removed.item_versions += part.versions.get(id, 0)
        for task in tasks:
            self.cleaned.of(part.items[task.item_id]).image_tasks += 1

    def _delete(self, keys: Sequence[str]) -> dict[str, str]:
        if self.cleaned.dry_run or not keys:
            return {}
        refused = self.objects.delete_many(keys)
        self.cleaned.refuse(refused)
        return refused

    def file(self) -> None:
        """Return the room of what is gone, also of forgotten feeds, to the disk, where the database is a file
        here that can; and keep some for the next clean of a full one."""
        if isinstance(self.database, HasReserve) and not self.cleaned.dry_run:
            self.database.keep_reserve()
        if isinstance(self.database, InFile):
            if not self.cleaned.dry_run:
                self.database.shrink()
            self.cleaned.room = self.database.room()

    def leftovers(self) -> None:
        before, dry_run = self.now - LEFTOVER_AGE, self.cleaned.dry_run
        if self.refusal is None and isinstance(self.objects, Sweeps):
            self.cleaned.leftovers = self.objects.sweep(before=before, dry_run=dry_run)
        # By a doubtful clock only what shows by itself that its process is gone.
        spool_before = before if self.refusal is None else None
        self.cleaned.leftovers += sweep(self.settings.spool_path, before=spool_before, dry_run=dry_run)
        if not dry_run:
            # Not counted: they are of every installation of this user.
            with suppress(OSError):
                sweep(socket_root(), prefix=SOCKETS)


@contextmanager
def _left_where_full(what: str) -> Iterator[None]:
    """Let nothing that needs room end a clean, which makes some; the log says what was left."""
    try:
        yield
    except (DatabaseFull, ObjectStoreUnavailable) as error:
        if isinstance(error, ObjectStoreUnavailable) and not disk_is_full(error):
            raise
        logger.warning("%s: %s", what, error)


def _only(part: retention.Slice, ids: Set[str]) -> retention.Slice:
    """The slice with these of its items alone, and their tasks."""
    return replace(
        part,
        items={id: feed for id, feed in part.items.items() if id in ids},
        tasks=[task for task in part.tasks if task.item_id in ids],
    )


def _is_gone(listed: "Listed", feed_id: str, item_id: str) -> bool:
    """True for an item that its feed does certainly not list any more."""
    ids = listed.ids(feed_id)
    return ids is not None and item_id not in ids
