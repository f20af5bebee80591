"""A round of images: many asked at once, few a host, each kept before the next one takes its place.

Not here: what happens to one image (`image_fetch_one.py`), and where images are kept.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.image import ImageOutcome, ImageRequest, ImageVisit, KeepImage, T
from rss_pipeline.collector.fetch.loop_thread import Tell, run_round
from rss_pipeline.collector.fetch.pacing import Pace, Turns
from rss_pipeline.collector.fetch.visit_requests import VisitRequests
from rss_pipeline.collector.http.addresses import AddressRange
from rss_pipeline.collector.http.client import Client, FetchPolicy
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.clock import Clock, utc_now

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
) -> list[ImageOutcome[T]]:
    """Ask for every image once, within the policy (`image_policy`); one outcome a request, in their order.

    `keep` stores an image and may block: it is called in threads of the round, at most `policy.concurrency`
    at once, and the image holds its slot until `keep` returns, so that no more bodies than that exist at
    any moment. An image in a file is removed afterwards. `on_done` is called in the caller's thread as
    outcomes come. A process passes one `pace` to all its rounds. `holds` are as in `fetch_feeds`.

    An image's trouble is a `Failure`, never an exception; so is `StorageRejected` from `keep`. Raises
    `InfrastructureError` where `keep` does or the spool cannot be written: the round ends, and requests
    without an outcome are as if never asked. Whatever is raised in the caller's thread while it waits
    ends all requests and goes on up, after the images being kept have been.
    """
    outcomes: dict[int, ImageOutcome[T]] = {}
    queues = _by_host(requests)
    known = holds or Holds(clock)

    async def ask(tell: Tell[tuple[int, ImageOutcome[T]]]) -> None:
        turns = Turns(
            pace or Pace(),
            holds=known,
            host_delay=policy.host_delay,
            concurrency=policy.concurrency,
            round_seconds=policy.round_seconds,
            lanes=policy.connections_per_host,
        )

        async def serve(queue: deque[int], client: Client) -> None:
            # One image after the other: those that wait cost no more than their number.
            while queue:
                index = queue.popleft()
                request = requests[index]
                visit = ImageVisit(
                    request=request,
                    asking=VisitRequests(
                        client=client,
                        turns=turns,
                        policy=policy,
                        clock=clock,
                        allow_private=request.allow_private,
                    ),
                    holds=known,
                    spool=spool,
                    keep=keep,
                    keepers=keepers,
                    is_last=lambda host: not (queues.get(host) or turns.is_awaited(host)),
                )
                tell((index, await visit.run()))

        async with Client(policy) as client, asyncio.TaskGroup() as group:
            for queue in queues.values():
                # More than its connections: while one image is kept, the host is asked for the next.
                for _ in range(min(len(queue), policy.concurrency)):
                    group.create_task(serve(queue, client))

    def told(done: tuple[int, ImageOutcome[T]]) -> None:
        index, outcome = done
        outcomes[index] = outcome
        if on_done is not None:
            on_done(requests[index], outcome)

    # Leaving the block waits for images that are being kept, also where the round was broken off.
    with ThreadPoolExecutor(policy.concurrency, thread_name_prefix="fetch-keep") as keepers:
        run_round(ask, told)
    return [outcomes[index] for index in range(len(requests))]


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
) -> FetchPolicy:
    """How images are asked for: on kept connections, at most 15 MB and `deadline` seconds each."""
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
    )


def _by_host(requests: Sequence[ImageRequest]) -> dict[str, deque[int]]:
    """Indexes of the requests, by the host that is asked first; "" for URLs without one."""
    queues: dict[str, deque[int]] = {}
    for index, request in enumerate(requests):
        try:
            host = request_url(request.url).host
        except FetchError:
            host = ""
        queues.setdefault(host, deque()).append(index)
    return queues
