"""The command `search-index`: the state of the search index; built anew, brought up to date, kept current."""

import logging
import os
import select
import signal
import sys
from functools import partial

import click

from rss_pipeline.cli.reader import START_SECONDS, ChildProcess
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.search import sql, writing
from rss_pipeline.features.search.index_file import (
    IndexFile,
    SearchUnavailable,
    check_fts5,
    has_fts5,
    index_path,
    open_to_read,
    open_to_write,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_database_to_read
from rss_pipeline.storage.database import Database

_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""For the process that builds the index: FTS5 looks up each word in a table of 32 MB, and with pages of 4 KB
nearly each look is for one that the processor does not know."""
_NICE = 10
_MANY = 2_000
"""Items that a process with huge pages adds, though it has to import everything first."""
_LOOK_AT_PARENT_SECONDS = 2.0

_logger = logging.getLogger(__name__)


@click.command("search-index")
@click.option("--update", is_flag=True, help="Bring the index up to date now.")
@click.option("--rebuild", is_flag=True, help="Build the index anew; the old one serves meanwhile.")
@click.option("--follow", is_flag=True, help="Keep the index current until stopped.")
@click.option("--parent", type=int, hidden=True, help="End with the process that has this id.")
@click.option("--quiet", is_flag=True, hidden=True, help="Print nothing.")
@click.pass_obj
def search_index(
    settings: Settings, update: bool, rebuild: bool, follow: bool, parent: int | None, quiet: bool
) -> None:
    """Show the state of the search index of the reader.

    The index is a file in RSS_PIPELINE_HOME. The reader keeps it current by itself, with a process of its own
    that runs `search-index --follow`. The file may be deleted at any time: it is built again.
    """
    if update + rebuild + follow > 1:
        raise click.UsageError("use one of --update, --rebuild and --follow")
    if follow:
        _follow(settings, parent)
    elif quiet:
        _catch_up(settings)
    elif update or rebuild:
        _update(settings, rebuild=rebuild)
    _show(settings) if not follow and not quiet else None


def _show(settings: Settings) -> None:
    from rss_pipeline.cli.output import terminal

    check_fts5()
    path = index_path(settings)
    if not path.exists():
        terminal.say(
            f"{path}: there is none yet; the reader makes it, or `rss-pipeline search-index --update`."
        )
        return
    file = open_to_read(path)
    try:
        with open_database_to_read(settings) as database:
            for line in _state(file, database):
                terminal.say(line)
    finally:
        file.close()


def _state(file: IndexFile, database: Database) -> list[str]:
    ends = sql.ends(database)
    stored = sum(sql.counts_by_feed(database, up_to=ends.arrived).values())
    serving, *building = writing.generations(file)
    indexed = writing.count(file, serving)
    missing = stored - indexed
    size = sum(each.stat().st_size for each in file.path.parent.glob(f"{file.path.name}*"))
    lines = [f"{file.path}: {indexed:,} of {stored:,} items, {size / 1e6:,.1f} MB."]
    if not serving.is_complete:
        lines.append("It is being built.")
    elif serving.arrived < ends.arrived:
        lines.append(f"{max(missing, 1):,} items are not in it yet: the reader adds them within a minute.")
    else:
        lines.append("It is up to date.")
    if building:
        lines.append(f"It is being built anew: {writing.count(file, building[0]):,} items so far.")
    return lines


def _update(settings: Settings, *, rebuild: bool) -> None:
    from rss_pipeline.cli.output import terminal
    from rss_pipeline.features.search.index_build import bring_up_to_date, compare, is_behind

    with (
        open_to_write(index_path(settings)) as file,
        open_database(settings) as database,
        terminal.Bars() as bars,
    ):
        if rebuild:
            writing.rebuild(file)
        newest = writing.generations(file)[-1]
        wanted = sum(sql.counts_by_feed(database, up_to=sql.ends(database).arrived).values())
        bars.begin("items", max(0, wanted - writing.count(file, newest)))
        done = bring_up_to_date(file, database, now=utc_now(), progress=bars)
        dropped = done.dropped + compare(file, database)
        while is_behind(file, database):
            bring_up_to_date(file, database, now=utc_now(), progress=bars)
    terminal.say(f"{done.added:,} items added, {done.replaced:,} rewritten, {dropped:,} removed.")


def _follow(settings: Settings, parent: int | None) -> None:
    # A search that is a second older is better than a request that waits; imports take a second, too.
    os.nice(_NICE)
    from rss_pipeline.features.search.index_build import keep_current

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s search %(levelname)s %(message)s")
    # Not an Event: set by a handler in the middle of its own `wait`, it waits for itself for ever.
    stopped, stop = os.pipe()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os.write(stop, b"."))

    def wait(seconds: float) -> bool:
        while not select.select([stopped], [], [], max(0.0, min(seconds, _LOOK_AT_PARENT_SECONDS)))[0]:
            if parent is not None and os.getppid() != parent:
                return True
            seconds -= _LOOK_AT_PARENT_SECONDS
            if seconds <= 0:
                return False
        return True

    try:
        keep_current(settings, clock=utc_now, wait=wait)
    except SearchUnavailable as error:
        from rss_pipeline.cli.output import terminal

        terminal.complain(f"There is no search: {error}.")


def _catch_up(settings: Settings, *, unless_many: bool = False) -> bool:
    """Bring the index up to date; False if that was left to another process."""
    from rss_pipeline.features.search.index_build import bring_up_to_date

    with open_to_write(index_path(settings)) as file, open_database(settings) as database:
        if unless_many and _missing(file, database) > _MANY:
            return False
        bring_up_to_date(file, database, now=utc_now())
    return True


def _missing(file: IndexFile, database: Database) -> int:
    """The number of items to add, which are counted only where their numbers leave room for many."""
    newest, end = writing.generations(file)[-1], sql.ends(database).arrived
    if end - newest.arrived <= _MANY:
        return 0
    return sum(sql.counts_by_feed(database, up_to=end).values()) - writing.count(file, newest)


def _look(settings: Settings, is_said: bool) -> int:
    os.nice(_NICE)
    try:
        if not _catch_up(settings, unless_many=True):
            command = [sys.executable, "-m", "rss_pipeline.cli", "search-index", "--update", "--quiet"]
            os.execve(sys.executable, command, {**_HUGE_PAGES, **os.environ})
    except RssPipelineError as error:
        if is_said:
            _logger.warning("the search index is not current: %s", error)
        return 1
    return 0


def index_process(settings: Settings) -> ChildProcess:
    """The process that keeps the index current while the reader runs."""
    return ChildProcess(
        name="The search index",
        arguments=("search-index", "--follow", "--parent", str(os.getpid())),
        environment={**_HUGE_PAGES, **os.environ},
        # Without an index the first search would wait for it.
        after=START_SECONDS if index_path(settings).exists() else 0.0,
        look=partial(_look, settings) if has_fts5() else None,
    )
