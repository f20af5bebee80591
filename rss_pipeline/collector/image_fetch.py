"""A round of images: many asked at once, few a host, each kept before the next one takes its place.

Not here: what happens to one image (`image_fetch_one.py`), and where images are kept.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from rss_pipeline.collector.http import FetchPolicy
from rss_pipeline.collector.image_fetch_one import ImageOutcome, ImageRequest, Keep, T
from rss_pipeline.collector.models import Clock, utc_now
from rss_pipeline.collector.pacing import Pace


def fetch_images(
    requests: Sequence[ImageRequest],
    *,
    policy: FetchPolicy,
    spool: Path,
    keep: Keep[T],
    clock: Clock = utc_now,
    on_done: Callable[[ImageRequest, ImageOutcome[T]], None] | None = None,
    pace: Pace | None = None,
) -> list[ImageOutcome[T]]:
    """Ask for every image once, within the policy (`image_policy`); one outcome a request, in their order.

    `keep` stores an image and may block: it is called in threads of the round, at most `policy.concurrency`
    at once, and the image holds its slot until `keep` returns, so that no more bodies than that exist at
    any moment. An image in a file is removed afterwards. `on_done` is called in the caller's thread as
    outcomes come. A process passes one `pace` to all its rounds.

    An image's trouble is a `Failure`, never an exception; so is `StorageRejected` from `keep`. Raises
    `InfrastructureError` where `keep` does or the spool cannot be written: the round ends, and requests
    without an outcome are as if never asked. Whatever is raised in the caller's thread while it waits
    ends all requests and goes on up, after the images being kept have been.
    """
    raise NotImplementedError


def image_policy(
    *,
    user_agent: str,
    concurrency: int = 16,
    connections_per_host: int = 2,
    host_delay: float = 0.2,
    round_seconds: float | None = 120.0,
    proxy: str | None = None,
) -> FetchPolicy:
    """How images are asked for: on kept connections, at most 15 MB and 20 s each."""
    raise NotImplementedError
