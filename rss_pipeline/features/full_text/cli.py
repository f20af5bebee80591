"""The command `full-text`: articles of stored items and of new ones, fetched now; the section of `status`."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import click

from rss_pipeline.cli.arguments import Instant, as_json, one_feed
from rss_pipeline.cli.output import terminal
from rss_pipeline.cli.output.status_table import StatusLook, StatusSection
from rss_pipeline.collector.models.feed_names import feed_name
from rss_pipeline.extras import ARTICLES
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database

if TYPE_CHECKING:
    from rss_pipeline.features.full_text.service import Articles


_SHOWN = 20


@click.command("full-text")
@click.argument("feed", required=False)
@click.option("--since", type=Instant(), help="Also for the feed's stored items that came since then.")
@as_json
@click.pass_obj
def full_text(settings: Settings, feed: str | None, since: datetime | None, as_json: bool) -> None:
    """Fetch the articles behind the items of FEED, or of all feeds with `full_text` in feeds.yaml.

    With FEED its stored items get their article too, all or those since an instant, whether or not feeds.yaml
    asks for it. An item's page is requested once, ever, at the host's pace, and only if its robots.txt allows
    it; what waits is shown with its time. Exit code 1 if articles cannot be read here.
    """
    from rss_pipeline.features.full_text import sql
    from rss_pipeline.features.full_text.service import ASKED_AT_ONCE, fetch_articles
    from rss_pipeline.pipeline.session.session import session_of_command
    from rss_pipeline.storage.feeds.feed_row import feed_titles

    if since is not None and feed is None:
        raise click.UsageError("--since is for one FEED")
    ARTICLES.require()
    feed_id = None
    if feed is not None:
        with open_database(settings) as database:
            feed_id = one_feed(database, feed)["id"]
    with session_of_command(settings, "full-text") as session:
        asked = 0
        if feed_id is not None:
            asked = sql.want_since(
                session.run.database, feed_id, since=since, most=ASKED_AT_ONCE, now=session.run.clock()
            )
        done = fetch_articles(session, feed_id=feed_id)
        ids = {*done.decisions, *(id for id, *_ in done.reasons)}
        titles = feed_titles(session.run.database, ids)
    done.wanted += asked
    if as_json:
        terminal.say_json(asdict(done))
    else:
        _show(done, {id: feed_name(id, titles.get(id)) for id in ids})
    sys.exit(0)


def _show(done: "Articles", names: Mapping[str, str]) -> None:
    terminal.say(
        f"{done.shown} articles are shown now, {done.none} pages have none, {done.waiting} wait;"
        f" {done.wanted} items were new here."
    )
    for feed_id, decision in done.decisions.items():
        terminal.say(f"{names[feed_id]}: {decision.sentence}")
    for host, number in done.full_hosts.items():
        terminal.say(f"{host} had its {number} requests for articles of 24 hours; the rest waits.")
    told = [f"{names[feed_id]}  {link}\n    {reason}" for feed_id, link, reason in done.reasons]
    for lines in (told, [f"until {until}  {link}\n    {reason}" for link, until, reason in done.later]):
        for line in lines[:_SHOWN]:
            terminal.say(line)
        if len(lines) > _SHOWN:
            terminal.say(f"and {len(lines) - _SHOWN} more; --json prints them")


def status_section(look: StatusLook) -> StatusSection | None:
    """Full text of one feed; or, of all, how many pages wait."""
    from rss_pipeline.features.full_text import sql
    from rss_pipeline.features.full_text.about import about_feed

    if look.feed_id is not None:
        query = about_feed(look.feed_id, now=look.now)
        found = query.read(look.database.batch(list(query.statements)))
        if found is None:
            return None
        return StatusSection(as_json={"full_text": found.as_json()}, fields={"full text": found.sentences})
    [row] = look.database.batch([sql.count_waiting(look.now)])[0].rows
    waiting, in_turn = int(row["waiting"]), int(row["in_turn"])

    def show() -> None:
        if waiting:
            terminal.say(
                f"{waiting:,} pages of articles wait for their request, {in_turn:,} of them for their turn"
                " among the new addresses of a user; `rss-pipeline status FEED` shows one feed's."
            )

    return StatusSection(as_json={"full_text": {"waiting": waiting, "in_turn": in_turn}}, show=show)
