"""The environment: every variable arrives, every mistake is told at once, no secret is shown."""

import re
from pathlib import Path

import pytest

from rss_pipeline.errors import SettingsError
from rss_pipeline.settings import Settings

CWD = Path("/srv/rss")
EXAMPLE = Path(__file__).parent.parent / ".env.example"


def settings(**environ: str) -> Settings:
    return Settings.from_environ(environ, cwd=CWD)


def refusal(**environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        settings(**environ)
    return str(caught.value)


def test_an_empty_environment_is_the_embedded_default() -> None:
    found = settings()
    assert found.home == CWD / "var"
    assert found.feeds_file == CWD / "feeds.yaml"
    assert found.database_path == CWD / "var/rss.sqlite"
    assert found.objects_path == CWD / "var/objects"
    assert found.dagster_home == CWD / "var/dagster"
    assert found.spool_path == CWD / "var/spool"
    assert (found.lease_seconds, found.fetch_concurrency, found.host_delay_seconds) == (180, 5, 1.0)
    assert (found.batch_size, found.parse_timeout_seconds, found.port) == (500, 20, 3000)
    assert 1 <= found.parse_workers <= 4
    assert found.proxy is None
    assert found.unknown == ()
    assert re.fullmatch(r"rss_pipeline/[0-9.]+", found.user_agent)


def test_every_variable_arrives() -> None:
    found = settings(
        RSS_PIPELINE_HOME="/data/rss",
        RSS_FEEDS_FILE="../lists/feeds.json",
        RSS_PIPELINE_LEASE_SECONDS="20",
        RSS_USER_AGENT_CONTACT=" ops@example.org ",
        RSS_FETCH_CONCURRENCY="20",
        RSS_HOST_DELAY_SECONDS="0",
        RSS_BATCH_SIZE="50",
        RSS_PARSE_WORKERS="8",
        RSS_PROXY="http://u:hunter2@proxy.example:3128",
        RSS_PORT="8080",
    )
    assert (found.home, found.feeds_file) == (Path("/data/rss"), Path("/srv/lists/feeds.json"))
    assert (found.lease_seconds, found.fetch_concurrency, found.host_delay_seconds) == (20, 20, 0.0)
    assert (found.batch_size, found.parse_workers, found.port) == (50, 8, 8080)
    assert found.proxy == "http://u:hunter2@proxy.example:3128"
    assert found.user_agent.endswith(" (+ops@example.org)")


def test_a_variable_set_to_nothing_is_unset() -> None:
    assert settings(RSS_PORT="", RSS_PIPELINE_HOME=" ", RSS_PROXY="", RSS_USER_AGENT_CONTACT="") == settings()


def test_a_home_in_one_s_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert settings(RSS_PIPELINE_HOME="~/rss").home == Path("/home/ada/rss")


def test_all_mistakes_are_told_at_once() -> None:
    text = refusal(
        RSS_PORT="http", RSS_BATCH_SIZE="0", RSS_HOST_DELAY_SECONDS="nan", RSS_FETCH_CONCURRENCY="2.5"
    )
    assert text.splitlines() == [
        'RSS_FETCH_CONCURRENCY: "2.5" cannot be used; write a whole number from 1 to 100; unset, it is 5',
        'RSS_HOST_DELAY_SECONDS: "nan" cannot be used; write a number from 0 to 60; unset, it is 1',
        'RSS_BATCH_SIZE: "0" cannot be used; write a whole number from 1 to 5,000; unset, it is 500',
        'RSS_PORT: "http" cannot be used; write a whole number from 1 to 65,535; unset, it is 3000',
    ]


@pytest.mark.parametrize("contact", ["a)b", "a\\b", "Ünal", "a\nb", "x" * 201])
def test_a_contact_that_would_break_the_header_is_refused(contact: str) -> None:
    assert refusal(RSS_USER_AGENT_CONTACT=contact).startswith("RSS_USER_AGENT_CONTACT: ")


@pytest.mark.parametrize(
    "proxy", ["u:hunter2@proxy:3128", "socks5://hunter2@p:1", "http://u:hunter2@[::1", "http://"]
)
def test_a_proxy_that_is_none_is_refused_unseen(proxy: str) -> None:
    text = refusal(RSS_PROXY=proxy)
    assert text == "RSS_PROXY: not the URL of a proxy; write http://[user:password@]host:port"


def test_the_proxy_s_password_shows_in_no_repr() -> None:
    assert "hunter2" not in repr(settings(RSS_PROXY="http://u:hunter2@proxy.example:3128"))


def test_a_misspelt_variable_is_a_warning_with_a_suggestion() -> None:
    found = settings(RSS_FEED_FILE="x", RSS_READER_THEME="dark", OTHER="y")
    assert found.unknown == (
        'RSS_FEED_FILE: no setting has this name; did you mean "RSS_FEEDS_FILE"?',
        "RSS_READER_THEME: no setting has this name; it is ignored",
    )


def test_the_example_file_lists_every_variable_with_its_default() -> None:
    listed = dict(re.findall(r"^#([A-Z_]+)=(.*)$", EXAMPLE.read_text("utf-8"), flags=re.MULTILINE))
    assert settings(**listed).unknown == ()
    assert settings(**{**listed, "RSS_PARSE_WORKERS": ""}) == settings()
    misspelt = settings(**{f"{name}_": "" for name in listed}).unknown
    assert len(misspelt) == len(listed) == 10
