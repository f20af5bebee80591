"""Parts that the tests of one request share: an exchange with a server, and what its failure must be.

No test is in here.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import FetchOutcome
from rss_pipeline_tests.collector.fetch.rounds import feed, fetch
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST, OTHER = "127.0.0.2", "127.0.0.3"


def failure(outcome: FetchOutcome, kind: str, spool: Path) -> Failure:
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome
    assert outcome.message.endswith(".")
    assert list(spool.iterdir()) == []
    return outcome


def ask(server: FeedServer, answer: Answer, spool: Path, **policy: Any) -> FetchOutcome:
    return fetch(feed(server.route(HOST, "/feed", answer)), spool, **policy)


@contextmanager
def served_once(answer: bytes | None) -> Iterator[str]:
    """The address of a listener that reads once, sends `answer` and closes; None resets the connection."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            client.recv(9999)
            if answer is None:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                client.sendall(answer)
            client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"{HOST}:{listener.getsockname()[1]}"
        thread.join()
