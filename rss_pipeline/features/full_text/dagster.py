"""The job `fetch_articles`, which requests the articles that are due, the job for those that users wait for,
and the sensors that start them.

Jobs of their own, not a step of a poll: pages that fail delay no feed.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.feed_names import feed_name, short_title
from rss_pipeline.extras import ARTICLES
from rss_pipeline.features.full_text import sql
from rss_pipeline.features.full_text.service import Articles, fetch_articles
from rss_pipeline.orchestration import looks as awaiting
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.parts import Building, DagsterParts, Starts
from rss_pipeline.orchestration.poll_ops import SessionResource
from rss_pipeline.orchestration.queueing import MINUTES_TAGS, REFRESH_TAGS
from rss_pipeline.orchestration.recent_runs import recent_runs
from rss_pipeline.orchestration.ui_labels import OWNERS, kind
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, reason_to_wait
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.feeds.feed_row import feed_titles

FETCH_ARTICLES, FETCH_REQUESTED = "fetch_articles", "fetch_requested_articles"
BETWEEN = timedelta(minutes=10)
"""Between two runs: articles of several polls share one."""


@dg.op(name="articles", out=dg.Out(dg.Nothing), tags=kind("http"))
def articles(context: dg.OpExecutionContext, session: SessionResource) -> dg.Output[None]:
    """Request the pages of items that are due, keep them, and show the articles that they have."""
    with run_step(context, session):
        return dg.Output(None, metadata=_metadata(fetch_articles(session), session.run.database))


@dg.op(name="requested_articles", out=dg.Out(dg.Nothing), tags=kind("http"))
def requested_articles(context: dg.OpExecutionContext, session: SessionResource) -> dg.Output[None]:
    """Request the pages that users of the reader wait for, and show them their articles. Which ones they are
    is in no event: it is what people read."""
    with run_step(context, session):
        done = fetch_articles(session, is_requested=True)
        return dg.Output(None, metadata=_counts(done))


def _metadata(done: Articles, database: Database) -> dict[str, Any]:
    titles = feed_titles(database, [*done.decisions, *(id for id, *_ in done.reasons)])
    columns = [dg.TableColumn(name) for name in ("feed", "title", "link", "reason")]
    records = [
        dg.TableRecord({"feed": id, "title": short_title(titles.get(id)), "link": link, "reason": why})
        for id, link, why in done.reasons
    ]
    table = dg.MetadataValue.table(records=records, schema=dg.TableSchema(columns=columns))
    return {
        "articles_wanted": done.wanted,
        **_counts(done),
        **{f"decided: {feed_name(id, titles.get(id))}": it.sentence for id, it in done.decisions.items()},
        **({"full_hosts": ", ".join(done.full_hosts)} if done.full_hosts else {}),
        **({"reasons": table} if records else {}),
    }


def _counts(done: Articles) -> dict[str, Any]:
    return {
        "articles_shown": done.shown,
        "pages_without_article": done.none,
        "articles_waiting": done.waiting,
    }


@dg.job(
    name=FETCH_ARTICLES,
    description=(
        "Requests the pages behind new items of feeds with `full_text` in feeds.yaml, each once, and shows"
        " their articles. The sensor `fetch_articles_when_due` starts it. A page that fails does not fail the"
        " run: a table has the reasons."
    ),
    tags=MINUTES_TAGS,
    owners=OWNERS,
)
def fetch_articles_job() -> None:
    articles()


@dg.job(
    name=FETCH_REQUESTED,
    description=(
        "Requests the pages of items of which users of the reader want the article, each once, and shows it"
        " to those who requested it. `rss-pipeline up` starts it at once, the sensor"
        " `fetch_requested_articles_when_due` where the reader is on another machine."
    ),
    tags=MINUTES_TAGS,
    owners=OWNERS,
)
def fetch_requested_articles_job() -> None:
    requested_articles()


def decide_requested(database: Database, instance: dg.DagsterInstance, now: datetime) -> Start | Wait:
    """Start a run or wait, by the articles that users wait for and the newest runs."""
    next_at = sql.next_requested(database)
    if next_at is None or next_at > now:
        return Wait(reason="No user waits for an article.", is_idle=True)
    if (missing := ARTICLES.missing) is not None:
        return Wait(reason=f"{missing}. {ARTICLES.fix}")
    runs = recent_runs(instance, FETCH_REQUESTED)
    return reason_to_wait(runs, leases.live_run_ids(database), now=now) or Start(
        reason="A user waits for an article."
    )


def decide_articles(database: Database, instance: dg.DagsterInstance, now: datetime) -> Start | Wait:
    """Start a run or wait, by the articles that are due and the newest runs."""
    if not sql.is_due(database, now=now):
        return Wait(reason="No article is due.", is_idle=True)
    if (missing := ARTICLES.missing) is not None:
        return Wait(reason=f"{missing}. {ARTICLES.fix}")
    return decide_run(recent_runs(instance, FETCH_ARTICLES), leases.live_run_ids(database), now=now)


def decide_run(runs: Sequence[JobRun], live_run_ids: Any, *, now: datetime) -> Start | Wait:
    """Start a run for due articles, unless one is under way or ended a moment ago; newest runs first."""
    if (wait := reason_to_wait(runs, live_run_ids, now=now)) is not None:
        return wait
    ended = runs[0].ended_at if runs else None
    if ended is not None and now - BETWEEN < ended <= now:
        return Wait(reason=f"The last run ended at {ended:%H:%M} UTC; the next one starts 10 minutes later.")
    return Start(reason="Articles are due.")


_WHEN_DUE = Starts(
    name="fetch_articles_when_due",
    job=fetch_articles_job,
    decide=lambda _: decide_articles,
    awaits=awaiting.feeds,
    concerns="feeds",
    seconds=lambda _: 300,
    description="Starts a run for articles of new items, at most one in 10 minutes.",
)


_WHEN_REQUESTED = Starts(
    name="fetch_requested_articles_when_due",
    job=fetch_requested_articles_job,
    decide=lambda _: decide_requested,
    awaits=awaiting.articles,
    concerns="feeds",
    description="Starts a run for articles that users of the reader wait for.",
    tags=REFRESH_TAGS,
)


def parts(of: Building) -> DagsterParts:
    """The jobs and their sensors."""
    return DagsterParts(
        jobs=[fetch_articles_job, fetch_requested_articles_job],
        sensors=[_WHEN_DUE.build(of), _WHEN_REQUESTED.build(of)],
    )
