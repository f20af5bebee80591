"""This machine as the address guard knows it: its interfaces, and the servers of this installation.

Values only: `pipeline.session.this_machine` reads them from the system and the settings. What they forbid is
decided in `addresses.py` and `guarded_transport.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rss_pipeline.collector.http.addresses import Interfaces


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """A server of this installation that a setting names."""

    what: str
    host: str
    """A name or an address, as `RequestUrl.host`."""
    port: int
    by_name: bool = False
    """It is behind a reverse proxy, so other sites are at its address, and only its name is its own."""


def _no_ports() -> frozenset[int]:
    return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMachine:
    """The functions are called for each connection, so they remember what they read."""

    interfaces: Callable[[], Interfaces] = Interfaces
    servers: tuple[OwnServer, ...] = ()
    listening: Callable[[], frozenset[int]] = _no_ports
    """TCP ports at which processes of Dagster and of this project listen now."""
