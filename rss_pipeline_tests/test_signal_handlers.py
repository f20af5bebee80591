"""Handlers of signals: they run in the middle of whatever the main thread does, and so may wait for nothing.

A lock that the main thread holds just then is never released: the process does not end, nor do anything else.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import rss_pipeline
from rss_pipeline_tests.support.installed import INSTALLED

PACKAGE = Path(rss_pipeline.__file__).parent
TAKES_NO_LOCK = {"append", "hurry", "write", "poll", "send_signal", "killpg", "_signal", "raise_signal"}
"""Functions that handlers may call. `Event.set`, loggers, `print` and the database all take locks."""


def handlers(module: ast.Module) -> Iterator[ast.AST]:
    """The handlers that a module sets: functions of its own, and lambdas."""
    functions = {node.name: node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "signal.signal":
            handler = node.args[1]
            if isinstance(handler, ast.Lambda):
                yield handler
            elif isinstance(handler, ast.Name) and handler.id in functions:
                yield functions[handler.id]


def test_no_handler_of_signals_takes_a_lock() -> None:
    found = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        if "signal.signal(" not in text:
            continue
        for handler in handlers(ast.parse(text)):
            found += 1
            for call in (node for node in ast.walk(handler) if isinstance(node, ast.Call)):
                name = ast.unparse(call.func).rpartition(".")[2]
                assert name in TAKES_NO_LOCK | {"len"}, f"{path}: {ast.unparse(call)}"
    assert found == 3 + 2 * ("fleet" in INSTALLED) + ("search" in INSTALLED)
