"""The changes that a user can make to a subscription (title, folder, interval, end) and to its address; and
its backups, for the owner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.asgi import Scope, header
from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.hosts import EVERY_ADDRESS, is_https
from rss_pipeline.api.pages.addresses import HOME, edit_url, feed_url, local, task_url, with_query
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.api.request_values import (
    LONGEST_INTERVAL,
    MAX_FOLDER_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    SHORTEST_INTERVAL,
)
from rss_pipeline.api.routers.answered import no_feed
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.collector.models.feed_names import events_path
from rss_pipeline.reader import edit as editing
from rss_pipeline.reader.accounts.users import is_owner
from rss_pipeline.reader.edit import (
    Direction,
    Edited,
    NotTheirs,
    OtherFeed,
    add_folders,
    address_rights,
    move_feed,
    remove_folders,
    rename_folder,
)
from rss_pipeline.reader.failures import failing_feeds
from rss_pipeline.reader.feed_queries import FeedRow, has_feed, star_count_of_feed, visits, with_visits
from rss_pipeline.reader.kept_documents import kept_document, kept_documents
from rss_pipeline.reader.query import together
from rss_pipeline.reader.refresh import Held, NotSubscribed, Queued, VisitRunning
from rss_pipeline.reader.subscribe import AddressRefused
from rss_pipeline.settings import Settings
from rss_pipeline.web.authority import own_authorities, read_authority

router = APIRouter(include_in_schema=False)

_NEW = timedelta(minutes=1)


@router.get("/feeds/{id}/edit")
async def form(request: Request, caller: SignedIn, id: str, subscribed: str = "") -> Response:
    """The form. `subscribed`: the user has just added this feed, or tried to add it again."""
    return await _form(request, caller, id, has_added=subscribed == "yes")


@router.post("/feeds/{id}/edit")
async def edit(request: Request, caller: SignedIn, id: str) -> Response:
    """Change title, folder, interval and full text, for this user only; and the address, if another one is
    given. A feed with another address is visited at once: its task is shown."""
    fields = await form_fields(request)
    wishes = read_wishes(fields)
    if isinstance(wishes, FormMistake):
        return await _form(request, caller, id, error=wishes.message)
    url, settings = fields.get("url", "").strip(), caller.stores.settings
    title, folder, interval = wishes.title, wishes.folder, wishes.wished_interval
    changes = editing.SubscriptionChanges(title=title, folder=folder, wished_interval=interval)
    if "has_full_text" in fields:
        changes["full_text"] = fields.get("full_text") == "yes"
    answer = await caller.change(lambda one: editing.edit_feed(one, settings, id, url=url or None, **changes))
    match answer:
        case Edited(visit=Queued(task_id=task_id) | VisitRunning(task_id=task_id)):
            return see_other(task_url(task_id))
        case Edited(visit=Held(until=until, reason=reason)):
            frame, _ = await read_frame(caller)
            title = "The address is changed; the next visit waits"
            return page(
                request, "held.html", frame=frame, title=title, feed_id=id, until=until, reason=reason
            )
        case AddressRefused(message=message):
            error = f"{message} Type the public address of a feed, without a password."
            return await _form(request, caller, id, error=error, given_url=url)
        case NotTheirs() | OtherFeed():
            error = f"{answer.message} {answer.what_to_do}"
            return await _form(request, caller, id, error=error, given_url=url)
        case NotSubscribed():
            raise no_feed()
    return see_other(local(fields.get("back"), feed_url(id)))


@router.get("/feeds/{id}/unsubscribe")
async def confirm(request: Request, caller: SignedIn, id: str) -> Response:
    """The question before a feed is unsubscribed: what goes with it."""
    frame, starred = await read_frame(caller, star_count_of_feed(caller.user_id, id))
    feed = _feed(frame.feeds, id)
    return page(
        request,
        "unsubscribe.html",
        frame=frame,
        title="Unsubscribe",
        feed=feed,
        starred=starred,
    )


@router.post("/feeds/{id}/unsubscribe")
async def unsubscribe(request: Request, caller: SignedIn, id: str) -> Response:
    """End the subscription, with its read states and stars."""
    fields = await form_fields(request)
    if not await caller.change(lambda one: editing.unsubscribe(one, [id])):
        raise no_feed()
    return see_other(local(fields.get("back"), HOME))


async def _form(
    request: Request,
    caller: AsyncCaller,
    id: str,
    *,
    has_added: bool = False,
    error: str | None = None,
    given_url: str | None = None,
) -> Response:
    frame, (rights, visit) = await read_frame(
        caller, together(address_rights(caller.user_id, id), visits([id]))
    )
    feed = _feed(with_visits(frame.feeds, visit), id)
    now: datetime = request.app.state.clock()
    return page(
        request,
        "feed_edit.html",
        frame=frame,
        title="Edit a feed",
        status=200 if error is None else 422,
        feed=feed,
        failure=next(iter(failing_feeds([feed])), None),
        error=error,
        given_url=given_url or feed.url,
        fixed=rights.fixed,
        has_added=has_added,
        is_new=now - feed.added_at < _NEW,
        intervals=offered_intervals(feed.wished_interval),
        is_owner=rights.is_owner,
        partition=partition_url(caller.stores.settings, request.scope, id) if rights.is_owner else None,
        edit_url=edit_url(id),
    )


def _feed(feeds: Sequence[FeedRow], id: str) -> FeedRow:
    found = next((feed for feed in feeds if feed.feed_id == id), None)
    if found is None:
        raise no_feed()
    return found


# The parts of a feed that only the owner sees: its partition in Dagster's UI, and its backups.


def partition_url(settings: Settings, scope: Scope, feed_id: str) -> str | None:
    """The address of a feed's events in Dagster's UI, as the browser of this request reaches it.

    On the machine itself, and through a tunnel to it, the UI is beside the reader. Elsewhere it has a name of
    its own (RSS_UI_HOSTS), or an address that it listens on; None where it has neither.
    """
    ui = _ui_url(settings, scope)
    return ui and f"{ui}{events_path(feed_id)}"


def _ui_url(settings: Settings, scope: Scope) -> str | None:
    host = read_authority(header(scope, b"host") or "")
    if host is not None and host in own_authorities(settings.reader_port, ()):
        return f"http://{host.host}:{settings.port}"
    if settings.ui_hosts:
        return f"{'https' if is_https(scope) else 'http'}://{settings.ui_hosts[0]}"
    if settings.ui_address != EVERY_ADDRESS and not settings.ui_address.startswith("127."):
        return f"http://{settings.ui_address}:{settings.port}"
    return None


# A user's preferences for a subscription, as the forms have them: own title, folder, interval.

INTERVALS: Mapping[int, str] = {
    900: "every 15 minutes",
    1_800: "every 30 minutes",
    3_600: "every hour",
    7_200: "every 2 hours",
    14_400: "every 4 hours",
    28_800: "every 8 hours",
    43_200: "every 12 hours",
    86_400: "once a day",
}
"""Seconds between visits that the forms offer. Programs may wish others."""


@dataclass(frozen=True, slots=True)
class FormMistake:
    """A value of a form that cannot be used; the sentence is for the user."""

    message: str


def read_wishes(fields: Mapping[str, str]) -> Wishes | FormMistake:
    """The wishes of the fields `title`, `folder` and `interval`; one that is empty is none."""
    title, folder = (fields.get(name, "").strip() or None for name in ("title", "folder"))
    if title is not None and len(title) > MAX_TITLE_CHARACTERS:
        return FormMistake(f"The title has more than {MAX_TITLE_CHARACTERS} characters.")
    if folder is not None and len(folder) > MAX_FOLDER_CHARACTERS:
        return FormMistake(f"The name of the folder has more than {MAX_FOLDER_CHARACTERS} characters.")
    text = fields.get("interval", "")
    interval = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
    if text and (interval is None or not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL):
        return FormMistake("The interval is between 15 minutes and a day.")
    return Wishes(
        title=title,
        folder=folder,
        wished_interval=interval,
        takes_offer=fields.get("page") == "yes",
        choice=fields.get("choice", "")[:40] or None,
        full_text=fields.get("full_text") == "yes",
    )


def offered_intervals(chosen: int | None) -> Mapping[int, str]:
    """The intervals to choose from, the chosen one among them."""
    if chosen is None or chosen in INTERVALS:
        return INTERVALS
    return dict(sorted({**INTERVALS, chosen: f"every {chosen // 60} minutes"}.items()))


# The backups of a feed, for the owner: a list, and each document as it was served.

_ON_A_PAGE = 25


@router.get("/feeds/{id}/backups")
async def backups(request: Request, caller: SignedIn, id: str, before: str | None = None) -> Response:
    """Backups, newest first."""
    frame, owns = await read_frame(caller, is_owner(caller.user_id))
    feed = next((each for each in frame.feeds if each.feed_id == id), None)
    if feed is None or not owns:
        raise _not_there()
    objects = caller.stores.objects
    found = await run_in_threadpool(kept_documents, objects, id, before=before, limit=_ON_A_PAGE)
    return page(request, "backups.html", frame=frame, title="Backups", feed=feed, found=found, before=before)


@router.get("/feeds/{id}/backups/{name}")
async def document(caller: SignedIn, id: str, name: str) -> Response:
    """A document as it was served, to be saved: a browser never shows it as a page of ours."""
    owns = await caller.ask(together(is_owner(caller.user_id), has_feed(caller.user_id, id)))
    if not all(owns):
        raise _not_there()
    body = await run_in_threadpool(kept_document, caller.stores.objects, id, name)
    if body is None:
        raise ApiError(
            "not_found",
            "This feed has no such backup.",
            what_to_do="Old backups are removed by the daily clean.",
        )
    headers = {
        "Content-Disposition": f'attachment; filename="{id}-{name.replace(":", "")}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-store",
    }
    return Response(body, headers=headers, media_type="application/octet-stream")


def _not_there() -> ApiError:
    return ApiError(
        "not_found",
        "This page is only there for the owner of the reader, and for feeds that the owner reads.",
        what_to_do="The owner is the user who was added first.",
    )


FOLDERS = "/settings/folders"


@router.get(FOLDERS)
async def all_folders(request: Request, caller: SignedIn) -> Response:
    """All folders."""
    return await _folders(request, caller)


@router.get(f"{FOLDERS}/one")
async def one_folder(request: Request, caller: SignedIn, name: str = "") -> Response:
    """One folder with its feeds in their order; without a name the feeds in no folder."""
    return await _folder(request, caller, name)


@router.post(f"{FOLDERS}/add")
async def add(request: Request, caller: SignedIn) -> Response:
    """Make a folder."""
    name = (await form_fields(request)).get("name", "").strip()
    if (error := _mistake(name)) is not None:
        return await _folders(request, caller, error=error)
    await caller.change(lambda own: add_folders(own, [name]))
    return see_other(FOLDERS)


@router.post(f"{FOLDERS}/rename")
async def rename(request: Request, caller: SignedIn) -> Response:
    """Rename a folder; with the name of another one, the two become one."""
    fields = await form_fields(request)
    name, new = fields.get("name", ""), fields.get("new", "").strip()
    if (error := _mistake(new)) is not None:
        return await _folder(request, caller, name, error=error)
    await caller.change(lambda own: rename_folder(own, name, new))
    return see_other(with_query(f"{FOLDERS}/one", {"name": new}))


@router.post(f"{FOLDERS}/remove")
async def remove(request: Request, caller: SignedIn) -> Response:
    """Remove a folder; its feeds stay."""
    name = (await form_fields(request)).get("name", "")
    await caller.change(lambda own: remove_folders(own, [name]))
    return see_other(FOLDERS)


@router.post(f"{FOLDERS}/order")
async def order(request: Request, caller: SignedIn) -> Response:
    """Move a feed up or down within its folder."""
    fields = await form_fields(request)
    direction: Direction = "up" if "up" in fields else "down"
    id = fields.get(direction, "")
    await caller.change(lambda own: move_feed(own, id, direction))
    return see_other(with_query(f"{FOLDERS}/one", {"name": fields.get("name", "")}))


def _mistake(name: str) -> str | None:
    if not name:
        return "Type a name for the folder."
    if len(name) > MAX_FOLDER_CHARACTERS:
        return f"The name has more than {MAX_FOLDER_CHARACTERS} characters."
    return None


async def _folders(request: Request, caller: AsyncCaller, *, error: str | None = None) -> Response:
    frame, _ = await read_frame(caller)
    status = 200 if error is None else 422
    return page(request, "folders.html", frame=frame, title="Folders", status=status, error=error)


async def _folder(request: Request, caller: AsyncCaller, name: str, *, error: str | None = None) -> Response:
    frame, _ = await read_frame(caller)
    if name and name not in [each.name for each in frame.folders]:
        raise ApiError("not_found", "You have no such folder.", what_to_do="Your folders are under Settings.")
    return page(
        request,
        "folder_edit.html",
        frame=frame,
        title=name or "Feeds in no folder",
        status=200 if error is None else 422,
        folder=name,
        feeds=[feed for feed in frame.feeds if feed.folder == (name or None)],
        error=error,
    )


_MOST_SHOWN = 200


@router.get("/failing")
async def failing(request: Request, caller: SignedIn) -> Response:
    """Feeds with a failed last visit, and those that are not visited at all."""
    frame, owns = await read_frame(caller, is_owner(caller.user_id))
    failing = [feed for feed in frame.feeds if feed.last_visit_failed]
    visited = with_visits(failing, await caller.ask(visits([feed.feed_id for feed in failing])))
    found = failing_feeds(visited)
    failures = found[:_MOST_SHOWN]
    settings, scope = caller.stores.settings, request.scope
    partitions = {each.feed_id: partition_url(settings, scope, each.feed_id) for each in failures}
    return page(
        request,
        "failing.html",
        frame=frame,
        title="Feeds that fail",
        failures=failures,
        more=len(found) - len(failures),
        off=[feed for feed in frame.feeds if not feed.is_collected and feed.health != "unwatched"],
        partitions=partitions if owns else {},
        is_owner=owns,
    )
