"""Requests for visits and searches, and their tasks, each in a batch of its own: without a session."""

from datetime import datetime

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.pipeline.reading.refresh import (
    Queued,
    RefreshAnswer,
    Task,
    TooMany,
    answer_to,
    new_ask,
    new_search,
    search_answer,
    task_of,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database, one
from rss_pipeline.storage.feeds.refresh_requests import (
    RequestKind,
    Wishes,
    ask_for_search_statements,
    ask_statements,
    task_statement,
)


def request_refresh(
    database: Database,
    settings: Settings,
    *,
    user_id: str,
    feed_id: str,
    clock: Clock,
    kind: RequestKind = "refresh",
) -> RefreshAnswer:
    ask = new_ask(user_id, feed_id, now=clock(), kind=kind)
    return answer_to(ask, database.batch(ask_statements(ask)), settings)


def request_search(
    database: Database,
    settings: Settings,
    *,
    user_id: str,
    address: str,
    clock: Clock,
    wishes: Wishes | None = None,
) -> Queued | TooMany:
    ask = new_search(user_id, address, now=clock(), wishes=wishes)
    return search_answer(database.batch(ask_for_search_statements(ask)), settings)


def read_task(database: Database, user_id: str, id: str, *, now: datetime) -> Task | None:
    [result] = database.batch([task_statement(user_id, id, now=now)])
    return task_of(one(result))
