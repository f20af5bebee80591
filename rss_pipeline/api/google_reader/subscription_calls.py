"""The calls on subscriptions and folders: lists of both, edits, counts of unread items."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.responses import Response

from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.google_reader import failing
from rss_pipeline.api.google_reader.call import Call, SignedIn, signed_in
from rss_pipeline.api.google_reader.folded import read_as_wanted
from rss_pipeline.api.google_reader.forms import Fields
from rss_pipeline.api.google_reader.parameters import (
    READING_LIST,
    STARRED,
    Feed,
    FeedByUrl,
    FeedStream,
    Label,
    feed_stream,
    read_label,
    read_tag,
)
from rss_pipeline.api.google_reader.responses import RefusedCall, as_json, not_understood, ok
from rss_pipeline.api.request_values import MAX_FOLDER_CHARACTERS, MAX_TITLE_CHARACTERS, has_controls
from rss_pipeline.api.user_places import RETRY_SECONDS, UserFull
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.collector.registry.feed_url import completed, same_as
from rss_pipeline.reader.edit import (
    SubscriptionChanges,
    edit_feeds,
    remove_folders,
    rename_folder,
    unsubscribe,
)
from rss_pipeline.reader.failures import InApps, in_apps, read_failures
from rss_pipeline.reader.feed_queries import (
    FeedName,
    HiddenUnread,
    UnreadCount,
    feed_names,
    folders,
    hidden_unread,
    unread_counts,
)
from rss_pipeline.reader.item_queries import highest_number
from rss_pipeline.reader.query import NOTHING, Query, together
from rss_pipeline.reader.refresh import Queued, Task, TooMany, VisitRunning, task
from rss_pipeline.reader.subscribe import AddressRefused, KnownFeed, TooManyFeeds, subscribe_address

# The fields of subscription/edit as changes to feeds.

Action = Literal["subscribe", "edit", "unsubscribe"]

MAX_FEEDS = 500
"""Feeds of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEdit:
    """The change to one feed. A title or folder None stays as it is."""

    feed: Feed
    title: str | None = None
    folder: str | None = None
    left_folders: tuple[str, ...] = ()
    """The feed has no folder any more if it is in one of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionEdit:
    action: Action
    feeds: tuple[FeedEdit, ...]


def read_subscription_edit(fields: Fields) -> SubscriptionEdit:
    """The edit of repeated `s` and `t`, and of `a` and `r`, which are for all of these feeds.

    NetNewsWire moves a feed by `a` and `r` in one request. A feed is in one folder here, so the last `a`
    counts. Liferea adds `i=null`, which means nothing.

    Raises:
        Refused: no action or feed, or one that is not understood.
    """
    action = _action(fields.first("ac"))
    streams = [text for text in fields.all("s") if text.strip()]
    if not streams:
        raise not_understood("No feed is named: s is missing.")
    if len(streams) > MAX_FEEDS:
        raise not_understood(f"At most {MAX_FEEDS} feeds in one request.")
    entered, left = _labels(fields, "a"), _labels(fields, "r")
    titles = fields.all("t")
    edits = [
        FeedEdit(
            feed=_feed(text),
            title=_title(titles[n]) if n < len(titles) else None,
            folder=entered[-1] if entered else None,
            left_folders=left,
        )
        for n, text in enumerate(streams)
    ]
    return SubscriptionEdit(action=action, feeds=tuple(edits))


def folder_name(label: Label) -> str:
    """The name of a folder, if it can be stored.

    Raises:
        Refused: it is too long, or has control characters.
    """
    if len(label.name) > MAX_FOLDER_CHARACTERS or has_controls(label.name):
        raise not_understood(
            f"A folder's name has at most {MAX_FOLDER_CHARACTERS} characters, and no control character."
        )
    return label.name


def _action(text: str | None) -> Action:
    match text:
        case "subscribe" | "edit" | "unsubscribe":
            return text
    raise not_understood("ac is one of subscribe, edit, unsubscribe.")


def _feed(text: str) -> Feed:
    tag = read_tag(text)
    if not isinstance(tag, FeedStream | FeedByUrl):
        raise not_understood("s is no feed: give feed/ID or feed/URL.")
    return tag


def _labels(fields: Fields, name: str) -> tuple[str, ...]:
    """The folders among the tags; a state says nothing of a feed."""
    tags = [read_tag(text) for text in fields.all(name) if text.strip()]
    return tuple(folder_name(tag) for tag in tags if isinstance(tag, Label))


def _title(text: str) -> str | None:
    title = " ".join(text.split())
    if len(title) > MAX_TITLE_CHARACTERS or has_controls(title):
        raise not_understood(
            f"A title has at most {MAX_TITLE_CHARACTERS} characters, and no control character."
        )
    return title or None


# The feeds that a user subscribes to, as calls look them up.


@dataclass(frozen=True, slots=True)
class AllFeeds:
    """All feeds of a user."""

    rows: Sequence[FeedName]

    def find(self, feed: Feed) -> FeedName | None:
        """The feed with this id or address, if the user subscribes to it."""
        if isinstance(feed, FeedStream):
            return next((row for row in self.rows if row.feed_id == feed.id), None)
        wanted = _same_as(feed.url)
        return next((row for row in self.rows if _same_as(row.url) == wanted), None)

    def known(self, feed: Feed) -> FeedName:
        """The same.

        Raises:
            Refused: the user does not subscribe to it; the answer says nothing of what others subscribe to.
        """
        row = self.find(feed)
        if row is None:
            raise RefusedCall(404, "You do not subscribe to this feed.")
        return row


async def read_feeds(session: SignedIn) -> AllFeeds:
    """The feeds of the caller, in the user's order."""
    return AllFeeds(await session.ask(feed_names(session.user_id)))


async def feed_id_of(session: SignedIn, feed: Feed) -> str:
    """The id of a feed by its stream.

    Raises:
        Refused: it is named by its address, and the user does not subscribe to it.
    """
    if isinstance(feed, FeedByUrl):
        return (await read_feeds(session)).known(feed).feed_id
    return feed.id


def _same_as(url: str) -> str:
    try:
        return same_as(completed(url))
    except ValueError:
        return url


async def subscription_list(call: Call) -> Response:
    """subscription/list: newsboat ends where `categories` is missing, Capy Reader where `htmlUrl` is null."""
    session = signed_in(call)
    listed, read = await session.ask(together(feed_names(session.user_id), read_failures(session.user_id)))
    found = [_subscription(row) for row in listed]
    if read is not None:
        found.append(_failing_subscription(call))
    return json_answer(call.request, {"subscriptions": found})


async def tag_list(call: Call) -> Response:
    """tag/list: `folder` is the only type. Readrops and RSS Guard take no other, and Capy Reader fails at one
    that it does not know."""
    session = signed_in(call)
    names = await session.ask(folders(session.user_id))
    tags: list[dict[str, str]] = [{"id": str(STARRED)}]
    tags += [{"id": str(Label(name)), "type": "folder"} for name in names]
    return json_answer(call.request, {"tags": tags})


async def unread_count(call: Call) -> Response:
    """unread-count, for feeds, folders and all. Its numbers have been shown, as those of a listing."""
    session = signed_in(call)
    user_id = session.user_id

    def query(is_folded: bool) -> Query[tuple[Sequence[UnreadCount], int, HiddenUnread | None, InApps]]:
        hidden: Query[HiddenUnread | None] = NOTHING.then(lambda _: None)
        if is_folded:
            hidden = hidden_unread(user_id).then(lambda found: found)
        return together(unread_counts(user_id), highest_number(), hidden, in_apps(user_id))

    counted, top, hidden, wishes = await session.run(
        lambda caller: read_as_wanted(caller, session.service.named, query, lambda found: found[3])
    )
    if hidden is not None:
        less = hidden.of_feeds
        counted = [each._replace(unread=each.unread - less.get(each.feed_id, 0)) for each in counted]
    own = await failing.failing_of(session, wishes.read_failures)
    session.service.seen.show(session.session_id, str(READING_LIST), top)
    counts = [*counted]
    if own.is_shown:
        unread = sum(not entry.is_read for entry in own.entries)
        newest = max((entry.number for entry in own.entries), default=0)
        counts.append(UnreadCount(feed_id=failing.STREAM.id, folder=None, unread=unread, newest=newest))
    in_folders: dict[str, list[UnreadCount]] = {}
    for each in counts:
        if each.folder is not None:
            in_folders.setdefault(each.folder, []).append(each)
    found = [_count(str(READING_LIST), counts)]
    found += [_count(str(Label(name)), in_folders[name]) for name in sorted(in_folders)]
    found += [_feed_count(each) for each in counts]
    return as_json({"max": found[0]["count"], "unreadcounts": found})


async def subscription_edit(call: Call) -> Response:
    """POST subscription/edit: subscribe, edit, unsubscribe; each may be repeated."""
    session = signed_in(call)
    edit = read_subscription_edit(call.fields)
    if edit.action == "subscribe":
        # Of many, each could wait for as long as a client waits for all.
        waits = len(edit.feeds) == 1
        for each in edit.feeds:
            await subscribe_feed(session, each.feed, title=each.title, folder=each.folder, waits=waits)
        return ok()
    feeds = await read_feeds(session)
    if edit.action == "edit":
        changes = _changes(feeds, edit.feeds)
        await session.change(lambda caller: edit_feeds(caller, changes))
    else:
        ids = _ends(feeds, edit.feeds)
        await session.change(lambda caller: unsubscribe(caller, ids))
    return ok()


async def quickadd(call: Call) -> Response:
    """POST subscription/quickadd: NetNewsWire looks for the id in subscription/list at once."""
    session = signed_in(call)
    text = call.fields.first("quickadd") or call.fields.first("s")
    if text is None:
        raise not_understood("No feed is named: quickadd is missing.")
    found = await subscribe_feed(session, FeedByUrl(text.removeprefix("feed/")))
    later = found.later if isinstance(found, Searching) else None
    if later is not None and later.begins_at is not None:
        raise RefusedCall(
            503,
            f"At most {later.queue.an_hour} new addresses of a user are requested within an hour. Of yours"
            f" {later.queue.waiting} wait, and this one is requested at {instant(later.begins_at)}. If there"
            " is a feed, it is among your subscriptions then.",
            headers={"Retry-After": str(later.delay_seconds)},
        )
    if not isinstance(found, Subscribed):
        raise RefusedCall(
            503,
            "The address is being looked at. If there is a feed, it is among your subscriptions in a minute.",
            headers={"Retry-After": "30"},
        )
    return as_json({"numResults": 1, "query": text, "streamId": str(FeedStream(found.feed_id))})


async def rename_tag(call: Call) -> Response:
    """POST rename-tag: s (or t) gets the name dest. Again, it finds the new one only, which is as well."""
    session = signed_in(call)
    old = read_label(call.fields.first("s") or call.fields.first("t"))
    new = folder_name(read_label(call.fields.first("dest")))
    if not await session.change(lambda caller: rename_folder(caller, old.name, new)):
        raise RefusedCall(404, "You have no folder of this name.")
    return ok()


async def disable_tag(call: Call) -> Response:
    """POST disable-tag, repeated s (or t): the folders go, their feeds stay."""
    session = signed_in(call)
    texts = call.fields.all("s") or call.fields.all("t")
    if not texts:
        raise not_understood("No folder is named: s is missing.")
    if len(texts) > MAX_FEEDS:
        raise not_understood(f"At most {MAX_FEEDS} folders in one request.")
    names = [read_label(text).name for text in texts]
    await session.change(lambda caller: remove_folders(caller, names))
    return ok()


def _subscription(row: FeedName) -> dict[str, object]:
    label = None if row.folder is None else Label(row.folder)
    return {
        "id": feed_stream(row.feed_id),
        "title": row.title or row.url,
        "categories": [] if label is None else [{"id": str(label), "label": label.name}],
        "url": row.url,
        "htmlUrl": row.link or row.url,
        "iconUrl": "",
    }


def _failing_subscription(call: Call) -> dict[str, object]:
    """Its URL is a page of ours: Liferea takes no two feeds with one URL, and RSS Guard none without."""
    page = str(call.request.base_url.replace(path="/greader"))
    return {
        "id": str(failing.STREAM),
        "title": failing.TITLE,
        "categories": [],
        "url": page,
        "htmlUrl": page,
        "iconUrl": "",
    }


def _count(stream: str, counts: Sequence[UnreadCount]) -> dict[str, object]:
    return {
        "id": stream,
        "count": sum([each.unread for each in counts]),
        "newestItemTimestampUsec": str(max([each.newest for each in counts], default=0)),
    }


def _feed_count(one: UnreadCount) -> dict[str, object]:
    return {
        "id": feed_stream(one.feed_id),
        "count": one.unread,
        "newestItemTimestampUsec": str(one.newest),
    }


def _changes(feeds: AllFeeds, edits: Sequence[FeedEdit]) -> dict[str, SubscriptionChanges]:
    found: dict[str, SubscriptionChanges] = {}
    for each in edits:
        row = feeds.known(each.feed)
        changes = found.setdefault(row.feed_id, SubscriptionChanges())
        if each.title is not None:
            changes["title"] = each.title
        if each.folder is not None or row.folder in each.left_folders:
            changes["folder"] = each.folder
    return found


def _ends(feeds: AllFeeds, edits: Sequence[FeedEdit]) -> list[str]:
    """The ids of these feeds; one that is not subscribed is left out."""
    if any(each.feed == failing.STREAM for each in edits):
        raise not_understood(f"{failing.TITLE!r} is switched off in the preferences of the reader.")
    return [row.feed_id for each in edits if (row := feeds.find(each.feed)) is not None]


# Clients want the feed's id at once, although an unknown address has to be looked at. A known feed is
# subscribed at once. For another address a run makes the request to the publisher; the client's request waits
# for it for a while, and only few wait at one time, so that the others find their place.

_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Subscribed:
    feed_id: str


@dataclass(frozen=True, slots=True)
class Searching:
    """The address is being looked at, or will be; what is found is subscribed."""

    later: Queued | None = None
    """It waits for a turn of its user, who has brought many new addresses."""


async def subscribe_feed(
    session: SignedIn, feed: Feed, *, title: str | None = None, folder: str | None = None, waits: bool = True
) -> Subscribed | Searching:
    """Subscribe to a feed; one that is subscribed already gets this title and folder.

    `waits`: for the search of an unknown address, for a while. A feed is named by its address: by an id only
    one's own, since an id could be guessed.

    Raises:
        Refused: the address can be none, there is no feed, or the user has too many.
    """
    if isinstance(feed, FeedStream):
        feed_id = (await read_feeds(session)).known(feed).feed_id
    else:
        wishes = Wishes(title=title, folder=folder)
        settings = session.service.stores.settings
        answer = await session.change(
            lambda caller: subscribe_address(caller, settings, feed.url, wishes=wishes)
        )
        match answer:
            case KnownFeed():
                feed_id = answer.feed_id
            case Queued():
                if answer.begins_at is not None:
                    return Searching(later=answer)
                return await _searched(session, answer.task_id) if waits else Searching()
            case VisitRunning():
                return await _searched(session, answer.task_id) if waits else Searching()
            case AddressRefused():
                raise not_understood(answer.message)
            case TooMany():
                headers = {"Retry-After": str(answer.retry_after)}
                raise RefusedCall(429, "Too many new addresses within an hour.", headers=headers)
            case TooManyFeeds(most=most):
                raise RefusedCall(403, f"There are {most:,} subscriptions, and no more can be had.")
    changes = SubscriptionChanges()
    if title is not None:
        changes["title"] = title
    if folder is not None:
        changes["folder"] = folder
    if changes:
        await session.change(lambda caller: edit_feeds(caller, {feed_id: changes}))
    return Subscribed(feed_id)


async def _searched(session: SignedIn, task_id: str) -> Subscribed | Searching:
    try:
        with session.service.waiting.one(session.user_id) as has_place:
            found = await _result(session, task_id) if has_place else None
    except UserFull:
        raise RefusedCall(
            429,
            "Two searches of yours are waited for already. This address is searched as well: ask again soon.",
            headers={"Retry-After": str(RETRY_SECONDS)},
        ) from None
    if found is None or found.result is None:
        return Searching()
    if found.feed_id is not None and found.result.outcome in ("subscribed", "known"):
        return Subscribed(found.feed_id)
    sentences = (found.result.error or "No feed was found at this address.", found.result.what_to_do)
    raise RefusedCall(422, " ".join(filter(None, sentences)))


async def _result(session: SignedIn, task_id: str) -> Task | None:
    """The task once it is done; None if it is not soon."""
    try:
        async with asyncio.timeout(session.service.patience_seconds):
            while True:
                now = session.service.clock()
                found = await session.ask(task(session.user_id, task_id, now=now))
                if found is not None and found.state == "done":
                    return found
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        return None
