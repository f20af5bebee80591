"""The webserver of `rss-pipeline up`: Dagster's UI and GraphQL, closed to pages of other sites.

`dagster-webserver` checks neither Host nor Origin, and takes mutations by GET; this is its start with the
layer around it. The layer is web/same_origin.py; services.py starts this process.
https://docs.dagster.io/guides/operate/webserver
"""

import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from dagster_graphql.schema import create_schema
from dagster_webserver.cli import (
    DEFAULT_DB_STATEMENT_TIMEOUT,
    DEFAULT_POOL_MAX_OVERFLOW,
    DEFAULT_POOL_RECYCLE,
)
from dagster_webserver.version import __version__
from dagster_webserver.webserver import DagsterWebserver

from rss_pipeline.orchestration.dagster_private import (
    WorkspaceProcessContext,
    configure_loggers,
    setup_interrupt_handlers,
)
from rss_pipeline.orchestration.serving.locations import Locations
from rss_pipeline.orchestration.serving.warmed import opened
from rss_pipeline.settings import Settings
from rss_pipeline.web.authority import own_authorities
from rss_pipeline.web.healthz import Healthz
from rss_pipeline.web.on_demand import begins_with, ends_when_idle
from rss_pipeline.web.same_origin import SameOrigin

GRAPHQL = "/graphql"
REFRESH_MS = 2000
"""Interval at which the UI reads the state of assets, as under `dagster dev`."""


@cache
def schema() -> Any:
    """The schema of GraphQL. Made before a webserver is forked, it takes 14 MB less in that."""
    return create_schema()


class _Webserver(DagsterWebserver[Any, Any]):
    def build_graphql_schema(self) -> Any:
        return schema()


def serve(
    workspace: Path,
    settings: Settings,
    listener: socket.socket,
    clients: Sequence[socket.socket] = (),
    *,
    idle_seconds: Callable[[], float] | None = None,
) -> int:
    """Serve the UI of the instance of DAGSTER_HOME at this socket, and to these clients, until this process
    is interrupted, or was idle for so long; return 0."""
    with opened() as instance:
        instance.optimize_for_webserver(
            DEFAULT_DB_STATEMENT_TIMEOUT, DEFAULT_POOL_RECYCLE, DEFAULT_POOL_MAX_OVERFLOW
        )
        with WorkspaceProcessContext(
            instance, version=__version__, workspace_load_target=Locations(workspace)
        ) as context:
            ui = _Webserver(context, live_data_poll_rate=REFRESH_MS).create_asgi_app()
            closed = SameOrigin(
                ui,
                own=own_authorities(settings.port, settings.ui_hosts),
                setting="RSS_UI_HOSTS",
                json_paths=(GRAPHQL,),
            )
            app = Healthz(closed)
            server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
            begins_with(server, clients)
            if idle_seconds is not None:
                ends_when_idle(server, idle_seconds, unused=lambda: app.answered)
            # uvicorn raises a signal again after it has stopped.
            with suppress(KeyboardInterrupt):
                server.run(sockets=[listener])
    return 0


if __name__ == "__main__":
    configure_loggers()
    setup_interrupt_handlers()
    file, number = sys.argv[1:]
    serve(
        Path(file),
        Settings.from_environ(os.environ, cwd=Path.cwd()),
        socket.socket(fileno=int(number)),
    )
