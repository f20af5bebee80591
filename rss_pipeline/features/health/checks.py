"""The table of health checks, and those of feeds and images.

A check is a function from what was read to a `Finding`: pure, so that a test passes values and a clock. Its
entry in `CHECKS` says how it is read and who shows it. Queries are in sql.py; the checks
of stores are in store_checks.py, those of other features in ../fleet/checks.py.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.feed import NOT_ANSWERING_FAILURES
from rss_pipeline.collector.models.feed_names import feed_name
from rss_pipeline.errors import RegistryError
from rss_pipeline.features import FEATURES
from rss_pipeline.features.health import sql as tables
from rss_pipeline.features.health import store_checks as stores
from rss_pipeline.features.health.model import (
    BACKUPS_LOOKED_AT,
    OFTEN,
    Check,
    Finding,
    Look,
    advice,
    counted,
    listed,
)
from rss_pipeline.features.health.sql import Concerned
from rss_pipeline.features.health.store_checks import public_objects
from rss_pipeline.pipeline.images import download
from rss_pipeline.pipeline.registry.sync import unconfirmed
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds.registered import registry_changes, registry_rows
from rss_pipeline.storage.images.image_claims import COUNTED_IMAGES, ImagesWaiting, images_waiting
from rss_pipeline.storage.installation import read_contact

IMAGES_LOOKED_AT = 20
"""The number of images that wait, of the longest due and of the last ones, at which each check looks where
reads are paid by the row."""
OVERDUE = timedelta(minutes=30)
"""A poll starts within four minutes and takes a few more."""
OVERDUE_LONG = timedelta(hours=6)
IMAGES_OVERDUE = timedelta(hours=6)
IMAGES_OVERDUE_LONG = timedelta(days=2)
GAPS_WITHIN = timedelta(days=7)
GIVEN_UP_WITHIN = timedelta(days=7)
MANY_GIVEN_UP = 10
"""Images of one feed within that time; a few are lost everywhere."""
IMAGES_LATE_AFTER = timedelta(hours=1)
"""The daemon begins to download new images after two minutes."""
_NAMED_BUSIEST = 6
_BROUGHT = "Users who brought a feed"


def no_feed_overdue(found: Concerned, *, now: datetime, to_add: str | None = None) -> Finding:
    """Feeds that have been due for longer than a poll takes to start. `to_add` is the advice of a feature."""
    name = "no_feed_overdue"
    lag = _lag(found, now)
    figures = {"feeds": found.count, "lag_seconds": round(lag.total_seconds())}
    if not found.count:
        return Finding(name, "ok", "Every feed is visited when it is due", figures=figures)
    return Finding(
        name,
        "failure" if lag >= OVERDUE_LONG else "warning",
        f"{_counted(found.count, 'has', 'have')} been due for more than {_span(OVERDUE)}, the longest for"
        f" {_span(lag)}",
        to_add
        or "Is the sensor `poll_feeds_when_due` on, do its runs fail or wait in the queue? Where polls run"
        " all the time, raise RSS_FETCH_CONCURRENCY or RSS_BATCH_SIZE.",
        figures,
        found.rows,
    )


def feeds_not_moved(moved: Concerned, redirecting: Concerned) -> Finding:
    """Feeds that have a new address for good, adopted or not."""
    name = "feeds_not_moved"
    figures = {"feeds": moved.count, "redirecting": redirecting.count}
    parts = [
        *([f"{_counted(moved.count, 'has', 'have')} moved for good"] if moved.count else []),
        *(
            [
                f"{_counted(redirecting.count, 'answers', 'answer')} with permanent redirects not adopted"
                " so far"
            ]
            if redirecting.count
            else []
        ),
    ]
    if not parts:
        return Finding(name, "ok", "Every feed is where feeds.yaml says", figures=figures)
    return Finding(
        name,
        "warning",
        "; ".join(parts),
        advice(
            [*moved.rows, *redirecting.rows],
            "Write the new address (`address` below, and in `rss-pipeline status FEED`) as `url` into"
            " feeds.yaml, with `id` as it is to keep the feed's items.",
            "Of a feed that users brought nothing is lost as it is.",
        ),
        figures,
        [*moved.rows, *redirecting.rows],
    )


def no_image_backlog(found: Concerned, *, now: datetime, hindrance: str | None = None) -> Finding:
    """Hosts with images that have waited for long; `hindrance` is what keeps all from being downloaded."""
    name = "no_image_backlog"
    lag = _lag(found, now)
    images = sum(int(row["images"]) for row in found.rows)
    many = f"{'At least ' if found.count > len(found.rows) else ''}{images:,} images"
    figures = {"hosts": found.count, "images": images, "lag_seconds": round(lag.total_seconds())}
    if not found.count and hindrance is not None:
        return Finding(name, "warning", f"No image is downloaded now: {hindrance}", figures=figures)
    if not found.count:
        return Finding(name, "ok", "Images are downloaded when they are due", figures=figures)
    return Finding(
        name,
        "failure" if lag >= IMAGES_OVERDUE_LONG else "warning",
        f"{many} of {counted(found.count, 'host', 'hosts')} have been due for more than"
        f" {_span(IMAGES_OVERDUE)}, the longest for {_span(lag)}",
        "Are the sensor `download_images_when_waiting` and the schedule `retry_images` on? Where downloads"
        " run all the time, raise RSS_IMAGE_CONCURRENCY or RSS_IMAGES_PER_HOST."
        if hindrance is None
        else f"No image is downloaded now: {hindrance}.",
        figures,
        found.rows,
    )


def _taken(row: Row) -> str:
    parts = [f"{int(row['items']):,} items"] if row["items"] else []
    parts += [f"{row[f'{kind}_mb']:,} MB of {kind}s" for kind in ("image", "backup") if row[f"{kind}_mb"]]
    return f"{feed_name(row['feed'], row['title'])} ({', '.join(parts) or 'little'})"


def no_feed_fills_the_disk(found: Concerned) -> Finding:
    """The feeds that took most room today; a warning where one is at a limit. The rows come either way."""
    name, figures = "no_feed_fills_the_disk", {"feeds": int(found.count)}
    most = "; ".join(map(_taken, found.rows[:_NAMED_BUSIEST]))
    most = f"; most in a day: {most}" if most else ""
    if not found.count:
        sentence = f"No feed reached its most new items or bytes of a day{most}"
        return Finding(name, "ok", sentence, figures=figures, rows=found.rows)
    return Finding(
        name,
        "warning",
        f"{_counted(int(found.count), 'has', 'have')} reached the most new items or bytes of a day{most}",
        "Nothing that was fetched is lost. If the feed is sound, raise RSS_ITEMS_PER_DAY,"
        " RSS_IMAGE_MB_PER_DAY or RSS_BACKUP_MB_PER_DAY; else set `images: false`, remove it from feeds.yaml,"
        " or ask its users to unsubscribe.",
        figures,
        found.rows,
    )


def waiting_images(waiting: ImagesWaiting, *, now: datetime, hindrance: str | None = None) -> Finding:
    """The images that wait. It is a warning where something keeps them from being downloaded, and once the
    oldest has waited for longer than a daemon lets it."""
    name = "images_downloaded"
    if waiting.due_since is None:
        return Finding(name, "ok", "none waits")
    many = "at least " if waiting.images == COUNTED_IMAGES else ""
    found = f"{many}{waiting.images:,} to download"
    if hindrance is not None:
        return Finding(name, "warning", found, f"No image is downloaded now: {hindrance}.")
    if now - waiting.due_since < IMAGES_LATE_AFTER:
        return Finding(name, "ok", found)
    return Finding(
        name,
        "warning",
        f"{found}, one since {instant(waiting.due_since)}",
        "Is the daemon running? Where feeds are polled by cron, `rss-pipeline images` downloads them.",
    )


def contact_named(settings: Settings, database: Database) -> Finding:
    """The contact in the User-Agent."""
    name = "contact_named"
    if settings.has_contact or read_contact(database) is not None:
        return Finding(name, "ok", "publishers get one with each request")
    return Finding(
        name,
        "warning",
        "requests name no contact: a publisher with a complaint can only block them",
        "Set RSS_USER_AGENT_CONTACT to your e-mail address or web page, in the environment or in .env.",
    )


def _no_feed_overdue(look: Look) -> Finding:
    found = tables.overdue(look.database, since=look.now - OVERDUE)
    advice = (part.load()(look.database, look.settings) for each in FEATURES for part in each.backlog_advice)
    to_add = next((sentence for sentence in advice if sentence is not None), None) if found.count else None
    finding = no_feed_overdue(found, now=look.now, to_add=to_add)
    if finding.state == "ok" and look.hindrances:
        said = " ".join(each.text for each in look.hindrances).rstrip(".")
        return replace(finding, state="warning", found=f"No feed has waited for long. {said}")
    return finding


def _feeds(look: Look, problem: str, read: Callable[[Database], Concerned]) -> Concerned:
    """The feeds with a problem: with all that the UI shows of them, or as one read for all checks found
    them."""
    return look.feeds[problem] if look.at_once else read(look.database)


def _no_feed_fills_the_disk(look: Look) -> Finding:
    settings = look.settings
    found = tables.busiest(
        look.database,
        # Just after midnight no feed has taken anything yet.
        since=f"{look.now - timedelta(days=1):%Y-%m-%d}",
        items=settings.items_per_day,
        image_bytes=settings.image_mb_per_day * 1_000_000,
        backup_bytes=settings.most_backup_bytes,
    )
    return no_feed_fills_the_disk(found)


def _no_image_backlog(look: Look) -> Finding:
    most = IMAGES_LOOKED_AT if look.settings.pays_by_row else None
    found = tables.waiting_images(look.database, since=look.now - IMAGES_OVERDUE, most=most)
    return no_image_backlog(found, now=look.now, hindrance=download.hindrance(look.settings))


def _registry_in_use(look: Look) -> Finding | None:
    """The feeds of a feeds.yaml without mistakes can replace those in the database."""
    name = "registry_in_use"
    if look.specs is None:
        return None
    try:
        changes = registry_changes(
            look.specs, registry_rows(look.database), path=str(look.settings.feeds_file)
        )
    except RegistryError as error:
        return Finding(
            name, "failure", "not in use: the feeds from before it stay", "\n".join(error.mistakes)
        )
    if changes.is_suspicious:
        return Finding(name, "warning", "not in use: the feeds from before it stay", unconfirmed(changes))
    if changes.is_empty:
        return Finding(name, "ok", "its feeds are in use")
    return Finding(name, "ok", "it was changed; the next poll uses it")


def _secrets_there(look: Look) -> Concerned | None:
    """Feeds of feeds.yaml that were polled with headers or a password, and have none now."""
    if look.specs is None:
        return None
    without = {spec.id for spec in look.specs if spec.access.is_open}
    rows = [row for row in look.feeds["need_access"].rows if row["feed"] in without]
    return Concerned(len(rows), rows)


def _lag(found: Concerned, now: datetime) -> timedelta:
    oldest = from_instant(found.rows[0]["due_since"]) if found.rows else None
    return timedelta() if oldest is None else max(timedelta(), now - oldest)


def _counted(count: int, one: str, several: str) -> str:
    return f"{counted(count, 'feed', 'feeds')} {one if count == 1 else several}"


def _span(span: timedelta) -> str:
    minutes = round(span.total_seconds() / 60)
    if minutes < 120:
        return counted(minutes, "minute", "minutes")
    hours = round(minutes / 60)
    return counted(hours, "hour", "hours") if hours < 48 else counted(round(hours / 24), "day", "days")


CHECKS = (
    Check(
        name="no_feed_overdue",
        find=_no_feed_overdue,
        description="No feed has waited for its visit longer than 30 minutes; an error after six hours.",
        asset="feeds",
        doctor="overdue feeds",
        alert="failure",
        may_pass=True,
        every=OFTEN,
    ),
    listed(
        "feeds_answer",
        lambda look: _feeds(look, "not_answering", tables.not_answering),
        description="No feed has failed three times in a row, or before it was ever read. The table has the"
        " kind and the reason of each failure, since when, and the next visit.",
        asset="feeds",
        doctor="failing feeds",
        right=f"Every feed was read at one of its last {NOT_ANSWERING_FAILURES} visits",
        wrong=f"failed {NOT_ANSWERING_FAILURES} times in a row or more, or before any success",
        fix=lambda rows: (
            advice(
                rows,
                "`reason` below, or `rss-pipeline status FEED`, says what can be done. Look for the feed's"
                " new address and correct `url` in feeds.yaml (with `id:` to keep its items), or set"
                " `enabled: false`.",
                f"{_BROUGHT} see the reason on the page of failing feeds, and change its address there or"
                " unsubscribe.",
            )
            + " Each is visited again at `next_visit`, after longer and longer waits of at most a day."
        ),
    ),
    listed(
        "feeds_not_gone",
        lambda look: _feeds(look, "gone", tables.gone),
        description="No publisher has answered that a feed is gone for good (HTTP status 410).",
        asset="feeds",
        doctor="gone feeds",
        right="No publisher has said that a feed is gone",
        wrong="gone: the publisher answers 410 Gone; each is still visited once a day",
        fix=lambda rows: advice(
            rows,
            "Remove it from feeds.yaml (its items stay until they are past their age), or write its new"
            " address.",
            f"{_BROUGHT} may unsubscribe.",
        ),
        verb=("is", "are"),
    ),
    Check(
        name="feeds_not_moved",
        find=lambda look: feeds_not_moved(
            _feeds(look, "moved", tables.moved), _feeds(look, "redirecting", tables.redirecting)
        ),
        description="Every feed is at its address in feeds.yaml; no permanent redirect leads to another"
        " address.",
        asset="feeds",
        doctor="moved feeds",
    ),
    listed(
        "no_gaps",
        lambda look: tables.with_gaps(look.database, since=look.now - GAPS_WITHIN),
        description="In the last week, each new document of a feed had an item in common with the one"
        " before, so none was missed.",
        asset="feeds",
        right=f"No feed had a gap within {GAPS_WITHIN.days} days",
        wrong="a document without any item of the one before: items were probably missed",
        fix="`auto` comes sooner by itself for some weeks; shorten an `interval` of feeds.yaml.",
        verb=("had", "had"),
    ),
    listed(
        "guids_stable",
        lambda look: tables.unstable(look.database),
        description="Items keep their guids, and no two share one. If a server puts changing tokens into"
        " guids, known items may come again as new ones; if it gives two items one guid or link, the second"
        " is left out.",
        asset="feeds",
        right="Items keep their guids, and no two share one",
        wrong="unstable or shared guids: known items may come again as new ones, or new ones are left out",
        fix="Set `key: link` or `key: title+date` for the feed in feeds.yaml; `warning` below says which.",
    ),
    listed(
        "dates_readable",
        lambda look: tables.undated(look.database),
        description="Every feed with items has dates in them; without a date, an item gets its fetch time.",
        asset="feeds",
        right="Every feed with items has dates that can be read",
        wrong="no date that can be read in its newest document: the fetch time is used, and `auto` has no"
        " rhythm to go by",
        fix="Nothing is lost; set `interval:` for the feed if two hours are too many or too few. The raw"
        " dates are in `pub_date_raw` of its items.",
    ),
    Check(
        name="backups_there",
        find=stores.check_loss,
        description=f"The {BACKUPS_LOOKED_AT} feeds that changed last have their newest backup in the"
        " object store; a restore needs it.",
        asset="feeds",
        kind="file",
        doctor="restore",
        alert="warning",
    ),
    Check(
        name="database_has_room",
        find=stores.check_room,
        description="The database is below 80 % of D1's limit. If database or objects are on this machine,"
        " their disk has more than 1 GB left; an error below 100 MB.",
        asset="feeds",
        kind="python",
        alert="failure",
    ),
    Check(
        name="no_feed_fills_the_disk",
        find=_no_feed_fills_the_disk,
        description="No feed reached its most new items, bytes of images or bytes of backups of a day. The"
        " table has those that took most.",
        asset="feeds",
        doctor="room of feeds",
    ),
    listed(
        "images_had",
        lambda look: tables.given_up_images(
            look.database, since=look.now - GIVEN_UP_WITHIN, least=MANY_GIVEN_UP
        ),
        description="In the last week, no feed lost ten images or more, each after three attempts.",
        asset="images",
        right=f"No feed lost {MANY_GIVEN_UP} images or more within {GIVEN_UP_WITHIN.days} days",
        wrong=f"lost {MANY_GIVEN_UP} images or more within {GIVEN_UP_WITHIN.days} days, each after three"
        " attempts",
        fix="The table has an example of each. Where the host serves images to its own pages only, set"
        " `images: false` for the feed.",
    ),
    Check(
        name="no_image_backlog",
        find=_no_image_backlog,
        description="No image has waited for its download longer than six hours; an error after two days.",
        asset="images",
        doctor="overdue images",
        alert="failure",
    ),
    Check(name="registry_in_use", find=_registry_in_use, doctor="feeds.yaml in use"),
    listed(
        "secrets_there",
        _secrets_there,
        doctor="secrets",
        right="every feed that needs headers or a password has them",
        wrong="polled with headers or a password that feeds.yaml no longer names",
        fix="Put them back into feeds.yaml as ${NAME}, or leave it: the next sync treats them as feeds"
        " without a password.",
        verb=("was", "were"),
    ),
    listed(
        "no_shared_urls",
        lambda look: look.feeds["same"],
        doctor="shared URLs",
        right="no two feeds lead to one URL",
        wrong="to one URL",
        fix=lambda rows: advice(
            rows,
            "A poll requests the URL once, but stores its items for each of these feeds: keep one of them in"
            " feeds.yaml.",
            f"{_BROUGHT} may unsubscribe from one of them.",
        ),
        verb=("leads", "lead"),
        things=("pair or group of feeds", "pairs or groups of feeds"),
    ),
    listed(
        "no_feed_warns",
        lambda look: look.feeds["warned"],
        doctor="feed warnings",
        right="none",
        wrong="a warning",
        fix="`rss-pipeline status FEED` shows it.",
    ),
    listed(
        "keep_known",
        lambda look: look.feeds["keep_unknown"],
        doctor="keep unknown",
        right="it is known of every feed how long its items are kept",
        wrong="restored from backups that do not say how long items are kept, so none is removed",
        fix="Add them to feeds.yaml, with `keep` if it was set (`enabled: false` leaves them unpolled), or"
        " remove them with `rss-pipeline forget`.",
        verb=("was", "were"),
    ),
    listed(
        "changes_reported",
        lambda look: look.feeds["unreported"],
        doctor="unreported",
        right="every change was reported",
        wrong="a change older than an hour that was not reported to Dagster",
        fix="Is the daemon running? The next poll reports them: `rss-pipeline poll`.",
    ),
    listed(
        "no_dead_leases",
        lambda look: look.feeds["leased"],
        doctor="dead leases",
        right="none",
        wrong="claimed by a run that ended without releasing them",
        fix="The next poll claims them when they are due; if this happens again, look for killed runs in the"
        " UI.",
        verb=("is", "are"),
    ),
    Check(
        name="images_downloaded",
        find=lambda look: waiting_images(
            images_waiting(look.database), now=look.now, hindrance=download.hindrance(look.settings)
        ),
        doctor="waiting images",
    ),
    Check(
        name="contact_named",
        find=lambda look: contact_named(look.settings, look.database),
        doctor="contact",
    ),
    Check(name="public_objects", find=public_objects, kind="file", doctor="public objects"),
    Check(name="stores_filled", find=stores.check_filled, kind="file", doctor="stores"),
    Check(name="no_orphans", find=stores.no_orphans, kind="file", doctor="orphans"),
    Check(name="images_there", find=stores.images_there, kind="file", doctor="missing images"),
)


@cache
def all_checks() -> tuple[Check, ...]:
    """The checks of the table and of all features."""
    checks = list(CHECKS)
    for check in (each for feature in FEATURES for part in feature.checks for each in part.load()):
        names = [each.name for each in checks]
        checks.insert(names.index(check.follows) + 1 if check.follows in names else len(checks), check)
    return tuple(checks)


def health_checks(settings: Settings) -> tuple[Check, ...]:
    """All checks of an installation, in the order of the UI."""
    return tuple(check for check in all_checks() if check.is_on(settings))
