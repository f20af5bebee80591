"""XPath selectors evaluated in a child process: libxml2 cannot be interrupted, and some axes are quadratic.

`//item[preceding::item]` over 5,000 items takes 26 seconds. A selector that is too slow or crashes costs its
own stream and those after it, never the document. The limit of memory is that of this process, inherited.
"""

import gc
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn

from rss_pipeline.collector.models.item import ItemTree
from rss_pipeline.features.streams.xpath import SelectableItems, XPathRefused

LIMIT_SECONDS = 2.0
"""Processor time for all selectors of a feed together; the copy of the tree may take as much before."""
_PATIENCE = 5
"""The child may take that many times its limit by the clock: on a busy machine a sound selector does."""
_OUT_OF_MEMORY = 77


@dataclass(slots=True)
class Selection:
    """The result of a feed's selectors, by the name of the stream."""

    items: dict[str, list[int]] = field(default_factory=dict)
    """The places, ascending, of the items that belong to the stream."""
    errors: dict[str, str] = field(default_factory=dict)
    """A sentence for each selector without a result."""
    seconds: float | None = None
    """Processor time of all results; None if the tree was not copied in time."""


def selected_items(
    tree: ItemTree, selectors: Mapping[str, str], *, feed_id: str, limit: float = LIMIT_SECONDS
) -> Selection:
    """Evaluate expressions, by the name of their stream and in this order, over the items of a document.

    Forks, so this process should have one thread only. An error of any kind is in the result.
    """
    selection = Selection()
    try:
        end = _fill(selection, tree, selectors, limit)
    except OSError as error:
        end = f"no process could be started for it ({error.strerror or error})"
    left = [name for name in selectors if name not in selection.items and name not in selection.errors]
    if left and selection.seconds is None:
        why = f"the copy of the document took longer than {limit:g} s" if end is None else end
        selection.errors |= dict.fromkeys(left, f"was not evaluated: {why}")
    elif left:
        first, *others = left
        used = selection.seconds or 0.0
        share = "" if used < limit / 20 else f" ({used:.1f} s of it were used by the selectors before)"
        why = f"took longer than {limit:g} s{share}" if end is None else end
        selection.errors[first] = why
        selection.errors |= dict.fromkeys(others, f"was not evaluated: the XPath of {feed_id}/{first} {why}")
    selection.errors = {
        name: f"The XPath of {feed_id}/{name} {error}." for name, error in selection.errors.items()
    }
    return selection


def _fill(selection: Selection, tree: ItemTree, selectors: Mapping[str, str], limit: float) -> str | None:
    """Add each result as the child sends it. Return the child's end as words after "The XPath of ...", None
    for the limit of time."""
    reader, writer = Pipe(duplex=False)
    with reader:
        with writer:
            child = os.fork()
            if child == 0:
                _evaluate_and_exit(tree, selectors, limit, writer)
        try:
            # EOFError: the child has ended; OSError: within a message.
            with suppress(EOFError, OSError):
                while reader.poll(limit * _PATIENCE):
                    name, found, selection.seconds = reader.recv()
                    if isinstance(found, str):
                        selection.errors[name] = found
                    elif name:
                        selection.items[name] = found
        finally:
            # Of a child that has ended by itself, the status remains.
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
    match os.waitstatus_to_exitcode(status):
        case code if code in (-signal.SIGPROF, -signal.SIGKILL):
            return None
        case code if code == _OUT_OF_MEMORY:
            return "needed more memory than a parser process may take"
        case code:
            return f"ended its process (exit code {code})"


def _evaluate_and_exit(
    tree: ItemTree, selectors: Mapping[str, str], limit: float, writer: Connection
) -> NoReturn:
    """The child: send each result as it is found. The kernel ends it after its time, also if the process that
    waits for it was killed; nothing of this copy of the process may run after it."""
    code = 1
    try:
        for number in (signal.SIGPROF, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, limit)
        # The pipes of the pool are not this process's to hold open.
        os.closerange(3, writer.fileno())
        os.closerange(writer.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        # A collection would copy all pages of memory that both processes share.
        gc.disable()
        items = SelectableItems(tree)
        signal.setitimer(signal.ITIMER_PROF, limit)
        writer.send(("", None, 0.0))
        began = time.process_time()
        for name, expression in selectors.items():
            found: list[int] | str
            try:
                found = items.select(expression)
            except XPathRefused as error:
                found = str(error)
            writer.send((name, found, time.process_time() - began))
        code = 0
    except MemoryError:
        code = _OUT_OF_MEMORY
    finally:
        os._exit(code)
