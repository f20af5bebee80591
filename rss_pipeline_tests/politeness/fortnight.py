"""The pipeline against publishers of all kinds, for a fortnight of a clock that is turned.

Real parts: HTTP on loopback, SQLite, object folder, parser processes, Dagster. One poll in so many is a run
of the job, as is the last refresh by hand; the others go through the steps of its ops, for Dagster's events
would cost more than all the rest. Time does not move but for what is slept between two requests to a host.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import dagster as dg

from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.http.guarded_transport import Network
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.errors import NetworkUnavailable
from rss_pipeline.orchestration.in_process import poll_in_process
from rss_pipeline.pipeline.images.download import download_images
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session, Shared
from rss_pipeline.pipeline.visits.poll import poll_round
from rss_pipeline.settings import Settings
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince, Wanted
from rss_pipeline_tests.politeness.publishers import FIRST_ITEMS, START, Kind, edition_at
from rss_pipeline_tests.politeness.scoring import Url
from rss_pipeline_tests.politeness.stand import Row, Stand
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import Clock
from rss_pipeline_tests.support.server import FeedServer

DEADLINE = 8.0
"""Seconds, of the real kind: a machine under load must not make a time-out of an answer that came."""
HOST_DELAY = 1.0
A_RUN_EVERY = 130
BY_HAND_DAYS = (2.3, 3.4, 8.1)
"""The instant of a refresh of all feeds by hand, during a 429 and a 503 at the first two."""
RESTART_DAYS = (1.5, 5.2, 9.9)
MOST_REQUESTS_A_DAY = 200
"""For a feed: one a quarter of an hour, twice, for what redirects."""
MOST_POLLS_A_DAY = 720
"""One in two minutes: hosts with a limit by rate leave feeds due that are not requested in that poll."""


class Loop(Exception):
    """The clock is turned, and the same happens again and again: that is no fortnight."""


class SimulatedPace(Pace):
    """Sleeping turns the clock."""

    def __init__(self, clock: Clock) -> None:
        async def sleep(seconds: float) -> None:
            # Of less than a microsecond nothing would be left, and who waits would wait for ever.
            until = clock.now + max(timedelta(seconds=seconds), timedelta(microseconds=1))
            await asyncio.sleep(0)
            clock.now = max(clock.now, until)

        super().__init__(monotonic=lambda: clock.now.timestamp(), sleep=sleep)


class Fortnight:
    """`run` once. A context manager: leaving it ends the pipeline.

    Feeds have an interval of so many `hours`; a poll starts when the longest due has waited for `patience`.
    """

    def __init__(
        self,
        home: Path,
        instance: dg.DagsterInstance,
        server: FeedServer,
        kinds: Sequence[Kind],
        *,
        hours: int,
        patience: timedelta,
        most_requests: int = MOST_REQUESTS_A_DAY,
    ) -> None:
        self.pipeline = DagsterPipeline(home, instance, host_delay_seconds=HOST_DELAY)
        contact = {"RSS_USER_AGENT_CONTACT": "https://operator.example/contact"}
        self.pipeline.set(
            user_agent=Settings.from_environ(contact, cwd=home).user_agent,
            allow_networks=(ip_network("127.0.0.0/8"),),
            allow_ports=frozenset({server.port}),
        )
        self.clock = self.pipeline.clock
        self.clock.now = START
        self.polls = self.runs = 0
        self.stand = Stand(server, kinds, self.clock, hours=hours, host_delay=HOST_DELAY, deadline=DEADLINE)
        self._kinds = kinds
        self._patience = patience
        self._most_requests = most_requests
        self._day = -1
        self._before: Counter[str] = Counter()
        """Requests by feed, and polls as those of "", until this day began."""
        self._open = ExitStack()
        self._session: Session | None = None
        self._pace, self._image_pace = SimulatedPace(self.clock), SimulatedPace(self.clock)
        self._by_hand = [START + timedelta(days=day) for day in BY_HAND_DAYS]
        self._restarts = [START + timedelta(days=day) for day in RESTART_DAYS]

    def __enter__(self) -> "Fortnight":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self.pipeline.close()

    def run(self) -> list[Row]:
        """Turn the clock from due time to due time, until each kind's days are over; the table.

        Raises `Loop`.
        """
        for days in sorted({kind.days for kind in self._kinds}):
            self._register(days)
            while self.clock() < START + timedelta(days=days):
                if self.polls % A_RUN_EVERY:
                    self._poll()
                else:
                    self._run()
                self._compare(self.stand.settle())
                if self._by_hand and self.clock() >= self._by_hand[0]:
                    self._by_hand.pop(0)
                    self._refresh_by_hand()
                if self._restarts and self.clock() >= self._restarts[0]:
                    self._restarts.pop(0)
                    self._restart()
                self._refuse_a_loop()
                self._turn()
        self.stand.judge()
        self._judge_images()
        self._judge_items()
        return self.stand.table()

    def _judge_images(self) -> None:
        """Each item has its images, as far as they are given to anybody."""
        for row in self.pipeline.rows(
            """SELECT t.original_url, t.last_error, items.feed_id FROM image_tasks AS t
            JOIN items ON items.id = t.item_id WHERE t.status <> 'success' AND t.created_at < ?""",
            instant(self.clock() - timedelta(days=7)),
        ):
            if self.stand.feeds[row["feed_id"]].gives_images:
                what = f"{row['original_url']}: {row['last_error']}"
                self.stand.scorer.fault("an image not kept", row["feed_id"], what)

    def _judge_items(self) -> None:
        """Each item that a feed listed at its last visit is stored, where its kind promises that."""
        for id, kind in self.stand.feeds.items():
            if kind.is_whole:
                last = self.stand.scorer.subscriptions[id].last_at
                wanted = {f"item-{n}" for n in range(edition_at(last) + FIRST_ITEMS + 1)}
                rows = self.pipeline.rows("SELECT guid FROM items WHERE feed_id = ?", id)
                if missing := wanted - {row["guid"] for row in rows}:
                    self.stand.scorer.fault("an item not kept", id, ", ".join(sorted(missing)))

    def _register(self, days: int) -> None:
        """Only feeds of a kind that goes on for so long."""
        feeds = self.stand.feeds
        self.pipeline.feeds = [
            {**entry, "enabled": feeds[entry["id"]].days >= days} for entry in self.stand.entries
        ]
        self.pipeline.write_registry()
        self.pipeline.sync()

    def _turn(self) -> None:
        """To when the sensor would start a poll, or, just before, when the last feed of that poll is due.

        Every second time by a fraction of a second more: instants are stored in whole seconds.
        """
        rows = self.pipeline.rows(
            """SELECT max(next_fetch_at, coalesce(hosts.hold_until, ''),
              coalesce(feed_holds.hold_until, '')) AS at FROM feeds
            LEFT JOIN hosts ON hosts.host = feeds.host
            LEFT JOIN feed_holds ON feed_holds.feed_id = feeds.id WHERE enabled = 1 ORDER BY at"""
        )
        due = [datetime.fromisoformat(row["at"]) for row in rows]
        at = max(at for at in due if at <= due[0] + self._patience)
        self._download_until(at)
        self.clock.now = max(at, self.clock() + timedelta(seconds=60)).replace(microsecond=0)
        self.clock.turn(seconds=0.7 * (self.polls % 2))

    def _refuse_a_loop(self) -> None:
        done = Counter({id: feed.requests for id, feed in self.stand.scorer.subscriptions.items()})
        done[""] = self.polls
        day = (self.clock() - START).days
        if day != self._day:
            self._day, self._before = day, done
        # The first day counts whole: it has begun before the first poll has ended.
        today = Counter(done) if day == 0 else done - self._before
        if today.pop("", 0) > MOST_POLLS_A_DAY:
            raise Loop(f"more than {MOST_POLLS_A_DAY} polls on day {day}: a feed is due that no poll visits")
        for id, requests in today.most_common(1):
            if requests > self._most_requests:
                kind = self.stand.feeds[id].name
                raise Loop(f'{id} of "{kind}" was requested {requests} times on day {day}')

    def _poll(self, wanted: Wanted | None = None) -> None:
        """Feeds that are due, or requested by hand."""
        self.polls += 1
        if self._session is None:
            stores = (self.pipeline.database, self.pipeline.objects)
            self._session = self._open.enter_context(self._new_session(*stores, "fortnight"))
        accesses = dict.fromkeys(self.stand.feeds, Access())
        try:
            poll_round(self._session, wanted or Due(now=self.clock()), accesses, suspects=())
        except NetworkUnavailable:
            # The run of Dagster would be red; its feeds are due again.
            self._open.close()
            self._session = None
            return
        if any(kind.images for kind in self._kinds):
            self._download()

    def _download_until(self, until: datetime) -> None:
        """The images that are due before the next poll, as the sensor finds them, once a minute at most."""
        while self._session is not None and any(kind.images for kind in self._kinds):
            [row] = self.pipeline.rows(
                """SELECT min(max(coalesce(next_attempt_at, created_at), coalesce(image_holds.hold_until, ''),
                  coalesce(hosts.hold_until, ''))) AS at FROM image_tasks AS t
                LEFT JOIN image_holds ON image_holds.host = t.host LEFT JOIN hosts ON hosts.host = t.host
                WHERE status = 'pending'"""
            )
            soonest = self.clock() + timedelta(seconds=60)
            at = soonest if row["at"] is None else max(soonest, datetime.fromisoformat(row["at"]))
            if row["at"] is None or at >= until:
                return
            self.clock.now = at
            self._download()
            self.stand.settle()

    def _download(self) -> None:
        """The images that are due."""
        assert self._session is not None
        with self._session.step():
            download_images(
                run=self._session.run,
                lease_keeper=self._session.leases,
                politeness=self._session.image_politeness,
                spool=self._session.spool,
            )

    def _run(self, *feeds: str) -> None:
        """A run of the job, of what is due or of these feeds."""
        self.polls += 1
        self.runs += 1

        def resource(context: dg.InitResourceContext) -> Iterator[Session]:
            stores: Any = context.resources
            run_id = "" if context.run is None else context.run.run_id
            with self._new_session(stores.database, stores.objects, run_id) as session:
                yield session

        session = dg.ResourceDefinition(resource_fn=resource, required_resource_keys={"database", "objects"})
        self.clock.turn(seconds=1)
        rounds = poll_in_process(
            self.pipeline.definitions(resources={"session": session}),
            self.pipeline.instance,
            self.pipeline.database,
            clock=self.clock,
            feeds=feeds,
        )
        # The next ones, until nothing is due, are polls of later days.
        error = next(rounds).error
        assert error is None, error

    def _new_session(self, database: Any, objects: Any, run_id: str) -> Session:
        session = Session(
            RunContext(
                settings=self.pipeline.settings,
                database=database,
                objects=objects,
                run_id=run_id,
                clock=self.clock,
            ),
            Shared(
                pace=self._pace,
                image_pace=self._image_pace,
            ),
        )
        network = Network(resolve=self.stand.resolve)
        session.policy = replace(session.policy, deadline=DEADLINE, network=network)
        return session

    def _refresh_by_hand(self) -> None:
        """All feeds, requested by name: due or not, in backoff or not."""
        ids = [entry["id"] for entry in self.pipeline.feeds if entry["enabled"]]
        self.clock.turn(minutes=5)
        self.stand.scorer.by_hand = frozenset(ids)
        if self._by_hand:
            now = self.clock()
            self._poll(NotVisitedSince(since=now, now=now, ids=ids))
        else:
            self._run(*ids)
        self._compare(self.stand.settle())
        self.stand.scorer.by_hand = frozenset()

    def _restart(self) -> None:
        """State in memory is lost: the pace of hosts, worker processes, leases."""
        self._open.close()
        self._session = None
        self.clock.turn(seconds=3)
        self._pace, self._image_pace = SimulatedPace(self.clock), SimulatedPace(self.clock)

    def _compare(self, asked: set[Url]) -> None:
        """True if the stored items of the visited feeds are the served ones."""
        for row in self.pipeline.rows("SELECT id, last_etag, last_modified FROM feeds"):
            feed = self.stand.scorer.subscriptions[row["id"]]
            if asked & feed.urls:
                self.stand.scorer.kept(row["id"], row["last_etag"], row["last_modified"])
