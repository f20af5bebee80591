"""Refresh now, and the tasks that follow visits."""

from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.routers.answered import NOT_CHANGED, begun, json_of
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.reader.refresh import (
    Held,
    Queued,
    Task,
    TaskResult,
    VisitRunning,
    refresh_feed,
    task,
)

router = api_router("tasks")


class Refresh(BaseModel):
    """A visit that is about to be made."""

    status: Literal["queued", "already_running"]
    task_id: str = Field(description="For `GET /api/tasks/{id}`. Requests for one feed share a task.")
    delay_seconds: int = Field(
        description="Seconds until the visit begins, about: a minute after the feed's last answer at the"
        " soonest."
    )

    model_config = {
        "json_schema_extra": {
            "example": {"status": "queued", "task_id": "5f2b9d3c1a7e4f60", "delay_seconds": 2}
        }
    }


class PageEntry(BaseModel):
    """An entry of a page."""

    title: str | None
    link: str | None
    date: str | None


class PageChoice(BaseModel):
    """Another list of the page, or another link of the same entries."""

    name: str
    kind: Literal["list", "link"]
    count: int
    entries: list[PageEntry] = Field(description="The first five.")


class PageOffer(BaseModel):
    """The entries of a page without a feed; `page: true` of a new feed takes them."""

    url: str
    title: str | None
    is_sure: bool = Field(description="It is certainly a list of entries.")
    count: int
    entries: list[PageEntry] = Field(description="The first five.")
    evidence: list[str]
    choices: list[PageChoice] = Field(
        default=[], description="What may be collected instead: `page: true` with its name as `choice`."
    )


class TaskOutcome(BaseModel):
    """The end of a task."""

    outcome: Literal["stored", "unchanged", "failed", "held", "refused", "subscribed", "known", "offered"] = (
        Field(
            description="`stored`: new items; `unchanged`: none; `subscribed`, `known`: the feed of an"
            " address, which was new or not; `offered`: it has none, and `page` is what would be collected;"
            " `held`: no request before `until`; `failed`, `refused`: `error` says why."
        )
    )
    items_new: int
    milliseconds: int = Field(description="From the request to its end.")
    error_kind: str | None
    error: str | None
    what_to_do: str | None
    until: str | None
    page: PageOffer | None = None


class TaskJson(BaseModel):
    """A request for a visit. It can be read for 24 hours after its end."""

    id: str
    kind: Literal["refresh", "first", "find"] = Field(
        description="`refresh`; `first`: the first visit of a feed; `find`: the search for an address' feed."
    )
    feed_id: str | None = Field(description="For `find`, null until the feed is found.")
    url: str | None = Field(description="The address of `find`.")
    state: Literal["queued", "running", "done"]
    requested_at: str
    begins_at: str | None = Field(
        description="When it is looked at, where more than 60 new addresses came within an hour, or when the"
        " visit begins, a minute after the feed's last answer."
    )
    finished_at: str | None
    result: TaskOutcome | None = Field(description="Null until the state is `done`.")

    model_config = {
        "title": "Task",
        "json_schema_extra": {
            "example": {
                "id": "5f2b9d3c1a7e4f60",
                "kind": "refresh",
                "feed_id": "daily-planet",
                "url": None,
                "state": "done",
                "requested_at": "2026-11-22T12:00:00Z",
                "begins_at": None,
                "finished_at": "2026-11-22T12:00:03Z",
                "result": {
                    "outcome": "stored",
                    "items_new": 2,
                    "milliseconds": 2810,
                    "error_kind": None,
                    "error": None,
                    "what_to_do": None,
                    "until": None,
                    "page": None,
                },
            }
        },
    }


@router.post(
    "/feeds/{id}/refresh",
    operation_id="refresh_feed",
    status_code=202,
    response_model=Refresh,
    responses=documented(
        "not_signed_in", "foreign_origin", "not_found", "feed_on_hold", "conflict", "too_many_requests"
    ),
)
async def refresh(caller: SignedIn, id: str) -> Response:
    """Visit a feed now. A second request joins the first. Where its server wants no requests, the answer is
    409 and `until` says how long."""
    settings = caller.stores.settings
    match begun(await caller.change(lambda own: refresh_feed(own, settings, id))):
        case Queued(task_id=task_id, delay_seconds=delay):
            return _refresh("queued", task_id, delay)
        case VisitRunning(task_id=task_id, delay_seconds=delay):
            return _refresh("already_running", task_id, delay)
        case Held(until=until, reason=reason):
            raise ApiError(
                "feed_on_hold",
                reason,
                retry_after=max(1, int((until - caller.clock()).total_seconds())),
                members={"until": instant(until)},
            )


@router.get(
    "/tasks/{id}",
    operation_id="read_task",
    response_model=TaskJson,
    responses=NOT_CHANGED | documented("not_signed_in", "foreign_origin", "not_found"),
)
async def read(request: Request, caller: SignedIn, id: str) -> Response:
    """The state or the result of a request for a visit."""
    found = await caller.ask(task(caller.user_id, id, now=caller.clock()))
    if found is None:
        raise ApiError(
            "not_found", "You have no task of this id.", what_to_do="A task is kept for 24 h after its end."
        )
    return json_answer(request, _task(found))


def _refresh(status: str, task_id: str, delay: int) -> Response:
    return json_of({"status": status, "task_id": task_id, "delay_seconds": delay}, status=202)


def _task(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "kind": task.kind,
        "feed_id": task.feed_id,
        "url": task.address,
        "state": task.state,
        "requested_at": instant(task.requested_at),
        "begins_at": None if task.begins_at is None else instant(task.begins_at),
        "finished_at": None if task.finished_at is None else instant(task.finished_at),
        "result": None if task.result is None else _result(task.result),
    }


def _result(result: TaskResult) -> dict[str, Any]:
    return {
        "outcome": result.outcome,
        "items_new": result.items_new,
        "milliseconds": result.milliseconds,
        "error_kind": result.error_kind,
        "error": result.error,
        "what_to_do": result.what_to_do,
        "until": None if result.until is None else instant(result.until),
        "page": result.offer,
    }
