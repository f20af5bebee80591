"""`rss-pipeline page`: what it prints of a file and of an address, and that it keeps to robots.txt."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline_tests.features.pages.site import TITLES, entries, link, links, page
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("RSS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RSS_HOST_DELAY_SECONDS", "0")
    monkeypatch.setenv("RSS_PARSE_WORKERS", "1")
    monkeypatch.setenv("COLUMNS", "400")
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_a_file_s_list_is_printed_for_people_and_for_programs(
    tmp_path: Path, invoke: Callable[..., Result]
) -> None:
    (tmp_path / "saved.html").write_text(page(entries()), "utf-8")
    said = invoke("page", "saved.html", "--base", "https://example.org/news/", "--json")
    assert said.exit_code == 0
    found = json.loads(said.stdout)
    assert (found["verdict"], found["feeds"]) == ("certain", [])
    assert [entry["link"] for entry in found["entries"]] == links()
    assert (found["entries"][0]["title"], found["entries"][0]["date"]) == (TITLES[0], "2026-01-11")
    assert "2026-01-11  A bridge" in invoke("page", "saved.html", "--base", "https://example.org/").stdout


def test_a_file_without_an_address_and_one_that_is_not_there_are_named(
    tmp_path: Path, invoke: Callable[..., Result]
) -> None:
    (tmp_path / "saved.html").write_text(page(entries()), "utf-8")
    assert "--base URL" in invoke("page", "saved.html").stderr
    assert "gone.html" in invoke("page", "gone.html").stderr


def test_an_address_is_requested_once_after_its_robots_txt_and_that_once_a_day(
    server: FeedServer, invoke: Callable[..., Result]
) -> None:
    server.route(HOST, "/robots.txt", Answer(body=b"User-agent: *\nDisallow: /private\n"))
    url = server.route(HOST, "/news/", Answer(body=page(entries()).encode()))
    kept = server.route(HOST, "/private/list", Answer(body=page(entries()).encode()))
    said = invoke("page", "--allow-private", "--json", url)
    assert [entry["title"] for entry in json.loads(said.stdout)["entries"]] == list(TITLES)
    assert json.loads(said.stdout)["entries"][0]["link"] == server.url(HOST, link(0))
    refused = invoke("page", "--allow-private", kept)
    assert refused.exit_code == 1
    assert "robots.txt" in refused.stderr
    assert [request.target for request in server.asked(HOST)] == ["/robots.txt", "/news/"]


def test_a_private_address_is_refused(server: FeedServer, invoke: Callable[..., Result]) -> None:
    assert "blocked_address" in invoke("page", server.url(HOST, "/news/")).stderr
    assert server.asked(HOST) == []
