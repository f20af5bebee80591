"""The schedules. A tick only asks; the work is in the run.

The decision is image_starting.py's.
https://docs.dagster.io/guides/automate/schedules
"""

import dagster as dg

from rss_pipeline.collector.models import Clock
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.orchestration.image_starting import decide_retries
from rss_pipeline.orchestration.jobs import DOWNLOAD_IMAGES, download_images
from rss_pipeline.orchestration.polling import Start
from rss_pipeline.orchestration.sensors import DAEMON_TAGS, recent_runs
from rss_pipeline.settings import Settings
from rss_pipeline.storage.image_claims import images_due
from rss_pipeline.storage.opening import open_database


def build_schedules(settings: Settings, *, clock: Clock) -> list[dg.ScheduleDefinition]:
    """All schedules, running by default."""

    @dg.schedule(
        name="retry_images",
        job=download_images,
        cron_schedule="*/15 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=(
            "Asks again for images whose download failed once or twice: an hour after the first attempt,"
            " eight hours after the second, later where the host asks for it."
        ),
    )
    def retry_images(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        now = clock()
        try:
            with open_database(settings) as database:
                due = images_due(database, now)
        except RssPipelineError as error:
            return dg.SkipReason(f"The database cannot be asked: {error}")
        decision = decide_retries(due, recent_runs(context.instance, DOWNLOAD_IMAGES), now=now)
        if isinstance(decision, Start):
            return dg.RunRequest(tags=DAEMON_TAGS)
        return dg.SkipReason(decision.reason)

    return [retry_images]
