"""A backend made as a sketch: what the face names is all that an installation needs of it.

The sketch wraps sqlite3 and offers nothing that is optional. It is registered by the one line that a backend
in a folder of its own would have.
"""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from rss_pipeline.cli.main import main
from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.errors import DatabaseUnavailable, SettingsError, StorageRejected
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends import connect
from rss_pipeline.storage.backends.backend import DatabaseBackend, ServerAnswer, missing_duties
from rss_pipeline.storage.backends.connect import DATABASES
from rss_pipeline.storage.database import Database, Result, Statement, Value, check_batch
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer as Served
from rss_pipeline_tests.support.server import FeedServer

VARIABLE = "SKETCH_FILE"


class SketchDatabase:
    """The three duties of an open database, and no more."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._lock = threading.Lock()

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.batch([Statement(sql, params, name=name)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        check_batch(statements)
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                results = [self._result(statement) for statement in statements]
            except sqlite3.IntegrityError as error:
                self._connection.execute("ROLLBACK")
                raise StorageRejected(str(error)) from error
            except sqlite3.Error as error:
                self._connection.execute("ROLLBACK")
                raise DatabaseUnavailable(str(error)) from error
            self._connection.execute("COMMIT")
            return results

    def close(self) -> None:
        self._connection.close()

    def _result(self, statement: Statement) -> Result:
        before = self._connection.total_changes
        params = [float(value) if isinstance(value, int) else value for value in statement.params]
        cursor = self._connection.execute(statement.sql, params)
        names = tuple(column[0] for column in cursor.description or ())
        rows = cursor.fetchall()
        return Result(names, rows, self._connection.total_changes - before)


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchBackend(DatabaseBackend):
    """The required duties of a database."""

    name = "sketch"
    title = "Sketch"
    variables = (VARIABLE,)
    fix = "Sharpen the pencil."

    path: Path = field(metadata={"description": "The file."})

    @classmethod
    def read(cls, reader: EnvironmentReader, *, ca_file: Path | None) -> "SketchBackend | None":
        text = reader.text(VARIABLE)
        return None if text is None else cls(path=Path(text))

    @property
    def place(self) -> str:
        return f"sketch:{self.path.name}"

    def connect(self, *, for_requests: bool = False, alone_where_full: bool = False) -> Database:
        return SketchDatabase(self.path)

    def probe(self) -> ServerAnswer:
        return ServerAnswer(
            said="the sketch answers", clock=datetime.now(UTC), size_bytes=self.path.stat().st_size
        )


class WithoutProbe(DatabaseBackend):
    """A backend that forgot duties."""

    name = "forgetful"
    title = "Forgetful"
    variables = (VARIABLE,)
    place = "nowhere"

    @classmethod
    def read(cls, reader: EnvironmentReader, *, ca_file: Path | None) -> None:
        raise AssertionError("it is not read")


def registered(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    """The one line of a backend."""
    monkeypatch.setattr(connect, "DATABASES", (*DATABASES, kind))


def test_a_store_made_as_a_sketch_is_refused_only_by_what_the_face_names(
    tmp_path: Path, server: FeedServer, invoke: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {VARIABLE: str(tmp_path / "sketch"), "RSS_PIPELINE_HOME": str(tmp_path)}
    forgetful: Any = WithoutProbe
    assert missing_duties(forgetful) == ["fix", "connect", "probe"]
    registered(monkeypatch, forgetful)
    refusal = f"{VARIABLE}: set, but the backend WithoutProbe lacks fix, connect, probe: see .*backend.py"
    with pytest.raises(SettingsError, match=refusal):
        Settings.from_environ(environ, cwd=tmp_path)
    assert Settings.from_environ({}, cwd=tmp_path).database.is_here, "who does not use it is not refused"

    registered(monkeypatch, SketchBackend)
    assert missing_duties(SketchBackend) == []
    with pytest.raises(SettingsError, match="both set; the tables are in Postgres or in Sketch"):
        Settings.from_environ(environ | {"DATABASE_URL": "postgresql://h/d"}, cwd=tmp_path)

    monkeypatch.setenv(VARIABLE, environ[VARIABLE])
    url = server.route("127.0.0.2", "/feed", Served(body=rss("a", "b")))
    feeds = [{"id": "one", "url": url, "allow_private": ["127.0.0.0/8"]}]
    (tmp_path / "feeds.yaml").write_text(json.dumps({"feeds": feeds}))
    assert "run `rss-pipeline migrate`" in invoke("status").output
    assert "sketch:sketch: schema.sql" in invoke("migrate").output
    polled = invoke("poll")
    assert polled.exit_code == 0, polled.output
    [feed] = json.loads(invoke("status", "--json").stdout)["feeds"]
    assert (feed["id"], feed["items"]) == ("one", 2)
    if "doctor" in main.list_commands(click.Context(main)):
        found = {check["name"]: check["found"] for check in json.loads(invoke("doctor", "--json").stdout)}
        assert found["settings"] == "complete; state is kept in Sketch and a folder"
        assert found["database"] == "the sketch answers"
        assert found["database size"].endswith(" MB")
    assert not (tmp_path / "rss.sqlite").exists(), "nothing else is taken for the database"


def test_no_backend_loads_the_library_of_another(tmp_path: Path) -> None:
    """Nor does the embedded default load that of any server."""
    program = """
import os, sys
from pathlib import Path
from rss_pipeline.settings import Settings
for environ in (
    {},
    {"D1_PROXY_URL": "http://h", "D1_PROXY_TOKEN": "t"},
    {"DATABASE_URL": "postgresql://u@h/d"},
    {"S3_BUCKET": "b", "S3_ACCESS_KEY_ID": "k", "S3_SECRET_ACCESS_KEY": "s"},
):
    child = os.fork()
    if child == 0:
        settings = Settings.from_environ({**environ, "RSS_PIPELINE_HOME": sys.argv[1]}, cwd=Path("/"))
        settings.database.connect().close()
        settings.objects.open()
        print(*sorted({"httpx", "boto3", "psycopg"} & set(sys.modules)), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["", "httpx", "psycopg", "boto3"]
