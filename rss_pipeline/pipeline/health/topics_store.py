"""The check of the store of topics, where it is not the usual one."""

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.pipeline.health.findings import Check
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_topics


def check_topics_store(settings: Settings) -> list[Check]:
    """The store of topics, where it is not the usual one: it can be written, and everybody may read it."""
    s3 = settings.s3
    store = open_topics(settings)
    if store is None or s3 is None:
        return []
    where = f"{s3.endpoint_url}/{s3.topics_bucket or s3.bucket}"
    try:
        store.probe()
    except RssPipelineError as error:
        fix = f"Check {s3.prefix}_TOPICS_BUCKET; the token must read and write in this bucket, too."
        return [Check("topics", "failure", str(error), fix)]
    if s3.topics_public_url is None:
        public = f"{s3.prefix}_TOPICS_PUBLIC_URL"
        found = f"{where}: written; without {public}, documents do not name their own address"
        fix = f"Set {public} to the address at which readers find the bucket's objects."
        return [Check("topics", "warning", found, fix)]
    return [Check("topics", "ok", f"{where}: written; readers find it at {s3.topics_public_url}")]
