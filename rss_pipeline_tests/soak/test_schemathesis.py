"""`schemathesis run` against `rss-pipeline reader`: every check, all phases, fifty requests of each kind to
each operation. rss_pipeline_tests/api/test_openapi.py has the short form.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rss_pipeline_tests
from rss_pipeline.reader.accounts.users import change_password
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.reader import Reader, reader_settings
from rss_pipeline_tests.support.up import PROGRAM, free_port

EXAMPLES = 50
LISTS = "/api/import/opml"
"""An outline without an address is a folder or a remark, which no schema can allow beside others: that
what the schema does not allow is refused cannot be tested here."""
NAME, PASSWORD = "ann", "correct horse battery"

LOGIN = "rss_pipeline_tests.soak.schemathesis_login"
"""Not imported here: it would log in for the short tests, too."""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A reader with Ann's account and two feeds."""
    with Reader.on(reader_settings(tmp_path / "home")) as reader:
        ann(reader, a=5, b=2)
        change_password(reader.database, name=NAME, password=PASSWORD, revoke_apps=False)
    port = free_port()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RSS_", "DAGSTER_"))}
    with subprocess.Popen(
        [PROGRAM, "reader"],
        cwd=tmp_path,
        env={**clean, "RSS_PIPELINE_HOME": str(tmp_path / "home"), "RSS_READER_PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        assert b"The reader is at" in process.stdout.readline()
        yield f"http://127.0.0.1:{port}"
        assert process.poll() is None
        process.kill()


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "chosen",
    [
        ("--exclude-path", LISTS),
        pytest.param(
            ("--include-path", LISTS, "--exclude-checks", "negative_data_rejection"),
            marks=pytest.mark.skipif("opml" not in INSTALLED, reason="the feature opml is removed"),
        ),
    ],
    ids=["all but lists", "lists"],
)
def test_schemathesis_finds_nothing(tmp_path: Path, url: str, chosen: tuple[str, ...]) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            *("run", f"{url}/api/openapi.json", "--checks", "all", "--max-examples", str(EXAMPLES)),
            # On a busy machine the first request of an operation takes long to make.
            *chosen,
            *("--continue-on-failure", "--request-timeout", "120", "--suppress-health-check", "too_slow"),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(rss_pipeline_tests.__path__[0]).parent),
            "SCHEMATHESIS_HOOKS": LOGIN,
            "READER_URL": url,
            "READER_NAME": NAME,
            "READER_PASSWORD": PASSWORD,
        },
        check=False,
        capture_output=True,
    )
    print(done.stdout.decode())  # noqa: T201 - the figures of the test, with -s
    assert done.returncode == 0, done.stdout.decode()[-5_000:] + done.stderr.decode()[-2_000:]
