"""The processes under `rss-pipeline up`, forked from one: daemon, runs, and a webserver where somebody looks.

A process that ends is forked again alone. When the one from which all are forked ends, all end with it, and
the supervisor (cli/supervisor.py) starts it again. It is cli/services.py; this is its part with Dagster.
https://docs.dagster.io/deployment/oss/oss-deployment-architecture
"""

import logging
import os
import pickle
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import InfrastructureError, sentence_for
from rss_pipeline.features import FEATURES
from rss_pipeline.features.packages import missing_packages
from rss_pipeline.orchestration.dagster_private import configure_loggers, setup_interrupt_handlers
from rss_pipeline.orchestration.instance.clock_shift import heal_ticks
from rss_pipeline.orchestration.instance.dead_runs import (
    begin_to_cancel,
    dead_among,
    end_canceled,
    end_of_last_up,
)
from rss_pipeline.orchestration.instance.home import changed_by_hand, open_instance, prepare_home
from rss_pipeline.orchestration.instance.own_location import OWN_MODULE, move_states
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.serving import daemon, webserver
from rss_pipeline.orchestration.serving.beats import until_beat
from rss_pipeline.orchestration.serving.code_servers import watched
from rss_pipeline.orchestration.serving.forked import DONE, FAILED, Forked, freeze
from rss_pipeline.orchestration.serving.front import Front
from rss_pipeline.orchestration.serving.kept import Follower, Kept
from rss_pipeline.orchestration.serving.locations import Places
from rss_pipeline.orchestration.serving.runner import Runner, listen, stop
from rss_pipeline.orchestration.serving.warmed import opened, warm
from rss_pipeline.orchestration.wakes import Files, longer_intervals, with_log
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.session.parser_pool import PRELOADED
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.web import healthz
from rss_pipeline.web.on_demand import IDLE_SECONDS

LOOK_SECONDS = 1.0
STOP_SECONDS = 60.0
"""Time for webserver and daemon to end by themselves."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 5.0, 60.0
"""Between two starts of Dagster that fail, while the reader serves alone."""
RECORD_SECONDS = 20.0
"""Time to record how runs end, which is some milliseconds unless another process has locked the history."""
_NOT_RECORDED = "It could not be recorded which runs were stopped: %s."

_LOADED_BY_ALL = (
    "anyio._backends._asyncio",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
)
"""Modules that a webserver would load for itself."""

_logger = logging.getLogger("dagster")


def run(
    settings: Settings,
    workspace: Path | None,
    *,
    ui: socket.socket,
    reader: Kept | None,
    looks: Mapping[str, Callable[[bool], int]],
    parent: int,
    handed_over: int,
) -> int:
    """Run all processes until this one is interrupted, or its parent has this id no longer; return the exit
    code.

    The code locations are those of this workspace.yaml, or else the pipeline alone. `ui` is the socket of
    Dagster's UI, `looks` are made while somebody reads and the database changes, `handed_over` is a file with
    what `up` has synced.
    """
    # Some of Dagster's messages are for those who develop their code beside it, as under `dagster dev`.
    os.environ["DAGSTER_IS_DEV_CLI"] = "1"
    configure_loggers()
    setup_interrupt_handlers()
    home = prepare_home(settings)
    with (
        # Before the definitions are loaded: their sensors ask it for their intervals.
        longer_intervals(settings),
        TemporaryDirectory() as folder,
    ):
        # It reads dagster.yaml as well: a mistake there is said once.
        places, file = Places.of(workspace, home=home), Path(folder) / "workspace.yaml"
        prepared = Forked("rss-prepare", lambda: prepare(settings, handed_over))
        places.write(file)
        for module in (OWN_MODULE, *_LOADED_BY_ALL, *PRELOADED):
            import_module(module)
        for key in (each for feature in FEATURES for each in feature.feed_keys.values()):
            if key.reads is not None:
                # As PRELOADED: each parser process would load it for itself.
                key.reads.load()
        wait = FIRST_WAIT_SECONDS
        while (code := prepared.wait()) != DONE:
            if reader is None:
                return code
            _complain(f"Dagster did not start: the reader serves alone. It is tried again in {wait:g} s.")
            if not _serve_alone(reader, parent=parent, seconds=wait):
                return FAILED
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)
            prepared = Forked("rss-prepare", lambda: prepare(settings, handed_over))
        servers = _inside(settings, file, ui) if not places.in_servers else [_beside(places, file, ui)]
        followers = [] if reader is None else [_follower(settings, reader, *each) for each in looks.items()]
        servers += [] if reader is None else [reader]
        runner = Runner(settings, listen(), servers, followers)
        if not places.in_servers:
            webserver.schema()
            warm(settings, file)
        freeze()
        if reader is not None and sys.platform == "linux":
            # Forked before these imports, the first one shares 25 MB less with the others than the next.
            reader.renew()
        return _keep_running(settings, runner, parent=parent)


def _serve_alone(reader: Kept, *, parent: int, seconds: float) -> bool:
    """Keep the reader running for so long, without Dagster; False where `up` has ended meanwhile."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.getppid() != parent:
            return False
        reader.look()
        healthz.note(["Dagster"])
        for ready in select.select(reader.awaited, [], [], until_beat())[0]:
            reader.heard(ready)
    return True


def _inside(settings: Settings, file: Path, ui: socket.socket) -> list[Kept]:
    """Daemon and webserver with our code inside, by this workspace file."""

    front = Front(ui)

    def serve_ui() -> int:
        clients = [*front.clients]
        return webserver.serve(file, settings, ui, clients, idle_seconds=lambda: IDLE_SECONDS)

    return [
        Kept("Dagster's daemon", lambda: Forked("rss-daemon", lambda: daemon.serve(file, settings))),
        Kept(
            "Dagster's webserver",
            lambda: Forked("rss-webserver", serve_ui, keeps=[ui, *front.clients]),
            front=front,
            at_once=False,
        ),
    ]


def _beside(places: Places, file: Path, ui: socket.socket) -> Kept:
    """Daemon and webserver beside code servers, all of which end together."""
    parent = os.getpid()

    def serve_all() -> int:
        with opened() as instance, places.served(instance, file):
            return until_one_ends(
                {
                    "webserver": (f"{webserver.__name__}", str(file), str(ui.fileno())),
                    "daemon": (f"{daemon.__name__}", str(file)),
                },
                on_look=watched(os.getpid()),
                # Not as the child would see it: this process may have been killed while code servers began.
                parent=parent,
                pass_fds=[ui.fileno()],
            )

    return Kept("Dagster", lambda: Forked("rss-dagster", serve_all, keeps=[ui]))


def _follower(settings: Settings, reader: Kept, name: str, look: Callable[[bool], int]) -> Follower:
    return Follower(
        name,
        lambda is_said: Forked("rss-look", lambda: look(is_said)),
        Files(*with_log(settings.database_path)).have_changed,
        beside=reader,
    )


def _keep_running(settings: Settings, runner: Runner, *, parent: int) -> int:
    """Run them all; return the exit code. Runs of other machines go on at the end."""
    is_alone, group = settings.runs_elsewhere is None, os.getpgrp()
    try:
        runner.keep_running(parent=parent)
        # Its lock on the home is free: the next `up` would start a second daemon beside ours.
        _logger.error("`rss-pipeline up` was killed: its processes end")
        return FAILED
    except KeyboardInterrupt:
        is_alone = is_alone and _recorded(settings, lambda it: begin_to_cancel(it, group=group))
        raise
    finally:
        runner.end(seconds=STOP_SECONDS)
        if is_alone:
            _recorded(settings, end_canceled)


def _recorded(settings: Settings, work: Callable[[dg.DagsterInstance], object]) -> bool:
    """Record in the instance how runs end, in a process of its own. Where that fails, as in a home that was
    deleted, or takes long, as behind a lock, say so in a sentence and return False: the end goes on."""

    def record() -> int:
        try:
            with opened() as instance:
                work(instance)
        except Exception as error:  # noqa: BLE001
            home = settings.dagster_home
            cause, *_ = str(error).splitlines() or [type(error).__name__]
            is_gone = f"{home} is not there any more"
            _complain(_NOT_RECORDED % (sentence_for(error, home) or (cause if home.exists() else is_gone)))
            return FAILED
        return DONE

    process = None
    try:
        process = Forked("rss-cancel", record)
        return process.wait(timeout=RECORD_SECONDS) == DONE
    except InfrastructureError as error:
        _complain(_NOT_RECORDED % error)
    except subprocess.TimeoutExpired:
        _complain(_NOT_RECORDED % f"it took more than {RECORD_SECONDS:g} s")
    finally:
        if process is not None:
            process.kill()
    return False


def prepare(settings: Settings, handed_over: int) -> int:
    """Give the instance what `up` has synced, let sensors go on if the clock was put back, and end the runs
    of an `up` that was killed; return the exit code. A process of its own leaves no open database behind."""
    try:
        with open_database(settings) as database, open_instance(settings) as instance:
            if (sentence := changed_by_hand(settings)) is not None:
                _complain(sentence)
            for extra, problem in missing_packages(database, settings):
                _complain(f"{problem}. {extra.fix}")
            if (synced := _synced(handed_over)) is not None:
                register(database, instance, synced)
                # Once: a feed that was forgotten may be back when these processes start again.
                os.ftruncate(handed_over, 0)
            heal_ticks(instance, now=utc_now())
            move_states(instance)
            killed = end_of_last_up(instance)
            # One that was interrupted twice may have reported its end, and kept its claims.
            ended = dead_among(instance, leases.live_run_ids(database), now=utc_now())
            leases.end_of_killed(database, [*killed, *ended], host_delay=settings.host_delay_seconds)
    except Exception as error:
        if (sentence := sentence_for(error, settings.home, settings.dagster_home)) is None:
            raise
        _complain(sentence)
        return FAILED
    return DONE


def _synced(handed_over: int) -> RegistrySync | None:
    """The sync of `up`, which wrote this file itself; None if feeds.yaml has mistakes, or the next time."""
    size = os.fstat(handed_over).st_size
    found = pickle.loads(os.pread(handed_over, size, 0)) if size else None
    assert found is None or isinstance(found, RegistrySync)
    return found


def _complain(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def until_one_ends(
    modules: Mapping[str, Sequence[str]],
    *,
    parent: int,
    look: float = LOOK_SECONDS,
    seconds: float = STOP_SECONDS,
    on_look: Callable[[], None] = lambda: None,
    pass_fds: Sequence[int] = (),
) -> int:
    """Run these modules with their arguments, each in a process, until one ends; then end the others.

    `on_look` is called at each look. Return the exit code 1; an interrupt, or the end of this process's
    parent, ends them all, too.
    """
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, module in modules.items():
            processes[name] = subprocess.Popen([sys.executable, "-m", *module], pass_fds=pass_fds)
        while os.getppid() == parent:
            for name, process in processes.items():
                if process.poll() is not None:
                    _logger.error("Dagster's %s ended (exit code %s)", name, process.returncode)
                    return FAILED
            on_look()
            time.sleep(look)
        return FAILED
    finally:
        stop([*processes.values()], seconds=seconds)
