"""The commands `import` and `export-opml`: the list of feeds from and to other readers.

They read and write feeds.yaml and visit no feed; `add` does, in cli/add.py.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rss_pipeline.atomic_file import replace_file
from rss_pipeline.cli.arguments import as_json, subscribe_reader
from rss_pipeline.cli.output import terminal
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import file_error
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database

if TYPE_CHECKING:
    from rss_pipeline.features.opml.outlines import OpmlFeed

_LISTED = 10


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@click.option(
    "--pages", is_flag=True, help="Look at each web page of the list that has no feed, as `add` does."
)
@click.option(
    "--allow-private",
    is_flag=True,
    help="With --pages: they may be on this machine or the local network: writes `allow_private: true`.",
)
@as_json
@click.pass_obj
def import_(settings: Settings, file: Path, pages: bool, allow_private: bool, as_json: bool) -> None:
    """Add the feeds of an OPML FILE, as other readers export it, to feeds.yaml.

    All new feeds are added, or none if the file has a mistake: each is listed with its line. A feed that is
    already in feeds.yaml keeps its entry. Folders become the key `folder`. The next poll visits what is new.
    Of a web page without a feed, --pages shows what would be collected, and adds it if you confirm it.
    """
    from rss_pipeline.features.opml.service import import_opml

    if allow_private and not pages:
        raise click.UsageError("--allow-private is for --pages; a feed's own key is in feeds.yaml")
    with open_database(settings) as database:
        imported = import_opml(
            file.read_bytes(), path=file, database=database, settings=settings, environ=os.environ
        )
        ids = (*imported.ids, *imported.ids_known)
        sentence = subscribe_reader(settings, database, ids) if ids else None
    if as_json:
        terminal.say_json(
            {
                "added": imported.added,
                "already_listed": imported.known,
                "doubles": imported.merged,
                "pages": [each.url for each in imported.pages],
                "in_several_folders": [
                    {"url": url, "folder": kept, "other_folder": other}
                    for url, kept, other in imported.in_several
                ],
            }
        )
        return
    terminal.say(
        f"{settings.feeds_file}: {imported.added} feeds added, {imported.known} were there already"
        + (f"; {imported.merged} doubles merged." if imported.merged else ".")
    )
    if sentence is not None:
        terminal.say(sentence)
    for url, kept, other in imported.in_several[:_LISTED]:
        terminal.say(f"{url} is in two folders: kept in {kept}, not in {other}.")
    if len(imported.in_several) > _LISTED:
        terminal.say(f"... and {len(imported.in_several) - _LISTED} more; --json has them all")
    if imported.added:
        terminal.say("The next poll visits them: within two minutes while `up` runs, or `rss-pipeline poll`.")
    if imported.pages and pages:
        add_each(settings, imported.pages, allow_private=allow_private)
    elif imported.pages:
        terminal.say(
            f"{len(imported.pages)} outlines are web pages without a feed:"
            f" `rss-pipeline import --pages {file}` shows what would be collected of each."
        )


def add_each(settings: Settings, pages: "Sequence[OpmlFeed]", *, allow_private: bool) -> None:
    """Show what would be collected of each page, and add those that the person at the terminal confirms."""
    from rss_pipeline.cli.add import confirms, show
    from rss_pipeline.pipeline.adding.add_feed import Added, AlreadyListed, add, prepare
    from rss_pipeline.pipeline.session.session import session_of_command

    with session_of_command(settings, "import") as session:
        prepare(session, environ=os.environ)
        ids = []
        for page in pages:
            result = add(
                session,
                page.url,
                environ=os.environ,
                title=page.title,
                folder=page.folder,
                allow_private=allow_private,
                takes=lambda offer: offer if confirms(offer) else None,
            )
            show(page.url, result)
            if isinstance(result, Added | AlreadyListed):
                ids.append(result.id)
        if ids and (sentence := subscribe_reader(settings, session.run.database, ids)) is not None:
            terminal.say(sentence)


@click.command("export-opml")
@click.argument("file", required=False, type=click.Path(dir_okay=False, writable=True, path_type=Path))
@click.pass_obj
def export_opml(settings: Settings, file: Path | None) -> None:
    """Write the feeds of feeds.yaml as OPML 2.0 to FILE, or print them: for other readers.

    With titles, web pages and folders. Passwords and headers are left out.
    """
    from rss_pipeline.features.opml.service import export_opml as exported

    with open_database(settings) as database:
        body, feeds, closed = exported(
            database=database, settings=settings, environ=os.environ, now=utc_now()
        )
    if file is None:
        terminal.say_content(body.decode())
    else:
        try:
            replace_file(file, body)
        except OSError as error:
            raise click.ClickException(file_error(f"{file} cannot be written", error, file.parent)) from None
        terminal.say(f"{file}: {feeds} feeds.")
    if closed:
        terminal.complain(f"{closed} feeds need a password or headers, which OPML does not have.")
