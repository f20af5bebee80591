"""R2's own errors, and what R2 needs of boto3, asserted on what goes over the wire.

What R2 shares with the folder is in test_objects_contract.py.
"""

import base64
import hashlib
import logging
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rss_pipeline.errors import ObjectStoreUnavailable, StorageRejected
from rss_pipeline.storage.backends.s3.objects import CONNECT_SECONDS, CONNECTIONS, READ_SECONDS, S3Store
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.storage.raw import Answers, Asked, RawServer, answer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

KEY_ID, SECRET = "0123456789abcdef0123456789abcdef", "hunter2" * 9 + "h"
PUT_ANSWER = answer(200, b"", ETag='"0"')
DELETED = answer(200, b"<DeleteResult><Deleted><Key>a</Key></Deleted></DeleteResult>", "application/xml")
TEXT = "text/plain"


def store(endpoint: str, **changed: Any) -> S3Store:
    known = {"bucket": "feeds", "access_key_id": KEY_ID, "secret_access_key": SECRET}
    return S3Store(**{**known, "endpoint_url": endpoint, **changed})


@contextmanager
def answering(answers: Answers, **changed: Any) -> Iterator[tuple[S3Store, RawServer]]:
    with RawServer(answers) as server:
        objects = store(server.url, **changed)
        try:
            yield objects, server
        finally:
            objects.client.close()


def xml(code: str, message: str = "The reason.") -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


def refusal(status: int, code: str, message: str = "The reason.") -> bytes:
    return answer(status, xml(code, message), "application/xml")


def put(objects: ObjectStore, key: str = "a/b", body: bytes = b"body") -> bool:
    return objects.put(key, body, content_type=TEXT)


OPERATIONS: dict[str, Callable[[ObjectStore], object]] = {
    "put": put,
    "get": lambda objects: objects.get("a/b"),
    "head": lambda objects: objects.head("a/b"),
    "copy": lambda objects: objects.copy("a/b", "c"),
    "list": lambda objects: list(objects.list("a/")),
    "delete": lambda objects: objects.delete_many(["a/b"]),
    "probe": lambda objects: objects.probe(),
}


def troubles(objects: ObjectStore, server: RawServer) -> Iterator[str]:
    """The last call of each operation; none is sent twice."""
    for name, operation in OPERATIONS.items():
        asked = len(server.requests)
        with pytest.raises(ObjectStoreUnavailable) as caught:
            operation(objects)
        assert len(server.requests) == asked + 1, name
        yield str(caught.value)


def test_boto3_is_set_as_r2_needs_it() -> None:
    """Over plain http the first two do not show, and over https they break every PUT."""
    objects = store("https://account.r2.cloudflarestorage.com")
    config = objects.client.meta.config
    assert config.request_checksum_calculation == "when_required"
    assert config.response_checksum_validation == "when_required"
    assert config.retries["total_max_attempts"] == 1
    assert (config.connect_timeout, config.read_timeout) == (CONNECT_SECONDS, READ_SECONDS) == (5, 30)
    assert config.s3["addressing_style"] == "path"
    assert config.signature_version == "s3v4"
    assert config.max_pool_connections == CONNECTIONS
    assert (objects.client.meta.region_name, config.region_name) == ("auto", "auto")
    objects.client.close()


def test_a_put_goes_without_expect_and_checksums_to_the_bucket_s_path() -> None:
    with answering(PUT_ANSWER) as (objects, server):
        assert objects.put("a b/語", b"body", content_type=TEXT, metadata={"n": "1"}, only_if_absent=True)
    [asked] = server.requests
    assert asked.line == "PUT /feeds/a%20b/%E8%AA%9E HTTP/1.1"
    assert asked.body == b"body"
    assert (asked.headers["content-type"], asked.headers["x-amz-meta-n"]) == (TEXT, "1")
    assert asked.headers["if-none-match"] == "*"
    assert f"Credential={KEY_ID}/" in asked.headers["authorization"]
    assert "/auto/s3/aws4_request" in asked.headers["authorization"]
    unwanted = ("expect", "transfer-encoding", "x-amz-trailer", "x-amz-sdk-checksum-algorithm")
    assert not [name for name in asked.headers if name in unwanted or name.startswith("x-amz-checksum")]


def test_a_delete_carries_an_md5_and_no_crc32() -> None:
    with answering(DELETED) as (objects, server):
        assert objects.delete_many(["a", "語"]) == {}
    [asked] = server.requests
    assert asked.line == "POST /feeds?delete HTTP/1.1"
    digest = hashlib.md5(asked.body, usedforsecurity=False).digest()
    assert asked.headers["content-md5"] == base64.b64encode(digest).decode()
    assert "content-md5" in asked.headers["authorization"]
    unwanted = ("x-amz-sdk-checksum-algorithm", "expect")
    assert not [name for name in asked.headers if name in unwanted or name.startswith("x-amz-checksum")]


def test_keys_are_deleted_a_batch_at_a_time_each_once() -> None:
    with answering(DELETED) as (objects, server):
        assert objects.delete_many(f"{n % 600}" for n in range(1_200)) == {}
        assert objects.delete_many([]) == {}
    assert [asked.body.count(b"<Key>") for asked in server.requests] == [250, 250, 100]


def test_each_key_that_could_not_be_deleted_is_reported() -> None:
    errors = (
        "<DeleteResult><Error><Key>a</Key><Code>InternalError</Code><Message>Try again.</Message></Error>"
        "<Error><Key>c</Key><Code>AccessDenied</Code><Message>No.</Message></Error></DeleteResult>"
    )
    with answering(answer(200, errors.encode(), "application/xml")) as (objects, _):
        refused = objects.delete_many(["a", "b", "c", "../d"])
    assert (refused["a"], refused["c"]) == ("InternalError: Try again.", "AccessDenied: No.")
    assert refused.keys() == {"a", "c", "../d"}


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (500, "InternalError", "the poll is tried again later"),
        (503, "SlowDown", "the poll is tried again later"),
        (403, "AccessDenied", "object read and write on the bucket"),
        (429, "TooManyRequests", "the poll is tried again later"),
    ],
)
def test_a_refusal_is_reported_and_no_operation_is_tried_twice(status: int, code: str, advice: str) -> None:
    def refuse(asked: Asked) -> bytes:
        if asked.line.startswith("HEAD"):
            return f"HTTP/1.1 {status} -\r\nContent-Length: 0\r\n\r\n".encode()
        return refusal(status, code)

    with answering(refuse) as (objects, server):
        for text in troubles(objects, server):
            assert f"at {server.url}/feeds -> {status} " in text
            assert advice in text


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "EntityTooLarge"), (400, "InvalidArgument"), (400, "KeyTooLongError"), (400, "MetadataTooLarge")],
)
def test_what_concerns_one_object_is_a_refusal_of_it(status: int, code: str) -> None:
    with (
        answering(refusal(status, code)) as (objects, server),
        pytest.raises(StorageRejected, match=f"refused PUT a/b: {status} {code}: The reason"),
    ):
        put(objects)
    assert len(server.requests) == 1


@pytest.mark.parametrize("given", [b"", b"HTTP/1.1 200 OK\r\nConte"], ids=["no answer", "half a head"])
def test_half_an_answer_is_our_error_and_is_not_requested_again(given: bytes) -> None:
    with answering(given) as (objects, server):
        for text in troubles(objects, server):
            assert "check R2_ENDPOINT_URL and the network" in text


def test_a_page_in_the_place_of_r2_is_no_success() -> None:
    page = answer(200, b"<html><p>Welcome to our hotel<br></html>", "text/html")

    def portal(asked: Asked) -> bytes:
        return page.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if asked.line.startswith("HEAD") else page

    with answering(portal) as (objects, server):
        assert len(list(troubles(objects, server))) == len(OPERATIONS)


def test_an_answer_without_a_result_is_neither_success_nor_an_empty_list() -> None:
    """An answer cut off in its head looks so too."""
    with answering(answer(200, b"", TEXT)) as (objects, server):
        for text in troubles(objects, server):
            assert "200 without" in text
            assert "check R2_ENDPOINT_URL" in text


def test_half_a_body_is_our_error() -> None:
    whole = answer(200, b"x" * 100, TEXT, ETag='"0"', Last_Modified="Wed, 18 Feb 2026 08:30:00 GMT")
    half = whole[:-50].replace(b"ETag", b"Connection: close\r\nETag")
    with answering(half) as (objects, _), pytest.raises(ObjectStoreUnavailable, match="GET a/b"):
        objects.get("a/b")


def test_a_refused_connection_is_our_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(ObjectStoreUnavailable, match="check R2_ENDPOINT_URL and the network"):
        put(store(url))


def test_no_answer_in_time_is_our_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        objects = store(f"http://127.0.0.1:{listening.getsockname()[1]}", read_seconds=0.05)
        with pytest.raises(
            ObjectStoreUnavailable, match=r"check R2_ENDPOINT_URL and the network.*ReadTimeout"
        ):
            put(objects)
        objects.client.close()


@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict"])
def test_a_key_that_another_takes_at_the_same_time_is_not_absent(code: str) -> None:
    with answering(refusal(412, code)) as (objects, _):
        assert objects.put("a", b"", content_type=TEXT, only_if_absent=True) is False
        with pytest.raises(ObjectStoreUnavailable):
            objects.put("a", b"", content_type=TEXT)


def changed_store(cloudflare: Cloudflare, **changed: str) -> S3Store:
    known = {
        "bucket": cloudflare.bucket,
        "access_key_id": cloudflare.access_key,
        "secret_access_key": cloudflare.secret_key,
    }
    return store(cloudflare.s3_endpoint, **{**known, **changed})


@pytest.mark.parametrize(
    ("changed", "variable"),
    [
        ({"access_key_id": "0" * 32}, "R2_ACCESS_KEY_ID"),
        ({"secret_access_key": "0" * 64}, "R2_SECRET_ACCESS_KEY"),
        ({"bucket": "not-there"}, "R2_BUCKET"),
        ({"bucket": "No Bucket!"}, "R2_BUCKET"),
    ],
    ids=["key id", "secret", "bucket", "no bucket's name"],
)
def test_what_is_set_wrongly_is_named(
    shared_cloudflare: Cloudflare, changed: dict[str, str], variable: str
) -> None:
    objects = changed_store(shared_cloudflare, **changed)
    # The PUT is last: refused, its body stays unread, and the connection that it came on is closed.
    for name in ("head", "get", "list", "put"):
        if name == "head" and changed == {"bucket": "not-there"}:
            # An answer to HEAD is the same for an absent bucket and an absent object; that of the probe is
            # not.
            assert objects.head("a/b") is None
            continue
        with pytest.raises(ObjectStoreUnavailable) as caught:
            OPERATIONS[name](objects)
        assert "used: check R2_" in str(caught.value)
        assert variable in str(caught.value)
        assert shared_cloudflare.secret_key not in "".join(traceback.format_exception(caught.value))
    objects.client.close()


@pytest.mark.parametrize(
    ("changed", "variable"),
    [({"endpoint_url": "nothing"}, "R2_ENDPOINT_URL"), ({"access_key_id": "a\r\nX: y"}, "R2_ACCESS_KEY_ID")],
)
def test_what_is_of_no_use_to_anybody_is_reported_at_once(changed: dict[str, str], variable: str) -> None:
    with pytest.raises(ObjectStoreUnavailable, match=variable):
        store("http://127.0.0.1:1", **changed)


@pytest.mark.parametrize("status", [200, 403, 500])
def test_the_secret_shows_nowhere(caplog: pytest.LogCaptureFixture, status: int) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    with answering(refusal(status, "AccessDenied")) as (objects, server):
        for operation in OPERATIONS.values():
            with pytest.raises(ObjectStoreUnavailable) as caught:
                operation(objects)
            shown += [*traceback.format_exception(caught.value), repr(caught.value), repr(objects)]
    shown += [asked.line + str(asked.headers) for asked in server.requests]
    assert SECRET not in "\n".join(shown) + caplog.text


def test_the_public_url_is_the_key_quoted() -> None:
    objects = store("http://127.0.0.1:1", public_url="https://images.example.org/feeds/")
    assert objects.url("images/語?#%.jpg") == "https://images.example.org/feeds/images/%E8%AA%9E%3F%23%25.jpg"
    assert objects.url("backups/a/b.xml") is None
    assert objects.url("images/~a-b_c.d") == "https://images.example.org/feeds/images/~a-b_c.d"
    objects.client.close()


def test_without_a_public_url_nothing_serves_an_object() -> None:
    objects = store("http://127.0.0.1:1")
    assert objects.url("a") is None
    objects.client.close()
