"""A bucket as a backend, by its S3 API: Cloudflare's R2, or any other one."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import urlsplit

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.storage.backends.backend import (
    Lifecycle,
    ObjectsBackend,
    Server,
    TopicsPlace,
    check_place,
    http_date,
    shown,
)
from rss_pipeline.storage.objects import PUBLIC, ObjectStore

if TYPE_CHECKING:
    from rss_pipeline.storage.backends.s3.objects import S3Store

_OPTIONAL = ("PUBLIC_BUCKET", "PUBLIC_URL", "TOPICS_BUCKET", "TOPICS_PUBLIC_URL")
_HOSTS_OF_BUCKETS = (
    ".r2.cloudflarestorage.com",
    ".amazonaws.com",
    ".digitaloceanspaces.com",
    ".backblazeb2.com",
    ".wasabisys.com",
)
"""Services that give each bucket a host of its own, besides the endpoint."""
_AWS_REGION = "us-east-1"
_TOPICS = "topics/"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Backend(ObjectsBackend):
    """A bucket, by its S3 API: Cloudflare's R2, or any other."""

    name = "s3"
    title = "S3"
    prefix: ClassVar[str] = "S3"
    """The prefix of the variables that name the bucket."""
    variables: ClassVar[tuple[str, ...]] = ("S3_BUCKET", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY")
    secrets = (("access_key_id", "S3_ACCESS_KEY_ID"), ("secret_access_key", "S3_SECRET_ACCESS_KEY"))
    optional: ClassVar[tuple[str, ...]] = ("ENDPOINT_URL", "REGION", "PATH_STYLE")
    pays_by_list = True
    fix = "Check the S3_ variables; the key must read, write, list and delete objects in this bucket."

    endpoint_url: str = shown("For R2 https://ACCOUNT.r2.cloudflarestorage.com")
    bucket: str = shown("The bucket's name; it holds `backups/` and `images/`.")
    access_key_id: str = shown("The key id of a token that may read and write the bucket.")
    secret_access_key: str = shown("That token's secret.", repr=False)
    region: str = shown("For R2 `auto`.", default="auto")
    path_style: bool = shown("The bucket's name is in the path, not in the host.", default=True)
    public_url: str | None = shown("The URL under which browsers find the objects.", default=None)
    public_bucket: str | None = shown("The bucket of what everybody may read.", default=None)
    """`public_url` is its address then. Without it, that address shows the backups and what users have as
    well, unless the bucket's policy is for a prefix."""
    topics_bucket: str | None = shown("The bucket of topics, where that is another one.", default=None)
    """A public one would show the backups as well."""
    topics_public_url: str | None = shown("The URL under which everybody finds topics.", default=None)
    ca_file: Path | None = shown("A file of authorities to trust besides the usual ones.", default=None)

    @classmethod
    def read(cls, reader: EnvironmentReader, *, ca_file: Path | None) -> Self | None:
        prefix, needed = cls.prefix, cls.variables
        given = reader.all_or_none(needed)
        more = {name: reader.text(f"{prefix}_{name}") for name in (*cls.optional, *_OPTIONAL)}
        for name in ("ENDPOINT_URL", "PUBLIC_URL", "TOPICS_PUBLIC_URL"):
            if (url := reader.text(f"{prefix}_{name}")) is not None:
                check_place(reader, f"{prefix}_{name}", url)
        if given is None:
            for name, text in more.items():
                if text is not None:
                    reader.add(f"set, but not {', '.join(needed)}; set them too, or none", f"{prefix}_{name}")
            return None
        if more["PUBLIC_BUCKET"] == given[f"{prefix}_BUCKET"]:
            reader.add(
                "the same bucket; the public one shows everything in it, and this one has the backups:"
                " make another",
                f"{prefix}_PUBLIC_BUCKET",
                f"{prefix}_BUCKET",
            )
        _check_endpoint(reader, f"{prefix}_ENDPOINT_URL", given[f"{prefix}_BUCKET"])
        region = more.get("REGION") or _AWS_REGION if "REGION" in more else "auto"
        return cls(
            endpoint_url=reader.text(f"{prefix}_ENDPOINT_URL") or f"https://s3.{region}.amazonaws.com",
            region=region,
            path_style="PATH_STYLE" not in more or reader.on_off(f"{prefix}_PATH_STYLE", True),
            bucket=given[f"{prefix}_BUCKET"],
            access_key_id=given[f"{prefix}_ACCESS_KEY_ID"],
            secret_access_key=given[f"{prefix}_SECRET_ACCESS_KEY"],
            public_url=more["PUBLIC_URL"],
            public_bucket=more["PUBLIC_BUCKET"],
            topics_bucket=more["TOPICS_BUCKET"],
            topics_public_url=more["TOPICS_PUBLIC_URL"],
            ca_file=ca_file,
        )

    @classmethod
    def main_variable(cls) -> str:
        return f"{cls.prefix}_BUCKET"

    @property
    def place(self) -> str:
        return f"{self.endpoint_url}/{self.bucket}"

    @property
    def described(self) -> str:
        return f"the bucket {self.bucket}"

    def servers(self) -> Iterable[Server]:
        what = f"the object store of this installation ({self.prefix}_ENDPOINT_URL)"
        yield Server(what=what, url=self.endpoint_url)

    def open(self) -> "S3Store":
        return self._bucket(self.bucket, self.public_url, public_bucket=self.public_bucket)

    def uri(self, prefix: str) -> tuple[str, str]:
        bucket = self.bucket
        if prefix in PUBLIC:
            bucket = self.public_bucket or bucket
        if prefix == _TOPICS:
            bucket = self.topics_bucket or bucket
        return f"s3://{bucket}/{prefix}", f"bucket {bucket} at {self.endpoint_url}"

    def topics(self) -> TopicsPlace | None:
        if self.topics_bucket is None and self.topics_public_url is None:
            return None
        return TopicsPlace(
            place=f"{self.endpoint_url}/{self.topics_bucket or self.bucket}",
            bucket_variable=f"{self.prefix}_TOPICS_BUCKET",
            public_url=self.topics_public_url,
            public_variable=f"{self.prefix}_TOPICS_PUBLIC_URL",
        )

    def open_topics(self) -> "S3Store | None":
        if self.topics() is None:
            return None
        return self._bucket(self._topics_bucket, self.topics_public_url)

    @property
    def topics_place(self) -> str:
        return f"{self.endpoint_url}/{self._topics_bucket}"

    @property
    def _topics_bucket(self) -> str:
        return self.topics_bucket or self.public_bucket or self.bucket

    def public_urls(self) -> list[str]:
        return [url for url in (self.public_url, self.topics_public_url) if url is not None]

    def own_url(self) -> str:
        """Its own address, where a policy may open it."""
        return f"{self.endpoint_url.rstrip('/')}/{self.bucket}"

    @property
    def fix_open(self) -> str:
        if self.public_bucket is not None:
            return f"Take away the public access to the bucket {self.bucket}; public is {self.public_bucket}."
        return (
            f"Make a bucket of its own for what everybody may read, set {self.prefix}_PUBLIC_BUCKET to its"
            f" name, run `rss-pipeline move-images`, then let {self.prefix}_PUBLIC_URL lead to the new"
            f" bucket: the addresses of images and topics stay the same. The bucket {self.bucket} must not be"
            " public any more."
        )

    def clock(self, store: ObjectStore) -> datetime | None:
        """The endpoint's clock, also where it refuses the request: a clock too wrong is a reason to."""
        from botocore.exceptions import BotoCoreError, ClientError

        from rss_pipeline.storage.backends.s3.objects import S3Store

        if not isinstance(store, S3Store):
            return None
        try:
            answer = store.client.list_objects_v2(Bucket=self.bucket, MaxKeys=1)
        except ClientError as error:
            answer = error.response
        except (BotoCoreError, OSError):
            return None
        return http_date(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date"))

    def lifecycle(self, store: ObjectStore) -> Lifecycle | None:
        """The bucket's rule for `backups/`, as far as this key may read it."""
        from botocore.exceptions import BotoCoreError, ClientError

        from rss_pipeline.storage.backends.s3.objects import S3Store

        if not isinstance(store, S3Store):
            return None
        rule = Lifecycle(bucket=self.bucket)
        try:
            rules = store.client.get_bucket_lifecycle_configuration(Bucket=self.bucket).get("Rules", ())
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            return rule if code == "NoSuchLifecycleConfiguration" else replace(rule, unread=code)
        except (BotoCoreError, OSError) as error:
            return replace(rule, unread=type(error).__name__)
        for each in rules:
            prefix = each.get("Filter", {}).get("Prefix", each.get("Prefix"))
            days = each.get("Expiration", {}).get("Days")
            if each.get("Status") == "Enabled" and prefix in ("backups/", "backups") and days:
                return replace(rule, days=int(days))
        return rule

    def _bucket(self, bucket: str, public_url: str | None, *, public_bucket: str | None = None) -> "S3Store":
        # boto3 takes a third of a second and 25 MB; an installation with a folder does not need it.
        from rss_pipeline.storage.backends.s3.objects import S3Store

        return S3Store(
            endpoint_url=self.endpoint_url,
            bucket=bucket,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            public_url=public_url,
            public_bucket=public_bucket,
            prefix=self.prefix,
            region=self.region,
            path_style=self.path_style,
            ca_file=self.ca_file,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class R2Backend(S3Backend):
    """A bucket of Cloudflare's R2."""

    name = "r2"
    title = "R2"
    maker = "Cloudflare"
    prefix = "R2"
    variables = ("R2_ENDPOINT_URL", "R2_BUCKET", "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY")
    secrets = (("access_key_id", "R2_ACCESS_KEY_ID"), ("secret_access_key", "R2_SECRET_ACCESS_KEY"))
    optional = ()
    fix = (
        "Check the four R2_ variables; the token needs `Object Read & Write` on this bucket"
        " (Cloudflare dashboard, R2, Manage API tokens)."
    )


def _check_endpoint(reader: EnvironmentReader, name: str, bucket: str) -> None:
    """Note an endpoint that has the bucket in it, as the dashboards of stores show it: each key would begin
    with the bucket's name, and a list find none."""
    try:
        parts = urlsplit(reader.text(name) or "")
        host, port = parts.hostname or "", "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return
    folders = [part for part in parts.path.split("/") if part]
    if folders and folders[-1] == bucket:
        path = "".join(f"/{part}" for part in folders[:-1])
        reader.add(f"ends with the bucket's name; write {parts.scheme}://{host}{port}{path}", name)
    elif host.startswith(f"{bucket}.".lower()) and host.endswith(_HOSTS_OF_BUCKETS):
        own = host[len(bucket) + 1 :]
        reader.add(f"begins with the bucket's name; write {parts.scheme}://{own}{port}", name)
