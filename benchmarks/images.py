"""What downloading images costs beside a bare httpx script: `python -m benchmarks.images`.

10,000 images of 40 KB on 100 hosts (127.x.y.z), pacing off, 16 at once. `job` is the whole job
`download_images` with its claims, records and Dagster's events, from the start of its step to the end, on
SQLite and a folder; `fetch` is the collector and the folder alone; `bare` writes plain files. Rounds
alternate, each in a process of its own that times its own downloads; the ratios are those of the medians.
"""

import argparse
import asyncio
import json
import multiprocessing
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from benchmarks.processes import Measured, environment, measure
from rss_pipeline.storage.database import Database

IMAGES_AN_ITEM = 10
IMAGE_BYTES = 40_000
AT_ONCE = 16
ROUND = 1_000
"""Requests a call of `fetch_images`, as a job claims them."""

_HOSTS = [f"127.2.0.{number}" for number in range(1, 101)]
_HEAD = b"\xff\xd8\xff\xe0\0\x10JFIF\0"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--images", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--folder", type=Path, help="where to write; a temporary folder if not given")
    arguments.add_argument("--only", choices=_SIDES, help=argparse.SUPPRESS)
    arguments.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.only:
        seconds = _SIDES[given.only](_urls(given.port, given.images), given.folder)
        print(json.dumps([seconds, time.process_time()]))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, _serving() as port:
        compare(Path(folder), port, images=given.images, rounds=given.rounds)


def compare(scratch: Path, port: int, *, images: int, rounds: int) -> None:
    """Print a line a round and the ratio."""
    took: dict[str, list[float]] = {side: [] for side in _SIDES}
    for round_ in range(1, rounds + 1):
        for side in _SIDES:
            seconds, processor, measured = _run(side, scratch / side, port, images)
            took[side].append(seconds)
            print(
                f"round {round_}  {side:<5} {seconds:6.2f} s, {processor:6.2f} s of processor,"
                f" {measured.peak_rss / 1e6:4.0f} MB",
                flush=True,
            )
    bare = statistics.median(took["bare"])
    for side in ("fetch", "job"):
        ours = statistics.median(took[side])
        print(
            f"{images:,} images of {IMAGE_BYTES:,} bytes, {side}: {ours:.2f} s to {bare:.2f} s, ratio"
            f" {ours / bare:.2f}"
        )


def _run(side: str, folder: Path, port: int, images: int) -> tuple[float, float, Measured]:
    folder.mkdir()
    try:
        command = [sys.executable, "-m", "benchmarks.images", "--only", side, "--port", str(port)]
        command += ["--images", str(images), "--folder", str(folder)]
        measured = measure(command, cwd=Path(__file__).parents[1], env=environment())
        if measured.exit_code:
            raise SystemExit(f"{side} ended with {measured.exit_code}:\n{measured.stderr}")
        files = [path for path in folder.rglob("*.jpg") if path.stat().st_size == IMAGE_BYTES]
        if len(files) != images:
            raise SystemExit(f"{side} wrote {len(files)} whole images instead of {images}")
        seconds, processor = json.loads(measured.stdout)
        return seconds, processor, measured
    finally:
        shutil.rmtree(folder)


def _job(urls: Sequence[str], folder: Path) -> float:
    import dagster as dg

    from rss_pipeline.orchestration.build import build_definitions
    from rss_pipeline.settings import Settings
    from rss_pipeline.storage.backends.connect import open_database

    settings = Settings(
        home=folder,
        feeds_file=folder / "feeds.yaml",
        user_agent="benchmark",
        image_concurrency=AT_ONCE,
        image_host_delay_seconds=0.0,
    )
    with open_database(settings) as database:
        _write_tasks(database, urls)
    (folder / "dagster").mkdir()
    with dg.DagsterInstance.from_config(str(folder / "dagster")) as instance:
        job = build_definitions(settings).resolve_job_def("download_images")
        result = job.execute_in_process(
            instance=instance, run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
        )
        steps = instance.get_run_step_stats(result.run_id)
        with open_database(settings) as database:
            done = database.query("SELECT count(*) AS n FROM image_tasks WHERE status = 'success'").rows
            assert done == [{"n": len(urls)}]
    (step,) = [step for step in steps if step.step_key == "item_images"]
    assert step.start_time is not None
    assert step.end_time is not None
    return step.end_time - step.start_time


def _write_tasks(database: Database, urls: Sequence[str]) -> None:
    """As polls would have left them: an item has ten images, a feed one host's."""
    at = "2026-01-01T00:00:00Z"
    database.query(
        """INSERT INTO feeds (id, url, host, allow_private, private_hosts, next_fetch_at, created_at)
        SELECT 'feed-' || value, 'http://127.0.0.1/' || value, '127.0.0.1', 1, '["127.0.0.0/8"]', ?, ?
        FROM json_each(?)""",
        [at, at, json.dumps(list(range(len(_HOSTS))))],
    )
    items = [[number, f"feed-{number % len(_HOSTS)}"] for number in range(-(-len(urls) // IMAGES_AN_ITEM))]
    database.query(
        """INSERT INTO items (id, feed_id, guid, pub_date, created_at, guid_source, pub_date_source)
        SELECT 'item-' || json_extract(value, '$[0]'), json_extract(value, '$[1]'),
          'guid-' || json_extract(value, '$[0]'), ?, ?, 'guid', 'feed' FROM json_each(?)""",
        [at, at, json.dumps(items)],
    )
    for start in range(0, len(urls), ROUND):
        tasks = [
            [f"{number:032x}", f"item-{number // IMAGES_AN_ITEM}", url, urlsplit(url).hostname, number % 10]
            for number, url in enumerate(urls[start : start + ROUND], start)
        ]
        database.query(
            """INSERT INTO image_tasks (id, item_id, original_url, host, position, created_at, updated_at)
            SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
              json_extract(value, '$[3]'), json_extract(value, '$[4]'), ?, ? FROM json_each(?)""",
            [at, at, json.dumps(tasks)],
        )


def _fetch(urls: Sequence[str], folder: Path) -> float:
    from rss_pipeline.collector.fetch.image_body import Image
    from rss_pipeline.collector.fetch.image_round import fetch_images, image_policy
    from rss_pipeline.collector.fetch.image_visit import ImageRequest, KeptImage
    from rss_pipeline.collector.http.private_hosts import private_hosts
    from rss_pipeline.storage.backends.folder.backend import FolderStore

    store, spool = FolderStore(folder / "objects"), folder / "spool"
    spool.mkdir()

    def keep(request: ImageRequest, image: Image) -> int:
        store.put(
            f"images/{_name(int(request.id))}.{image.type.extension}",
            image.body,
            content_type=image.type.content_type,
            metadata={"task-id": f"{int(request.id):032x}"},
            only_if_absent=True,
        )
        return image.size

    policy = image_policy(user_agent="benchmark", concurrency=AT_ONCE, host_delay=0.0, round_seconds=None)
    requests = [
        ImageRequest(id=str(number), url=url, private=private_hosts(url, allow_private=True))
        for number, url in enumerate(urls)
    ]
    started = time.perf_counter()
    for start in range(0, len(requests), ROUND):
        batch = requests[start : start + ROUND]
        for outcome in fetch_images(batch, policy=policy, spool=spool, keep=keep):
            assert isinstance(outcome, KeptImage), outcome
    return time.perf_counter() - started


def _bare(urls: Sequence[str], folder: Path) -> float:
    async def download_all() -> None:
        waiting = iter(enumerate(urls))

        async def download(client: httpx.AsyncClient) -> None:
            for number, url in waiting:
                answer = await client.get(url)
                answer.raise_for_status()
                path = folder / f"{_name(number)}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(answer.content)

        async with httpx.AsyncClient(trust_env=False) as client, asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(download(client))

    started = time.perf_counter()
    asyncio.run(download_all())
    return time.perf_counter() - started


_SIDES = {"bare": _bare, "fetch": _fetch, "job": _job}


def _urls(port: int, images: int) -> list[str]:
    """Item after item, their feeds' hosts in turn."""
    return [
        f"http://{_HOSTS[number // IMAGES_AN_ITEM % len(_HOSTS)]}:{port}/{number}.jpg"
        for number in range(images)
    ]


def _name(number: int) -> str:
    """Folder and file as the store's keys have them: a feed, an item, a position."""
    item, position = divmod(number, IMAGES_AN_ITEM)
    return f"feed-{item % len(_HOSTS)}/{item:08x}/{position}"


@contextmanager
def _serving() -> Iterator[int]:
    """The port of a server in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _serve(connection: Connection) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_Images, _HOSTS[0], 0, backlog=1024)
        port = server.sockets[0].getsockname()[1]
        others = await loop.create_server(_Images, _HOSTS[1:], port, backlog=1024)
        connection.send(port)
        left_alone = asyncio.Event()
        loop.add_reader(connection.fileno(), left_alone.set)
        async with server, others:
            await left_alone.wait()

    asyncio.run(serve())


class _Images(asyncio.Protocol):
    """Every path is an image, its bytes made of the path."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            target = head.split(b" ", 2)[1]
            body = (_HEAD + target).ljust(IMAGE_BYTES, b"\0")
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            if b"\r\nconnection: close" in head.lower():
                self._transport.close()
                return


if __name__ == "__main__":
    main()
