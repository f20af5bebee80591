"""The server from which a run's parser processes are forked, as a fork of the run itself.

multiprocessing starts that server, and one that counts semaphores, as programs of their own: both import
again what the processes of `up` share. In here are the private names of multiprocessing that are used, which
a test holds; with another version of Python all is as without this.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection, forkserver, resource_tracker
from typing import Any

from rss_pipeline.orchestration.serving.forked import DONE, Forked
from rss_pipeline.pipeline.session.parser_pool import PRELOADED, put_sockets

IS_POSSIBLE = sys.platform == "linux" and sys.version_info < (3, 14)
"""From then on a client of that server has to show a key."""
_server: Any = forkserver._forkserver
_tracker: Any = resource_tracker._resource_tracker


def fork_parser_server() -> None:
    """Fork it for this process, which has no threads yet. It ends with this process.

    Raises:
        InfrastructureError: there can be no more processes now, or no folder for its socket.
    """
    if not IS_POSSIBLE:
        return
    put_sockets(os.getpid())
    # All that work with semaphores have an end of this pipe.
    counted, counts = os.pipe()
    _tracker._pid = Forked(
        "rss-semaphores", lambda: _serve(resource_tracker.main, counted, closes=counts)
    ).pid
    _tracker._fd = counts
    os.close(counted)
    address = connection.arbitrary_address("AF_UNIX")  # type: ignore[attr-defined]
    alive, lives = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        Forked.listeners.append(listener)
        try:
            _server._forkserver_pid = Forked(
                "rss-parsers",
                lambda: _serve(forkserver.main, listener.detach(), alive, PRELOADED, closes=lives),
                keeps=[listener],
            ).pid
        finally:
            Forked.listeners.remove(listener)
    os.close(alive)
    _server._forkserver_address, _server._forkserver_alive_fd = address, lives


def _serve(main: Callable[..., None], *arguments: Any, closes: int) -> int:
    """Run this server, whose end the other end of a pipe keeps away."""
    os.close(closes)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    # So it ends.
    with suppress(SystemExit):
        main(*arguments)
    return DONE
