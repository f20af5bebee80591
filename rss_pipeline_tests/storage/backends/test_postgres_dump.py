"""A dump of Postgres, as docs/fleet.md makes it and puts it back: is the installation whole?"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.connect import check_schema
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.database import Statement
from rss_pipeline_tests.support.services.postgres import Postgres, programs

PAGE = Path(__file__).parents[3] / "docs" / "fleet.md"


def shown(program: str) -> str:
    """The command with this program on the page."""
    [line] = re.findall(rf"^{program} .+$", PAGE.read_text("utf-8"), re.MULTILINE)
    return str(line)


@pytest.mark.slow
def test_a_dump_that_is_put_into_an_empty_database_has_tables_functions_and_dagster_s_schema(
    running_postgres: Postgres, tmp_path: Path
) -> None:
    for name in ("dumped", "put_back"):
        running_postgres.create(name)
    ours = PostgresDatabase(running_postgres.url("dumped"), where="dumped")
    schema.migrate(ours)
    insert = "INSERT INTO installation (name, value) VALUES (?, ?)"
    ours.batch([Statement(insert, ("topics_base", "tag:example.org,2026:x"))])
    ours.close()
    running_postgres.execute("dumped", "CREATE SCHEMA dagster;\nCREATE TABLE dagster.runs AS SELECT 7 AS id")
    for program, name in (("pg_dump", "dumped"), ("pg_restore", "put_back")):
        folder = programs()
        assert folder is not None
        environ = {"PATH": f"{folder}:{os.environ['PATH']}", "DATABASE_URL": running_postgres.url(name)}
        subprocess.run(
            ["bash", "-ec", shown(program)], check=True, cwd=tmp_path, env=environ, capture_output=True
        )

    theirs = PostgresDatabase(running_postgres.url("put_back"), where="put_back")
    check_schema(theirs)
    assert schema.migrate(theirs) == []
    # By a function of ours: json_extract() has another name there.
    [row] = theirs.query("SELECT value, json_extract('{\"a\": 1}', '$.a') AS a FROM installation").rows
    assert (row["value"], str(row["a"])) == ("tag:example.org,2026:x", "1")
    [run] = theirs.query("SELECT id FROM dagster.runs").rows
    assert run["id"] == 7
    theirs.close()
