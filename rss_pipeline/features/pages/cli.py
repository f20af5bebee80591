"""The command `page`: the entries that a page would have, for people who look whether it is a source."""

import sys
from pathlib import Path
from typing import Any

import click

from rss_pipeline.cli.arguments import as_json
from rss_pipeline.cli.output import terminal
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.errors import file_error
from rss_pipeline.features.pages.model import Detected
from rss_pipeline.settings import Settings

_SHOWN = 5
_MOST_BYTES = 50_000_000
_WORDS = {
    "certain": "This is a list of entries.",
    "ask": "This may be a list of entries; look whether they are what you want.",
    "none": "No list of entries was found.",
}


@click.command()
@click.argument("page", metavar="ADDRESS|FILE")
@click.option("--base", metavar="URL", help="The address of the page in FILE, for its relative links.")
@click.option("--allow-private", is_flag=True, help="ADDRESS may be on this machine or the local network.")
@as_json
@click.pass_obj
def page(settings: Settings, page: str, base: str | None, allow_private: bool, as_json: bool) -> None:
    """Show the entries of a web page without a feed, as they would be collected.

    ADDRESS is requested once, at the host's pace, if its robots.txt allows it; FILE is a saved page. Nothing
    is stored. The verdict is `certain`, `ask` (a person has to confirm the entries) or `none`. Exit code 1
    if the page cannot be read.
    """
    if "://" in page:
        detected = _of_address(settings, page, allow_private=allow_private)
    else:
        detected = _of_file(Path(page), base)
    if isinstance(detected, Failure):
        if as_json:
            terminal.say_json({"verdict": "none", "entries": [], "feeds": [], "error": detected.message})
        terminal.complain(f"{shown(page)}: not read ({detected.kind}). {detected.message}")
        sys.exit(1)
    if as_json:
        terminal.say_json(_as_json(detected))
    else:
        _show(detected)


def _of_file(path: Path, base: str | None) -> Detected:
    from rss_pipeline.collector.parse.links import is_web
    from rss_pipeline.features.pages.detect import detect
    from rss_pipeline.features.pages.page import decode_page, own_address

    if base is not None and not is_web(base):
        raise click.ClickException(
            f"--base {shown(base)} is no address; write one such as https://example.org/"
        )
    try:
        with path.open("rb") as file:
            body = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise click.ClickException(file_error(f"{path} cannot be read", error, path)) from error
    if len(body) > _MOST_BYTES:
        raise click.ClickException(f"{path} has more than {_MOST_BYTES:,} bytes; that is no page's size")
    text = decode_page(body, None).text
    address = base or own_address(text)
    if address is None:
        raise click.ClickException(f"{path} does not say its address; add --base URL, for its relative links")
    return detect(text, address)


def _of_address(settings: Settings, address: str, *, allow_private: bool) -> Detected | Failure:
    from rss_pipeline.features.pages.service import preview
    from rss_pipeline.pipeline.session.session import session_of_command

    with session_of_command(settings, "page") as session:
        return preview(session, address, allow_private=allow_private)


def _as_json(detected: Detected) -> dict[str, Any]:
    return {
        "verdict": detected.verdict,
        "score": detected.score,
        "evidence": list(detected.evidence),
        "feeds": list(detected.feeds),
        "entries": [
            {
                "link": entry.link,
                "title": entry.title,
                "date": None if entry.date is None else entry.date.isoformat(),
                "text": entry.text,
                "image": entry.image,
                "author": entry.author,
            }
            for entry in detected.entries
        ],
    }


def _show(detected: Detected) -> None:
    if detected.feeds:
        terminal.say(f"The page names {len(detected.feeds)} feeds, which are better than what is read of it:")
        for feed in detected.feeds:
            terminal.say(f"  {feed}")
    terminal.say(_WORDS[detected.verdict])
    for sentence in detected.evidence:
        terminal.say(f"  {sentence}")
    for entry in detected.entries[:_SHOWN]:
        day = "no date   " if entry.date is None else entry.date.isoformat()
        terminal.say(f"{day}  {entry.title or '(no title)'}")
        terminal.say(f"            {entry.link}")
    if len(detected.entries) > _SHOWN:
        terminal.say(f"and {len(detected.entries) - _SHOWN} more; --json prints all")
