"""All pages of the reader, as routers of the application."""

from fastapi import APIRouter

from rss_pipeline.api.pages import (
    adding,
    apps,
    failing,
    feed_edit,
    first_user,
    folders,
    item,
    kept,
    lists,
    lists_of_feeds,
    login,
    marks,
    search,
    sessions,
    settings,
    static,
    statistics,
    tasks,
)

ROUTERS: tuple[APIRouter, ...] = (
    static.router,
    login.router,
    first_user.router,
    settings.router,
    sessions.router,
    apps.router,
    lists_of_feeds.router,
    adding.router,
    tasks.router,
    feed_edit.router,
    kept.router,
    folders.router,
    failing.router,
    marks.router,
    item.router,
    lists.router,
    search.router,
    statistics.router,
)
