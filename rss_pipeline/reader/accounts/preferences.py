"""The preferences of a user: how the reader shows things. They are one JSON text in the user's row."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rss_pipeline.collector.models.plain_text import whole_number
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.query import Query
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Result


class Preferences(BaseModel):
    """Every preference with its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    theme: Literal["auto", "light", "dark"] = Field(
        default="auto", description="Colours; auto follows the system."
    )
    density: Literal["comfortable", "compact"] = Field(
        default="comfortable", description="Space between entries."
    )
    order: Literal["published", "newest", "oldest"] = Field(
        default="published",
        description="Which entries are first: the newest by date of publication, the newest or the oldest by"
        " arrival.",
    )
    dates: Literal["relative", "absolute"] = Field(
        default="relative", description="Dates as ages or as dates."
    )
    entries_per_page: Annotated[int, Field(ge=10, le=200, strict=True), BeforeValidator(whole_number)] = (
        Field(default=50, description="Entries that are loaded at once.")
    )
    show_read: bool = Field(default=False, strict=True, description="Show entries that were read, too.")
    mark_read_on_open: bool = Field(default=True, strict=True, description="An entry that is opened is read.")
    stories: bool = Field(
        default=False,
        strict=True,
        description="What several feeds write of one event is one entry in lists of several feeds.",
    )
    stories_in_apps: bool = Field(
        default=False,
        strict=True,
        description="With `stories`: it is one entry in apps (Google Reader API), too. Items that other ones"
        " stand for vanish from them.",
    )
    show_failing_feed: bool = Field(
        default=False,
        strict=True,
        description="Show a feed of its own with the feeds that fail as entries.",
    )
    publisher_images: bool = Field(
        default=False,
        strict=True,
        description="Load images that are not archived from their publishers, who see your address then.",
    )


def _without_defaults(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        field.pop("default")


class SomePreferences(Preferences):
    """The preferences to set; those that are left out stay as they are."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)


def stored_preferences(text: str) -> Preferences:
    """Preferences from a user's row. What this version does not know, a newer one may have written: it keeps
    its default."""
    found = json.loads(text)
    known = {name: value for name, value in found.items() if name in Preferences.model_fields}
    while True:
        try:
            return Preferences(**known)
        except ValidationError as error:
            for mistake in error.errors():
                known.pop(str(mistake["loc"][0]), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnState:
    """A user's own row."""

    preferences: Preferences
    version: int
    """The version of what the user sees: it grows with each mark, wherever that is made."""


def own_preferences(user_id: str) -> Query[Preferences]:
    """The user's preferences."""
    return Query.of(users.preferences(user_id), lambda found: stored_preferences(found.values[0][0]))


def state_version(user_id: str) -> Query[int]:
    """The version of what the user sees."""
    return Query.of(users.preferences(user_id), lambda found: int(found.values[0][1]))


def own_state(user_id: str) -> Query[OwnState]:
    """The user's preferences, with that version."""

    def read(found: Result) -> OwnState:
        [(text, version)] = found.values
        return OwnState(preferences=stored_preferences(text), version=int(version))

    return Query.of(users.preferences(user_id), read)


def change_preferences(caller: Caller, changes: SomePreferences) -> Preferences:
    """Set the preferences that are given; return all. Raises NoSession where the session has ended."""
    given = changes.model_dump_json(exclude_unset=True)
    _, found = caller.write(
        users.change_preferences(caller.user_id, given), users.preferences(caller.user_id)
    )
    return stored_preferences(found.rows[0]["preferences"])
