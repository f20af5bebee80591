"""The last part of the restore of a lost database: users with their feeds, read states and stars.

Feeds and items are there by now (restore.py); the backups' form is storage.backups.user_states', the
statements are storage.subscriptions.restored_states'.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rss_pipeline.collector.registry.feed_url import literal, read_url
from rss_pipeline.errors import BackupUnreadable, StorageRejected
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.storage.accounts import users
from rss_pipeline.storage.backups.user_states import (
    KeptMarks,
    KeptStars,
    KeptSubscription,
    UserHead,
    list_states,
    load_state,
    parts_of,
)
from rss_pipeline.storage.feeds.subscribed import NewFeed
from rss_pipeline.storage.objects import ObjectInfo
from rss_pipeline.storage.subscriptions.restored_states import (
    restore_marks,
    restore_stars,
    restore_user,
    stored_feeds,
)
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS


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
    refused: tuple[str, ...]
    """A sentence for each one that cannot be subscribed any more."""


def restore_users(run: RunContext, restored: RestoredUsers, on_feeds: Callable[[list[str]], object]) -> None:
    """Restore each user that has a backup and is not in the database.

    A user that a killed restore left half-way is completed. `on_feeds` is called with the ids of the feeds
    that users subscribe to.
    """
    found = list(list_states(run.objects))
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
    plan = plan_subscriptions(subscriptions, stored_feeds(run.database, subscriptions))
    run.database.batch(restore_user(head, plan.subscriptions, plan.new, at=run.clock()))
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
    subscriptions: Sequence[KeptSubscription], stored: Iterable[Mapping[str, Any]]
) -> SubscriptionPlan:
    """The feeds that these subscriptions are of now, among the `stored` ones with their ids or URLs.

    A feed that feeds.yaml keeps to its owner now is not subscribed: a backup opens no feed.
    """
    rows = list(stored)
    by_id, by_url = {row["id"]: row for row in rows}, {row["url"]: row for row in rows}
    kept: dict[str, KeptSubscription] = {}
    new: dict[str, NewFeed] = {}
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
            kept.setdefault(row["id"], replace(one, feed_id=row["id"]))
        else:
            refused.append(f"{row['id']} is not open to users any more; let feeds.yaml say `shared: true`")
    # Two new feeds cannot have one URL.
    urls = {feed.url: feed.id for feed in reversed(new.values())}
    twice = {feed.id for feed in new.values() if urls[feed.url] != feed.id}
    return SubscriptionPlan(
        tuple(each for id, each in kept.items() if id not in twice),
        tuple(feed for feed in new.values() if feed.id not in twice),
        tuple(refused),
    )


def _new_feed(one: KeptSubscription) -> NewFeed | str:
    try:
        read = read_url(literal(one.url), {})
    except ValueError as error:
        return f"{one.feed_id}: {error}"
    if read.url != one.url:
        return f"{one.feed_id}: its URL has a password or a fragment in it"
    return NewFeed(id=one.feed_id, url=read.url, host=read.host)
