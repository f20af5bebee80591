"""The daemon of `rss-pipeline up`: Dagster's, with our code location inside it.

`dagster-daemon run` has no place for a location without a code server. services.py starts this process.
https://docs.dagster.io/deployment/execution/dagster-daemon
"""

import sys
from pathlib import Path

import dagster as dg

from rss_pipeline.orchestration.dagster_private import (
    capture_interrupts,
    configure_loggers,
    daemon_controller_from_instance,
    setup_interrupt_handlers,
)
from rss_pipeline.orchestration.serving.locations import Locations

LOG_LEVEL = "warning"
"""Its other messages are those of every tick of every sensor."""


def serve(workspace: Path) -> None:
    """Run the daemon of the instance of DAGSTER_HOME until this process is interrupted."""
    with (
        capture_interrupts(),
        dg.DagsterInstance.get() as instance,
        daemon_controller_from_instance(
            instance,
            workspace_load_target=Locations(workspace),
            log_level=LOG_LEVEL,
            code_server_log_level=LOG_LEVEL,
        ) as controller,
    ):
        controller.check_daemon_loop()


def main() -> None:
    """Run it with the workspace file of the command line."""
    configure_loggers()
    setup_interrupt_handlers()
    try:
        serve(Path(sys.argv[1]))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
