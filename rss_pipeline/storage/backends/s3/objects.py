"""A bucket as an ObjectStore, by its S3 API: Cloudflare's R2, or any other.

Nothing else imports boto3; keys of ours are in backups.py.
"""

import base64
import hashlib
import heapq
import re
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from botocore.handlers import add_expect_header
from botocore.httpsession import URLLib3Session
from botocore.loaders import Loader
from botocore.session import Session
from botocore.utils import get_environ_proxies

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import ObjectStoreUnavailable, StorageRejected
from rss_pipeline.storage.objects import (
    PUBLIC,
    ObjectInfo,
    check_key,
    check_object,
    disposition,
    may_begin_a_key,
)

# boto3's client for a bucket, with the settings that R2 needs; other stores take them, too.
#

CONNECTIONS = 16
CONNECT_SECONDS = 5
READ_SECONDS = 30
_SESSION_LOCK = threading.Lock()


def s3_client(
    *,
    endpoint_url: str,
    access_key_id: str,
    secret_access_key: str,
    region: str,
    path_style: bool,
    read_seconds: float,
    ca_file: Path | None = None,
) -> Any:
    """A client for one endpoint, safe to share between threads. It trusts `ca_file` (PEM) besides the usual
    authorities.

    Raises:
        BotoCoreError, ValueError: the endpoint is no URL.
    """
    config = _config(region, path_style=path_style, read_seconds=read_seconds)
    with _SESSION_LOCK:
        client = _session().client(
            "s3",
            endpoint_url=endpoint_url,
            aws_access_key_id=access_key_id,
            aws_secret_access_key=secret_access_key,
            config=config,
            # Without it, REQUESTS_CA_BUNDLE would be the only trust.
            verify=True,
        )
    if ca_file is not None:
        client._endpoint.http_session = _Trusting(
            ca_file,
            proxies=get_environ_proxies(endpoint_url),
            timeout=(CONNECT_SECONDS, read_seconds),
            max_pool_connections=CONNECTIONS,
        )
    # Each PUT would wait up to a second for a 100 Continue that R2 does not document.
    client.meta.events.unregister("before-call.s3", add_expect_header)
    # R2 lists the CRC32 header of DeleteObjects as not implemented; S3's older Content-MD5 is.
    client.meta.events.register("before-sign.s3.DeleteObjects", _md5_instead_of_crc32)
    return client


class _Trusting(URLLib3Session):  # type: ignore[misc]
    """The connections of a client that trusts a file of authorities besides the usual ones: botocore has one
    file for all of them."""

    def __init__(self, ca_file: Path, **options: Any) -> None:
        self._ca_file = ca_file
        super().__init__(**options)

    def _get_ssl_context(self) -> ssl.SSLContext:
        context: ssl.SSLContext = super()._get_ssl_context()
        context.load_verify_locations(self._ca_file)
        return context


@cache
def _session() -> Any:
    """One for the process, without credentials: each new one reads boto3's description of S3, for a tenth of
    a second. Making a client of it is not safe in several threads.

    It reads none of the shell's AWS_ variables and nothing of ~/.aws, which are about other accounts: a
    profile that is not there, or a damaged file, would stop each poll although keys are set.
    """
    values = {name: (None, None, *rest) for name, (_, _, *rest) in Session.SESSION_VARIABLES.items()}
    no_files = dict.fromkeys(("config_file", "credentials_file"), (None, None, None, None))
    session = Session(session_vars={**values, **no_files})
    own = Loader(extra_search_paths=[Loader.BUILTIN_DATA_PATH], include_default_search_paths=False)
    session.register_component("data_loader", own)
    return boto3.session.Session(botocore_session=session)


def _config(region: str, *, path_style: bool, read_seconds: float) -> Config:
    return Config(
        region_name=region,
        signature_version="s3v4",
        s3={"addressing_style": "path" if path_style else "virtual"},
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


# R2 takes 1,000; a quarter of them ends well within READ_SECONDS on a store that is slow.
DELETED_AT_ONCE = 250
_ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
_EXISTS = frozenset({"412", "PreconditionFailed", "409", "ConditionalRequestConflict"})
_REFUSED = frozenset(
    {"EntityTooLarge", "InvalidArgument", "InvalidRequest", "KeyTooLongError", "MetadataTooLarge", "400"}
)
_NOT_CONDITIONAL = frozenset({"501", "NotImplemented"})
_CLOCK = (
    "set this machine's clock (`timedatectl set-ntp true`): it is too far from the store's, which therefore"
    " refuses every key"
)
_ADVICE = {
    "NoSuchBucket": "check {}_BUCKET",
    "RequestTimeTooSkewed": _CLOCK,
    "RequestExpired": _CLOCK,
    "InvalidAccessKeyId": "check {}_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "check {}_SECRET_ACCESS_KEY",
    "AccessDenied": "the key may not do this; give it object read and write on the bucket",
    "Unauthorized": "check {0}_ACCESS_KEY_ID and {0}_SECRET_ACCESS_KEY",
    "AuthorizationHeaderMalformed": "check {}_REGION",
    "PermanentRedirect": "check {}_REGION",
    # An answer to HEAD has no more than its status.
    "301": "check {}_REGION",
    "401": "check {0}_ACCESS_KEY_ID and {0}_SECRET_ACCESS_KEY",
    "403": "check {}_SECRET_ACCESS_KEY, and that the key has object read and write on the bucket",
    "TooManyRequests": "R2 takes one write a second of one key; the poll is tried again later",
}
"""By the answer's code, with the prefix of the settings."""
_REFUSED_SIGNATURES = frozenset({"403", "401", "AccessDenied", "SignatureDoesNotMatch", "Unauthorized"})
"""An answer to HEAD has no more than its status, and some stores have one word for all of it."""
_MOST_SKEW = timedelta(minutes=15)
"""S3 refuses what a clock signs that is further off."""
_PLAIN_IMAGE = re.compile(r"images/[a-z0-9-]{1,200}/[0-9a-f]{1,32}/[0-9]{1,9}\.[a-z0-9]{1,9}")
"""Our keys of images, which need no escapes: a page of items has a thousand."""
_PROBE_KEY = "probe/writable"


class S3Store:
    """An `ObjectStore` in a bucket. One client, safe to share between threads.

    R2 refuses a write that is only for an absent key where there is one; other stores may do so, may answer
    that they cannot, or overwrite. So with them it is looked first whether there is one: that is safe for
    keys with one writer at a time, and ours are of a feed, which one run holds.

    With a public bucket, what everybody may read (`PUBLIC`) is in that one, under the same keys. What was put
    before there was one is found in the first until `move-images` has moved it.

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
        public_bucket: str | None = None,
        prefix: str = "R2",
        region: str = "auto",
        path_style: bool = True,
        read_seconds: float = READ_SECONDS,
        ca_file: Path | None = None,
    ) -> None:
        """`prefix` is that of the settings' variables: `R2` or `S3`."""
        self._prefix = prefix
        self._bucket = bucket
        self._public_bucket = public_bucket
        self._endpoint = endpoint_url.rstrip("/")
        self._public_url = public_url.rstrip("/") if public_url else None
        self._probe_lock = threading.Lock()
        self._is_conditional = True
        if not access_key_id.isascii() or not access_key_id.isprintable():
            raise ObjectStoreUnavailable(f"{prefix}_ACCESS_KEY_ID: a key id is of printable ASCII")
        try:
            self.client = s3_client(
                endpoint_url=endpoint_url,
                access_key_id=access_key_id,
                secret_access_key=secret_access_key,
                region=region,
                path_style=path_style,
                read_seconds=read_seconds,
                ca_file=ca_file,
            )
        except (BotoCoreError, ValueError) as error:
            raise ObjectStoreUnavailable(f"{endpoint_url}: {error} (check {prefix}_ENDPOINT_URL)") from error

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
        if only_if_absent and self._prefix != "R2" and self.head(key) is not None:
            return False
        extra = {"IfNoneMatch": "*"} if only_if_absent and self._is_conditional else {}
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
            if "IfNoneMatch" in extra and self._prefix != "R2" and answer.code in _NOT_CONDITIONAL:
                self._is_conditional = False
                return self.put(
                    key,
                    content,
                    content_type=content_type,
                    metadata=metadata,
                    cache_control=cache_control,
                    only_if_absent=True,
                )
            raise self._error(answer, f"PUT {key}") from answer
        if "ETag" not in stored:
            # A page of a proxy or of a portal, most likely: 200, and nothing is stored.
            raise self._unavailable(ValueError("200 without an ETag"), f"PUT {key}")
        return True

    def get(self, key: str) -> tuple[bytes, ObjectInfo] | None:
        check_key(key)
        for bucket in self._buckets(key):
            try:
                found = self._call("get_object", bucket, Key=key)
                body = found["Body"].read()
            except _Answered as answer:
                if answer.code in _ABSENT:
                    continue
                raise self._error(answer, f"GET {key}") from answer
            except (BotoCoreError, OSError) as error:
                raise self._unavailable(error, f"GET {key}") from error
            return body, self._info(key, found, f"GET {key}")
        return None

    def head(self, key: str) -> ObjectInfo | None:
        check_key(key)
        for bucket in self._buckets(key):
            if (found := self._head(key, bucket)) is not None:
                return found
        return None

    def _head(self, key: str, bucket: str) -> ObjectInfo | None:
        try:
            found = self._call("head_object", bucket, Key=key)
        except _Answered as answer:
            if answer.code in _ABSENT:
                return None
            raise self._error(answer, f"HEAD {key}") from answer
        return self._info(key, found, f"HEAD {key}")

    def copy(self, source: str, target: str) -> None:
        check_key(source)
        check_key(target)
        for bucket in self._buckets(source):
            if (found := self._head(source, bucket)) is not None:
                self._copy(found, bucket, target)
                return
        raise KeyError(source)

    def _copy(self, found: ObjectInfo, bucket: str, target: str) -> None:
        source = found.key
        content_type = found.content_type or "application/octet-stream"
        extra = {} if (as_what := disposition(content_type)) is None else {"ContentDisposition": as_what}
        try:
            # REPLACE with what was there: S3 refuses a copy onto itself that changes nothing.
            copied = self._call(
                "copy_object",
                Key=target,
                CopySource={"Bucket": bucket, "Key": source},
                MetadataDirective="REPLACE",
                Metadata=dict(found.metadata),
                ContentType=content_type,
                **extra,
            )
        except _Answered as answer:
            if answer.code in _ABSENT:
                raise KeyError(source) from answer
            raise self._error(answer, f"COPY {source}") from answer
        if "CopyObjectResult" not in copied:
            raise self._unavailable(ValueError("200 without a result"), f"COPY {source}")

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        if not may_begin_a_key(prefix):
            return
        if self._public_bucket is None or not any(
            public.startswith(prefix) or prefix.startswith(public) for public in PUBLIC
        ):
            yield from self._list(prefix, after, self._bucket)
            return
        last = None
        both = (self._list(prefix, after, bucket) for bucket in (self._public_bucket, self._bucket))
        for info in heapq.merge(*both, key=attrgetter("key")):
            if info.key != last:
                yield info
            last = info.key

    def _list(self, prefix: str, after: str, bucket: str) -> Iterator[ObjectInfo]:
        place = {"StartAfter": after} if after else {}
        while True:
            try:
                page = self._call("list_objects_v2", bucket, Prefix=prefix, **place)
            except _Answered as answer:
                raise self._error(answer, f"LIST {prefix}") from answer
            if "IsTruncated" not in page:
                # An answer cut off in its head reads as 200 without a body; it is not an empty list.
                raise self._unavailable(ValueError("200 without a list"), f"LIST {prefix}")
            for found in page.get("Contents", ()):
                yield ObjectInfo(key=found["Key"], size=found["Size"], modified=found["LastModified"])
            if not page["IsTruncated"]:
                return
            place = {"ContinuationToken": page["NextContinuationToken"]}

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
        for bucket in dict.fromkeys((self._bucket, self._public_bucket or self._bucket)):
            every = [key for key in wanted if bucket in self._buckets(key)]
            for start in range(0, len(every), DELETED_AT_ONCE):
                refused |= self._delete(every[start : start + DELETED_AT_ONCE], bucket)
        return refused

    def move_to_public(self, info: ObjectInfo) -> bool:
        """Move an object that everybody may read from the first bucket to the public one; False where it is
        not in the first."""
        found = self._head(info.key, self._bucket)
        if self._public_bucket is None or found is None:
            return False
        self._copy(found, self._bucket, info.key)
        refused = self._delete([info.key], self._bucket)
        if refused:
            raise StorageRejected(f"{info.key} is public now, and could not be deleted: {refused[info.key]}")
        return True

    def list_unmoved(self) -> Iterator[ObjectInfo]:
        """The objects that everybody may read and that are not in the public bucket, where there is one."""
        if self._public_bucket is not None:
            for prefix in PUBLIC:
                yield from self._list(prefix, "", self._bucket)

    def _buckets(self, key: str) -> tuple[str, ...]:
        """The bucket of an object; and the one in which it was before there was a public one."""
        if self._public_bucket is None or not key.startswith(PUBLIC):
            return (self._bucket,)
        return (self._public_bucket, self._bucket)

    def _delete(self, keys: Sequence[str], bucket: str) -> dict[str, str]:
        try:
            answer = self._call("delete_objects", bucket, Delete={"Objects": [{"Key": key} for key in keys]})
        except _Answered as error:
            raise self._error(error, f"DELETE of {len(keys)} objects") from error
        if not answer.get("Deleted") and not answer.get("Errors"):
            # Not Quiet, so that silence is no success.
            raise self._unavailable(ValueError("200 without a result"), f"DELETE of {len(keys)} objects")
        return {
            error.get("Key", ""): f"{error.get('Code', '')}: {error.get('Message', '')}"
            for error in answer.get("Errors", ())
        }

    def url(self, key: str) -> str | None:
        if self._public_url is not None and _PLAIN_IMAGE.fullmatch(key):
            return f"{self._public_url}/{key}"
        check_key(key)
        if self._public_url is None or not key.startswith(PUBLIC):
            return None
        return f"{self._public_url}/{quote(key, safe='/-_.~')}"

    def probe(self) -> None:
        with self._probe_lock:
            self.put(_PROBE_KEY, b"", content_type="application/octet-stream")
            self.delete_many([_PROBE_KEY])

    def _call(self, operation: str, bucket: str | None = None, **parameters: Any) -> Any:
        where = bucket or self._buckets(parameters["Key"])[0]
        try:
            return getattr(self.client, operation)(Bucket=where, **parameters)
        except ClientError as error:
            raise _Answered(error) from error
        except (BotoCoreError, OSError) as error:
            raise self._unavailable(error, f"{operation} {parameters.get('Key', '')}") from error

    def _error(self, answer: "_Answered", what: str) -> ObjectStoreUnavailable | StorageRejected:
        if answer.code in _REFUSED:
            return StorageRejected(f"the object store refused {what}: {answer}")
        if answer.code in _REFUSED_SIGNATURES and answer.skew > _MOST_SKEW:
            return self._unusable(_CLOCK, what, str(answer))
        advice = _ADVICE.get(answer.code, "the poll is tried again later").format(self._prefix)
        return self._unusable(advice, what, str(answer))

    def _unavailable(self, error: Exception, what: str) -> ObjectStoreUnavailable:
        # The only parameter that is not checked before botocore does.
        bucket = isinstance(error, ParamValidationError)
        name = f"{self._prefix}_{'BUCKET' if bucket else 'ENDPOINT_URL'}"
        advice = f"check {name}" if bucket else f"check {name} and the network"
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
                # HTTP's names have no case: some stores change it.
                metadata={name.lower(): value for name, value in found.get("Metadata", {}).items()},
            )
        except KeyError as error:
            raise self._unavailable(ValueError(f"200 without {error}"), what) from error


def _skew(date: str | None) -> timedelta:
    try:
        return timedelta() if date is None else abs(parsedate_to_datetime(date) - utc_now())
    except (ValueError, TypeError):
        return timedelta()


class _Answered(Exception):
    """The store answered with an error; its code, and its words."""

    def __init__(self, error: ClientError) -> None:
        details = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
        self.code = str(details.get("Code") or status)
        self.skew = _skew(error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date"))
        """The difference of the store's clock and ours, if the answer has a date."""
        super().__init__(f"{status} {self.code}: {details.get('Message', '')}"[:2_048])
