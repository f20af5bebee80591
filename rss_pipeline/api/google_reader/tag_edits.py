"""The tags that a client adds and removes by edit-tag, as the states read and starred."""

from collections.abc import Iterable
from dataclasses import dataclass

from rss_pipeline.api.google_reader.refused import not_understood
from rss_pipeline.api.google_reader.streams import Label, OtherState, State, Tag, read_tag
from rss_pipeline.api.google_reader.subscriptions.edits import folder_name

MAX_NEW_FOLDERS = 100
"""In one request."""

_UNREAD = (State("unread"), State("kept-unread"), State("fresh"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEdit:
    """The states that items get; None leaves one as it is."""

    is_read: bool | None = None
    is_starred: bool | None = None
    new_folders: tuple[str, ...] = ()
    """Folders to make, where no item is named (Readrops)."""


def read_edit(add: Iterable[str], remove: Iterable[str], *, has_items: bool) -> TagEdit:
    """The edit of repeated `a` and `r`.

    Newsboat marks by `a=read&r=kept-unread`, and back by `a=kept-unread&a=tracking-kept-unread&r=read`. A
    state that is added counts above one that is removed. Where both are added, the item stays unread, since
    that can be put right. Tags that no item has here (broadcast, like) change nothing.

    Raises:
        Refused: a tag that is not understood, a folder for an item, or no tag at all.
    """
    added, removed = [read_tag(text) for text in add if text], [read_tag(text) for text in remove if text]
    if not added and not removed:
        raise not_understood("No tag is named: the form has neither a nor r.")
    folders: list[str] = []
    is_read, is_starred = None, None
    for tag in removed:
        match tag:
            case State("read"):
                is_read = False
            case State("unread"):
                is_read = True
            case State("starred"):
                is_starred = False
            case _:
                _state_only(tag)
    for tag in added:
        match tag:
            case State("starred"):
                is_starred = True
            case Label() if not has_items:
                folders.append(folder_name(tag))
            case _:
                _state_only(tag)
    if any(tag in _UNREAD for tag in added):
        is_read = False
    elif State("read") in added:
        is_read = True
    if len(folders) > MAX_NEW_FOLDERS:
        raise not_understood(f"At most {MAX_NEW_FOLDERS} folders in one request.")
    return TagEdit(is_read=is_read, is_starred=is_starred, new_folders=tuple(folders))


def _state_only(tag: Tag) -> None:
    if not isinstance(tag, State | OtherState):
        raise not_understood(
            "A feed or a folder is no tag of items. Feeds have folders: subscription/edit with"
            " a=user/-/label/NAME puts one there."
        )
