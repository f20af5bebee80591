"""The examples of docs/reader-api.md, run word for word from the first to the last."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rss_pipeline_tests.api.reading import subscribed
from rss_pipeline_tests.support.reader import HOST, Reader

PAGE = Path(__file__).parents[2] / "docs" / "reader-api.md"
PASSWORD = "correct horse battery"
MADE_UP = ("/api/tasks/9862", "/undo", "/app-passwords/1dca")
"""Requests with ids that no reader knows."""


@pytest.mark.skipif(shutil.which("jq") is None or shutil.which("curl") is None, reason="curl, jq")
def test_each_command_of_the_page_works_after_those_before_it(reader: Reader, tmp_path: Path) -> None:
    user = reader.user("ada", password=PASSWORD)
    subscribed(reader, user, xkcd=3, lwn=1)
    [item, *_] = user.client.get("/api/feeds/xkcd/items").json()["items"]
    made = user.client.post("/api/user/app-passwords", json={"name": "phone", "password": PASSWORD})
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL))
    for shown, real in (
        ("http://127.0.0.1:3001", "$SERVER"),
        ("646e5fafd93bbcd8823cc63f8aa98601", item["id"]),
        ('"password": "..."', f'"password": "{PASSWORD}"'),
    ):
        assert shown in commands
        commands = commands.replace(shown, real)
    told = 'write-out = "%{stderr}%{http_code} %{method} %{url}\\n"'
    tmp_path.joinpath(".curlrc").write_text(f'silent\nheader = "Host: {HOST}"\n{told}\n', "ascii")
    with reader.served() as client:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "SERVER": str(client.base_url).rstrip("/"),
            "APP_PASSWORD": made.json()["password"],
        }
        ran = subprocess.run(
            ["bash", "-u", "-c", commands],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
    answers = ran.stderr.splitlines()
    assert len(answers) > 30
    unknown = [line for line in answers if line[:3] == "404" and any(id in line for id in MADE_UP)]
    assert len(unknown) == len(MADE_UP)
    assert [line for line in answers if line[:1] != "2" and line not in unknown] == []
