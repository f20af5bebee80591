"""The addresses about the API itself: whether it is there, its OpenAPI document, and a page that lists it."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.docs_page import docs_page
from rss_pipeline.api.document import PUBLIC

router = APIRouter(tags=["about"])


class About(BaseModel):
    """The program that answers."""

    name: str = Field(description="Always rss_pipeline.")
    version: str


@router.get("/about", response_model=About, openapi_extra=PUBLIC)
async def about(request: Request) -> About:
    """The name and version of the reader: for a check that it answers. No store is used."""
    return About(name="rss_pipeline", version=request.app.version)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    return json_answer(request, request.app.openapi())


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    return docs_page(request, request.app.openapi())
