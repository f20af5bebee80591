"""All pages of the reader, as routers of the application."""

from fastapi import APIRouter

from rss_pipeline.api.pages import lists, login, static

ROUTERS: tuple[APIRouter, ...] = (
    static.router,
    login.router,
    lists.router,
)
