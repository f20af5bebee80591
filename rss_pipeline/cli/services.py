"""The process below `rss-pipeline up` from which all others are forked: first the reader, then Dagster's.

Its imports come in two parts, so that the reader serves before Dagster is imported. The supervisor starts it,
with its own process id, the open files that it hands over, and the workspace.yaml. What it does from then on
is in orchestration/serving/.
"""

import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rss_pipeline.cli.early import EARLY, received
from rss_pipeline.cli.reader import of_features, serve_reader
from rss_pipeline.cli.start import share_heaps
from rss_pipeline.environment import load_env_file
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.serving.forked import AGAIN, DONE, FAILED, Forked, expect_objects
from rss_pipeline.orchestration.serving.front import Front
from rss_pipeline.orchestration.serving.kept import Kept
from rss_pipeline.settings import Settings
from rss_pipeline.storage.schema import migrations
from rss_pipeline.web import healthz
from rss_pipeline.web.on_demand import RENEW, idle_seconds

_OF_THE_READER = (
    "rss_pipeline.api.server",
    "anyio._backends._asyncio",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
    *(["uvicorn.loops.uvloop"] if find_spec("uvloop") else []),
)
"""Modules that each reader would load for itself."""

_LEFT_OUT = ("cryptography", "greenlet", "pydantic.v1", "pygments", "rich", "watchfiles")
"""Packages that libraries load where they are installed, for what none of these processes does. FastAPI asks
of each model whether it is one of Pydantic 1."""


def main() -> int:
    """Run all processes of `up`; return the exit code."""
    # A shell that starts `up` in the background makes all of it ignore SIGINT, and Dagster gives SIGTERM the
    # same handler: nothing would end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    share_heaps()
    # Those that imports make stay: see cli/start.py.
    expect_objects()
    with _left_out():
        if (arguments := _arguments()) is None:
            return FAILED
        up, handed_over, doors, workspace = arguments
        if os.getppid() != up:
            return FAILED  # It was killed meanwhile: nothing begins beside the next one.
        # All of them before the first fork, which keeps no other's.
        ui, *reader = map(_door, doors)
        load_env_file(Path.cwd())
        settings = Settings.from_environ(os.environ, cwd=Path.cwd())
        looks = _looks(settings) if reader else {}
        of_reader = _reader(settings, reader[0], looks_are_forked=bool(looks)) if reader else None
        healthz.note(["Dagster"])
        if of_reader is not None:
            of_reader.look()
        from rss_pipeline.orchestration.serving.services import run

    return run(
        settings,
        workspace,
        ui=ui,
        reader=of_reader,
        looks=looks,
        parent=up,
        handed_over=handed_over,
    )


def _arguments() -> tuple[int, int, Sequence[int], Path | None] | None:
    """The id of `up`, the numbers of the file that it hands over and of its sockets, and the workspace.yaml.
    None where it has ended before it has sent them (early.py)."""
    arguments, here = sys.argv[1:], None
    if arguments[1] == EARLY:
        # What takes time, and needs nothing of them.
        _load_reader()
        if (said := received(int(arguments[2]))) is None:
            return None
        command, here = said
        arguments = command[command.index("-m") + 2 :]
    up, numbers, *workspace = arguments
    handed_over, *doors = ((here or {}).get(each, each) for each in map(int, numbers.split(",")))
    return int(up), handed_over, doors, Path(workspace[0]) if workspace else None


@contextmanager
def _left_out() -> Iterator[None]:
    """Let imports of these packages fail, as where they are not installed: 16 MB, and a tenth of the imports'
    time. Afterwards a person's own code may load them."""
    missing: dict[str, Any] = {name: None for name in _LEFT_OUT if name not in sys.modules}
    sys.modules.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]


def _door(number: int) -> socket.socket:
    door = socket.socket(fileno=number)
    door.set_inheritable(False)
    Forked.listeners.append(door)
    return door


def _looks(settings: Settings) -> dict[str, Callable[[bool], int]]:
    """The work of features beside the reader whenever the database has changed, by name."""
    if sys.platform != "linux" or not settings.database.is_here:
        return {}
    return {each.name: each.look for each in of_features(settings) if each.look is not None}


def _reader(settings: Settings, door: socket.socket, *, looks_are_forked: bool) -> Kept:
    """The reader, which needs no Dagster."""
    if sys.platform != "linux":
        front = Front(door, hands_over=False)
        command = [sys.executable, "-m", "rss_pipeline.cli", "reader", "--listener", str(door.fileno())]
        return Kept("The reader", lambda: subprocess.Popen(command, pass_fds=[door.fileno()]), front=front)
    _load_reader()
    # Without a look for garbage, of which imports leave none, and which takes 0.06 s.
    gc.freeze()
    last: Forked | None = None
    front = Front(door)

    def start() -> Forked:
        nonlocal last
        # One that failed has not said where it serves.
        is_said = last is None or last.returncode == FAILED
        last = Forked(
            "rss-reader",
            lambda: _serve(settings, front, looks_are_forked, is_said),
            keeps=[door, *front.clients],
        )
        return last

    return Kept("The reader", start, front=front)


def _load_reader() -> None:
    for module in _OF_THE_READER:
        import_module(module)
    for feature in FEATURES:
        for beside in feature.beside_reader:
            beside.load()
        for kept in feature.reader_objects:
            kept.load()
    migrations()


def _serve(settings: Settings, front: Front, looks_are_forked: bool, is_said: bool) -> int:
    # An interrupt is for the server, as in a process of its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # No event: a handler takes no lock.
    renewed: list[int] = []
    signal.signal(RENEW, lambda number, _: renewed.append(number))
    try:
        stays = serve_reader(
            settings,
            listener=front.listener,
            clients=[*front.clients],
            idle_seconds=lambda is_needed: 0.0 if renewed else idle_seconds(is_needed),
            is_said=is_said,
            looks_are_forked=looks_are_forked,
        )
    except RssPipelineError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    return AGAIN if stays else DONE


if __name__ == "__main__":
    code = FAILED
    try:
        code = main()
    except RssPipelineError as error:
        sys.stderr.write(f"{error}\n")
    except KeyboardInterrupt:
        code = DONE
    finally:
        if os.getppid() != int(sys.argv[1]) and os.getpgrp() == os.getpid():
            # What the supervisor would do: runs that are in progress release their claims.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(os.getpgrp(), signal.SIGTERM)
    # As a shell says it: one that was killed in the middle of the start is no mistake of a setting.
    sys.exit(code if code >= 0 else 128 - code)
