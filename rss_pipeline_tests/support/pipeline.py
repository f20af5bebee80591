"""A whole pipeline in a folder of its own, without Dagster: settings, registry, stores, and a clock to turn.

Real parts throughout, against loopback servers: a poll takes the same steps as a run of the poll job, in this
process. With `d1` and `s3` among the settings the state is in Cloudflare, and the folder holds the rest.
Events, partition keys and runs are Dagster's: support/dagster_pipeline.py.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from rss_pipeline.errors import RegistryError
from rss_pipeline.pipeline.images.download import download_images
from rss_pipeline.pipeline.images.round import Downloads
from rss_pipeline.pipeline.registry.sync import RegistrySync, sync_registry
from rss_pipeline.pipeline.session.fetch_policy import feed_policy
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session, Shared
from rss_pipeline.pipeline.visits.fetch import raise_for_our_outage
from rss_pipeline.pipeline.visits.poll import ROUND_SECONDS, poll_round
from rss_pipeline.pipeline.visits.rounds import Round, poll_until_done
from rss_pipeline.pipeline.visits.summary import to_report
from rss_pipeline.pipeline.visits.visit import Visit, Visits
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect, open_database, open_objects
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.s3.backend import R2Backend
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import claims, feed_changes
from rss_pipeline.storage.feeds.claimable import Named, Wanted
from rss_pipeline.storage.feeds.visit_facts import known_facts
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.kept_parsers import KeptParsers
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

NOON = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)

logger = logging.getLogger("rss_pipeline")


class Steps:
    """A Progress that keeps the step a run has come to, and passes all on."""

    def __init__(self, progress: Progress | None) -> None:
        self.at = "claim"
        self._progress = progress or NoProgress()

    def begin(self, step: str, total: int) -> None:
        self.at = step
        self._progress.begin(step, total)

    def advance(self, step: str, by: int = 1) -> None:
        self._progress.advance(step, by)


class Clock:
    """A clock that does not move until it is turned."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **by: float) -> None:
        self.now += timedelta(**by)


class Pipeline:
    """One installation. `feeds` is the content of feeds.yaml; `poll` syncs it and visits what is due."""

    def __init__(self, home: Path, *, parser_pool: KeptParsers | None = None, **settings: Any) -> None:
        self.clock = Clock()
        self.parser_pool = parser_pool
        """The pool of all sessions with the usual limits; None: each starts its own."""
        self.settings = Settings(
            home=home,
            feeds_file=home / "feeds.yaml",
            user_agent="rss_pipeline/test",
            **{
                "host_delay_seconds": 0.0,
                "parse_workers": 1,
                # The machine's disk may be nearly full.
                "image_free_percent": 0.0,
                "image_free_gb": 0.0,
                **settings,
            },
        )
        if self.settings.database.is_here and not self.settings.database_path.exists():
            migrated(self.settings.database_path).close()
        self.database = connect(self.settings)
        migrate(self.database)
        self.objects = open_objects(self.settings)
        self._r2 = self.settings.objects_server
        self.feeds: list[dict[str, Any]] = []
        self.topics: dict[str, dict[str, Any]] = {}
        self._reports: list[tuple[str, dict[str, Any]]] = []
        self._counts: dict[str, int] = {}
        self._failures: list[tuple[str, str, int]] = []
        self._visits: Visits = []

    def register(self, url: str, id: str, **options: Any) -> str:
        """Add a feed to the registry; returns its id. Images and redirects may be anywhere on loopback."""
        self.feeds.append({"url": url, "id": id, "allow_private": ["127.0.0.0/8"], **options})
        self.write_registry()
        return id

    def write_registry(self) -> None:
        # The dumper in C takes a tenth of the time.
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        registry: dict[str, Any] = {"feeds": self.feeds} | ({"topics": self.topics} if self.topics else {})
        self.settings.feeds_file.write_text(yaml.dump(registry, Dumper=dumper), "utf-8")

    def sync(self, *, yes: bool = False, environ: Mapping[str, str] | None = None) -> RegistrySync:
        return sync_registry(self.database, self.settings, now=self.clock(), yes=yes, environ=environ)

    @contextmanager
    def session(
        self,
        *,
        run_id: str = "run",
        progress: Progress | None = None,
        database: Database | None = None,
        objects: ObjectStore | None = None,
        **policy: Any,
    ) -> Iterator[Session]:
        """The session of a run, on the pipeline's own stores or on the given ones. `policy` changes fields of
        its FetchPolicy."""
        with Session(
            RunContext(
                settings=self.settings,
                database=database or self.database,
                objects=objects or self.objects,
                run_id=run_id,
                clock=self.clock,
                progress=progress or NoProgress(),
            ),
            Shared(
                parser_pool=self._kept_pool(),
            ),
            policy=replace(feed_policy(self.settings), **policy),
        ) as session:
            yield session

    def _kept_pool(self) -> ParserPool | None:
        limits = (self.settings.parse_workers, self.settings.parse_timeout_seconds)
        return self.parser_pool if limits == (KeptParsers.PROCESSES, KeptParsers.SECONDS) else None

    def poll(self, *ids: str, all_feeds: bool = False, **parts: Any) -> Sequence[Round]:
        """Poll until nothing is due. Each call comes a second after the one before; where `ids` are named, a
        minute, for so long a visit by hand waits after an answer.

        `parts` as in `run`. Raises the error of a run; `try_poll` does not.
        """

        def run_round(wanted: Wanted) -> Round:
            return Round(run_id="run", visits=self.run(wanted, **parts))

        return self._rounds(run_round, ids, all_feeds=all_feeds)

    def try_poll(self, *ids: str, all_feeds: bool = False, **parts: Any) -> Sequence[Round]:
        """`poll`, for runs that may fail: the round has the sentence, after the name of the step."""

        def run_round(wanted: Wanted) -> Round:
            steps = Steps(parts.get("progress"))
            try:
                visits = self.run(wanted, **{**parts, "progress": steps})
            except Exception as error:  # noqa: BLE001 - as a run of the job: whatever it was, the run failed
                return Round(run_id="run", visits=self._visits, error=f"{steps.at}: {error}")
            return Round(run_id="run", visits=visits)

        return self._rounds(run_round, ids, all_feeds=all_feeds)

    def _rounds(
        self, run_round: Callable[[Wanted], Round], ids: Sequence[str], *, all_feeds: bool
    ) -> Sequence[Round]:
        self.clock.turn(seconds=61 if ids else 1)
        rounds = poll_until_done(self.database, run_round, clock=self.clock, feeds=ids, all_feeds=all_feeds)
        return list(rounds)

    def refresh(self, *ids: str, **parts: Any) -> dict[str, Visit]:
        """Visit each of these feeds now, as a refresh by hand does, a minute after what was before; returns
        the visits by feed."""
        self.clock.turn(seconds=60)
        visits = self.run(Named(ids=ids, now=self.clock()), **parts)
        return {visit.feed.id: visit for visit in visits}

    def run(
        self,
        wanted: Wanted,
        *,
        progress: Progress | None = None,
        database: Callable[[], Database] | None = None,
        objects: ObjectStore | None = None,
        **policy: Any,
    ) -> Visits:
        """One run with connections of its own: it syncs the registry, visits, and reports to `reports`.

        `database` opens the run's database, `objects` is its object store.
        """
        self._visits = []
        opened = open_database(self.settings) if database is None else closing(database())
        if objects is None:
            # A client of S3 takes as long to make as ten requests.
            objects = (
                self.objects
                if self.settings.objects_server == self._r2 is not None
                else open_objects(self.settings)
            )
        with (
            opened as own,
            self.session(progress=progress, database=own, objects=objects, **policy) as session,
            session.step(),
        ):
            try:
                synced = sync_registry(own, self.settings, now=self.clock())
            except RegistryError as error:
                logger.error("%s\nThe poll continues with the feeds as they were.", error)
                synced = None
            self._settle(own)
            visits = poll_round(
                session,
                wanted,
                None if synced is None else synced.accesses,
                suspects=None if synced is None else synced.suspects,
                round_seconds=None if isinstance(wanted, Named) else ROUND_SECONDS,
            )
            self._visits = visits
            self._report(own, visits)
            raise_for_our_outage(visits)
            return visits

    def _settle(self, database: Database) -> None:
        """Mark the changes kept by a run that could not mark them any more, as the op `claim` does."""
        known = [c for c in feed_changes.unreported(database) if self._counts.get(c.feed_id) == c.count]
        feed_changes.mark_reported(database, known, now=self.clock())

    def _report(self, database: Database, visits: Visits) -> None:
        """Keep the changes and failures that are to be reported, and mark them: lists in place of Dagster's
        events."""
        failed = to_report(visits, now=self.clock())
        self._failures += [
            (visit.feed.id, failure.kind, visit.feed.failures.in_a_row + 1) for visit, failure in failed
        ]
        feed_changes.mark_failures_reported(
            database, [(visit.feed.id, failure.kind) for visit, failure in failed]
        )
        changes = feed_changes.unreported(database)
        self._reports += [(change.feed_id, known_facts(change.facts)) for change in changes]
        self._counts |= {change.feed_id: change.count for change in changes}
        feed_changes.mark_reported(database, changes, now=self.clock())

    def download(self, *, objects: ObjectStore | None = None) -> Downloads:
        """Download the images that are due. Each call comes a second after the one before."""
        self.clock.turn(seconds=1)
        with self.session(objects=objects) as session, session.step():
            return download_images(
                run=session.run,
                lease_keeper=session.leases,
                politeness=session.image_politeness,
                spool=session.spool,
            )

    def rows(self, sql: str, *params: str) -> list[dict[str, Any]]:
        return self.database.query(sql, params).rows

    def feed(self, id: str) -> dict[str, Any]:
        (row,) = self.rows("SELECT * FROM feeds WHERE id = ?", id)
        return row

    def items(self, id: str) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM items WHERE feed_id = ? ORDER BY guid", id)

    def guids(self, id: str) -> list[str]:
        return [row["guid"] for row in self.items(id)]

    def tasks(self) -> list[str]:
        return [row["original_url"] for row in self.rows("SELECT * FROM image_tasks ORDER BY original_url")]

    def backups(self, id: str) -> list[str]:
        return [info.key for info in self.objects.list(f"backups/{id}/")]

    def reports(self, id: str) -> list[dict[str, Any]]:
        """The facts of the feed's changes as the runs of this object reported them, newest first."""
        return [facts for change, facts in reversed(self._reports) if change == id]

    def failure_reports(self, id: str) -> list[tuple[str, int]]:
        """Kind and count of the feed's failures as the runs of this object reported them, oldest first."""
        return [(kind, count) for feed_id, kind, count in self._failures if feed_id == id]

    def set(self, **settings: Any) -> None:
        """Change settings for the runs to come."""
        self.settings = replace(self.settings, **settings)

    def hold(self, *ids: str) -> claims.Claim:
        """Claim these feeds as another run would."""
        wanted = Named(ids=ids, now=self.clock())
        return claims.claim(self.database, wanted, run_id="another", lease_seconds=180, limit=len(ids))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something while a run of this thread is under way."""
        threading.Timer(seconds, act).start()

    def lapse_leases(self) -> None:
        """As if every lease's time were over: what waiting three minutes would do."""
        self.database.query("UPDATE leases SET expires_at = '2000-01-01T00:00:00Z'")

    def close(self) -> None:
        self.database.close()


def on_cloudflare(cloudflare: Cloudflare) -> dict[str, Any]:
    """The settings of a Pipeline that keeps its state there. Runs read the secrets from the environment."""
    return {
        "database_server": D1Backend(url=cloudflare.url, token=cloudflare.token),
        "objects_server": R2Backend(
            endpoint_url=cloudflare.s3_endpoint,
            bucket=cloudflare.bucket,
            access_key_id=cloudflare.access_key,
            secret_access_key=cloudflare.secret_key,
        ),
    }


def rss(*guids: str, title: str = "A feed", image: str | None = None) -> bytes:
    """An RSS 2.0 document with an item a guid, each with an image where one is named."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{guid}</guid><title>Title of {guid}</title>"
        f"<link>http://example.com/{guid}</link><pubDate>Mon, 02 Mar 2026 08:00:00 GMT</pubDate>"
        f"<description><![CDATA[<p>Text of {guid}</p>{_image(image, guid)}]]></description></item>"
        for guid in guids
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>'
        f"<title>{title}</title><link>http://example.com/</link>{items}</channel></rss>"
    ).encode()


def _image(image: str | None, guid: str) -> str:
    return "" if image is None else f'<img src="{image}/{guid}.png">'


def cut_off(pipeline: Pipeline, *ids: str) -> None:
    """From now on the hosts of these feeds are out of reach, as if our own network were down: no name below
    .invalid resolves (RFC 6761 6.4), and each is a domain of its own."""
    for id in ids:
        pipeline.database.query(
            "UPDATE feeds SET fetch_url = ?, host = ? WHERE id = ?",
            [f"http://{id}.invalid/feed", f"{id}.invalid", id],
        )


def ends(rounds: Sequence[Round], where: Callable[[Any], Any]) -> list[Any]:
    """`where` of every visit of these rounds."""
    return [where(visit) for round_ in rounds for visit in round_.visits]
