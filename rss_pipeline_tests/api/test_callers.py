"""The number of requests that make bodies at one time, and that the others do not wait for them."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rss_pipeline.api.auth import AsyncCaller
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reader.accounts.callers import Caller, SessionKey
from rss_pipeline.reader.stores import MAKERS, Stores, open_stores
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.schema import migrate

PATIENCE_SECONDS = 60


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    settings = Settings.from_environ({"RSS_PIPELINE_HOME": str(tmp_path)}, cwd=tmp_path)
    database = connect(settings)
    migrate(database)
    database.close()
    with open_stores(settings) as found:
        yield found


def test_few_make_bodies_at_one_time_in_their_order_and_others_do_not_wait(stores: Stores) -> None:
    caller = AsyncCaller(stores, SessionKey("session", "user", "google_reader"), utc_now)
    begun: list[int] = []
    may_end = [threading.Event() for _ in range(5)]

    def made(number: int) -> int:
        begun.append(number)
        assert may_end[number].wait(PATIENCE_SECONDS)
        return number

    async def scenario() -> None:
        makers = [asyncio.create_task(caller.make(lambda _, n=n: made(n))) for n in range(5)]
        # Each of these takes a thread, as many as there are.
        assert await asyncio.gather(*(caller.run(lambda _: "kept") for _ in range(50))) == ["kept"] * 50
        while len(begun) < MAKERS:
            await caller.run(lambda _: None)
        for number, event in enumerate(may_end):
            assert sorted(begun) == list(range(min(number + MAKERS, 5)))
            event.set()
            assert await makers[number] == number
            while len(begun) < min(number + 1 + MAKERS, 5):
                await caller.run(lambda _: None)

    async def limited() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await scenario()

    asyncio.run(limited())


def test_a_place_is_released_by_an_error(stores: Stores) -> None:
    caller = AsyncCaller(stores, SessionKey("session", "user", "google_reader"), utc_now)

    def fail(_: Caller) -> None:
        raise ValueError

    async def scenario() -> str:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(MAKERS + 1):
                with pytest.raises(ValueError):
                    await caller.make(fail)
            return await caller.make(lambda _: "made")

    assert asyncio.run(scenario()) == "made"
