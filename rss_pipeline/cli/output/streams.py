"""The output of `streams`: a feed's streams, its authors and categories, and YAML to paste."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from rss_pipeline.cli.output.terminal import new_console, new_table, plain, say
from rss_pipeline.collector.models.clock import instant, rough
from rss_pipeline.pipeline.streams.proposal import Counted, as_yaml
from rss_pipeline.pipeline.streams.survey import FeedSurvey, StreamSurvey
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.items.streams import selector_text

_VALUES_SHOWN = 20


def show_streams(feed: Row, found: FeedSurvey, *, now: datetime) -> None:
    """All of it, for a person."""
    console = new_console()
    console.print(Text(plain(f"{feed['title'] or feed['id']}  {feed['url']}")))
    if not found.items:
        say(f"No items, so there is nothing to count. `rss-pipeline poll {feed['id']}` visits the feed now.")
        return
    say(_counts(found))
    if found.streams:
        console.print()
        _show_table(found.streams, now)
        for stream in found.streams:
            for sentence in notes(feed["id"], stream):
                console.print(
                    Text.assemble((f"{stream.spec.name}: ", "yellow"), plain(sentence)), soft_wrap=True
                )
    for singular, plural, values in (
        ("author", "authors", found.authors),
        ("category", "categories", found.categories),
    ):
        console.print()
        _show_values(singular, plural, values)
    console.print()
    if found.proposed:
        where = "with the others of the feed" if found.streams else "below the feed's `url`"
        say(f"To split it, paste this into feeds.yaml {where}, and rename as you like:")
        console.print()
        for line in as_yaml(found.proposed, with_key=not found.streams).split("\n"):
            say(line)
    elif not found.streams:
        say("It has neither several authors nor several categories; a stream may also select by title, link")
        say("or XPath: docs/topics.md.")


def _counts(found: FeedSurvey) -> str:
    if not found.streams:
        return f"{found.items:,} items, no streams"
    streams = "1 stream" if len(found.streams) == 1 else f"{len(found.streams):,} streams"
    return f"{found.items:,} items, {streams}; {found.unmatched:,} items are in no stream"


def _show_table(streams: Sequence[StreamSurvey], now: datetime) -> None:
    table = new_table("stream", "items", "newest", "last match", "selector")
    for each in streams:
        table.add_row(
            each.spec.name,
            "-" if each.items is None else f"{each.items:,}",
            _age(each.state.newest_at if each.state else None, now),
            _age(each.state.matched_at if each.state else None, now),
            plain(selector_text(each.spec)),
        )
    new_console().print(table)


def _age(at: datetime | None, now: datetime) -> str:
    return "-" if at is None else rough(now - at)


def _show_values(singular: str, plural: str, values: Sequence[Counted]) -> None:
    if not values:
        say(f"no {plural}")
        return
    table = new_table("items", singular if len(values) == 1 else f"{len(values):,} {plural}")
    for each in values[:_VALUES_SHOWN]:
        table.add_row(f"{each.items:,}", plain(each.value))
    new_console().print(table)
    if len(values) > _VALUES_SHOWN:
        say(f"... and {len(values) - _VALUES_SHOWN:,} more: --json has all")


def notes(feed_id: str, stream: StreamSurvey) -> list[str]:
    """Sentences on one stream: what is wrong with it, and what feeds.yaml has changed."""
    state = stream.state
    if state is not None:
        found = [each for each in (state.note if stream.spec.is_xpath else None, state.warning) if each]
    elif stream.spec.is_xpath:
        found = [
            "new or changed in feeds.yaml: used for new documents from the next poll on; after that,"
            f" `rss-pipeline replay {feed_id}` judges stored items"
        ]
    else:
        found = ["new or changed in feeds.yaml: used from the next poll on"]
    if stream.near:
        found.append(f"nearly fits: {', '.join(stream.near)}")
    return found


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant(at)


def as_json(feed: Row, found: FeedSurvey) -> dict[str, Any]:
    """All of it, for programs."""
    return {
        "id": feed["id"],
        "url": feed["url"],
        "title": feed["title"],
        "items": found.items,
        "unmatched": found.unmatched,
        "authors": [{"name": each.value, "items": each.items} for each in found.authors],
        "categories": [{"name": each.value, "items": each.items} for each in found.categories],
        "streams": [
            {
                "name": each.spec.name,
                "selector": {key: value for key, value in each.spec.written().items() if key != "name"},
                "is_used": each.state is not None,
                "items": each.items,
                "newest_item_at": _instant(each.state.newest_at if each.state else None),
                "last_match_at": _instant(each.state.matched_at if each.state else None),
                "warning": each.state and each.state.warning,
                "near": list(each.near),
            }
            for each in found.streams
        ],
        "yaml": as_yaml(found.proposed, with_key=not found.streams) if found.proposed else None,
    }
