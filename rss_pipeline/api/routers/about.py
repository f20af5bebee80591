"""The addresses about the API itself: whether it is there, its OpenAPI document, and a page that lists it."""

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.auth import signed_in
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.docs_page import docs_page
from rss_pipeline.api.openapi import PUBLIC
from rss_pipeline.api.problems import ApiError
from rss_pipeline.api.routing import api_router
from rss_pipeline.errors import InfrastructureError, NoSession
from rss_pipeline.reader.query import NOTHING

router = api_router("about")


class About(BaseModel):
    """The program that answers."""

    name: str = Field(description="Always rss_pipeline.")
    version: str | None = Field(description="Its version; null without a login.")


@router.get("/about", response_model=About, openapi_extra=PUBLIC)
async def about(request: Request) -> About:
    """The name of the reader, and its version for who is logged in: for a check that it answers. Without a
    login no store is used."""
    try:
        caller = await signed_in(request)
        await caller.ask(NOTHING)
    except (ApiError, NoSession, InfrastructureError):
        return About(name="rss_pipeline", version=None)
    return About(name="rss_pipeline", version=request.app.state.version)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    return json_answer(request, request.app.openapi())


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    return docs_page(request, request.app.openapi())
