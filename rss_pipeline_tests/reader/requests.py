"""Requests for visits and searches, and their tasks, each in a batch of its own: without a session."""

from datetime import datetime

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.reader.refresh import (
    Queued,
    RefreshAnswer,
    Task,
    TooMany,
    VisitRunning,
    answer_to,
    new_request,
    new_search,
    search_answer,
    task,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.refresh.refresh_requests import (
    RequestKind,
    request_statements,
    search_request_statements,
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
    request = new_request(user_id, feed_id, now=clock(), kind=kind)
    return answer_to(request, database.batch(request_statements(request)), settings)


def request_search(
    database: Database,
    settings: Settings,
    *,
    user_id: str,
    address: str,
    clock: Clock,
    wishes: Wishes | None = None,
) -> Queued | VisitRunning | TooMany:
    request = new_search(user_id, address, now=clock(), wishes=wishes)
    return search_answer(request, database.batch(search_request_statements(request)), settings)


def read_task(database: Database, user_id: str, id: str, *, now: datetime) -> Task | None:
    query = task(user_id, id, now=now)
    return query.read(database.batch(query.statements))
