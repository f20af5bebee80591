"""Statements on the folders of a user, for one batch each; all may be repeated.

A folder is there while a subscription names it, or while it has a row of its own: one that was made by name
stays when its last feed leaves it.
"""

from collections.abc import Sequence

from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.sql import compact, number

MAX_FOLDERS = 1_000
"""Folders of one user that were made by name."""


def list_folders(user_id: str) -> Statement:
    """A query for the names of all folders, for `folder_names`."""
    return Statement(
        """SELECT name FROM folders WHERE user_id = ?
        UNION SELECT folder FROM subscriptions WHERE user_id = ? AND folder IS NOT NULL ORDER BY 1""",
        [user_id, user_id],
        name="list folders",
        is_kept=True,
    )


def folder_names(result: Result) -> list[str]:
    """The folders that `list_folders` found, sorted."""
    return [row["name"] for row in result.rows]


def add_folders(user_id: str, names: Sequence[str]) -> Statement:
    """Make these folders, which may stay empty; beyond MAX_FOLDERS none is made."""
    return Statement(
        f"""INSERT INTO folders (user_id, name) SELECT ?, j.value FROM json_each(?) AS j
        WHERE {number("j.key")} + (SELECT count(*) FROM folders WHERE user_id = ?) < {MAX_FOLDERS}
        ON CONFLICT DO NOTHING""",
        [user_id, compact(list(names)), user_id],
        name="add folders",
    )


def rename_folder(user_id: str, name: str, new: str) -> list[Statement]:
    """Give a folder another name; where there is one of that name, the two become one."""
    if name == new:
        return []
    return [
        Statement(
            """INSERT INTO folders (user_id, name) SELECT user_id, ? FROM folders
            WHERE user_id = ? AND name = ? ON CONFLICT DO NOTHING""",
            [new, user_id, name],
            name="add renamed folder",
        ),
        _delete(user_id, name),
        Statement(
            "UPDATE subscriptions SET folder = ? WHERE user_id = ? AND folder = ?",
            [new, user_id, name],
            name="move feeds to renamed folder",
        ),
    ]


def remove_folder(user_id: str, name: str) -> list[Statement]:
    """Remove a folder; its feeds stay, in none."""
    return [
        _delete(user_id, name),
        Statement(
            "UPDATE subscriptions SET folder = NULL WHERE user_id = ? AND folder = ?",
            [user_id, name],
            name="take feeds out of folder",
        ),
    ]


def _delete(user_id: str, name: str) -> Statement:
    return Statement(
        "DELETE FROM folders WHERE user_id = ? AND name = ?", [user_id, name], name="delete folder"
    )
