"""All pages of the reader, as routers of the application."""

from fastapi import APIRouter

from rss_pipeline.api.pages import render
from rss_pipeline.api.pages.account import apps, first_user, login, sessions, settings
from rss_pipeline.api.pages.feeds import feed_edit
from rss_pipeline.api.pages.feeds import task_pages as tasks
from rss_pipeline.api.pages.reading import item_page as item
from rss_pipeline.api.pages.reading import lists, marks
from rss_pipeline.features import FEATURES

ROUTERS: tuple[APIRouter, ...] = (
    render.router,
    login.router,
    first_user.router,
    settings.router,
    sessions.router,
    apps.router,
    tasks.router,
    feed_edit.router,
    # Its POST has a fixed word where the one of marks has a variable.
    item.router,
    marks.router,
    lists.router,
    *(part.load() for feature in FEATURES for part in feature.reader_pages),
)
