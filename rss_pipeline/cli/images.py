"""The command `images`: the images that wait, for who polls by cron and has no daemon that downloads them.

A download itself is pipeline.images'.
"""

import click

from rss_pipeline.cli.arguments import as_json
from rss_pipeline.cli.output import terminal
from rss_pipeline.collector.models.feed_names import feed_name
from rss_pipeline.errors import ensure_room
from rss_pipeline.settings import Settings


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=900.0,
    show_default=True,
    help="Begin no further round of downloads after this time; the rest waits for the next call.",
)
@as_json
@click.pass_obj
def images(settings: Settings, seconds: float, as_json: bool) -> None:
    """Download the images that wait: new ones, and those due for another attempt.

    `rss-pipeline up` does so by itself; after `poll` in cron, this command does. It may run beside both.
    Exit code 1 if a store or the network failed; an image that cannot be had is no failure.
    """
    from rss_pipeline.pipeline.images.download import download_images
    from rss_pipeline.pipeline.session.session import session_of_command
    from rss_pipeline.storage.feeds.feed_row import feed_titles
    from rss_pipeline.storage.images.image_claims import images_waiting

    ensure_room(settings.home)
    with terminal.Bars() as progress, session_of_command(settings, "images", progress=progress) as session:
        done = download_images(
            run=session.run,
            lease_keeper=session.leases,
            politeness=session.image_politeness,
            spool=session.spool,
            seconds=seconds,
        )
        left = images_waiting(session.run.database)
        titles = feed_titles(session.run.database, [feed for feed, *_ in done.failures])
    if as_json:
        terminal.say_json(
            {
                "archived": done.archived,
                "bytes": done.bytes,
                "failed_attempts": done.failed_attempts,
                "failed": done.failed,
                "waiting": left.images,
            }
        )
        return
    for feed, url, _, sentence in done.failures:
        terminal.complain(f"{feed_name(feed, titles.get(feed))}: {url}: {sentence}")
    terminal.say(
        f"{done.archived} images archived ({done.bytes / 1e6:,.1f} MB), {done.failed_attempts} attempts"
        f" failed, {done.failed} of them for good; {left.images} images wait."
    )
