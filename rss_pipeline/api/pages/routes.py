"""All pages of the reader, as routers of the application."""

from fastapi import APIRouter

from rss_pipeline.api.pages import adding, failing, feed_edit, folders, kept, lists, login, static, tasks

ROUTERS: tuple[APIRouter, ...] = (
    static.router,
    login.router,
    adding.router,
    tasks.router,
    feed_edit.router,
    kept.router,
    folders.router,
    failing.router,
    lists.router,
)
