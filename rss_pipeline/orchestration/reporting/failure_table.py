"""A table of failures with links to the feed's events in the UI and to the requested URL.

In Markdown, because a cell of Dagster's own tables shows a link as text. The failures themselves come from
feeds.py and poll_ops.py.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote

import dagster as dg

from rss_pipeline.collector.models.feed_names import events_path, short_title
from rss_pipeline.pipeline.visits.summary import FailureRow

_ROWS = 200
_LONGEST_MESSAGE = 300
_LONGEST_ADDRESS = 80


def failure_table(
    failed: Sequence[FailureRow], *, rows: int = _ROWS, rest: str = "more failed."
) -> dg.MarkdownMetadataValue:
    """A table of the first `rows`; below it the number of the others, and `rest`, a text about them."""
    columns = ["feed", "title", "address", "kind", "what happened"]
    is_counted = any(each.in_a_row is not None for each in failed)
    if is_counted:
        columns.append("in a row")
    lines = [_line(columns), _line(["---"] * len(columns))]
    for each in failed[:rows]:
        title = _plain(short_title(each.title), _LONGEST_ADDRESS)
        message = _plain(each.message, _LONGEST_MESSAGE)
        cells = [_feed(each.feed_id), title, _address(each.url), each.kind, message]
        if is_counted:
            cells.append("" if each.in_a_row is None else str(each.in_a_row))
        lines.append(_line(cells))
    if len(failed) > rows:
        lines.append(f"\n{len(failed) - rows} {rest}")
    return dg.MetadataValue.md("\n".join(lines))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _feed(id: str) -> str:
    return f"[{_plain(id, _LONGEST_ADDRESS)}]({events_path(id)})"


def _address(url: str) -> str:
    if not url:
        return ""
    target = re.sub(r"[\s\\|()<>\[\]]", lambda match: quote(match[0]), url)
    return f"[{_plain(url.partition('://')[2], _LONGEST_ADDRESS)}]({target})"


def _plain(text: str, longest: int) -> str:
    """A publisher's text with all markup escaped."""
    line = " ".join(text.split())
    line = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return re.sub(r"([\\`*_\[\]()<>|#~])", r"\\\1", line)
