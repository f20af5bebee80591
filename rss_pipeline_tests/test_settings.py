"""The environment: every variable arrives, every mistake is reported at once, no secret is shown."""

import itertools
import re
from dataclasses import replace
from datetime import time
from pathlib import Path

import pytest

from rss_pipeline.errors import SettingsError
from rss_pipeline.settings import Settings, variables
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.s3.backend import R2Backend, S3Backend
from rss_pipeline_tests.support.installed import INSTALLED

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
    assert found.ui_address == "127.0.0.1"
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
        RSS_MAX_FEED_MB="30",
        RSS_BATCH_SIZE="50",
        RSS_PARSE_WORKERS="8",
        RSS_PROXY="http://u:hunter2@proxy.example:3128",
        RSS_PORT="8080",
        RSS_UI_ADDRESS="0.0.0.0",
    )
    assert found.ui_address == "0.0.0.0"
    assert (found.home, found.feeds_file) == (Path("/data/rss"), Path("/srv/lists/feeds.json"))
    assert (found.lease_seconds, found.fetch_concurrency, found.host_delay_seconds) == (20, 20, 0.0)
    assert (found.batch_size, found.parse_workers, found.port) == (50, 8, 8080)
    assert found.max_feed_mb == 30
    assert found.proxy == "http://u:hunter2@proxy.example:3128"
    assert found.user_agent.endswith(" (+ops@example.org)")


def test_a_variable_set_to_nothing_is_unset() -> None:
    assert settings(RSS_PORT="", RSS_PIPELINE_HOME=" ", RSS_PROXY="", RSS_USER_AGENT_CONTACT="") == settings()


def test_a_home_in_one_s_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert settings(RSS_PIPELINE_HOME="~/rss").home == Path("/home/ada/rss")


def test_all_mistakes_are_reported_at_once() -> None:
    text = refusal(
        RSS_PORT="http",
        RSS_BATCH_SIZE="0",
        RSS_HOST_DELAY_SECONDS="nan",
        RSS_FETCH_CONCURRENCY="2.5",
        RSS_MAX_FEED_MB="20MB",
    )
    assert text.splitlines() == [
        'RSS_FETCH_CONCURRENCY: "2.5" cannot be used; write a whole number from 1 to 100; unset, it is 5',
        'RSS_HOST_DELAY_SECONDS: "nan" cannot be used; write a number from 0 to 60; unset, it is 1',
        'RSS_MAX_FEED_MB: "20MB" cannot be used; write a whole number from 1 to 200; unset, it is 10 as'
        " sent and 20 decompressed",
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


def test_names_of_the_ui_are_as_in_a_browser_s_address() -> None:
    found = settings(RSS_UI_HOSTS="RSS.example.org, localhost:8080,[fd00::5]:3000,rss.example.org:443")
    assert [str(name) for name in found.ui_hosts] == [
        *("rss.example.org", "localhost:8080", "[fd00::5]:3000", "rss.example.org")
    ]
    assert settings().ui_hosts == ()
    text = refusal(RSS_UI_HOSTS="*,https://rss.example.org,a b,x:99999,fd00::5")
    assert [line.partition(" cannot")[0] for line in text.splitlines()] == [
        f'RSS_UI_HOSTS: "{wrong}"' for wrong in ("*", "https://rss.example.org", "a b", "x:99999", "fd00::5")
    ]


def test_the_reader_is_on_until_it_is_switched_off() -> None:
    found = settings()
    assert (found.reader, found.reader_address, found.reader_port) == (True, "127.0.0.1", 3001)
    assert (found.reader_hosts, found.reader_proxies, found.reader_secret) == ((), (), None)
    assert [settings(RSS_READER=text).reader for text in ("on", "OFF")] == [True, False]
    assert 'RSS_READER: "no" cannot be used; write on or off; unset, it is on' in refusal(RSS_READER="no")
    changed = settings(
        RSS_READER_PORT="4000",
        RSS_READER_ADDRESS="0.0.0.0",
        RSS_READER_HOSTS="rss.example.org",
        RSS_READER_PROXIES="127.0.0.1, 10.0.0.0/8",
    )
    assert (changed.reader_port, changed.reader_address) == (4000, "0.0.0.0")
    assert [str(name) for name in changed.reader_hosts] == ["rss.example.org"]
    assert [str(proxy) for proxy in changed.reader_proxies] == ["127.0.0.1/32", "10.0.0.0/8"]
    assert 'RSS_READER_PROXIES: "proxy" cannot be used' in refusal(RSS_READER_PROXIES="proxy")


def test_the_reader_and_the_ui_have_two_ports() -> None:
    text = refusal(RSS_PORT="3001")
    assert text.startswith("RSS_PORT, RSS_READER_PORT: both are 3001, and the UI needs a port of its own; ")
    assert settings(RSS_PORT="3001", RSS_READER="off").port == 3001


def test_ranges_and_ports_that_are_opened() -> None:
    found = settings(ALLOW_NETWORKS="198.18.0.0/15, 10.0.0.5 ,fd00::/8,", ALLOW_PORTS="8080, 8443")
    assert [str(network) for network in found.allow_networks] == ["198.18.0.0/15", "10.0.0.5/32", "fd00::/8"]
    assert found.allow_ports == {8080, 8443}
    assert (settings().allow_networks, settings().allow_ports) == ((), frozenset())


def test_ranges_and_ports_that_cannot_be_opened() -> None:
    text = refusal(ALLOW_NETWORKS="home,10.0.0.1/8,169.254.0.0/16", ALLOW_PORTS="80 81,0,65536,http")
    assert text.splitlines() == [
        'ALLOW_NETWORKS: "home" cannot be used; write ranges such as 198.18.0.0/15, with commas between them',
        'ALLOW_NETWORKS: "10.0.0.1/8" cannot be used; write 10.0.0.0/8 or 10.0.0.1',
        'ALLOW_NETWORKS: "169.254.0.0/16" cannot be used; link-local, metadata, multicast and unspecified '
        "addresses are never requested",
        *(
            f'ALLOW_PORTS: "{port}" cannot be used; write ports from 1 to 65535, with commas between them'
            for port in ("80 81", "0", "65536", "http")
        ),
    ]


def test_authorities_are_read_from_a_file_that_is_there_and_holds_some(tmp_path: Path) -> None:
    authority = Path(__file__).parent / "support" / "tls" / "authority.pem"
    assert settings(RSS_CA_FILE=str(authority)).ca_file == authority
    assert settings().ca_file is None
    (tmp_path / "empty.pem").write_text("nothing", "utf-8")
    for path in (tmp_path / "missing.pem", tmp_path / "empty.pem", tmp_path):
        assert refusal(RSS_CA_FILE=str(path)).endswith(
            "write the path of a PEM file with the certificates of the authorities to trust"
        )


def test_the_proxy_s_password_shows_in_no_repr() -> None:
    assert "hunter2" not in repr(settings(RSS_PROXY="http://u:hunter2@proxy.example:3128"))


def test_a_key_of_the_reader_has_thirty_two_bytes_and_shows_nowhere() -> None:
    key = "hunter2-hunter2-hunter2-hunter2-"
    assert settings(RSS_READER_SECRET=f" {key} ").reader_secret == key
    assert settings(RSS_READER_SECRET="é" * 16).reader_secret == "é" * 16
    assert "hunter2" not in repr(settings(RSS_READER_SECRET=key))
    text = refusal(RSS_READER_SECRET=key[:31])
    assert text.startswith("RSS_READER_SECRET: too short; write 32 bytes or more")
    assert "hunter2" not in text


def test_a_misspelt_variable_is_a_warning_with_a_suggestion() -> None:
    found = settings(RSS_FEED_FILE="x", RSS_COLOUR="dark", OTHER="y")
    assert found.unknown == (
        "RSS_COLOUR: no setting has this name; it is ignored",
        'RSS_FEED_FILE: no setting has this name; did you mean "RSS_FEEDS_FILE"?',
    )
    [sentence] = settings(RSS_ALLOW_NETWORKS="10.0.0.0/8").unknown
    assert sentence.endswith('did you mean "ALLOW_NETWORKS"?')


OF_A_FLEET = {"RSS_BROKER_URL", "RSS_WORKER_NAME", "RSS_WORKER_RUNS"}


def test_the_example_file_lists_every_variable_with_its_default() -> None:
    listed = dict(re.findall(r"^#([A-Z_]+)=(.*)$", EXAMPLE.read_text("utf-8"), flags=re.MULTILINE))
    for name in ("DATABASE_URL", "DAGSTER_DATABASE_URL"):
        assert listed.pop(name) == ""  # No names of ours alone.
    if "fleet" not in INSTALLED:
        listed = {name: value for name, value in listed.items() if name not in OF_A_FLEET}
    assert settings(**listed).unknown == ()
    assert settings(**{**listed, "RSS_PARSE_WORKERS": ""}) == settings()
    misspelt = settings(**{f"{name}_": "" for name in listed}).unknown
    assert len(misspelt) == len(listed)
    assert set(listed) == {name for name in variables() if name.startswith(("RSS_", "ALLOW_"))}


D1 = {"D1_PROXY_URL": "https://proxy.example.workers.dev", "D1_PROXY_TOKEN": "hunter2-token"}
R2 = {
    "R2_ENDPOINT_URL": "https://account.r2.cloudflarestorage.com",
    "R2_BUCKET": "feeds",
    "R2_ACCESS_KEY_ID": "key-id",
    "R2_SECRET_ACCESS_KEY": "hunter2-secret",
}


S3 = {"S3_BUCKET": "feeds", "S3_ACCESS_KEY_ID": "key-id", "S3_SECRET_ACCESS_KEY": "hunter2-secret"}


def test_each_store_is_chosen_on_its_own() -> None:
    assert (settings().database_server, settings().objects_server) == (None, None)
    d1 = D1Backend(url=D1["D1_PROXY_URL"], token="hunter2-token")
    r2 = R2Backend(
        endpoint_url=R2["R2_ENDPOINT_URL"],
        bucket="feeds",
        access_key_id="key-id",
        secret_access_key="hunter2-secret",
    )
    assert (settings(**D1).database_server, settings(**D1).objects_server) == (d1, None)
    assert (settings(**R2).database_server, settings(**R2).objects_server) == (None, r2)
    assert (settings(**D1, **R2).database_server, settings(**D1, **R2).objects_server) == (d1, r2)
    assert "R2_PUBLIC_BUCKET" in refusal(**R2, R2_PUBLIC_BUCKET=R2["R2_BUCKET"]), "it has the backups"
    public = settings(**R2, R2_PUBLIC_URL="https://images.example.org").objects_server
    assert public == replace(r2, public_url="https://images.example.org")
    topics = settings(
        **R2, R2_TOPICS_BUCKET="topics", R2_TOPICS_PUBLIC_URL="https://t.example.org"
    ).objects_server
    assert topics == replace(r2, topics_bucket="topics", topics_public_url="https://t.example.org")


def test_a_bucket_may_be_in_any_store_with_the_s3_api() -> None:
    aws = settings(**S3).objects_server
    assert aws == S3Backend(
        endpoint_url="https://s3.us-east-1.amazonaws.com",
        region="us-east-1",
        bucket="feeds",
        access_key_id="key-id",
        secret_access_key="hunter2-secret",
    )
    elsewhere = {"S3_ENDPOINT_URL": "http://minio:9000", "S3_REGION": "garage", "S3_PATH_STYLE": "off"}
    assert settings(**S3, **elsewhere).objects_server == replace(
        aws, endpoint_url="http://minio:9000", region="garage", path_style=False
    )
    assert refusal(**S3, **R2) == (
        "R2_BUCKET, S3_BUCKET: both are set, and there is one bucket; unset one of them"
    )
    assert refusal(S3_REGION="garage") == f"S3_REGION: set, but not {', '.join(S3)}; set them too, or none"


@pytest.mark.parametrize("whole", [D1, R2, S3], ids=["D1", "R2", "S3"])
def test_half_a_configuration_names_all_that_is_missing_and_shows_no_secret(whole: dict[str, str]) -> None:
    for size in range(1, len(whole)):
        for given in itertools.combinations(whole, size):
            text = refusal(**{name: whole[name] for name in given})
            missing = ", ".join(name for name in whole if name not in given)
            there = ", ".join(given)
            assert text == f"{missing}: not set, but {there} is; set all of them, or none"
            blank = {name: whole[name] if name in given else "  " for name in whole}
            assert refusal(**blank) == text


def test_both_halves_are_reported_at_once() -> None:
    text = refusal(D1_PROXY_TOKEN="hunter2-token", R2_SECRET_ACCESS_KEY="hunter2-secret")
    assert [line.partition(":")[0] for line in text.splitlines()] == [
        "D1_PROXY_URL",
        "R2_ENDPOINT_URL, R2_BUCKET, R2_ACCESS_KEY_ID",
    ]
    assert "hunter2" not in text


POSTGRES = "postgresql://rss:hunter2@db.example:5433/feeds?sslmode=require"


def test_postgres_is_chosen_by_its_url_and_named_without_its_password() -> None:
    assert settings().database.is_here
    found = settings(DATABASE_URL=POSTGRES)
    assert found.database == PostgresBackend(url=POSTGRES)
    assert found.database.place == "postgresql://db.example:5433/feeds"
    assert not found.database.is_here
    assert "hunter2" not in f"{found!r} {found.database!r}"
    by_socket = settings(DATABASE_URL="postgres:///feeds?host=/run/postgresql")
    assert by_socket.database.place == "postgresql:///run/postgresql/feeds"


def test_two_databases_are_a_mistake_that_names_both() -> None:
    text = refusal(DATABASE_URL=POSTGRES, **D1)
    assert text.startswith("D1_PROXY_URL, DATABASE_URL: both set; ")
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "url",
    [
        "db.example/feeds",
        "mysql://u:hunter2@h/feeds",
        "postgresql://u:hunter2@h",
        "postgresql://u:hunter2@h:x/f",
        # Passwords with characters that mean something in a URL: libpq would name their ends as the host.
        "postgresql://u:a@hunter2@h/f",
        "postgresql://u:a#hunter2@h/f",
        "postgresql://u:a%hunter2@h/f",
        "postgresql://u:a/hunter2@h/f",
        "postgresql://u:12/hunter2@h/f",
        "postgresql://u:a?hunter2@h/f",
        "postgresql://u:a hunter2@h/f",
        "postgresql://u:hunter2%cd@h/f",
        "postgresql://u:hunter2%00@h/f",
        "postgresql://u@h/f?password=hunter2%cd",
    ],
)
def test_a_url_of_no_postgres_is_refused_unseen(url: str) -> None:
    text = refusal(DATABASE_URL=url)
    assert text == (
        "DATABASE_URL: not the URL of a database; write postgresql://user:password@host:5432/database, and in"
        " the password, percent-encoded, %40 for @, %2F for /, %3A for :, %3F for ?, %23 for #, %20 for a"
        " space and %25 for %"
    )


@pytest.mark.parametrize("name", ["R2_PUBLIC_URL", "R2_TOPICS_BUCKET", "R2_TOPICS_PUBLIC_URL"])
def test_a_public_url_or_a_bucket_for_topics_alone_is_a_mistake(name: str) -> None:
    text = refusal(**{name: "https://images.example.org"}, **D1)
    assert text == f"{name}: set, but not {', '.join(R2)}; set them too, or none"


@pytest.mark.parametrize("name", ["D1_PROXY_URL", "R2_ENDPOINT_URL", "R2_PUBLIC_URL", "R2_TOPICS_PUBLIC_URL"])
@pytest.mark.parametrize(
    "url",
    ["proxy.example", "ftp://p.example", "https://u:hunter2@p.example", "https://[::1", "https://", "x:0"],
)
def test_an_address_that_is_none_is_refused_unseen(name: str, url: str) -> None:
    text = refusal(**{**D1, **R2, name: url})
    assert text == f"{name}: not a URL; write https://..., without user and password"


def test_secrets_show_in_no_repr() -> None:
    found = settings(**D1, **R2)
    for shown in (repr(found), str(found), repr(found.database), repr(found.objects), f"{found}"):
        assert "hunter2" not in shown


def test_the_hour_of_cleaning_is_a_time_of_a_zone(tmp_path: Path) -> None:
    settings = Settings.from_environ({"RSS_CLEAN_AT": "3:30", "RSS_TIMEZONE": "Asia/Tokyo"}, cwd=tmp_path)
    assert (settings.clean_at.hour, settings.clean_at.minute) == (3, 30)
    assert settings.timezone == "Asia/Tokyo"
    with pytest.raises(SettingsError) as caught:
        Settings.from_environ({"RSS_CLEAN_AT": "24:00", "RSS_TIMEZONE": "Tokio"}, cwd=tmp_path)
    assert "write a time of day as 04:00" in str(caught.value)
    assert "write a name like Europe/Berlin" in str(caught.value)


def test_the_hour_of_the_daily_poll_of_all_is_none_until_it_is_set(tmp_path: Path) -> None:
    assert Settings.from_environ({}, cwd=tmp_path).sweep_at is None
    assert Settings.from_environ({"RSS_SWEEP_AT": "05:15"}, cwd=tmp_path).sweep_at == time(5, 15)
    assert (
        'RSS_SWEEP_AT: "5 pm" cannot be used; write a time of day as 04:00; unset, there is none'
        in refusal(RSS_SWEEP_AT="5 pm")
    )


@pytest.mark.parametrize("text", ["localhost", "::", "127.0.0.1:3000", "256.0.0.1"])
def test_an_address_of_the_ui_that_is_none_is_a_mistake(text: str) -> None:
    assert f'RSS_UI_ADDRESS: "{text}" cannot be used; write an IPv4 address' in refusal(RSS_UI_ADDRESS=text)


def test_the_folder_of_objects_has_a_public_address_if_it_is_set_and_a_bucket_has_its_own() -> None:
    assert settings().objects_public_url is None
    found = settings(RSS_OBJECTS_PUBLIC_URL="https://rss.example.org")
    assert found.objects_public_url == "https://rss.example.org"
    assert "RSS_OBJECTS_PUBLIC_URL: not a URL" in refusal(RSS_OBJECTS_PUBLIC_URL="rss.example.org")
    for end in ("/?x=1", "/#x", "/a b", "/'"):
        text = refusal(RSS_OBJECTS_PUBLIC_URL=f"https://rss.example.org{end}")
        assert text.startswith("RSS_OBJECTS_PUBLIC_URL: has `?`, `#`, a quote or a space in it"), end
    bucket = {f"S3_{name}": "x" for name in ("BUCKET", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")}
    text = refusal(RSS_OBJECTS_PUBLIC_URL="https://rss.example.org", **bucket)
    assert "set S3_PUBLIC_URL instead" in text
