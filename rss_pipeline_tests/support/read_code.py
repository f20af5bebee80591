"""Code of a library that promises nothing about it, as it was in the release in which it was read.

A test compares digests; `main` is the command for a new release.
"""

import ast
import hashlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import sqlalchemy as sa

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCode:
    module: str
    """The test with `READ_IN`, the release of each distribution, and `DIGESTS`."""
    used: Mapping[str, object]
    read_in: Mapping[str, str]

    def releases(self) -> dict[str, str]:
        """The installed releases of these distributions."""
        return {name: version(name) for name in self.read_in}

    def digests(self) -> dict[str, str]:
        return {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in self.texts().items()}

    def texts(self) -> dict[str, str]:
        return {name: _text(value) for name, value in self.used.items()}

    def main(self) -> None:
        """Print what has changed since the release that was read; with `--write`, write the tables anew."""
        match sys.argv[1:]:
            case ["--texts"]:
                sys.stdout.write(json.dumps(self.texts()))
            case ["--write"]:
                self._write()
            case _:
                sys.stdout.write(f"{self._differences() or 'Nothing has changed.'}\n")

    def _differences(self) -> str:
        with TemporaryDirectory() as folder:
            releases = [f"{name}=={release}" for name, release in self.read_in.items()]
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
            subprocess.run([*pip, *releases], check=True)
            command = [sys.executable, "-m", self.module, "--texts"]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join((folder, str(ROOT)))}
            printed = subprocess.run(command, check=True, capture_output=True, env=environment, cwd=ROOT)
        before, now, lines = json.loads(printed.stdout), self.texts(), list[str]()
        for name in sorted(before.keys() | now.keys()):
            pair = (before.get(name, "").splitlines(), now.get(name, "").splitlines())
            lines += unified_diff(*pair, f"{name}, as read", f"{name}, installed", lineterm="")
        return "\n".join(lines)

    def _write(self) -> None:
        path = ROOT.joinpath(*self.module.split(".")).with_suffix(".py")
        tables = {"READ_IN": self.releases(), "DIGESTS": dict(sorted(self.digests().items()))}
        text = path.read_text("utf-8")
        for name, table in tables.items():
            rows = "".join(f'    "{key}": "{value}",\n' for key, value in table.items())
            begin = text.index(f"{name} = {{\n")
            text = f"{text[:begin]}{name} = {{\n{rows}{text[text.index('}', begin) :]}"
        path.write_text(text, "utf-8")


def _text(value: object) -> str:
    match value:
        case sa.Table():
            return repr([(column.name, str(column.type)) for column in value.columns])
        case type():
            return _class(value)
        case _ if isinstance(value, ModuleType) or inspect.isroutine(value):
            return inspect.getsource(value)
        case sa.MetaData():
            return repr(sorted(value.tables))
        case _:
            return repr(value)


def _class(kind: type) -> str:
    """The text of a class and its decorators: since Python 3.13 `inspect` has none of one that they made."""
    text = Path(inspect.getfile(kind)).read_text("utf-8")
    [node, *_] = (
        node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return "".join(text.splitlines(keepends=True)[first - 1 : node.end_lineno])
