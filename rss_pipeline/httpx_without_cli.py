"""httpx, imported without its command line. Every module of rss_pipeline imports httpx from here.

`import httpx` also imports `httpx._main`, and with it click, rich and pygments if they are installed: some
60 ms of CPU and a hundred modules at the start of each process. httpx itself is not changed: it has no
command line then, as if click and rich were not installed.
"""

import sys

# An entry of None makes an import fail with ModuleNotFoundError (Python's reference, 5.3.1).
_IS_FIRST = "httpx" not in sys.modules
if _IS_FIRST:
    sys.modules["httpx._main"] = None  # type: ignore[assignment]

import httpx as httpx  # noqa: E402

if _IS_FIRST:
    del sys.modules["httpx._main"]
