"""A store with the S3 API that is not R2: rclone's, which overwrites where a write is only for an absent key.

What all stores have in common is in test_objects_contract.py, what goes over the wire in test_r2.py.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rss_pipeline.errors import ObjectStoreUnavailable
from rss_pipeline.storage.backends.s3.objects import READ_SECONDS, S3Store, _session
from rss_pipeline_tests.storage.backends.test_r2 import (
    KEY_ID,
    PUT_ANSWER,
    SECRET,
    answering,
    put,
    refusal,
)
from rss_pipeline_tests.storage.raw import Asked, answer
from rss_pipeline_tests.support.services.s3_server import S3Server, rclone, s3_server

TLS = Path(__file__).parents[2] / "support/tls"
KEY = "backups/a/2026-02-18T08:30:00Z.xml"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    program = rclone()
    if program is None:
        pytest.skip("rclone is not installed: there is no store with the S3 API besides R2's")
    with s3_server(program, tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def objects(server: S3Server) -> Iterator[S3Store]:
    store = server.store()
    with closing(store.client):
        store.delete_many([found.key for found in store.list("")])
        yield store


@pytest.mark.slow
def test_objects_are_put_read_listed_copied_and_deleted(objects: S3Store) -> None:
    objects.probe()
    assert objects.put(KEY, b"<rss/>", content_type="text/xml", metadata={"source-url": "a"})
    found = objects.get(KEY)
    assert found is not None
    assert (found[0], found[1].content_type, found[1].metadata) == (
        b"<rss/>",
        "text/xml",
        {"source-url": "a"},
    )
    objects.copy(KEY, "backups/a/b.xml")
    assert [info.key for info in objects.list("backups/a/")] == [KEY, "backups/a/b.xml"]
    assert objects.delete_many([KEY, "not/there"]) == {}
    assert objects.head(KEY) is None


def test_where_there_is_an_object_it_stays(objects: S3Store) -> None:
    def once(body: bytes) -> bool:
        return objects.put(KEY, body, content_type="text/xml", only_if_absent=True)

    assert (once(b"first"), once(b"second")) == (True, False)
    found = objects.get(KEY)
    assert found is not None
    assert found[0] == b"first"


def test_a_store_that_knows_no_conditions_gets_none_after_its_first_refusal() -> None:
    def answers(asked: Asked) -> bytes:
        if asked.line.startswith("HEAD"):
            return answer(404, b"")
        return refusal(501, "NotImplemented") if "if-none-match" in asked.headers else PUT_ANSWER

    with answering(answers, prefix="S3") as (objects, server):
        for key in ("a", "b"):
            assert objects.put(key, b"body", content_type="text/plain", only_if_absent=True)
        asked = [(one.line.split()[0], "if-none-match" in one.headers) for one in server.requests]
    refused_first = [("HEAD", False), ("PUT", True), ("HEAD", False), ("PUT", False)]
    assert asked == [*refused_first, ("HEAD", False), ("PUT", False)]


_SHELL = {
    "AWS_PROFILE": "not-there",
    "AWS_DEFAULT_PROFILE": "not-there",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
    "AWS_REGION": "eu-west-9",
    "AWS_DEFAULT_REGION": "eu-west-9",
    "AWS_ACCESS_KEY_ID": "another",
    "AWS_SECRET_ACCESS_KEY": "another",
    "AWS_SESSION_TOKEN": "another",
    "AWS_CA_BUNDLE": "/not/there.pem",
    "REQUESTS_CA_BUNDLE": "",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "AWS_USE_DUALSTACK_ENDPOINT": "true",
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_supported",
    "AWS_MAX_ATTEMPTS": "x",
    "AWS_RETRY_MODE": "none",
    "AWS_DEFAULTS_MODE": "none",
    "AWS_DATA_PATH": "{home}",
}
_CONFIGS = {
    "damaged": b"[default\nregion",
    "not a text": b"\xff\xfe\0[",
    "of another account": b"[default]\ns3 =\n  addressing_style = virtual\nendpoint_url = http://127.0.0.1:9\n"
    b"sigv4a_signing_region_set = *\nrequest_checksum_calculation = when_supported\n",
}


@pytest.mark.parametrize("config", _CONFIGS)
def test_nothing_of_the_shell_s_is_read_where_keys_are_set(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws").mkdir()
    for name in ("config", "credentials"):
        (tmp_path / ".aws" / name).write_bytes(_CONFIGS[config])
    # Its own description of S3 has no operations.
    models = tmp_path / ".aws/models/s3/2099-01-01"
    models.mkdir(parents=True)
    (models / "service-2.json").write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in _SHELL.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    _session.cache_clear()
    try:
        with answering(PUT_ANSWER, prefix="S3", region="us-east-1") as (objects, server):
            assert objects.put(KEY, b"body", content_type="text/plain")
    finally:
        _session.cache_clear()
    [asked] = server.requests
    assert asked.line == f"PUT /feeds/{KEY.replace(':', '%3A')} HTTP/1.1"
    assert f"Credential={KEY_ID}/" in asked.headers["authorization"]
    assert "/us-east-1/s3/" in asked.headers["authorization"]
    assert not [name for name in asked.headers if "checksum" in name or "token" in name]


def test_an_authority_of_one_s_own_is_trusted_besides_the_usual_ones() -> None:
    trusted = set[bytes]()
    for file in (None, TLS / "authority.pem"):
        client = S3Store(
            endpoint_url="https://127.0.0.1:9",
            bucket="feeds",
            access_key_id=KEY_ID,
            secret_access_key=SECRET,
            ca_file=file,
        ).client
        http = client._endpoint.http_session
        context = http._get_ssl_context()
        trusted = {*context.get_ca_certs(binary_form=True)} - trusted
        assert (http._verify, len(trusted)) == (True, 0 if file is None else 1)
        assert http._manager.connection_pool_kw["timeout"].read_timeout == READ_SECONDS
        client.close()


def test_r2_is_never_written_without_the_condition() -> None:
    with answering(lambda _: refusal(501, "NotImplemented")) as (objects, server):
        with pytest.raises(ObjectStoreUnavailable):
            objects.put("a", b"body", content_type="text/plain", only_if_absent=True)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("wrong", "variable"),
    [
        ({"access_key_id": "0" * 20}, "S3_ACCESS_KEY_ID"),
        ({"secret_access_key": "0" * 40}, "S3_SECRET_ACCESS_KEY"),
        ({"endpoint_url": "http://127.0.0.1:1"}, "S3_ENDPOINT_URL"),
    ],
    ids=["key id", "secret", "endpoint"],
)
def test_what_is_set_wrongly_is_named_by_its_variable(
    server: S3Server, wrong: dict[str, str], variable: str
) -> None:
    store = replace(server, **wrong).store()
    with closing(store.client), pytest.raises(ObjectStoreUnavailable, match=variable):
        put(store)


def test_the_bucket_is_in_the_host_name_where_it_is_wanted() -> None:
    for path_style, url in (
        (True, "https://s3.example/feeds/a%20b"),
        (False, "https://feeds.s3.example/a%20b"),
    ):
        store = S3Store(
            endpoint_url="https://s3.example",
            bucket="feeds",
            access_key_id="k",
            secret_access_key="s",
            prefix="S3",
            region="eu-central-1",
            path_style=path_style,
        )
        with closing(store.client) as client:
            signed = client.generate_presigned_url("get_object", Params={"Bucket": "feeds", "Key": "a b"})
        assert signed.partition("?")[0] == url
        assert "eu-central-1%2Fs3" in signed
