"""Names as in dagster_private.py, but of Dagster's command line, without its commands: these take 1 MB."""

from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager


@_contextmanager
def _without_commands() -> _Iterator[None]:
    """Within, a module of the command line is imported without the package's own imports, which are all
    commands. Whoever imports the package afterwards has them."""
    import sys
    from importlib.util import find_spec
    from types import ModuleType

    name = "dagster._cli"
    if name in sys.modules:
        yield
        return
    package = ModuleType(name)
    spec = find_spec(name)
    assert spec is not None
    package.__path__ = [*(spec.submodule_search_locations or ())]
    sys.modules[name] = package
    try:
        yield
    finally:
        del sys.modules[name]


with _without_commands():
    # A run in a worker's process, and in one of ours: `dagster api execute_run` is a command of its own.
    from dagster._cli.api import _execute_run_command_body as execute_run_command_body

    # The code servers of `dagster dev`, without its webserver.
    from dagster._cli.proxy_server_manager import ProxyServerManager as ProxyServerManager
