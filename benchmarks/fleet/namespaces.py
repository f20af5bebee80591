"""Network namespaces: machines with addresses of their own on this one, where it allows them (root on Linux).

Each has one cable to this machine, which is 10.199.0.1 there, and no way to anywhere else. Addresses of
10.198.0.0/16 are this machine's meanwhile. Where one of these networks is in use, nothing is made.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

PUBLISHERS = "10.198"
_MACHINES = "10.199.0"
HERE = f"{_MACHINES}.1"
"""This machine, seen from a namespace."""


def are_allowed() -> bool:
    """Whether namespaces can be made here, with the networks that we want."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    # Local routes, too.
    show = ["ip", "route", "show", "table", "all"]
    taken = subprocess.run(show, capture_output=True, text=True, check=False).stdout
    if PUBLISHERS in taken or _MACHINES in taken:
        return False
    name = f"rss{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        _ip("netns", "delete", name)
    return made


@contextmanager
def namespaces(count: int) -> Iterator[list[tuple[str, ...]]]:
    """For each namespace the words before a command that is to run in it; all end with the block."""
    bridge = f"rssb{os.getpid()}"
    with ExitStack() as ends:
        _ip("link", "add", bridge, "type", "bridge")
        ends.callback(_ip, "link", "delete", bridge)
        _ip("address", "add", f"{HERE}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        _ip("route", "add", "local", f"{PUBLISHERS}.0.0/16", "dev", "lo")
        ends.callback(_ip, "route", "delete", "local", f"{PUBLISHERS}.0.0/16", "dev", "lo")
        found = []
        for number in range(count):
            name, ours, theirs = (f"rss{kind}{os.getpid()}n{number}" for kind in ("", "o", "t"))
            _ip("netns", "add", name)
            ends.callback(_ip, "netns", "delete", name)
            _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name)
            _ip("link", "set", ours, "master", bridge, "up")
            inside = ("-netns", name)
            _ip(*inside, "link", "set", "lo", "up")
            _ip(*inside, "address", "add", f"{_MACHINES}.{10 + number}/24", "dev", theirs)
            _ip(*inside, "link", "set", theirs, "up")
            _ip(*inside, "route", "add", f"{PUBLISHERS}.0.0/16", "via", HERE)
            found.append(("ip", "netns", "exec", name))
        yield found


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
