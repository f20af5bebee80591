"""A day of `rss-pipeline up` within an hour in 512 MB, and a week at rest: nothing is killed, nothing is
late, nothing grows.

A library of some lines turns the clock of its processes faster; what they sleep and wait for takes as long as
ever. Memory is sampled as well, because a cgroup cannot be made everywhere.
"""

import os
import random
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline_tests.soak.reading_up import PASSWORD, allowed
from rss_pipeline_tests.soak.year import Publishers
from rss_pipeline_tests.support.server import FeedServer, Request
from rss_pipeline_tests.support.up import Up, members, started
from rss_pipeline_tests.support.waiting import PATIENCE, soon, times_as_long

HOURS = float(os.environ.get("RSS_SOAK_HOURS") or 24)
DAYS = float(os.environ.get("RSS_SOAK_DAYS") or 7)
DAY_RATE, WEEK_RATE = 24, 360
"""Seconds of the product's clock in one second."""
ROOM = 512_000_000
FEEDS = 300
INTERVAL, OVERDUE = 1800, 240
"""Seconds of the product's clock: the interval of the feeds, and how late they are when a poll starts."""
LATE = 90.0
"""Seconds from then until a visit begins, as the machine takes them."""
MAY_GROW = 1.05
_CGROUP = Path("/sys/fs/cgroup/memory")
_COMPILER = shutil.which("cc")
_LIBRARY = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long since, rate;

__attribute__((constructor)) static void begin(void) {
    since = atoll(getenv("TURNED_SINCE")) * 1000000000LL;
    rate = atoll(getenv("TURNED_RATE"));
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, clock, at);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    long long now = since + (at->tv_sec * 1000000000LL + at->tv_nsec - since) * rate;
    at->tv_sec = now / 1000000000LL;
    at->tv_nsec = now % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(3 * 3600),
    pytest.mark.skipif(_COMPILER is None, reason="no C compiler"),
]


def turned(folder: Path, rate: int) -> dict[str, str]:
    """The environment of programs with a clock at this rate."""
    library = folder / "turned.so"
    command = [str(_COMPILER), "-shared", "-fPIC", "-O2", "-o", str(library), "-xc", "-"]
    subprocess.run(command, input=_LIBRARY, text=True, check=True)
    return {"LD_PRELOAD": str(library), "TURNED_SINCE": str(int(time.time())), "TURNED_RATE": str(rate)}


class Watched(Publishers):
    """Feeds that note the time between two visits."""

    def begin(self) -> None:
        """All were visited just now."""
        self.last = dict.fromkeys(range(self.feeds), time.monotonic())
        self.longest = 0.0

    def visit(self, n: int) -> None:
        """This one is visited, or it is the end."""
        now = time.monotonic()
        self.longest, self.last[n] = max(self.longest, now - self.last[n]), now

    def _answering(self, n: int, images: str) -> Any:
        answer = super()._answering(n, images)

        def answering(request: Request) -> Any:
            self.visit(n)
            return answer(request)

        return answering


class Room:
    """The memory of an `up`: what its processes take, and the kills of the kernel. Files in a folder that is
    memory (/dev/shm) count for the kernel, too."""

    def __init__(self, up: Up) -> None:
        self.up = up
        self.taken: list[float] = []
        self._group = _CGROUP / f"rss-day-{os.getpid()}"
        with suppress(OSError):
            self._group.mkdir()
            (self._group / "memory.limit_in_bytes").write_text(str(ROOM))
            (self._group / "cgroup.procs").write_text(str(up.process.pid))

    def sample(self) -> None:
        """Note what is taken now."""
        taken = 0
        for process in members(self.up.process.pid):
            with suppress(psutil.NoSuchProcess):
                taken += process.memory_full_info().pss
        self.taken.append(taken)
        assert taken < ROOM, "it would be killed"
        assert self.kills() == 0, f"{taken / 1e6:.0f} MB, at most {max(self.taken) / 1e6:.0f} MB"

    def kills(self) -> int:
        """The processes that the kernel has killed for want of memory."""
        control = self._group / "memory.oom_control"
        return int(re.findall(r"oom_kill (\d+)", control.read_text())[0]) if control.exists() else 0

    def close(self) -> None:
        with suppress(OSError):
            self._group.rmdir()


@contextmanager
def in_room(folder: Path, rate: int, publishers: Publishers) -> Iterator[Room]:
    """An `up` with these feeds, all of which were visited."""
    publishers.register(file := folder / "feeds.yaml")
    # Those of everybody: users subscribe to them.
    file.write_text(re.sub(" *allow_private: .*\n", "", file.read_text("utf-8")), "utf-8")
    room = None
    try:
        with started(folder, **turned(folder, rate), **allowed(publishers.server.port)) as up:
            room = Room(up)
            soon(up.answers)
            soon(lambda: up.rows("SELECT count(*) FROM feeds WHERE last_success_at IS NULL") == [(0,)])
            yield room
            text = Path(up.log.name).read_text("utf-8")
            assert up.process.poll() is None
            assert re.findall(r".* restarted in .*", text) == []
    finally:
        if room is not None:
            room.close()


def ann(up: Up, method: str, path: str, given: dict[str, Any] | None = None) -> Any:
    """The answer to a request of this user, who logs in each time: a session is over soon at this rate."""
    with httpx.Client(base_url=f"http://127.0.0.1:{up.reader_port}", timeout=PATIENCE) as client:
        login = client.post("/api/auth/login", json={"name": "ann", "password": PASSWORD})
        headers = {"Authorization": f"Bearer {login.json()['token']}"}
        answer = client.request(method, path, json=given, headers=headers)
    assert answer.is_success, answer.text
    return answer.json()


def live(room: Room, seconds: float, *acts: tuple[float, Callable[[], object]]) -> None:
    """Let this time pass: each of these acts comes again after so many seconds."""
    began = time.monotonic()
    due = [began for _ in acts]
    while time.monotonic() < began + seconds:
        for place, (every, act) in enumerate(acts):
            if time.monotonic() >= due[place]:
                act()
                due[place] = time.monotonic() + every
        room.sample()
        time.sleep(1)


def test_in_a_day_of_polls_images_and_readers_nothing_is_killed_and_nothing_late(tmp_path: Path) -> None:
    with FeedServer() as server:
        publishers = Watched(server, FEEDS)
        publishers.begin()
        with in_room(tmp_path, DAY_RATE, publishers) as room:
            up = room.up
            done = CliRunner().invoke(
                main, ["user", "add", "ann", "--password-stdin"], input=PASSWORD, env=up.environment
            )
            assert done.exit_code == 0, done.output
            urls = [url for (url,) in up.rows("SELECT url FROM feeds ORDER BY random() LIMIT 20")]
            for url in urls:
                ann(up, "POST", "/api/feeds", {"url": url})
            publishers.begin()
            read, chance = 0, random.Random(1)

            def click() -> None:
                """Read what is new, at times not for an hour."""
                nonlocal read
                if chance.random() < 0.3:
                    unread = ann(up, "GET", "/api/items?unread_only=true&limit=50")["items"]
                    if ids := [each["id"] for each in unread]:
                        ann(up, "POST", "/api/items/mark", {"ids": ids, "is_read": True})
                    read += len(ids)

            live(
                room,
                HOURS * 3600 / DAY_RATE,
                (5.0, click),
                (60.0, up.answers),
                (30.0, server.forget),
            )
            for n in range(FEEDS):
                publishers.visit(n)
            assert up.rows("SELECT count(*) FROM image_tasks WHERE status = 'success'") > [(0,)]
            print(  # noqa: T201 - the figures of the test, with -s
                f"{HOURS:g} h: PSS median {statistics.median(room.taken) / 1e6:.0f} MB, most"
                f" {max(room.taken) / 1e6:.0f} MB; {read} items read; longest between two visits"
                f" {publishers.longest:.0f} s; load {os.getloadavg()[0]:.1f}"
            )
    assert publishers.longest < (INTERVAL + OVERDUE) / DAY_RATE + LATE * times_as_long()


def test_a_week_at_rest_lets_nothing_grow(tmp_path: Path) -> None:
    with FeedServer() as server, in_room(tmp_path, WEEK_RATE, Publishers(server, 3)) as room:
        live(room, DAYS * 86_400 / WEEK_RATE, (30.0, server.forget))
        quarter = len(room.taken) // 4
        early, late = (
            statistics.median(some) for some in (room.taken[quarter : 2 * quarter], room.taken[-quarter:])
        )
        print(f"{DAYS:g} days: PSS {early / 1e6:.0f}, then {late / 1e6:.0f} MB")  # noqa: T201
        assert late < early * MAY_GROW
