"""boto3's client for a bucket, with the settings that R2 needs; other stores take them, too.

Nothing else imports boto3.
"""

import base64
import hashlib
import threading
from functools import cache
from typing import Any

import boto3
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.handlers import add_expect_header

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
) -> Any:
    """A client for one endpoint, safe to share between threads.

    Raises:
        BotoCoreError, ValueError: the endpoint is no URL.
    """
    with _SESSION_LOCK:
        client = _session().client(
            "s3",
            endpoint_url=endpoint_url,
            aws_access_key_id=access_key_id,
            aws_secret_access_key=secret_access_key,
            config=_config(region, path_style=path_style, read_seconds=read_seconds),
        )
    # Each PUT would wait up to a second for a 100 Continue that R2 does not document.
    client.meta.events.unregister("before-call.s3", add_expect_header)
    # R2 lists the CRC32 header of DeleteObjects as not implemented; S3's older Content-MD5 is.
    client.meta.events.register("before-sign.s3.DeleteObjects", _md5_instead_of_crc32)
    return client


@cache
def _session() -> Any:
    """One for the process, without credentials: each new one reads boto3's description of S3, for a tenth of
    a second. Making a client of it is not safe in several threads."""
    return boto3.session.Session()


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
