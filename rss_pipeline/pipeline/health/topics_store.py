"""The check of the store of topics, where it is not the usual one."""

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.pipeline.health.findings import Check
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_topics


def check_topics_store(settings: Settings) -> list[Check]:
    """The store of topics, where it is not the usual one: it can be written, and everybody may read it."""
    r2 = settings.r2
    store = open_topics(settings)
    if store is None or r2 is None:
        return []
    where = f"{r2.endpoint_url}/{r2.topics_bucket or r2.bucket}"
    try:
        store.probe()
    except RssPipelineError as error:
        fix = "Check R2_TOPICS_BUCKET; the token needs `Object Read & Write` on this bucket, too."
        return [Check("topics", "failure", str(error), fix)]
    if r2.topics_public_url is None:
        found = f"{where}: written; without R2_TOPICS_PUBLIC_URL, documents do not name their own address"
        fix = "Set R2_TOPICS_PUBLIC_URL to the address at which readers find the bucket's objects."
        return [Check("topics", "warning", found, fix)]
    return [Check("topics", "ok", f"{where}: written; readers find it at {r2.topics_public_url}")]
