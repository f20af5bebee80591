"""The images of stored items that a replay finds otherwise than the run that stored them.

The items with images that have no task are searched again by the replay. An image whose URL is resolved
against another base now keeps its task, with its place and its object, under its new URL.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.pipeline.replay.backup_visit import (
    FINDINGS_KEPT,
    BackupVisit,
    BackupVisits,
    Finding,
    Replayed,
)
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import read_chunks
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.storage.images import tasks
from rss_pipeline.storage.images.tasks import MovedImage
from rss_pipeline.storage.items.items import image_source
from rss_pipeline.storage.items.replay import known_rows, row_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReview:
    """The stored items of a backup with its rows in the spool, and the xml:base that each was stored with."""

    feed: Feed
    feed_link: str | None
    path: Path
    bases: Mapping[str, str | None]
    most: int | None
    """Images of one item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedImages:
    item_id: str
    urls: tuple[str, ...]
    former: Mapping[str, str]
    """By the URLs of now, those that some of them had when the item was stored."""


def review(task: ImageReview) -> list[ReviewedImages]:
    """The images of these items as they are found now; it runs in a parser process."""
    from rss_pipeline.collector.images.find import image_bases, item_images
    from rss_pipeline.collector.images.former_urls import former_base, former_url
    from rss_pipeline.collector.images.urls import usable_base

    found: list[ReviewedImages] = []
    for id, row in known_rows(read_chunks(task.path)).items():
        if id not in task.bases:
            continue
        item = image_source(row_of(row))
        base = usable_base(image_bases(item, task.feed_link, task.feed.url))
        former = former_base((task.bases[id], item.link, task.feed_link, task.feed.url))
        urls = item_images(item, task.feed_link, task.feed.url)[: task.most]
        pairs = ((url, former_url(url, base=base, former=former)) for url in urls)
        known = {url: old for url, old in pairs if old is not None and old not in urls}
        found.append(ReviewedImages(item_id=id, urls=urls, former=known))
    return found


def review_images(visits: BackupVisits, *, run: RunContext, pool: ParserPool) -> BackupVisits:
    """Give the tasks of moved images their new URLs, and add the items with further images to those that are
    searched; in a dry run, report these items alone."""
    reviews = dict(_reviews(visits, run.settings.images_per_item))
    done: dict[str, BackupVisit] = {visit.key: visit for visit in visits}
    keys = {id(task): key for key, task in reviews.items()}
    for task, result in pool.map(review, list(reviews.values())) if reviews else ():
        key = keys[id(task)]
        if isinstance(result, WorkerFailure):
            # What cannot be searched has no images, as when it was stored.
            logger.warning("%s: no review of its images: %s", key, result.message)
        else:
            done[key] = _reviewed(done[key], result, run)
    return [done[visit.key] for visit in visits]


def _reviews(visits: BackupVisits, most: int | None) -> Iterator[tuple[str, ImageReview]]:
    for visit in visits:
        outcome = visit.outcome
        if isinstance(outcome, Replayed) and outcome.stored and visit.feed.images:
            bases = {id: stored.base_url for id, stored in outcome.stored.items()}
            link, path = outcome.parsed.header.link, outcome.parsed.path
            yield visit.key, ImageReview(feed=visit.feed, feed_link=link, path=path, bases=bases, most=most)


def _reviewed(visit: BackupVisit, found: list[ReviewedImages], run: RunContext) -> BackupVisit:
    outcome = visit.outcome
    assert isinstance(outcome, Replayed)
    known = tasks.known_images(run.database, [each.item_id for each in found])
    moved: list[MovedImage] = []
    further: list[str] = []
    for each in found:
        if each.item_id not in known:
            continue
        urls = known[each.item_id].urls
        here = [
            MovedImage(item_id=each.item_id, former=old, url=new)
            for new, old in each.former.items()
            if old in urls and new not in urls
        ]
        moved += here
        is_searched = not known[each.item_id].is_pending
        if is_searched and not urls.issuperset({*each.urls} - {image.url for image in here}):
            further.append(each.item_id)
    if not visit.dry_run:
        tasks.move(run.database, moved, now=run.clock())
    changed = dict.fromkeys([*(image.item_id for image in moved), *further])
    others = [id for id in changed if not outcome.stored[id].differs]
    findings = [
        Finding(item_id=id, title=outcome.stored[id].title, what="differs", fields=("images",))
        for id in others
    ]
    reviewed = replace(
        outcome,
        new_ids=tuple(dict.fromkeys((*outcome.new_ids, *further))),
        items_differ=outcome.items_differ + len(others),
        items_repaired=outcome.items_repaired + (0 if visit.dry_run else len(others)),
        findings=tuple([*outcome.findings, *findings][:FINDINGS_KEPT]),
    )
    return replace(visit, outcome=reviewed)
