"""One item in full: its own page, the part of it that opens inside a list, its earlier versions.

The page of an item marks it read by its GET where the user prefers so: it has to work without scripts, and to
do it again changes nothing. What a browser fetches ahead, or another site's page leads to, is not marked. The
part that opens inside a list marks nothing: the script does, by the JSON API.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote, urlsplit

import fastapi
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.conditional import CACHE_CONTROL
from rss_pipeline.api.pages.addresses import item_url, local
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import Frame, read_frame
from rss_pipeline.api.pages.reading.lists import Entry, read_together
from rss_pipeline.api.pages.reading.views import View, view_at
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.features import FEATURES
from rss_pipeline.features.feature import ItemNote
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.preferences import Preferences, own_preferences
from rss_pipeline.reader.bodies import Bodies, Body, BodyFor
from rss_pipeline.reader.images import missing_images, request_images
from rss_pipeline.reader.item_queries import ItemRow, Key, earlier_copies, item_keys, neighbours, read_with
from rss_pipeline.reader.item_queries import item as stored_item
from rss_pipeline.reader.mark import ItemMarks, mark_items, undoable
from rss_pipeline.reader.query import Query, together
from rss_pipeline.web.authority import headers_named

router = APIRouter(include_in_schema=False)

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}")
_MOST_CATEGORIES = 20
_UNITS = ("bytes", "KB", "MB", "GB")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """An enclosure as it is shown: played, or a link."""

    url: str
    name: str
    about: str
    """Its type and size."""
    player: str | None
    """`audio`, `video`, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An item with its body."""

    row: ItemRow
    body: Body
    files: Sequence[File]
    language: str | None
    """For the attribute `lang`; None where the feed gives none that can be one."""

    @property
    def categories(self) -> Sequence[str]:
        return self.row.categories[:_MOST_CATEGORIES]


@router.get("/items/{id}")
async def item(
    request: Request, caller: SignedIn, id: str, source: Annotated[str, fastapi.Query(alias="from")] = ""
) -> Response:
    """An item with links to the next and the last one of the list that it was opened from."""
    view = view_at(source)
    frame, (found, keys, marks, missing, notes) = await read_frame(
        caller,
        together(
            stored_item(caller.user_id, id),
            item_keys(caller.user_id, id),
            undoable(caller.user_id, now=caller.clock()),
            missing_images(caller.user_id, id, now=caller.clock()),
            _notes(caller.user_id, id),
        ),
    )
    row = _known(found)
    opens = frame.preferences.mark_read_on_open and _is_of_reader(request)
    beside = (await read_together(caller, view, frame.preferences, [row])).get(id, ())
    read = read_with(beside, id)
    is_marked = opens and (not row.is_read or any(each.unread for each in read))
    # An item that a mark of many made read stays read, once it was opened, when that mark is undone.
    if is_marked or (opens and marks):
        await caller.change_beside(
            lambda one: mark_items(one, [id, *(each.id for each in read)], ItemMarks(is_read=True)),
            what="an opened item was not marked read",
        )
    if is_marked and beside:
        frame, _ = await read_frame(caller)
    elif is_marked:
        frame = frame.after_reading(row.feed_id)
    bodies: Bodies = request.app.state.bodies
    key = keys.get(view.item_order(frame.preferences))
    opened, before, behind = await caller.run(lambda one: _open_in_list(one, bodies, row, key, view, frame))
    return await run_in_threadpool(
        page,
        request,
        "item.html",
        title=opened.body.title or "(no title)",
        frame=frame,
        view=view,
        item=opened,
        is_read=is_marked or Entry(row=row, together=beside).is_read,
        before=before,
        behind=behind,
        beside=[each for each in beside if each.id != id],
        listed=",".join(each.id for each in read),
        copied=",".join(each.id for each in earlier_copies(beside, id)),
        is_versioned=row.is_repaired,
        missing=missing,
        notes=notes,
        # Kept, unlike a list: to come back to it does not mark it read again.
        cache=CACHE_CONTROL,
    )


@router.post("/items/{id}/images")
async def load_images(request: Request, caller: SignedIn, id: str) -> Response:
    """Request the images of an item that are not archived yet."""
    fields = await form_fields(request)
    if not await caller.change(lambda own: request_images(own, id)):
        raise ApiError("not_found", "Your feeds have no such item.")
    return see_other(local(fields.get("back"), item_url(id)))


@router.get("/items/{id}/body")
async def body(request: Request, caller: SignedIn, id: str) -> Response:
    """The part of a page that opens inside a list."""
    bodies: Bodies = request.app.state.bodies
    preferences, found, missing, notes = await caller.ask_long(
        together(
            own_preferences(caller.user_id),
            stored_item(caller.user_id, id),
            missing_images(caller.user_id, id, now=caller.clock()),
            _notes(caller.user_id, id),
        )
    )
    row = _known(found)
    opened = await caller.run(lambda one: _opened(one, bodies, row, preferences))
    return page(
        request,
        "opened.html",
        title=opened.body.title,
        item=opened,
        is_versioned=opened.row.is_repaired,
        missing=missing,
        notes=notes,
    )


@router.get("/items/{id}/versions")
async def versions(request: Request, caller: SignedIn, id: str) -> Response:
    """The versions of an item before its publisher's document was read anew."""
    frame, found = await read_frame(caller, stored_item(caller.user_id, id))
    row = _known(found)
    bodies: Bodies = request.app.state.bodies
    kind = _kind(frame.preferences)
    earlier = await caller.run(lambda one: bodies.earlier(one.database, row.id, shown=kind))
    return page(
        request,
        "versions.html",
        title="Earlier versions",
        frame=frame,
        row=row,
        versions=earlier,
        language=language_of(row),
    )


def _notes(user_id: str, item_id: str) -> Query[list[ItemNote]]:
    """The notes of features on an item."""
    asked = [feature.item_note.load()(user_id, item_id) for feature in FEATURES if feature.item_note]
    return together(*asked).then(lambda found: [note for note in found if note is not None])


def _known(row: ItemRow | None) -> ItemRow:
    if row is None:
        raise ApiError(
            "not_found",
            "Your feeds have no such item.",
            what_to_do="Old items are removed after some time; starred ones stay.",
        )
    return row


def _open_in_list(
    caller: Caller, bodies: Bodies, row: ItemRow, key: Key | None, view: View, frame: Frame
) -> tuple[Opened, ItemRow | None, ItemRow | None]:
    """The item, and its neighbours in the list: the one before it and the one behind it."""
    page = view.page(frame.preferences, after=key)
    before, behind = caller.ask(neighbours(caller.user_id, view.filter(frame.preferences), page))
    return _opened(caller, bodies, row, frame.preferences), before, behind


def _opened(caller: Caller, bodies: Bodies, row: ItemRow, preferences: Preferences) -> Opened:
    made = bodies.all_of(caller.database, [row.body_key], shown=_kind(preferences))
    body = made.get(row.id, Body.of("", ""))
    return Opened(
        row=row,
        body=body,
        files=[file_of(each) for each in body.files],
        language=language_of(row),
    )


def _kind(preferences: Preferences) -> BodyFor:
    return "page_with_publishers" if preferences.publisher_images else "page"


def language_of(row: ItemRow) -> str | None:
    """The language of an item's feed as an HTML attribute has it (BCP 47), or None."""
    text = (row.language or "").strip().replace("_", "-")
    return text if _LANGUAGE.fullmatch(text) else None


def file_of(enclosure: Enclosure) -> File:
    """An enclosure as it is shown."""
    parts = urlsplit(enclosure.url)
    kind = (enclosure.type or "").lower()
    about = [text for text in (enclosure.type, _size(enclosure.length)) if text]
    return File(
        url=enclosure.url,
        name=unquote(parts.path.rstrip("/").rpartition("/")[2])[:120] or parts.netloc,
        about=", ".join(about),
        player=next((each for each in ("audio", "video") if kind.startswith(f"{each}/")), None),
    )


def _size(length: int | None) -> str | None:
    """`4 KB`; None for what feeds give where they know no size."""
    if not length or length < 0:
        return None
    size, unit = float(length), 0
    while size >= 1_000 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit and size < 10 else f"{size:.0f} {_UNITS[unit]}"


def _is_of_reader(request: Request) -> bool:
    """True for a page that its reader opens: no browser ahead of that, no other site's page."""
    purposes = headers_named(request.scope, b"sec-purpose") + headers_named(request.scope, b"purpose")
    sites = headers_named(request.scope, b"sec-fetch-site")
    return not any("prefetch" in each for each in purposes) and not {"cross-site", "same-site"} & {*sites}
