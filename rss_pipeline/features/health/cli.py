"""The command `doctor`: all that this installation needs, checked and shown with its fix.

What is checked is doctor.py's.
"""

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from rss_pipeline.cli.arguments import as_json
from rss_pipeline.cli.output.terminal import new_console, plain, say_json
from rss_pipeline.collector.models.clock import utc_now

if TYPE_CHECKING:
    from rss_pipeline.features.health.model import Finding

_STATE_STYLES: Mapping[str, str] = {"ok": "green", "warning": "yellow", "failure": "bold red"}


@click.command()
@click.option("--alert", is_flag=True, help="Send a test alert to RSS_ALERT_WEBHOOK as well.")
@as_json
def doctor(alert: bool, as_json: bool) -> None:
    """Check everything this installation needs, and show how to fix what is wrong.

    Changes nothing, except that it writes and deletes one small object. Exit code 1 if a check fails.
    """
    from rss_pipeline.features.health.doctor import examine, try_alert
    from rss_pipeline.orchestration.instance.run_times import daemon_state

    checks = examine(os.environ, cwd=Path.cwd(), clock=utc_now, daemon=daemon_state)
    if alert:
        checks.append(try_alert(os.environ, cwd=Path.cwd()))
    if as_json:
        say_json([check.as_json() for check in checks])
    else:
        show_checks(checks)
    if any(check.state == "failure" for check in checks):
        sys.exit(1)


def show_checks(checks: "Sequence[Finding]") -> None:
    """One line for each check, the fix below it, and the number of each state."""
    console = new_console()
    for check in checks:
        style = _STATE_STYLES[check.state]
        text = Text.assemble((f"{check.state:<8}", style), (f"{check.name:<18}", "bold"), plain(check.found))
        console.print(text, soft_wrap=True)
        for line in check.fix.splitlines():
            console.print(Text(f"{'':<26}{plain(line)}", style=style), soft_wrap=True)
    counts = Counter(check.state for check in checks)
    console.print(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['failure']} failures")
