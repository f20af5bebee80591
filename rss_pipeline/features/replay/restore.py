"""The restore of a lost database from feeds.yaml and the objects: feeds with their state, items, image tasks,
users.

Each step may be repeated, so a restore that was killed is started again.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, groupby
from typing import Any

from rss_pipeline.batched import batched
from rss_pipeline.collector.registry.feed_url import literal, read_url
from rss_pipeline.errors import BackupUnreadable, ExtraMissing, RegistryError, StorageRejected
from rss_pipeline.features import FEATURES
from rss_pipeline.features.replay import restore_sql as restores
from rss_pipeline.features.replay.restore_sql import (
    FeedState,
    restore_marks,
    restore_stars,
    restore_user,
    stored_feeds,
)
from rss_pipeline.features.replay.service import FeedReplay, ReplayProblem, read_again, replay_feeds
from rss_pipeline.pipeline.registry.sync import RegistrySync, sync_registry
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backups.backups import Backup, describe_backup, list_backups
from rss_pipeline.storage.backups.user_states import (
    KeptMarks,
    KeptRows,
    KeptStars,
    KeptSubscription,
    UserHead,
    list_states,
    load_state,
    parts_of,
    user_rows,
)
from rss_pipeline.storage.feeds.feed_row import feed_ids
from rss_pipeline.storage.feeds.subscribed import NewFeed
from rss_pipeline.storage.images.places import TASK_METADATA, stored_pixels
from rss_pipeline.storage.objects import IMAGES, PRIVATE_IMAGES, ObjectInfo
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS

logger = logging.getLogger(__name__)

# The last part of the restore of a lost database: users with their feeds, read states and stars.
# Feeds and items are there by now.


@dataclass(slots=True, kw_only=True)
class RestoredUsers:
    """The users that a restore gave back; grows while it runs."""

    users: int = 0
    known: int = 0
    """Users that the database has; nothing of theirs was changed."""
    subscriptions: int = 0
    stars: int = 0
    stars_lost: int = 0
    """Stars of items that are in no backup of their feeds any more."""
    new_feeds: list[str] = field(default_factory=list)
    """Ids of feeds that neither feeds.yaml nor a backup of theirs knew."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Keys of backups that were not restored, or not as a whole, with the reason."""


@dataclass(frozen=True, slots=True)
class SubscriptionPlan:
    """The feeds that a user subscribes to after a restore."""

    subscriptions: tuple[KeptSubscription, ...]
    """By the ids that their feeds have now."""
    new: tuple[NewFeed, ...]
    """Feeds among them that are not stored."""
    changed: tuple[NewFeed, ...]
    """Stored feeds among them to which a user had given another address after their last document."""
    refused: tuple[str, ...]
    """A sentence for each one that cannot be subscribed any more."""


def restore_users(run: RunContext, restored: RestoredUsers, on_feeds: Callable[[list[str]], object]) -> None:
    """Restore each user that has a backup and is not in the database.

    A user that a killed restore left half-way is completed. `on_feeds` is called with the ids of the feeds
    that users subscribe to.
    """
    # The newest first: of an address that was changed since, an older one does not know.
    found = sorted(list_states(run.objects), key=lambda info: info.modified, reverse=True)
    run.progress.begin("users", len(found))
    for info in found:
        try:
            _restore(run, info, restored, on_feeds)
        except (BackupUnreadable, StorageRejected) as error:
            restored.problems.append((info.key, str(error)))
        run.progress.advance("users")


def _restore(
    run: RunContext,
    info: ObjectInfo,
    restored: RestoredUsers,
    on_feeds: Callable[[list[str]], object],
) -> None:
    packed = load_state(run.objects, info)
    head, subscriptions = _checked(info.key, packed)
    is_known, is_taken = users.known_to_restore(run.database, head.id, head.name)
    if is_known:
        restored.known += 1
        return
    if is_taken:
        raise BackupUnreadable(
            f"there is another user {head.name} now; to have this one, run"
            f" `rss-pipeline user remove {head.name}`, then restore again"
        )
    plan = plan_subscriptions(
        subscriptions, stored_feeds(run.database, subscriptions), taken_at=head.taken_at
    )
    run.database.batch(restore_user(head, plan.subscriptions, plan.new, plan.changed, at=run.clock()))
    if plan.subscriptions:
        on_feeds([one.feed_id for one in plan.subscriptions])
    for part in parts_of(info.key, packed):
        match part:
            case KeptMarks():
                run.database.batch(restore_marks(head.id, part))
            case KeptStars():
                back = run.database.batch(restore_stars(head.id, part))[0].changes
                restored.stars += back
                restored.stars_lost += len(part.stars) - back
            case KeptRows():
                restore_rows = user_rows()[part.name].restore.load()
                run.database.batch(restore_rows(head.id, compact(part.rows)))
    run.database.batch([users.end_restore(head.id)])
    restored.users += 1
    restored.subscriptions += len(plan.subscriptions)
    restored.new_feeds += [feed.id for feed in plan.new]
    restored.problems += [(info.key, sentence) for sentence in plan.refused]


def _checked(key: str, packed: bytes) -> tuple[UserHead, list[KeptSubscription]]:
    """The head and the subscriptions of a backup, read to its end: nothing of a broken one is used."""
    head: UserHead | None = None
    subscriptions: list[KeptSubscription] = []
    for part in parts_of(key, packed):
        match part:
            case UserHead():
                head = part
            case KeptSubscription():
                subscriptions.append(part)
                if len(subscriptions) > MAX_SUBSCRIPTIONS:
                    raise BackupUnreadable(f"it has more than {MAX_SUBSCRIPTIONS:,} subscriptions")
    assert head is not None
    return head, subscriptions


def plan_subscriptions(
    subscriptions: Sequence[KeptSubscription], stored: Iterable[Mapping[str, Any]], *, taken_at: str
) -> SubscriptionPlan:
    """The feeds that these subscriptions are of now, among the `stored` ones with their ids or URLs.

    A feed that only backups know has the address of its last document. Where that is older than the backup of
    the user, from `taken_at`, and the feed had another address by then, it has that one.

    A feed that feeds.yaml keeps to its owner now is not subscribed: a backup opens no feed.
    """
    rows = list(stored)
    by_id, by_url = {row["id"]: row for row in rows}, {row["url"]: row for row in rows}
    kept: dict[str, KeptSubscription] = {}
    new: dict[str, NewFeed] = {}
    changed: dict[str, NewFeed] = {}
    refused: list[str] = []
    for one in subscriptions:
        row = by_id.get(one.feed_id)
        if row is None or "#" in row["url"]:
            # Another feed has its URL now, under another id; its own row only keeps its items.
            row = by_url.get(one.url, row)
        if row is None:
            feed = _new_feed(one)
            if isinstance(feed, str):
                refused.append(feed)
                continue
            new.setdefault(feed.id, feed)
            kept.setdefault(feed.id, one)
        elif row["open"]:
            address = _new_feed(one) if _has_other_address(row, one, taken_at) else None
            if isinstance(address, NewFeed):
                changed[address.id] = address
            kept.setdefault(row["id"], replace(one, feed_id=row["id"]))
        else:
            refused.append(f"{row['id']} is not open to users any more; let feeds.yaml say `shared: true`")
    # Two new feeds cannot have one URL.
    urls = {feed.url: feed.id for feed in reversed(new.values())}
    twice = {feed.id for feed in new.values() if urls[feed.url] != feed.id}
    return SubscriptionPlan(
        tuple(each for id, each in kept.items() if id not in twice),
        tuple(feed for feed in new.values() if feed.id not in twice),
        tuple(changed.values()),
        tuple(refused),
    )


def _has_other_address(row: Mapping[str, Any], one: KeptSubscription, taken_at: str) -> bool:
    """True if the feed of this row got another address after its last document, by this subscription."""
    return (
        row["id"] == one.feed_id
        and bool(row["is_idle"])
        and one.requested_url is not None
        and row["url"] not in (one.url, one.requested_url)
        and (row["last_visited_at"] or "") < taken_at
    )


def _new_feed(one: KeptSubscription) -> NewFeed | str:
    try:
        read = read_url(literal(one.url), {})
    except ValueError as error:
        return f"{one.feed_id}: {error}"
    if read.url != one.url:
        return f"{one.feed_id}: its URL has a password or a fragment in it"
    return NewFeed(id=one.feed_id, url=read.url, host=read.host)


_FEED_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_THREADS = 16
_HEADS_AT_ONCE = 500


@dataclass(slots=True, kw_only=True)
class Restored:
    """The result of a restore; grows while it runs."""

    registered: int = 0
    registry_error: str | None = None
    """Why feeds.yaml could not be used: all feeds then come from the objects, not scheduled."""
    unregistered: list[str] = field(default_factory=list)
    """Ids of feeds that only their backups knew."""
    renamed: list[str] = field(default_factory=list)
    """A sentence for each of these with a URL that now belongs to another feed."""
    with_state: int = 0
    """Feeds that have the validators of their newest document again."""
    backups: int = 0
    backups_replayed: int = 0
    backups_without_feed: int = 0
    items_new: int = 0
    items_cut: int = 0
    """New items that are too large for the database and were cut."""
    articles: int = 0
    """Items with the article of their page again."""
    pages_unread: list[tuple[str, str]] = field(default_factory=list)
    """Keys of pages that could not be read, and why; their items have the feed's own text."""
    images_adopted: int = 0
    images_known: int = 0
    """Objects that their task had already."""
    images_orphaned: int = 0
    """Objects without a task; they stay."""
    lost_feeds: list[tuple[str, str]] = field(default_factory=list)
    """Feed id, or a key below backups/ that is of no feed, and why it could not be made a feed again."""
    problems: list[ReplayProblem] = field(default_factory=list)
    """Backups that could not be read."""
    users: RestoredUsers = field(default_factory=RestoredUsers)

    def as_json(self) -> dict[str, Any]:
        """The result for programs."""
        lost = [
            # No id has a slash: a folder or file that is no feed's comes with its key.
            {"backup_key" if "/" in name else "feed_id": name, "reason": reason}
            for name, reason in self.lost_feeds
        ]
        users = asdict(self.users)
        users["problems"] = [{"backup_key": key, "reason": reason} for key, reason in self.users.problems]
        return {"is_whole": self.is_whole, **asdict(self), "lost_feeds": lost, "users": users}

    @property
    def is_whole(self) -> bool:
        return not (self.lost_feeds or self.problems or self.registry_error or self.users.problems)

    def add(self, replay: FeedReplay) -> None:
        self.backups += replay.backups
        self.backups_replayed += replay.replayed
        self.backups_without_feed += len(replay.problems) - len(replay.unread)
        self.items_new += replay.items_new
        self.items_cut += replay.items_cut
        self.problems += replay.unread


def restore(
    run: RunContext,
    *,
    pool: ParserPool,
    spool: Spool,
    on_registry: Callable[[RegistrySync], object],
    on_feeds: Callable[[list[str]], object],
    environ: Mapping[str, str] | None = None,
) -> Restored:
    """Rebuild the database as far as registry and objects reach.

    A database that is not empty is no error: its rows stay, missing ones come in, and the state of a feed is
    written only where no document of it was stored since.
    `on_registry` is called with the synced registry, `on_feeds` with the ids of all feeds that have backups,
    and of those that a user subscribes to.
    """
    restored = Restored()
    _register(run, restored, on_registry, environ)
    ids = _feeds_with_backups(run, restored)
    on_feeds(ids)
    for replay in replay_feeds(ids, run=run, pool=pool, spool=spool):
        restored.add(replay)
        _restore_state(run, replay, restored)
    # Before the images: those of articles are adopted, too.
    try:
        pages = read_again(run, pool=pool, spool=spool, feed_ids=ids, is_restore=True)
    except ExtraMissing as error:
        logger.warning(
            "articles are not restored: %s; `rss-pipeline replay --all --pages` does so later", error
        )
    else:
        restored.articles = pages.shown
        restored.pages_unread = pages.unread
    _adopt_images(run, restored)
    for feature in FEATURES:
        if feature.restored is not None:
            feature.restored.load()(run.database)
    restore_users(run, restored.users, on_feeds)
    return restored


def _register(
    run: RunContext,
    restored: Restored,
    on_registry: Callable[[RegistrySync], object],
    environ: Mapping[str, str] | None,
) -> None:
    try:
        synced = sync_registry(run.database, run.settings, now=run.clock(), environ=environ)
    except RegistryError as error:
        restored.registry_error = str(error)
    else:
        on_registry(synced)
        restored.registered = len(synced.specs)


def _feeds_with_backups(run: RunContext, restored: Restored) -> list[str]:
    """Every feed that has backups; those that the registry does not know get a row."""
    known = set(feed_ids(run.database))
    found: list[str] = []
    run.progress.begin("find backups", 0)
    for id, objects in groupby(run.objects.list("backups/"), key=lambda info: _folder(info.key)):
        keys = [info.key for info in objects] if id is None else []
        restored.lost_feeds += [(key, "not in the folder of a feed") for key in keys]
        if id is None:
            continue
        if id not in known and not _add(run, id, restored):
            continue
        found.append(id)
    return found


def _folder(key: str) -> str | None:
    """The feed of the backup or image with this key; None where it belongs to no feed."""
    _, id, *rest = key.split("/")
    return id if rest and _FEED_ID.fullmatch(id) else None


def _add(run: RunContext, id: str, restored: Restored) -> bool:
    backup, reason = _newest_readable(run, id)
    if backup is None:
        restored.lost_feeds.append((id, f"none of its backups says where it came from: {reason}"))
        return False
    try:
        url = restores.add_unregistered(run.database, id, backup, now=run.clock())
    except (ValueError, StorageRejected) as error:
        restored.lost_feeds.append((id, f"its URL {backup.requested_url} cannot be used: {error}"))
        return False
    restored.unregistered.append(id)
    if url.endswith(f"#{id}"):
        restored.renamed.append(
            f"{id}: another feed has its URL now, so it is kept as {url}; to be rid of it,"
            f" `rss-pipeline forget {id}`"
        )
    return True


def _newest_readable(run: RunContext, id: str) -> tuple[Backup | None, str]:
    reason = "they vanished"
    keys = [info.key for info in list_backups(run.objects, id)]
    for key in reversed(keys):
        info = run.objects.head(key)
        if info is None:
            continue
        try:
            return describe_backup(info), ""
        except BackupUnreadable as error:
            reason = str(error)
    return None, reason


def _restore_state(run: RunContext, replay: FeedReplay, restored: Restored) -> None:
    state = _state(replay)
    try:
        if state is not None and restores.restore_state(run.database, state, now=run.clock()):
            restored.with_state += 1
    except StorageRejected as error:
        restored.lost_feeds.append((replay.feed.id, f"its items are there, its validators are not: {error}"))


def _state(replay: FeedReplay) -> FeedState | None:
    """The feed's state by its backups; None if none of them can be read."""
    if replay.earliest is None:
        return None
    return FeedState(
        feed=replay.feed,
        earliest=replay.earliest,
        newest=replay.newest,
        cut=replay.cut,
        failure=replay.failed_since,
    )


def _adopt_images(run: RunContext, restored: Restored) -> None:
    """Give each image object to the task it was downloaded for, so that it is not requested again."""
    run.progress.begin("images", 0)
    with ThreadPoolExecutor(_THREADS) as threads:
        stored = chain.from_iterable(map(run.objects.list, (IMAGES, PRIVATE_IMAGES)))
        for id, objects in groupby(stored, key=lambda info: _folder(info.key)):
            tasks = restores.task_keys(run.database, id) if id is not None else {}
            taken = {key for key in tasks.values() if key is not None}
            for some in batched(objects, _HEADS_AT_ONCE):
                run.progress.begin("images", len(some))
                unknown = [info for info in some if info.key not in taken]
                restored.images_known += len(some) - len(unknown)
                heads = threads.map(run.objects.head, [info.key for info in unknown])
                images: dict[str, ObjectInfo] = {}
                for head in filter(None, heads):
                    task = head.metadata.get(TASK_METADATA)
                    if task is None or tasks.get(task, "") is not None or task in images:
                        restored.images_orphaned += 1
                    else:
                        images[task] = head
                restored.images_adopted += restores.adopt(
                    run.database, images, pixels_of=lambda head: stored_pixels(head.metadata)
                )
                tasks.update((task, head.key) for task, head in images.items())
                for _ in some:
                    run.progress.advance("images")
