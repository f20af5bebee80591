"""Doctor's checks of the feeds: one for each problem, with the feeds that have it.

The feeds are found by storage.reports.diagnostics.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import NOT_ANSWERING_FAILURES, FeedSpec
from rss_pipeline.errors import RegistryError
from rss_pipeline.pipeline.health.findings import Check, listing
from rss_pipeline.pipeline.registry.sync import unconfirmed
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.registered import registry_changes, registry_rows
from rss_pipeline.storage.reports import diagnostics

_USE = "feeds.yaml in use"
_BROUGHT = "Users who brought a feed"
_IMAGES = "waiting images"
UNREPORTED_AFTER = timedelta(hours=1)
IMAGES_LATE_AFTER = timedelta(hours=1)
"""The daemon begins to download new images after two minutes."""


def check_use(database: Database, specs: Sequence[FeedSpec], *, path: str) -> Check:
    """Check that the feeds of a feeds.yaml without mistakes can replace those in the database."""
    try:
        changes = registry_changes(specs, registry_rows(database), path=path)
    except RegistryError as error:
        return Check(_USE, "failure", "not in use: the feeds from before it stay", "\n".join(error.mistakes))
    if changes.is_suspicious:
        return Check(_USE, "warning", "not in use: the feeds from before it stay", unconfirmed(changes))
    if changes.is_empty:
        return Check(_USE, "ok", "its feeds are in use")
    return Check(_USE, "ok", "it was changed; the next poll uses it")


def check_images(waiting: diagnostics.ImagesWaiting, now: datetime) -> Check:
    """The images that wait. It is a warning once the oldest has waited for longer than a daemon lets it."""
    if waiting.due_since is None:
        return Check(_IMAGES, "ok", "none waits")
    many = "at least " if waiting.images == diagnostics.COUNTED_IMAGES else ""
    found = f"{many}{waiting.images:,} to download"
    if now - waiting.due_since < IMAGES_LATE_AFTER:
        return Check(_IMAGES, "ok", found)
    return Check(
        _IMAGES,
        "warning",
        f"{found}, one since {instant(waiting.due_since)}",
        "Is the daemon running? Where feeds are polled by cron, `rss-pipeline images` downloads them.",
    )


def feed_checks(database: Database, specs: Sequence[FeedSpec] | None, now: datetime) -> Iterator[Check]:
    """The checks of the feeds; `specs` are those of feeds.yaml, or None where it has mistakes."""
    found = diagnostics.feed_findings(database, unreported_before=now - UNREPORTED_AFTER)
    if specs is not None:
        with_access = {spec.id for spec in specs if not spec.access.is_open}
        listed = {spec.id for spec in specs}
        yield listing(
            "secrets",
            [id for id in found.need_access if id in listed and id not in with_access],
            "{} were polled with headers or a password that feeds.yaml no longer names",
            "every feed that needs headers or a password has them",
            "Put them back into feeds.yaml as ${NAME}, or leave it: the next sync treats them as feeds"
            " without a password.",
        )

    def fix(ids: Sequence[str], ours: str, of_users: str) -> str:
        """The advice for feeds of feeds.yaml, for those that users brought, or both."""
        brought = sum(id in found.of_users for id in ids)
        parts = [*([ours] if brought < len(ids) else []), *([of_users] if brought else [])]
        return " ".join(parts)

    yield listing(
        "failing feeds",
        found.not_answering,
        f"{{}} failed {NOT_ANSWERING_FAILURES} times in a row or more, or were never read",
        f"none failed {NOT_ANSWERING_FAILURES} times in a row, or before it was ever read",
        fix(
            found.not_answering,
            "`rss-pipeline status FEED` says why; correct the address in feeds.yaml or set `enabled: false`.",
            f"{_BROUGHT} see why on the page of failing feeds, and change its address there or unsubscribe.",
        ),
    )
    yield listing(
        "gone feeds",
        found.gone,
        "{} are gone for good, their publishers say (410)",
        "none",
        fix(
            found.gone,
            "They are visited once a day in case that was a mistake; remove them from feeds.yaml. Collected"
            " items stay.",
            f"{_BROUGHT} see it on the page of failing feeds, and may unsubscribe.",
        ),
    )
    yield listing(
        "moved feeds",
        found.moved,
        "{} moved for good and are requested at their new addresses",
        "none",
        fix(
            found.moved,
            "Nothing is lost as it is. `rss-pipeline status FEED` shows the address: write it into"
            " feeds.yaml, with the feed's `id`.",
            f"{_BROUGHT} need do nothing.",
        ),
    )
    yield listing(
        "redirecting feeds",
        found.redirecting,
        "{} answer with permanent redirects that are not adopted (yet)",
        "none",
        "Each is adopted after a while, unless it gives up https or leads away from the server that has a"
        " password. `rss-pipeline status FEED` shows the address.",
    )
    together = [id for ids in found.same for id in ids]
    pairs = [" and ".join(ids) for ids in found.same]
    yield listing(
        "shared URLs",
        pairs,
        "{} lead to one URL each",
        "no two feeds lead to one URL",
        fix(
            together,
            "A poll requests the URL once, but stores its items for each of these feeds: keep one of them in"
            " feeds.yaml.",
            f"{_BROUGHT} may unsubscribe from one of them.",
        ),
        things="pairs or groups of feeds",
    )
    yield listing(
        "feed warnings",
        found.warned,
        "{} have a warning",
        "none",
        "`rss-pipeline status FEED` shows it.",
    )
    yield listing(
        "keep unknown",
        found.keep_unknown,
        "{} were restored from backups that do not say how long items are kept, so none is removed",
        "it is known of every feed how long its items are kept",
        "Add them to feeds.yaml, with `keep` if it was set (`enabled: false` leaves them unpolled), or remove"
        " them with `rss-pipeline forget`.",
    )
    yield listing(
        "unreported",
        found.unreported,
        "{} have a change older than an hour that was not reported to Dagster",
        "every change was reported",
        "Is the daemon running? The next poll reports them: `rss-pipeline poll`.",
    )
    yield listing(
        "dead leases",
        found.leased_by_ended_runs,
        "{} are claimed by a run that ended without releasing them",
        "none",
        "The next poll claims them when they are due; if this happens again, look for killed runs in the UI.",
    )
    yield check_images(diagnostics.images_waiting(database), now)
