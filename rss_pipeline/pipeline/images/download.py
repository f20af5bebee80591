"""The download of stored items' images into the object store, in rounds, until nothing is due.

One round is round.py's, what a claim takes storage.images.image_claims'. Items are never changed by it.
"""

import shutil
import time

from rss_pipeline.errors import InfrastructureError, ObjectStoreUnavailable, ensure_room
from rss_pipeline.pipeline.dagster_tables import switched_off
from rss_pipeline.pipeline.hindrances import DOWNLOADING
from rss_pipeline.pipeline.images.round import Downloads, ImageRound
from rss_pipeline.pipeline.session.lease_keeper import LeaseKeeper
from rss_pipeline.pipeline.session.politeness import Politeness
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.settings import Settings

CLAIMED_AT_ONCE = 2000
RUN_SECONDS = 900.0
"""No round starts later than this; the sensor starts the next run if images wait."""


def download_images(
    *,
    run: RunContext,
    lease_keeper: LeaseKeeper,
    politeness: Politeness,
    spool: Spool,
    seconds: float = RUN_SECONDS,
) -> Downloads:
    """Download what is due, in rounds, until nothing is due or the time is over.

    Raises:
        ObjectStoreUnavailable, DatabaseUnavailable: what was not recorded by then is due again, and no
            attempt is counted for it.
        NetworkUnavailable: our own network is down; likewise, and due again in five minutes.
    """
    done = Downloads()
    until = time.monotonic() + seconds
    run.objects.probe()
    while time.monotonic() < until:
        require_room(run.settings)
        claim = lease_keeper.claim_images(now=run.clock(), limit=CLAIMED_AT_ONCE)
        # A hold that a feed's answer set is obeyed, and never changed, by requests for images.
        politeness.load(
            claim.holds.images,
            foreign=claim.holds.hosts,
            recent_hosts=claim.holds.recent_image_hosts,
            gaps=claim.holds.image_gaps,
        )
        if not claim.tasks:
            break
        run.progress.begin("download_images", len(claim.tasks))
        ImageRound(
            claim, done, run=run, politeness=politeness, spool=spool, lease_keeper=lease_keeper
        ).download()
        lease_keeper.end({claim.token})
    return done


def hindrance(settings: Settings) -> str | None:
    """A sentence on what keeps images from being downloaded; None where nothing does."""
    try:
        ensure_room(settings.home, settings.dagster_home)
        require_room(settings)
    except InfrastructureError as error:
        return str(error)
    if stopped := sorted(switched_off(settings).intersection(DOWNLOADING)):
        return f"switched off in Dagster's UI: {', '.join(stopped)}"
    return None


def require_room(settings: Settings) -> None:
    """Raise ObjectStoreUnavailable if a disk of this machine that images would fill is nearly full.

    Polls go on: their items are small, and would be lost.
    """
    if settings.objects.folder is None:
        return
    for path in (settings.objects.folder, settings.home):
        disk = shutil.disk_usage(path)
        least = max(disk.total * settings.image_free_percent / 100, settings.image_free_gb * 1e9)
        if disk.free < least:
            raise ObjectStoreUnavailable(
                f"no images are downloaded, so that polls go on: the disk of {path} has"
                f" {disk.free / 1e9:,.1f} GB free, and images need {least / 1e9:,.1f} GB (RSS_IMAGE_FREE_GB,"
                " RSS_IMAGE_FREE_PERCENT). Make room; the images that wait are downloaded then"
            )
