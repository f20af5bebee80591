"""The start of the command: settings of the process itself."""

import subprocess
import sys

import pytest

_PROGRAM = """
import re, sys, threading
from rss_pipeline.cli.start import share_heaps

def reserved():
    return int(re.search("VmSize:\\\\s+([0-9]+) kB", open("/proc/self/status").read())[1]) // 1024

if sys.argv[1] == "shared":
    share_heaps()
before = reserved()
all_there = threading.Barrier(17)
def work():
    block = bytearray(100_000)
    all_there.wait()
    all_there.wait()
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
all_there.wait()
print(reserved() - before)
all_there.wait()
"""


def _reserved(heaps: str) -> int:
    """MB of address space that 16 threads take: a stack of 8 MB each, and 64 MB for each heap."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, heaps], check=True, capture_output=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="heaps are counted by Linux's /proc")
def test_threads_share_two_heaps() -> None:
    own = _reserved("own")
    if own < 16 * 8 + 4 * 64:
        pytest.skip(f"this C library gives threads no heaps of their own: {own} MB")
    assert _reserved("shared") <= 16 * 8 + 3 * 64


_CLOSED = """
import os, sys
from rss_pipeline.cli.start import open_closed_streams
open_closed_streams()
print("nowhere", flush=True)
assert os.open("/", os.O_RDONLY) > 2
os.execv(sys.executable, [sys.executable, "-c", "import sys; assert None not in (sys.stdin, sys.stdout)"])
"""


def test_closed_streams_lead_nowhere_and_no_file_gets_their_numbers() -> None:
    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&- >&-', sys.executable, _CLOSED], check=False, capture_output=True
    )
    assert (closed.returncode, closed.stderr) == (0, b"")


_IMPORTS = """
import gc, weakref
from rss_pipeline.cli.start import imports_that_stay

class Loop: pass

def looped():
    loop = Loop()
    loop.self = loop
    return weakref.ref(loop)

try:
    with imports_that_stay():
        assert not gc.isenabled()
        kept = looped()
        raise ImportError
except ImportError:
    later = looped()
gc.collect()
assert gc.isenabled() and kept() and not later()
frozen = gc.get_freeze_count()
with imports_that_stay():
    assert gc.isenabled()
assert gc.get_freeze_count() <= frozen
"""


def test_what_is_imported_to_stay_is_left_alone_and_nothing_later() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTS], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
