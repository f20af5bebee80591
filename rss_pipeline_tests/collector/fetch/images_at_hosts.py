"""Hosts with images on loopback, and fetches of them in one round.

No test is in here.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rss_pipeline.collector.fetch.image_body import Image
from rss_pipeline.collector.fetch.image_round import fetch_images, image_policy
from rss_pipeline.collector.fetch.image_visit import ImageOutcome, ImageRequest, Referers
from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline_tests.collector.fetch.rounds import LOOPBACK, InstantPace, now
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.server import Answer, FeedServer

A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"
POLICY = replace(image_policy(user_agent="rss_pipeline tests (tests@example.org)"), deadline=30.0)
GOOD = Answer(body=pictures.PNG)
LARGE = pictures.png(padded_to=1_500_000)
Stored = tuple[str, bytes, bool]
"""Extension, body, and whether it lay in a file."""


def store(request: ImageRequest, image: Image) -> Stored:
    in_file = isinstance(image.body, Path)
    body = image.body.read_bytes() if isinstance(image.body, Path) else image.body
    assert image.size == len(body)
    return image.type.extension, body, in_file


def wanted(urls: list[str], item_link: str | None = None, attempts: int = 0) -> list[ImageRequest]:
    return [
        ImageRequest(id=f"task-{n}", url=url, item_link=item_link, private=LOOPBACK, attempts=attempts)
        for n, url in enumerate(urls)
    ]


def fetch(
    urls: list[str],
    spool: Path,
    *,
    keep: Callable[[ImageRequest, Image], Any] = store,
    pace: Pace | None = None,
    item_link: str | None = None,
    attempts: int = 0,
    referers: Referers | None = None,
    **policy: Any,
) -> list[ImageOutcome[Any]]:
    outcomes = fetch_images(
        wanted(urls, item_link, attempts),
        policy=replace(POLICY, **policy),
        spool=spool,
        keep=keep,
        clock=now,
        pace=pace or InstantPace(),
        referers=referers,
    )
    assert list(spool.iterdir()) == []
    return outcomes


def fetch_one(server: FeedServer, answer: Answer, spool: Path, **more: Any) -> ImageOutcome[Any]:
    [outcome] = fetch([server.route(A, "/image", answer)], spool, **more)
    return outcome


def failure(outcome: ImageOutcome[Any], kind: str) -> Failure:
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome
    assert outcome.message.endswith(".")
    assert "feeds.yaml" not in outcome.message
    return outcome
