"""The regular expressions of modules, found by import.

A pattern is a value of a module or a class, also within a list, a dict or an object of ours, or it is written
in a call of `re`, also in a function.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

_METHODS = frozenset({"search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"})
_UNKNOWN = frozenset({"search", "match", "finditer"})
"""The ways of a pattern that no one calls by its name."""


class Collected(NamedTuple):
    """A pattern, with the ways in which it is used: `search`, `match`, `fullmatch`, `finditer`, and
    `tokens`, which are matched one behind the other."""

    name: str
    """Module and name, or module and line."""
    pattern: str
    flags: int
    is_bytes: bool
    ways: tuple[str, ...]
    longest: int = 1_000_000
    """Characters of the longest text that it reads."""


def collected(*packages: str) -> list[Collected]:
    """The patterns of these packages, each once."""
    names: dict[re.Pattern[Any], str] = {}
    ways: dict[re.Pattern[Any], set[str]] = defaultdict(set)
    for module in _modules(packages):
        handed_on = []
        for name, pattern, is_value in _values(module):
            names.setdefault(pattern, f"{module.__name__}.{name}")
            if not is_value:
                handed_on.append(pattern)
        unknown = set()
        for method, call in _calls(module):
            for owner in _owners(call, module):
                if owner is re and (written := _written(method, call, module)):
                    names.setdefault(written, f"{module.__name__}:{call.lineno}")
                    ways[written] |= {method} - {"compile"}
                elif isinstance(owner, re.Pattern):
                    ways[owner].add("tokens" if method == "match" and len(call.args) > 1 else method)
                elif owner is None and method != "split":
                    unknown.add(method)
        for pattern in handed_on:
            ways[pattern] |= unknown
    return [
        Collected(
            name=f"{name} {again}" if (again := [*names.values()][:place].count(name)) else name,
            pattern=text.decode("latin-1") if isinstance(text := pattern.pattern, bytes) else text,
            flags=pattern.flags,
            is_bytes=isinstance(text, bytes),
            ways=tuple(sorted({_way(each) for each in ways[pattern] or _UNKNOWN})),
        )
        for place, (pattern, name) in enumerate(names.items())
    ]


def unseen(*packages: str) -> Counter[str]:
    """The number of patterns that each module compiles with a text that is known only when it runs, or in a
    comprehension; and how many times it imports `re` so that calls of it are not known as such."""
    found: Counter[str] = Counter()
    for module in _modules(packages):
        compiled = [
            call
            for method, call in _calls(module)
            if re in _owners(call, module) and _written(method, call, module) is None
        ]
        found[module.__name__] += len(compiled) + sum(map(_hides_calls, _tree(module)))
    return +found


def _hides_calls(node: ast.AST) -> bool:
    """`from re import search`, and `import re` within a function."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "re"
    inner = ast.walk(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ()
    return any(isinstance(each, ast.Import) and "re" in [name.name for name in each.names] for each in inner)


def _modules(packages: Sequence[str]) -> Iterator[ModuleType]:
    for package in packages:
        module = importlib.import_module(package)
        yield module
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{package}."):
            if ".tests" in found.name or found.name.endswith(("__main__", ".cli")):
                continue
            try:
                yield importlib.import_module(found.name)
            except ImportError:  # An optional part of a library, without what it needs.
                assert not found.name.startswith("rss_pipeline."), found.name


def _way(method: str) -> str:
    return method if method in _UNKNOWN | {"fullmatch", "tokens"} else "finditer"


@cache
def _tree(module: ModuleType) -> list[ast.AST]:
    """All that is in the module's source, in and out of functions."""
    try:
        source = inspect.getsource(module)
    except OSError:  # It is empty, or compiled.
        return []
    return [*ast.walk(ast.parse(source))]


@cache
def _calls(module: ModuleType) -> list[tuple[str, ast.Call]]:
    """The calls of a method that patterns have, and of `re.compile`."""
    return [
        (node.func.attr, node)
        for node in _tree(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _METHODS | {"compile"}
    ]


def _owners(call: ast.Call, module: ModuleType) -> list[object]:
    """The values with a method that is called: of `(a if b else c).match` both."""
    assert isinstance(call.func, ast.Attribute)
    node = call.func.value
    return [
        _known(each, module) for each in ([node.body, node.orelse] if isinstance(node, ast.IfExp) else [node])
    ]


def _known(node: ast.expr, module: ModuleType) -> object:
    """The value of a name that the module has; None for a local one, and for what is computed."""
    if isinstance(node, ast.Name):
        return vars(module).get(node.id)
    return getattr(_known(node.value, module), node.attr, None) if isinstance(node, ast.Attribute) else None


def _values(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    """The patterns among a module's values and those of its classes; and whether each is the value itself."""
    for name, value in vars(module).items():
        yield from ((name, found, found is value) for found in _within(value, 4))
        if isinstance(value, type) and value.__module__ == module.__name__:
            for attribute, inner in vars(value).items():
                yield from ((f"{name}.{attribute}", found, False) for found in _within(inner, 4))


def _within(value: object, depth: int) -> Iterator[re.Pattern[Any]]:
    place = type(value).__module__
    if isinstance(value, re.Pattern):
        yield value
    elif not depth or not (place == "builtins" or place.startswith("rss_pipeline.")):
        return
    elif isinstance(value, Mapping):
        yield from _within([*value.keys(), *value.values()], depth)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _within(each, depth - 1)
    elif place != "builtins" and hasattr(value, "__dict__"):
        yield from _within(vars(value), depth - 1)


def _written(method: str, call: ast.Call, module: ModuleType) -> re.Pattern[Any] | None:
    """The pattern of a call of `re`, if its text is known where the module is imported."""
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(method, 2)
    flags = [each.value for each in call.keywords if each.arg == "flags"] or call.args[place : place + 1]
    try:
        text, *rest = (
            eval(compile(ast.Expression(node), module.__name__, "eval"), dict(vars(module)))
            for node in (call.args[0], *flags)
        )
        return re.compile(text, *rest)
    except (NameError, AttributeError, TypeError):
        return None
