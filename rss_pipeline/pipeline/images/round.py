"""One round of downloads: claimed images on their way to being requested, put and recorded.

How one image is requested is collector.fetch.image's; which rounds there are is download.py's.
"""

import logging
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rss_pipeline.collector.fetch.image import ImageOutcome, ImageRequest, KeptImage
from rss_pipeline.collector.fetch.image_body import Image
from rss_pipeline.collector.fetch.images import fetch_images
from rss_pipeline.collector.http.private_hosts import private_hosts
from rss_pipeline.collector.models.failure import NETWORK_KINDS, UNREQUESTED_KINDS, Failure
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import NotBegun
from rss_pipeline.collector.schedule.image_retries import images_network_is_down, next_image_attempt
from rss_pipeline.collector.schedule.next_visit import LONGEST_OUTAGE_PAUSE, OUTAGE_PAUSE
from rss_pipeline.errors import InfrastructureError, NetworkUnavailable
from rss_pipeline.pipeline.session.fetch_policy import images_policy
from rss_pipeline.pipeline.session.lease_keeper import LeaseKeeper
from rss_pipeline.pipeline.session.politeness import ImageHosts, Politeness
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.spool import Spool
from rss_pipeline.storage.images import closings
from rss_pipeline.storage.images.claims import ImageClaim, ImageTask, last_answer
from rss_pipeline.storage.images.closings import MAX_ATTEMPTS, Archived, Attempted, ImageRelease
from rss_pipeline.storage.images.objects import ImagePlace, StoredImage, put_image, stored_image
from rss_pipeline.storage.objects import public_url

logger = logging.getLogger(__name__)

_RECORDED_AT_ONCE = 200
_FAILURES_KEPT = 200


@dataclass(slots=True, kw_only=True)
class Downloads:
    """The result of a run."""

    archived: int = 0
    adopted: int = 0
    """The archived images that an interrupted run had already put into the store."""
    bytes: int = 0
    failed_attempts: int = 0
    failed: int = 0
    """Third attempts among these: no further request is made."""
    waiting: int = 0
    """Tasks that wait for the next day, for their feeds had their most bytes of images of this one."""
    failures: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Feed id, image URL, kind and sentence of the first 200 failed attempts."""


class ImageRound:
    """One claim on its way to being recorded. Outcomes come one at a time, in the run's own thread."""

    def __init__(
        self,
        claim: ImageClaim,
        done: Downloads,
        *,
        run: RunContext,
        politeness: Politeness,
        spool: Spool,
        lease_keeper: LeaseKeeper,
    ) -> None:
        self._run = run
        self._lease_keeper = lease_keeper
        self._politeness = politeness
        self._spool = spool
        self._token = claim.token
        self._tasks = {task.id: task for task in claim.tasks}
        self._done = done
        self._started_at = run.clock()
        self._archived: list[Archived] = []
        self._failed: list[tuple[ImageTask, Failure]] = []
        self._unbegun: list[ImageRelease] = []
        self._network_is_up = False
        self._has_public_place = public_url(run.objects, "images/x") is not None
        self._most = run.settings.image_mb_per_day * 1_000_000
        self._today: dict[str, int] = {}
        """Bytes of each feed's images on this day, those of this round included."""
        self._counting = threading.Lock()

    def download(self) -> None:
        try:
            self._adopt()
            self._let_wait()
            requests = [
                ImageRequest(
                    id=task.id,
                    url=task.url,
                    item_link=task.item_link,
                    sends_referer=task.sends_referer,
                    private=private_hosts(
                        task.feed_url, allow_private=task.allow_private, named=task.private_hosts
                    ),
                )
                for task in self._tasks.values()
            ]
            fetch_images(
                requests,
                policy=images_policy(self._run.settings),
                spool=self._spool.folder,
                keep=self._keep,
                is_wanted=self._is_wanted,
                is_leased=self._lease_keeper.is_leased,
                leases=ImageHosts(self._lease_keeper),
                clock=self._run.clock,
                on_done=self._take,
                pace=self._politeness.pace,
                holds=self._politeness.holds,
            )
        except BaseException:
            self._save_what_is_there()
            raise
        self._record_archived()
        self._end_if_our_network_is_down()
        self._record_failed()
        self._release(self._unbegun)

    def _adopt(self) -> None:
        """Record images that an interrupted run put into the store and did not record."""
        interrupted = [task for task in self._tasks.values() if task.was_interrupted]
        with ThreadPoolExecutor(self._run.settings.image_concurrency, "adopt") as threads:
            found = threads.map(lambda task: stored_image(self._run.objects, self._place(task)), interrupted)
            for task, there in zip(interrupted, found, strict=True):
                if there is not None:
                    del self._tasks[task.id]
                    self._done.adopted += 1
                    self._add(task.id, there)
                    self._run.progress.advance("download_images")

    def _keep(self, request: ImageRequest, image: Image) -> StoredImage:
        """Runs in a thread of the round, while the image's slot is held."""
        with self._counting:
            feed_id = self._tasks[request.id].feed_id
            self._today[feed_id] = self._today.get(feed_id, 0) + image.size
        return put_image(
            self._run.objects,
            self._place(self._tasks[request.id]),
            image.body,
            size=image.size,
            content_type=image.type.content_type,
            extension=image.type.extension,
            pixels=image.pixels,
        )

    def _let_wait(self) -> None:
        """Release the tasks of feeds that have had their most bytes of this day."""
        now = self._run.clock()
        feeds = {task.feed_id for task in self._tasks.values()}
        self._today = closings.bytes_today(self._run.database, sorted(feeds), now=now)
        full = [task.id for task in self._tasks.values() if not self._has_room(task.feed_id)]
        if not full:
            return
        tomorrow = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), now.tzinfo)
        reason = (
            f"the feed's images of {now:%Y-%m-%d} have {self._most // 1_000_000:,} MB, its most of a day"
            " (RSS_IMAGE_MB_PER_DAY): this one is downloaded on the next day"
        )
        self._release(
            ImageRelease(task_id=id, due_at=tomorrow, kind="day_full", reason=reason) for id in full
        )
        names = ", ".join(sorted({self._tasks[id].feed_id for id in full})[:5])
        logger.warning("%d images wait for tomorrow: %s", len(full), f"{reason}. Feeds: {names}")
        self._done.waiting += len(full)
        for id in full:
            del self._tasks[id]

    def _has_room(self, feed_id: str) -> bool:
        return self._today.get(feed_id, 0) < self._most

    def _is_wanted(self, request: ImageRequest) -> bool:
        """False once the feed has its most bytes: the next round lets the rest wait."""
        with self._counting:
            return self._has_room(self._tasks[request.id].feed_id)

    def _take(self, request: ImageRequest, outcome: ImageOutcome[StoredImage]) -> None:
        self._run.progress.advance("download_images")
        self._politeness.keep_holds()
        match outcome:
            case KeptImage(value=stored):
                self._network_is_up = True
                self._add(request.id, stored)
            case Failure() as failure:
                self._network_is_up |= failure.kind not in NETWORK_KINDS | UNREQUESTED_KINDS
                self._network_is_up |= failure.reached
                self._failed.append((self._tasks[request.id], failure))
                # Only the round's end shows whether a failure in the network is ours: none counts before.
                if self._network_is_up and len(self._failed) >= _RECORDED_AT_ONCE:
                    self._record_failed()
            case OnHold(hold=hold):
                self._unbegun.append(ImageRelease(task_id=request.id, due_at=hold.until))
            case NotBegun():
                self._unbegun.append(ImageRelease(task_id=request.id))

    def _add(self, task_id: str, stored: StoredImage) -> None:
        self._archived.append(
            Archived(task_id=task_id, key=stored.key, bytes=stored.size, pixels=stored.pixels)
        )
        if len(self._archived) >= _RECORDED_AT_ONCE:
            self._record_archived()

    def _record_archived(self) -> None:
        archived, self._archived = self._archived, []
        if not archived:
            return
        now = self._run.clock()
        # Topics show an archived image by its public URL, and else the publisher's.
        is_public = any(public_url(self._run.objects, each.key) is not None for each in archived)
        ours = closings.record_archived(
            self._run.database,
            self._token,
            archived,
            now=now,
            are_public=is_public,
        )
        lost = [each for each in archived if each.task_id not in ours]
        if lost:
            self._remove_of_deleted(lost)
        self._done.archived += len(ours)
        self._done.bytes += sum(each.bytes for each in archived if each.task_id in ours)

    def _remove_of_deleted(self, lost: Sequence[Archived]) -> None:
        """Remove images of items that were deleted while their images came: no task refers to them."""
        there = closings.still_there(self._run.database, [each.task_id for each in lost])
        keys = [each.key for each in lost if each.task_id not in there]
        for key, reason in self._run.objects.delete_many(keys).items():
            logger.warning("%s, an image of a deleted item, could not be removed: %s", key, reason)

    def _record_failed(self) -> None:
        failed, self._failed = self._failed, []
        if not failed:
            return
        now = self._run.clock()
        attempted = [
            Attempted(
                task_id=task.id,
                message=failure.message,
                next_attempt_at=next_image_attempt(task.attempts + 1, failure, now=now),
            )
            for task, failure in failed
        ]
        ours = closings.record_attempted(self._run.database, self._token, attempted, now=now)
        for task, failure in failed:
            if task.id in ours:
                self._done.failed_attempts += 1
                self._done.failed += task.attempts + 1 >= MAX_ATTEMPTS
                if len(self._done.failures) < _FAILURES_KEPT:
                    self._done.failures.append((task.feed_id, task.url, failure.kind, failure.message))

    def _end_if_our_network_is_down(self) -> None:
        if self._network_is_up or not self._failed:
            return
        tried = [task for task, _ in self._failed]
        postponed = [task.postponed_at for task in tried if task.postponed_at is not None]
        if not images_network_is_down(
            [(failure.host or task.host, failure.kind) for task, failure in self._failed],
            last_feed_answer=last_answer(self._run.database),
            since=min(postponed, default=self._started_at),
        ):
            return
        now = self._run.clock()
        # The outage has lasted so long: each pause is twice the last one.
        pause = min(now - min(postponed, default=now) + OUTAGE_PAUSE, LONGEST_OUTAGE_PAUSE)
        minutes = pause // timedelta(minutes=1)
        said = next(failure.message for _, failure in self._failed if failure.kind in NETWORK_KINDS)
        reason = f"our own network was down: no attempt is counted. {said}"
        self._release(
            (
                ImageRelease(task_id=task.id, due_at=now + pause, kind="our_outage", reason=reason)
                for task in tried
            ),
            # The beginning of an outage is kept: a feed that answers after it shows that it is over.
            now=min(postponed, default=now),
        )
        self._release(self._unbegun)
        raise NetworkUnavailable(
            f"Our own network is down: all {len(tried)} images failed in the network, and no feed has"
            f" answered since. They are due again in {minutes} minutes, no attempt is counted."
            f" The first one said: {said}"
        )

    def _release(self, releases: Iterable[ImageRelease], *, now: datetime | None = None) -> None:
        closings.release(self._run.database, self._token, releases, now=now or self._run.clock())

    def _save_what_is_there(self) -> None:
        """Record what a round has that was cut short, where the database still works."""
        try:
            self._record_archived()
            if self._network_is_up:
                self._record_failed()
        except InfrastructureError as error:
            logger.warning("images that were stored could not be recorded, and will be adopted: %s", error)

    def _place(self, task: ImageTask) -> ImagePlace:
        return ImagePlace(
            task_id=task.id,
            feed_id=task.feed_id,
            guid=task.guid,
            position=task.position,
            is_private=task.is_private and self._has_public_place,
        )
