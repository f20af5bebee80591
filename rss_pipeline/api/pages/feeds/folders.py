"""The folders of a user: made, renamed, removed; and the order of feeds within them."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.fields import MAX_FOLDER_CHARACTERS
from rss_pipeline.api.pages.addresses import with_query
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.reader.edit import Direction, add_folders, move_feed, remove_folders, rename_folder

router = APIRouter(include_in_schema=False)

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
