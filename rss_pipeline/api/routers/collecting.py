"""The reasons why no feed is visited now."""

from pydantic import BaseModel, Field

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.problems import documented
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.reader.collecting import poll_trouble

router = api_router("collecting", "/collecting")


class Hindrance(BaseModel):
    """One thing that keeps feeds from being visited."""

    kind: str = Field(
        description="`offline`: no feed could be reached; `objects`: the store of documents cannot be used;"
        " `disk_full`; `polls_off`: polls are switched off; `not_running`: what visits feeds is not running."
        " There may be more kinds."
    )
    text: str = Field(description="The same as a sentence.")
    since: str | None = Field(description="Null where that is not known.")


class Collecting(BaseModel):
    """The state of the visits."""

    hindrances: list[Hindrance] = Field(description="What keeps feeds from being visited; mostly none.")


@router.get("", operation_id="get_collecting", responses=documented("not_signed_in", "foreign_origin"))
async def collecting(caller: SignedIn) -> Collecting:
    """All that keeps feeds from being visited now, as the pages of the reader say it."""
    found = await caller.hindrances(await caller.ask(poll_trouble()))
    return Collecting(
        hindrances=[
            Hindrance(
                kind=each.kind, text=each.text, since=None if each.since is None else instant(each.since)
            )
            for each in found
        ]
    )
