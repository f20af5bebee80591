"""The page of preferences: a control for each one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from annotated_types import Ge, Le
from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.reader.accounts.preferences import Preferences, SomePreferences, change_preferences

router = APIRouter(include_in_schema=False)

PATH = "/settings"

_WORDS: Mapping[str, str] = {
    "theme": "Colours",
    "density": "Space between entries",
    "order": "First in a list",
    "dates": "Dates",
    "entries_per_page": "Entries on a page",
    "show_read": "Show entries that are read, too",
    "stories": "Show what several feeds write of one event as one entry",
    "stories_in_apps": "In apps, too: items for which another one stands vanish from them",
    "mark_read_on_open": "An entry that is opened is read",
    "show_failing_feed": 'Show a feed "Feeds that fail" in apps, with an entry for each feed that fails',
    "publisher_images": "Load images that are not archived from their publishers, who then see that you read"
    " (archived ones are as their publishers served them, not compressed)",
    "auto": "as the system has them",
    "light": "light",
    "dark": "dark",
    "comfortable": "comfortable",
    "compact": "compact",
    "published": "the entry with the newest date",
    "newest": "the entry that came in last",
    "oldest": "the entry that came in first",
    "relative": "as ages: 5 min, 3 h",
    "absolute": "as dates: 14 November 2026, 08:30",
}
"""For people: a preference's name, or one of its values. Others have the description in the API's words."""
_TRUE, _FALSE = "yes", "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A preference as a control of the form, with its value now."""

    name: str
    label: str
    value: object
    kind: Literal["choice", "number", "tick"]
    choices: Sequence[tuple[str, str]] = ()
    """Values and what they are for people."""
    least: int = 0
    most: int = 0


@router.get("/settings")
async def show(request: Request, caller: SignedIn, saved: str = "") -> Response:
    """All preferences as they are."""
    return await _page(request, caller, saved=bool(saved))


@router.post("/settings")
async def save(request: Request, caller: SignedIn) -> Response:
    """Set those preferences that the form has; all of them, or none."""
    given = _values(await form_fields(request))
    try:
        changes = SomePreferences.model_validate(given)
    except ValidationError as error:
        return await _page(request, caller, mistakes=[_label(str(one["loc"][0])) for one in error.errors()])
    await caller.change(lambda own: change_preferences(own, changes))
    return see_other(f"{PATH}?saved=yes")


async def _page(
    request: Request, caller: AsyncCaller, *, saved: bool = False, mistakes: Sequence[str] = ()
) -> Response:
    frame, _ = await read_frame(caller)
    return page(
        request,
        "settings.html",
        frame=frame,
        title="Preferences",
        controls=controls(frame.preferences),
        saved=saved,
        mistakes=mistakes,
        status=422 if mistakes else 200,
    )


def controls(preferences: Preferences) -> list[Control]:
    """A control for each preference, in the order of the model."""
    found = []
    for name, field in Preferences.model_fields.items():
        label, value = _label(name), getattr(preferences, name)
        if get_origin(field.annotation) is Literal:
            choices = [(each, _WORDS.get(each, each)) for each in get_args(field.annotation)]
            found.append(Control(name=name, label=label, value=value, kind="choice", choices=choices))
        elif field.annotation is bool:
            found.append(Control(name=name, label=label, value=value, kind="tick"))
        else:
            least = next(int(str(each.ge)) for each in field.metadata if isinstance(each, Ge))
            most = next(int(str(each.le)) for each in field.metadata if isinstance(each, Le))
            found.append(Control(name=name, label=label, value=value, kind="number", least=least, most=most))
    return found


def _label(name: str) -> str:
    field = Preferences.model_fields.get(name)
    return _WORDS.get(name) or (field.description if field and field.description else name).rstrip(".")


def _values(fields: Mapping[str, str]) -> dict[str, object]:
    """The values of the form's fields, each of its preference's type as far as the text can be one."""
    found: dict[str, object] = {}
    for name, text in fields.items():
        field = Preferences.model_fields.get(name)
        if field is None:
            # Of a page of another version.
            continue
        if field.annotation is bool:
            found[name] = {_TRUE: True, _FALSE: False}.get(text, text)
        elif field.annotation is int:
            found[name] = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
        else:
            found[name] = text
    return found
