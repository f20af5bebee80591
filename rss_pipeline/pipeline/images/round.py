"""One round of downloads: claimed images on their way to being requested, put and recorded.

How one image is requested is collector.fetch.image_visit's; which rounds there are is download.py's.
"""

import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.fetch.image_body import Image
from rss_pipeline.collector.fetch.image_round import fetch_images
from rss_pipeline.collector.fetch.image_visit import ImageOutcome, ImageRequest, KeptImage, LedTo, Referers
from rss_pipeline.collector.http.address_policy import PrivateHosts, private_hosts
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.clock import whole_second
from rss_pipeline.collector.models.failure import NETWORK_KINDS, UNREQUESTED_KINDS, Failure, FailureKind
from rss_pipeline.collector.models.hold import IMAGE_AGAIN_AFTER, OnHold, url_hash
from rss_pipeline.collector.models.outcome import NotBegun
from rss_pipeline.collector.schedule.image_retries import (
    counts,
    images_network_is_down,
    next_image_attempt,
    says_nothing,
)
from rss_pipeline.collector.schedule.next_visit import LONGEST_OUTAGE_PAUSE, OUTAGE_PAUSE
from rss_pipeline.errors import InfrastructureError, NetworkUnavailable, StorageRejected
from rss_pipeline.pipeline.session.fetch_policy import images_policy
from rss_pipeline.pipeline.session.lease_keeper import LeaseKeeper
from rss_pipeline.pipeline.session.politeness import ImageHosts, Politeness
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.storage.images import image_closings as closings
from rss_pipeline.storage.images.image_claims import (
    FeedAccess,
    ImageClaim,
    ImageTask,
    earlier_requests,
    last_answer,
)
from rss_pipeline.storage.images.image_closings import MAX_ATTEMPTS, Archived, Asked, Attempted, ImageRelease
from rss_pipeline.storage.images.image_tasks import BETWEEN_ATTEMPTS
from rss_pipeline.storage.images.places import (
    ImagePlace,
    StoredImage,
    put_image,
    stored_image,
    stored_pixels,
)
from rss_pipeline.storage.objects import public_url

logger = logging.getLogger(__name__)

_RECORDED_AT_ONCE = 200
_FAILURES_KEPT = 200
_COPIED_AT_ONCE = 4
"""Each has an image in memory."""


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


@dataclass(frozen=True, slots=True)
class _Failed:
    task: ImageTask
    failure: Failure
    again_at: datetime | None = None
    """Time of the next attempt, where the request was an earlier one, for another task."""
    asked: tuple[Asked, ...] = ()


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
        self._failed: list[_Failed] = []
        self._others: dict[str, list[ImageTask]] = {}
        """By the task that is requested: the others with its URL."""
        self._to_copy: dict[str, list[ImageTask]] = {}
        """By key of an image: the tasks that show it as well."""
        self._led: list[tuple[list[ImageTask], LedTo]] = []
        """Tasks of one URL whose redirects lead to one that is requested for another task."""
        self._led_by: dict[str, tuple[Asked, ...]] = {}
        """By task: the requests that led there."""
        self._referers = Referers(claim.referers)
        self._unbegun: list[ImageRelease] = []
        self._unturned: list[list[ImageTask]] = []
        """Without a turn, by URL."""
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
            self._share_earlier()
            fetch_images(
                [self._request(tasks) for tasks in self._by_url().values()],
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
                referers=self._referers,
                was_requested=self._was_requested,
            )
            self._copy()
        except BaseException:
            self._save_what_is_there()
            raise
        self._record_archived()
        closings.keep_referers(self._run.database, self._referers.changes(), now=self._run.clock())
        self._space_out()
        self._end_if_our_network_is_down()
        self._record_failed()
        self._share_targets()
        self._release(self._unbegun)

    def _by_url(self) -> dict[str, list[ImageTask]]:
        """The tasks to be requested by the hash of their URL. The first of each is requested, for all: one of
        the feed that opens most, for what it opens is used only where nothing else will do."""
        found: dict[str, list[ImageTask]] = {}
        for task in self._tasks.values():
            found.setdefault(_hash(task), []).append(task)
        for tasks in found.values():
            tasks.sort(key=lambda task: len(task.feed.private_hosts) + task.feed.allow_private, reverse=True)
            self._others[tasks[0].id] = tasks[1:]
        return found

    def _request(self, tasks: Sequence[ImageTask]) -> ImageRequest:
        return ImageRequest(
            id=tasks[0].id,
            url=tasks[0].url,
            item_link=next((task.item_link for task in tasks if task.item_link is not None), None),
            private=(opened := _private(tasks[0].feed)),
            attempts=max(task.attempts for task in tasks),
            # Nothing that a feed opens is shared, and a user who waits for the image gets a request.
            shares=not (opened.hosts or opened.networks) and not any(task.is_requested for task in tasks),
        )

    def _share_earlier(self) -> None:
        """Give tasks the result of the request of this day for their URL, if there was one and its failure is
        not due for another attempt. A task that has failed before waits for that attempt."""
        now = self._run.clock()
        hashes = {_hash(task) for task in self._tasks.values()}
        known = earlier_requests(self._run.database, sorted(hashes), now=now) if hashes else {}
        for task in list(self._tasks.values()) if known else ():
            earlier = known.get(_hash(task))
            if earlier is None or earlier.task_id == task.id:
                continue
            if not _may_share(task, earlier.inside, earlier.feed):
                continue
            if earlier.key is not None:
                self._to_copy.setdefault(earlier.key, []).append(task)
            elif earlier.failure is not None:
                if earlier.again_at <= now:
                    continue
                if task.is_requested and now - earlier.asked_at >= BETWEEN_ATTEMPTS:
                    continue
                if task.attempts:
                    self._unbegun.append(ImageRelease(task_id=task.id, due_at=earlier.again_at))
                else:
                    self._failed.append(_Failed(task, earlier.failure, again_at=earlier.again_at))
                self._run.progress.advance("download_images")
            del self._tasks[task.id]
        self._copy()
        self._record_failed()

    def _was_requested(self, target: str) -> bool:
        """Runs in threads of the round."""
        now = self._run.clock()
        found = earlier_requests(self._run.database, [target], now=now)
        return any(not each.inside and each.again_at > now for each in found.values())

    def _share_targets(self) -> None:
        """Give tasks the result of the request of this day for what their redirects lead to. Where there is
        none, for its turn did not come, their own URL is requested on the next day."""
        if not self._led:
            return
        now = self._run.clock()
        leads = {each: led.target for tasks, led in self._led for each in (_hash(tasks[0]), *led.targets)}
        ends = [(tasks, _end_of(led.target, leads)) for tasks, led in self._led]
        known = earlier_requests(self._run.database, sorted({end for _, end in ends if end}), now=now)
        for tasks, end in ends:
            earlier = known.get(end) if end else None
            if earlier is not None and earlier.inside:
                earlier = None
            failure = earlier.failure if earlier else None
            if end is None:
                failure = Failure(kind="redirect", message=f"{tasks[0].host} redirects in a loop.")
            if failure is not None:
                for task in tasks:
                    asked = tuple(replace(each, failed=failure.kind) for each in self._led_by[task.id])
                    self._failed.append(_Failed(task, failure, asked=asked))
            elif earlier is not None and earlier.key is not None:
                self._to_copy.setdefault(earlier.key, []).extend(tasks)
            else:
                self._unbegun += [self._tomorrow(task) for task in tasks]
        self._copy()
        self._record_archived()
        self._record_failed()

    def _tomorrow(self, task: ImageTask) -> ImageRelease:
        return ImageRelease(task_id=task.id, due_at=whole_second(self._run.clock() + IMAGE_AGAIN_AFTER))

    def _copy(self) -> None:
        """Put the image of another item's task into the place of each task that shows it as well."""
        copies, self._to_copy = self._to_copy, {}
        with ThreadPoolExecutor(_COPIED_AT_ONCE, "copy") as threads:
            for results in threads.map(self._copies, copies, copies.values()):
                for task, result in results:
                    if isinstance(result, StoredImage):
                        self._add(task.id, result, self._led_by.get(task.id, ()))
                    elif isinstance(result, Failure):
                        self._failed.append(_Failed(task, result))
                    elif result == "gone" and task.id not in self._tasks:
                        # The image of an earlier round is not there any more: this task is requested.
                        self._tasks[task.id] = task
                        continue
                    elif task.id in self._led_by:
                        self._unbegun.append(self._tomorrow(task))
                    else:
                        self._unbegun.append(ImageRelease(task_id=task.id))
                    self._run.progress.advance("download_images")

    def _copies(
        self, key: str, tasks: Sequence[ImageTask]
    ) -> list[tuple[ImageTask, StoredImage | Failure | Literal["gone", "full"]]]:
        """Runs in a thread of its own."""
        found = self._run.objects.get(key)
        if found is None:
            return [(task, "gone") for task in tasks]
        body, info = found
        results: list[tuple[ImageTask, StoredImage | Failure | Literal["gone", "full"]]] = []
        for task in tasks:
            if not self._take_room(task, info.size):
                results.append((task, "full"))
                continue
            try:
                stored = put_image(
                    self._run.objects,
                    self._place(task),
                    body,
                    size=info.size,
                    content_type=info.content_type or "application/octet-stream",
                    extension=key.rpartition(".")[2],
                    pixels=stored_pixels(info.metadata),
                )
            except StorageRejected as error:
                results.append((task, Failure(kind="storage_rejected", message=str(error))))
            else:
                results.append((task, stored))
        return results

    def _adopt(self) -> None:
        """Record images that an interrupted run put into the store and did not record."""
        interrupted = [task for task in self._tasks.values() if task.was_interrupted]
        with ThreadPoolExecutor(self._run.settings.image_concurrency, "adopt") as threads:
            found = threads.map(lambda task: stored_image(self._run.objects, self._place(task)), interrupted)
            for task, there in zip(interrupted, found, strict=True):
                if there is not None:
                    del self._tasks[task.id]
                    self._done.adopted += 1
                    # Nobody knows any more which of the private hosts that the feed opens were requested.
                    is_known = not task.feed.allow_private
                    self._add(task.id, there, (Asked(url_hash=_hash(task)),) if is_known else ())
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

    def _take_room(self, task: ImageTask, size: int) -> bool:
        """Count the bytes of an image; False if its feed has its most bytes already."""
        with self._counting:
            if not self._has_room(task.feed_id):
                return False
            self._today[task.feed_id] = self._today.get(task.feed_id, 0) + size
            return True

    def _is_wanted(self, request: ImageRequest) -> bool:
        """False once the feed has its most bytes: the next round lets the rest wait."""
        with self._counting:
            return self._has_room(self._tasks[request.id].feed_id)

    def _take(self, request: ImageRequest, outcome: ImageOutcome[StoredImage]) -> None:
        self._politeness.keep_holds()
        task, others = self._tasks[request.id], self._others[request.id]
        self._run.progress.advance("download_images")
        asked = _asked(task, outcome)
        shared, apart = self._shared(task, others, outcome)
        match outcome:
            case KeptImage(value=stored):
                self._network_is_up = True
                self._add(request.id, stored, asked)
                if shared:
                    self._to_copy[stored.key] = shared
            case Failure() as failure:
                self._network_is_up |= failure.kind not in NETWORK_KINDS | UNREQUESTED_KINDS
                self._network_is_up |= failure.proves_network
                was_asked = () if failure.kind in UNREQUESTED_KINDS else asked
                self._failed.append(_Failed(task, failure, asked=was_asked))
                self._failed += [_Failed(other, failure) for other in shared]
                self._run.progress.advance("download_images", len(shared))
                # Only the round's end shows whether a failure in the network is ours: none counts before.
                if self._network_is_up and len(self._failed) >= _RECORDED_AT_ONCE:
                    self._record_failed()
            case LedTo():
                self._network_is_up = True
                self._led.append(([task, *shared], outcome))
                self._led_by |= {each.id: asked if each is task else () for each in [task, *shared]}
            case OnHold(hold=hold, not_before=not_before):
                due_at = max(hold.until, not_before or hold.until)
                self._unbegun += [ImageRelease(task_id=each.id, due_at=due_at) for each in [task, *shared]]
            case NotBegun(not_before=None):
                self._unturned.append([task, *shared])
            case NotBegun(not_before=not_before):
                self._unbegun += [
                    ImageRelease(task_id=each.id, due_at=not_before) for each in [task, *shared]
                ]
        # The next round requests them, by what their feeds open themselves.
        self._unbegun += [ImageRelease(task_id=other.id) for other in apart]

    def _space_out(self) -> None:
        """Put off the tasks without a turn in this round: those of a host that limits the rate as far apart
        as it needs. Otherwise each claim would take all of them again, and request one, or none."""
        unturned, self._unturned = self._unturned, []
        last: dict[str, datetime] = {}
        now = self._run.clock()
        for tasks in unturned:
            gap, due_at = self._politeness.holds.gaps.of(tasks[0].host), None
            if gap is not None:
                last[gap.host] = last.get(gap.host, gap.asked_at) + gap.gap
                due_at = min(max(last[gap.host], now), now + IMAGE_AGAIN_AFTER)
            self._unbegun += [ImageRelease(task_id=task.id, due_at=due_at) for task in tasks]

    def _shared(
        self, task: ImageTask, others: Sequence[ImageTask], outcome: ImageOutcome[StoredImage]
    ) -> tuple[list[ImageTask], list[ImageTask]]:
        """The others for which the request of this task's URL counts, and those for which it does not."""
        if isinstance(outcome, Failure) and outcome.kind in UNREQUESTED_KINDS:
            opened = _private(task.feed)
            shared = [other for other in others if opened.covers(_private(other.feed))]
        else:
            inside = outcome.inside if isinstance(outcome, KeptImage | Failure) else frozenset()
            shared = [other for other in others if _may_share(other, inside, task.feed)]
        return shared, [other for other in others if other not in shared]

    def _add(self, task_id: str, stored: StoredImage, asked: tuple[Asked, ...] = ()) -> None:
        self._archived.append(
            Archived(task_id=task_id, key=stored.key, bytes=stored.size, pixels=stored.pixels, asked=asked)
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
        attempted: list[Attempted] = []
        held_up: list[ImageRelease] = []
        for each in failed:
            task, failure = each.task, each.failure
            if counts(failure, found_at=task.found_at, now=now):
                attempted.append(
                    Attempted(
                        task_id=task.id,
                        message=failure.message,
                        next_attempt_at=each.again_at
                        or next_image_attempt(task.attempts + 1, failure, now=now),
                        asked=each.asked,
                    )
                )
            else:
                held_up.append(
                    ImageRelease(
                        task_id=task.id,
                        due_at=each.again_at or next_image_attempt(1, failure, now=now),
                        kind="host_on_hold",
                        reason=failure.message,
                        asked=each.asked,
                    )
                )
        self._release(held_up)
        ours = closings.record_attempted(self._run.database, self._token, attempted, now=now)
        for each in failed:
            task, failure = each.task, each.failure
            if task.id in ours:
                self._done.failed_attempts += 1
                self._done.failed += task.attempts + 1 >= MAX_ATTEMPTS
                if len(self._done.failures) < _FAILURES_KEPT:
                    self._done.failures.append((task.feed_id, task.url, failure.kind, failure.message))

    def _end_if_our_network_is_down(self) -> None:
        if self._network_is_up or not self._failed:
            return
        tried = [each.task for each in self._failed]
        postponed = [task.postponed_at for task in tried if task.postponed_at is not None]
        if not images_network_is_down(
            [(each.failure.host or each.task.host, each.failure.kind) for each in self._failed],
            last_feed_answer=last_answer(self._run.database),
            since=min(postponed, default=self._started_at),
        ):
            return
        now = self._run.clock()
        # The outage has lasted so long: each pause is twice the last one.
        pause = min(now - min(postponed, default=now) + OUTAGE_PAUSE, LONGEST_OUTAGE_PAUSE)
        minutes = pause // timedelta(minutes=1)
        said = next(each.failure.message for each in self._failed if each.failure.kind in NETWORK_KINDS)
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


def _asked(task: ImageTask, outcome: ImageOutcome[StoredImage]) -> tuple[Asked, ...]:
    """The requests for a task: that of its URL, and of what redirects led to, if others may share it."""
    failed = _kind(outcome) if isinstance(outcome, Failure) else None
    inside = outcome.inside if isinstance(outcome, KeptImage | Failure) else frozenset()
    targets = outcome.targets if isinstance(outcome, KeptImage | Failure | LedTo) else ()
    return tuple(Asked(url_hash=each, failed=failed, inside=inside) for each in (_hash(task), *targets))


def _end_of(target: str, leads: Mapping[str, str]) -> str | None:
    """The URL to which a URL leads by other tasks' redirects; None if these lead in a loop."""
    passed: set[str] = set()
    while target in leads:
        if target in passed:
            return None
        passed.add(target)
        target = leads[target]
    return target


def _kind(failure: Failure) -> FailureKind:
    """The kind that is kept for the other tasks with the URL, without the status."""
    return "host_on_hold" if says_nothing(failure) else failure.kind


def _hash(task: ImageTask) -> str:
    """The form in which the URL of a task is kept as requested: URLs that make the same request share it."""
    with suppress(FetchError):
        return url_hash(request_url(task.url).wire_url)
    return url_hash(task.url)


def _private(feed: FeedAccess) -> PrivateHosts:
    return private_hosts(feed.url, allow_private=feed.allow_private, named=feed.private_hosts)


def _may_share(task: ImageTask, inside: Collection[str], feed: FeedAccess) -> bool:
    """True if the result of a request for that feed, of these private hosts, may be given to this task."""
    opened = _private(task.feed)
    return not inside or opened.includes(inside) or opened.covers(_private(feed))
