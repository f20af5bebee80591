"""The command with its state in Cloudflare: no secret stays on this machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare


def _files_with(folder: Path, *secrets: str) -> list[str]:
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


@pytest.mark.slow
def test_the_command_keeps_its_state_in_cloudflare_and_no_secret_on_this_machine(
    tmp_path: Path,
    invoke: Any,
    bare_cloudflare: Cloudflare,
    server: FeedServer,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b"), etag='"1"'))
    registry = {"feeds": [{"url": url, "id": "news", "allow_private": True}]}
    (tmp_path / "feeds.yaml").write_text(json.dumps(registry), "utf-8")
    env = bare_cloudflare.environ
    said = [invoke("poll", env=env)]
    assert said[-1].exit_code == 1
    assert "rss-pipeline migrate" in said[-1].stderr
    assert server.requests == []

    said.append(invoke("migrate", env=env))
    assert said[-1].exit_code == 0
    said.append(invoke("poll", env=env))
    assert said[-1].exit_code == 0, said[-1]
    said.append(invoke("status", "--json", env=env))
    assert said[-1].exit_code == 0
    assert '"news"' in said[-1].stdout
    said.append(invoke("items", "news", env=env))
    assert "Title of a" in said[-1].stdout

    said.append(invoke("poll", env={**env, "D1_PROXY_TOKEN": "wrong-and-secret"}))
    assert said[-1].exit_code == 1
    assert "D1_PROXY_TOKEN is not the Worker's secret" in said[-1].output
    said.append(invoke("poll", "--all", env={**env, "R2_SECRET_ACCESS_KEY": "wrong-and-secret"}))
    assert said[-1].exit_code == 1
    assert "check R2_SECRET_ACCESS_KEY" in said[-1].output

    secrets = (bare_cloudflare.token, bare_cloudflare.secret_key, "wrong-and-secret")
    everything = [*(words.output for words in said), *capfd.readouterr(), caplog.text]
    assert not any(secret in words for words in everything for secret in secrets)
    assert _files_with(tmp_path, *secrets) == []
    assert not (tmp_path / "rss.sqlite").exists()
