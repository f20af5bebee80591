"""Cloudflare R2 as an ObjectStore, through its S3 API with boto3.

The settings that R2 needs of boto3 are here and nowhere else; keys of ours are in backups.py.
"""

import base64
import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from botocore.handlers import add_expect_header

from rss_pipeline.errors import ObjectStoreUnavailable, StorageRejected
from rss_pipeline.storage.objects import (
    ObjectInfo,
    check_key,
    check_object,
    disposition,
    may_begin_a_key,
)

# R2 takes 1,000; a quarter of them ends well within READ_SECONDS on a store that is slow.
DELETED_AT_ONCE = 250
CONNECTIONS = 16
CONNECT_SECONDS = 5
READ_SECONDS = 30

_ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
_EXISTS = frozenset({"412", "PreconditionFailed", "409", "ConditionalRequestConflict"})
_REFUSED = frozenset(
    {"EntityTooLarge", "InvalidArgument", "InvalidRequest", "KeyTooLongError", "MetadataTooLarge", "400"}
)
_ADVICE = {
    "NoSuchBucket": "check R2_BUCKET",
    "InvalidAccessKeyId": "check R2_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "check R2_SECRET_ACCESS_KEY",
    "AccessDenied": "the key may not do this; give it object read and write on the bucket",
    "Unauthorized": "check R2_ACCESS_KEY_ID and R2_SECRET_ACCESS_KEY",
    # An answer to HEAD has no more than its status.
    "401": "check R2_ACCESS_KEY_ID and R2_SECRET_ACCESS_KEY",
    "403": "check R2_SECRET_ACCESS_KEY, and that the key has object read and write on the bucket",
    "TooManyRequests": "R2 takes one write a second of one key; the poll is tried again later",
}
_PROBE_KEY = "probe/writable"
_SESSION_LOCK = threading.Lock()


@cache
def _session() -> Any:
    """One for the process, without credentials: each new one reads boto3's description of S3, for a tenth of
    a second. Making a client of it is not safe in several threads."""
    return boto3.session.Session()


class R2Store:
    """An `ObjectStore` in an R2 bucket. One client, safe to share between threads.

    `head` finds nothing in a bucket that does not exist: its answer has no body that says so. `probe` does.

    Raises:
        ObjectStoreUnavailable: the endpoint or the key id are of no use to anybody.
    """

    def __init__(
        self,
        *,
        endpoint_url: str,
        bucket: str,
        access_key_id: str,
        secret_access_key: str,
        public_url: str | None = None,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._bucket = bucket
        self._endpoint = endpoint_url.rstrip("/")
        self._public_url = public_url.rstrip("/") if public_url else None
        self._probe_lock = threading.Lock()
        if not access_key_id.isascii() or not access_key_id.isprintable():
            raise ObjectStoreUnavailable("R2_ACCESS_KEY_ID: a key id is of printable ASCII")
        try:
            with _SESSION_LOCK:
                self.client = _session().client(
                    "s3",
                    endpoint_url=endpoint_url,
                    aws_access_key_id=access_key_id,
                    aws_secret_access_key=secret_access_key,
                    config=_config(read_seconds),
                )
        except (BotoCoreError, ValueError) as error:
            raise ObjectStoreUnavailable(f"{endpoint_url}: {error} (check R2_ENDPOINT_URL)") from error
        events = self.client.meta.events
        # Each PUT would wait up to a second for a 100 Continue that R2 does not document.
        events.unregister("before-call.s3", add_expect_header)
        # R2 lists the CRC32 header of DeleteObjects as not implemented; S3's older Content-MD5 is.
        events.register("before-sign.s3.DeleteObjects", _md5_instead_of_crc32)

    def put(
        self,
        key: str,
        body: bytes | Path,
        *,
        content_type: str,
        metadata: Mapping[str, str] | None = None,
        cache_control: str | None = None,
        only_if_absent: bool = False,
    ) -> bool:
        check_object(key, content_type, metadata or {})
        extra = {"IfNoneMatch": "*"} if only_if_absent else {}
        if cache_control is not None:
            extra["CacheControl"] = cache_control
        if (as_what := disposition(content_type)) is not None:
            extra["ContentDisposition"] = as_what
        try:
            content = body.read_bytes() if isinstance(body, Path) else body
        except OSError as error:
            raise ObjectStoreUnavailable(f"PUT {key}: {error}; check the spool folder") from error
        try:
            stored = self._call(
                "put_object",
                Key=key,
                Body=content,
                ContentType=content_type,
                Metadata=dict(metadata or {}),
                **extra,
            )
        except _Answered as answer:
            if only_if_absent and answer.code in _EXISTS:
                return False
            raise self._trouble(answer, f"PUT {key}") from answer
        if "ETag" not in stored:
            # A page of a proxy or of a portal, most likely: 200, and nothing is stored.
            raise self._unavailable(ValueError("200 without an ETag"), f"PUT {key}")
        return True

    def get(self, key: str) -> tuple[bytes, ObjectInfo] | None:
        check_key(key)
        try:
            found = self._call("get_object", Key=key)
            body = found["Body"].read()
        except _Answered as answer:
            if answer.code in _ABSENT:
                return None
            raise self._trouble(answer, f"GET {key}") from answer
        except (BotoCoreError, OSError) as error:
            raise self._unavailable(error, f"GET {key}") from error
        return body, self._info(key, found, f"GET {key}")

    def head(self, key: str) -> ObjectInfo | None:
        check_key(key)
        try:
            found = self._call("head_object", Key=key)
        except _Answered as answer:
            if answer.code in _ABSENT:
                return None
            raise self._trouble(answer, f"HEAD {key}") from answer
        return self._info(key, found, f"HEAD {key}")

    def copy(self, source: str, target: str) -> None:
        found = self.head(source)
        if found is None:
            raise KeyError(source)
        check_key(target)
        content_type = found.content_type or "application/octet-stream"
        extra = {} if (as_what := disposition(content_type)) is None else {"ContentDisposition": as_what}
        try:
            # REPLACE with what was there: S3 refuses a copy onto itself that changes nothing.
            copied = self._call(
                "copy_object",
                Key=target,
                CopySource={"Bucket": self._bucket, "Key": source},
                MetadataDirective="REPLACE",
                Metadata=dict(found.metadata),
                ContentType=content_type,
                **extra,
            )
        except _Answered as answer:
            if answer.code in _ABSENT:
                raise KeyError(source) from answer
            raise self._trouble(answer, f"COPY {source}") from answer
        if "CopyObjectResult" not in copied:
            raise self._unavailable(ValueError("200 without a result"), f"COPY {source}")

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        if not may_begin_a_key(prefix):
            return
        after: dict[str, str] = {}
        while True:
            try:
                page = self._call("list_objects_v2", Prefix=prefix, **after)
            except _Answered as answer:
                raise self._trouble(answer, f"LIST {prefix}") from answer
            if "IsTruncated" not in page:
                # An answer cut off in its head reads as 200 without a body; it is not an empty list.
                raise self._unavailable(ValueError("200 without a list"), f"LIST {prefix}")
            for found in page.get("Contents", ()):
                yield ObjectInfo(key=found["Key"], size=found["Size"], modified=found["LastModified"])
            if not page["IsTruncated"]:
                return
            after = {"ContinuationToken": page["NextContinuationToken"]}

    def delete_many(self, keys: Iterable[str]) -> dict[str, str]:
        wanted: dict[str, None] = {}
        refused: dict[str, str] = {}
        for key in keys:
            try:
                check_key(key)
            except StorageRejected as error:
                refused[key] = str(error)
            else:
                wanted[key] = None
        every = list(wanted)
        for start in range(0, len(every), DELETED_AT_ONCE):
            refused |= self._delete(every[start : start + DELETED_AT_ONCE])
        return refused

    def _delete(self, keys: Sequence[str]) -> dict[str, str]:
        try:
            answer = self._call("delete_objects", Delete={"Objects": [{"Key": key} for key in keys]})
        except _Answered as error:
            raise self._trouble(error, f"DELETE of {len(keys)} objects") from error
        if not answer.get("Deleted") and not answer.get("Errors"):
            # Not Quiet, so that silence is no success.
            raise self._unavailable(ValueError("200 without a result"), f"DELETE of {len(keys)} objects")
        return {
            error.get("Key", ""): f"{error.get('Code', '')}: {error.get('Message', '')}"
            for error in answer.get("Errors", ())
        }

    def url(self, key: str) -> str | None:
        check_key(key)
        return None if self._public_url is None else f"{self._public_url}/{quote(key, safe='/-_.~')}"

    def probe(self) -> None:
        with self._probe_lock:
            self.put(_PROBE_KEY, b"", content_type="application/octet-stream")
            self.delete_many([_PROBE_KEY])

    def _call(self, operation: str, **parameters: Any) -> Any:
        try:
            return getattr(self.client, operation)(Bucket=self._bucket, **parameters)
        except ClientError as error:
            raise _Answered(error) from error
        except (BotoCoreError, OSError) as error:
            raise self._unavailable(error, f"{operation} {parameters.get('Key', '')}") from error

    def _trouble(self, answer: "_Answered", what: str) -> ObjectStoreUnavailable | StorageRejected:
        if answer.code in _REFUSED:
            return StorageRejected(f"the object store refused {what}: {answer}")
        advice = _ADVICE.get(answer.code, "the poll is tried again later")
        return self._unusable(advice, what, str(answer))

    def _unavailable(self, error: Exception, what: str) -> ObjectStoreUnavailable:
        # The only parameter that is not checked before botocore does.
        bucket = isinstance(error, ParamValidationError)
        advice = "check R2_BUCKET" if bucket else "check R2_ENDPOINT_URL and the network"
        return self._unusable(advice, what, f"{type(error).__name__}: {error}")

    def _unusable(self, advice: str, what: str, answer: str) -> ObjectStoreUnavailable:
        return ObjectStoreUnavailable(
            f"the object store cannot be used: {advice}."
            f" {what} at {self._endpoint}/{self._bucket} -> {answer}"
        )

    def _info(self, key: str, found: Mapping[str, Any], what: str) -> ObjectInfo:
        try:
            return ObjectInfo(
                key=key,
                size=found["ContentLength"],
                modified=found["LastModified"],
                content_type=found.get("ContentType"),
                metadata=found.get("Metadata", {}),
            )
        except KeyError as error:
            raise self._unavailable(ValueError(f"200 without {error}"), what) from error


class _Answered(Exception):
    """The store answered with an error; its code, and its words."""

    def __init__(self, error: ClientError) -> None:
        details = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
        self.code = str(details.get("Code") or status)
        super().__init__(f"{status} {self.code}: {details.get('Message', '')}"[:2_048])


def _config(read_seconds: float) -> Config:
    return Config(
        region_name="auto",
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        # Since boto3 1.36 the defaults add checksum trailers to every PUT over https, which R2 refuses.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # A write that got no answer may have been applied: the caller knows what to do, botocore does not.
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        max_pool_connections=CONNECTIONS,
    )


def _md5_instead_of_crc32(request: AWSRequest, **_: object) -> None:
    for name in [name for name in request.headers if name.lower().startswith("x-amz-checksum-")]:
        del request.headers[name]
    for name in ("x-amz-sdk-checksum-algorithm", "Content-MD5"):
        if name in request.headers:
            del request.headers[name]
    body = request.body or b""
    digest = hashlib.md5(body if isinstance(body, bytes) else str(body).encode(), usedforsecurity=False)
    request.headers["Content-MD5"] = base64.b64encode(digest.digest()).decode()
