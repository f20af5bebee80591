"""The webserver's address: that of the setting, and no other."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from rss_pipeline.cli.up import _bound
from rss_pipeline_tests.support.up import free_port
from rss_pipeline_tests.support.waiting import PATIENCE, soon


@pytest.mark.slow
def test_it_listens_on_the_address_of_the_setting_and_on_no_other(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "workspace.yaml").write_text("load_from: []\n", "utf-8")
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RSS_", "DAGSTER_"))}
    environ = {
        "DAGSTER_HOME": str(tmp_path),
        "RSS_PIPELINE_HOME": str(tmp_path),
        "RSS_PORT": str(port),
    }
    # As `up` opens it.
    door = _bound("127.0.0.3", port, names=("RSS_UI_ADDRESS", "RSS_PORT"))
    door.listen()
    process = subprocess.Popen(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "rss_pipeline.orchestration.serving.webserver",
            "workspace.yaml",
            str(door.fileno()),
        ],
        pass_fds=[door.fileno()],
        cwd=tmp_path,
        env={**clean, **environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
    )

    def status(address: str) -> int | None:
        assert process.poll() is None, "it ended"
        request = urllib.request.Request(
            f"http://{address}:{port}/server_info", headers={"Host": f"127.0.0.1:{port}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.URLError:
            return None

    try:
        soon(lambda: status("127.0.0.3") == 200)
        assert status("127.0.0.1") is None
    finally:
        process.kill()
        process.wait(PATIENCE)
        door.close()
