"""A fetch round for images: many downloads at the same time, few of them at one host.

Not here: the requests of one image (`image_visit.py`), and the store that keeps images.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.image_visit import (
    ImageOutcome,
    ImageRequest,
    ImageVisit,
    KeepImage,
    Referers,
    T,
)
from rss_pipeline.collector.fetch.loop_thread import Report, run_round
from rss_pipeline.collector.fetch.pacing import HostLeases, Pace, Turns
from rss_pipeline.collector.fetch.visit_requests import VisitRequests
from rss_pipeline.collector.http.address_policy import OwnMachine, PrivateHosts
from rss_pipeline.collector.http.addresses import AddressRange
from rss_pipeline.collector.http.client import Client, FetchPolicy
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.collector.models.hold import url_hash
from rss_pipeline.collector.models.outcome import NotBegun

ACCEPT_IMAGES = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"


def fetch_images(
    requests: Sequence[ImageRequest],
    *,
    policy: FetchPolicy,
    spool: Path,
    keep: KeepImage[T],
    clock: Clock = utc_now,
    on_done: Callable[[ImageRequest, ImageOutcome[T]], None] | None = None,
    pace: Pace | None = None,
    holds: Holds | None = None,
    is_wanted: Callable[[ImageRequest], bool] = lambda _: True,
    is_leased: Callable[[], bool] = lambda: True,
    leases: HostLeases | None = None,
    referers: Referers | None = None,
    was_requested: Callable[[str], bool] = lambda _: False,
) -> list[ImageOutcome[T]]:
    """Download each image once, within the policy (`image_policy`); outcomes in the order of `requests`.

    `keep` stores an image and may block: it is called in threads of the round, at most `policy.concurrency`
    at the same time. The image holds its slot until `keep` returns, so no more bodies than that exist at any
    moment. An image in a file is removed afterwards. `on_done` is called in the caller's thread as outcomes
    arrive. A process passes one `pace` to all its rounds. `holds` are as in `fetch_feeds`. An
    image that `is_wanted` refuses when its turn comes is `NotBegun`; so is one that has no turn before
    `is_leased` says that the lease of the round has lapsed. `leases` hold the hosts that redirects lead to.
    `referers` knows the hosts that need a Referer, and learns others. `was_requested` gets the `url_hash` of
    a URL, in a thread, and is True if that was requested before, on this day.

    An error of an image is a `Failure`, never an exception; so is `StorageRejected` from `keep`. Raises
    `InfrastructureError` if `keep` does or the spool cannot be written: the round ends, and images without an
    outcome are as before. An exception raised in the caller's thread while it waits ends all requests and is
    raised again, after the running calls of `keep` have ended.
    """
    queues = _by_host(requests)
    known = holds or Holds(clock)
    needed = referers or Referers()
    requested = {url for url in (_hash(each) for each in requests if each.shares) if url}

    async def work(report: Report[ImageOutcome[T]]) -> None:
        turns = Turns(
            pace or Pace(), policy=policy, holds=known, is_leased=is_leased, leases=leases, clock=clock
        )

        async def serve(queue: deque[int], client: Client) -> None:
            # One image after the other: a waiting image is only a number in the queue.
            while queue:
                index = queue.popleft()
                image = requests[index]
                visit = ImageVisit(
                    image=image,
                    requests=VisitRequests(
                        client=client,
                        turns=turns,
                        policy=policy,
                        clock=clock,
                        # Its feed's private hosts are opened where they are needed (`ImageVisit`).
                        private=PrivateHosts(own=image.private.own),
                    ),
                    referers=needed,
                    requested=requested,
                    was_requested=was_requested,
                    holds=known,
                    spool=spool,
                    keep=keep,
                    keepers=keepers,
                    is_last=lambda host: not (queues.get(host) or turns.is_awaited(host)),
                )
                report(index, await visit.run() if is_wanted(image) else NotBegun())

        own = replace(policy, network=turns.network)
        async with Client(own) as client, asyncio.TaskGroup() as group:
            for queue in queues.values():
                # More tasks than connections: while one image is stored, the next one is requested.
                for _ in range(min(len(queue), policy.concurrency)):
                    group.create_task(serve(queue, client))

    # The end of the block waits for running calls of `keep`, also if the round was cancelled.
    with ThreadPoolExecutor(policy.concurrency, thread_name_prefix="fetch-keep") as keepers:
        return run_round(work, requests, on_done)


def image_policy(
    *,
    user_agent: str,
    concurrency: int = 16,
    connections_per_host: int = 2,
    host_delay: float = 0.2,
    deadline: float = 20.0,
    round_seconds: float | None = 120.0,
    proxy: str | None = None,
    ca_file: Path | None = None,
    allow_networks: tuple[AddressRange, ...] = (),
    allow_ports: frozenset[int] = frozenset(),
    machine: OwnMachine | None = None,
) -> FetchPolicy:
    """The policy for images: kept connections, at most 15 MB and `deadline` seconds for each image."""
    return FetchPolicy(
        user_agent=user_agent,
        accept=ACCEPT_IMAGES,
        concurrency=concurrency,
        connections_per_host=connections_per_host,
        host_delay=host_delay,
        keep_alive=True,
        deadline=deadline,
        round_seconds=round_seconds,
        max_wire_bytes=15_000_000,
        max_body_bytes=15_000_000,
        proxy=proxy,
        ca_file=ca_file,
        allow_networks=allow_networks,
        allow_ports=allow_ports,
        machine=machine or OwnMachine(),
    )


def _hash(image: ImageRequest) -> str | None:
    try:
        return url_hash(request_url(image.url).wire_url)
    except FetchError:
        return None


def _by_host(requests: Sequence[ImageRequest]) -> dict[str, deque[int]]:
    """Indexes of the requests by the host of their URL; "" for URLs without one."""
    queues: dict[str, deque[int]] = {}
    for index, request in enumerate(requests):
        try:
            host = request_url(request.url).host
        except FetchError:
            host = ""
        queues.setdefault(host, deque()).append(index)
    return queues
