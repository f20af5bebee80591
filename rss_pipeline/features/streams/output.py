"""The output of `streams`: the streams of feeds; of one also authors, categories, and YAML to paste."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from rss_pipeline.cli.output.status_table import StatusLook, StatusSection
from rss_pipeline.cli.output.terminal import new_console, new_table, plain, say
from rss_pipeline.collector.models.clock import instant, rough
from rss_pipeline.features.streams.states import StreamState, selector_text, stream_states, warned_streams
from rss_pipeline.features.streams.survey import CountedValue, FeedSurvey, StreamSurvey, as_yaml
from rss_pipeline.storage.database import Row

_VALUES_SHOWN = 20
_WARNINGS_LISTED = 8


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
        _show_table({feed["id"]: found.streams}, now, with_feeds=False)
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


def show_all(streams: Mapping[str, Sequence[StreamSurvey]], *, now: datetime) -> None:
    """The streams of all feeds, by feed id, for a person."""
    if not any(streams.values()):
        say("No feed has streams. `rss-pipeline streams FEED` shows what a feed can be split by.")
        return
    _show_table(streams, now, with_feeds=True)


def _show_table(streams: Mapping[str, Sequence[StreamSurvey]], now: datetime, *, with_feeds: bool) -> None:
    rows = [
        (id, f"{id}/{each.spec.name}" if with_feeds else each.spec.name, each)
        for id, of_feed in streams.items()
        for each in of_feed
    ]
    table = new_table("stream", "items", "newest", "last match", "selector")
    for _, name, each in rows:
        table.add_row(
            name,
            "-" if each.items is None else f"{each.items:,}",
            _age(each.state.newest_at if each.state else None, now),
            _age(each.state.matched_at if each.state else None, now),
            plain(selector_text(each.spec)),
        )
    console = new_console()
    console.print(table)
    for id, name, each in rows:
        for sentence in notes(id, each, judged_now=not with_feeds):
            console.print(Text.assemble((f"{name}: ", "yellow"), plain(sentence)), soft_wrap=True)


def _age(at: datetime | None, now: datetime) -> str:
    return "-" if at is None else rough(now - at)


def _show_values(singular: str, plural: str, values: Sequence[CountedValue]) -> None:
    if not values:
        say(f"no {plural}")
        return
    table = new_table("items", singular if len(values) == 1 else f"{len(values):,} {plural}")
    for each in values[:_VALUES_SHOWN]:
        table.add_row(f"{each.items:,}", plain(each.value))
    new_console().print(table)
    if len(values) > _VALUES_SHOWN:
        say(f"... and {len(values) - _VALUES_SHOWN:,} more: --json has all")


def notes(feed_id: str, stream: StreamSurvey, *, judged_now: bool) -> list[str]:
    """Sentences on one stream: what is wrong with it, and what feeds.yaml has changed.

    `judged_now`: its items are those of the selector in feeds.yaml, where that needs no document.
    """
    state = stream.state
    if state is not None:
        note = state.note if stream.spec.is_xpath or not judged_now else None
        found = [each for each in (note, state.warning) if each]
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
        "streams": [_stream_as_json(each) for each in found.streams],
        "yaml": as_yaml(found.proposed, with_key=not found.streams) if found.proposed else None,
    }


def all_as_json(streams: Mapping[str, Sequence[StreamSurvey]]) -> list[dict[str, Any]]:
    """The streams of all feeds, by feed id, for programs."""
    return [{"feed_id": id} | _stream_as_json(each) for id, of_feed in streams.items() for each in of_feed]


def _stream_as_json(stream: StreamSurvey) -> dict[str, Any]:
    return {
        "name": stream.spec.name,
        "selector": {key: value for key, value in stream.spec.written().items() if key != "name"},
        "is_used": stream.state is not None,
        "items": stream.items,
        "newest_item_at": _instant(stream.state.newest_at if stream.state else None),
        "last_match_at": _instant(stream.state.matched_at if stream.state else None),
        "warning": stream.state and stream.state.warning,
        "near": list(stream.near),
    }


# The section of `status` on streams.


def status_section(look: StatusLook) -> StatusSection:
    """The streams of one feed or, as JSON, of all; else those with a warning."""
    has_all = look.as_json or look.feed_id is not None
    streams = stream_states(look.database, look.feed_id) if has_all else warned_streams(look.database)
    return StatusSection(
        as_json={"streams": [_state_as_json(each) for each in streams]},
        fields={"streams": _state_lines(streams, now=look.now)},
        show=lambda: _show_stream_warnings(streams),
    )


def _show_stream_warnings(streams: Sequence[StreamState]) -> None:
    warned = [(f"{each.feed_id}/{each.name}", each.warning) for each in streams if each.warning is not None]
    show_warnings(warned, "streams")


def show_warnings(warned: Sequence[tuple[str, str]], things: str) -> None:
    """A paragraph for each of these names with a sentence."""
    console = new_console()
    if warned:
        console.print()
    for name, sentence in warned[:_WARNINGS_LISTED]:
        console.print(Text.assemble((f"{name}: ", "yellow"), plain(sentence)))
    if len(warned) > _WARNINGS_LISTED:
        console.print(
            f"... and {len(warned) - _WARNINGS_LISTED:,} more {things} with a warning: --json has all"
        )


def _state_lines(streams: Sequence[StreamState], *, now: datetime) -> list[str]:
    return [line for each in streams for line in _lines(each, now)]


def _lines(stream: StreamState, now: datetime) -> list[str]:
    parts = [f"{stream.members:,} items" if stream.members else "no items"]
    if stream.newest_at is not None:
        parts.append(f"newest {rough(now - stream.newest_at)} ago")
    if stream.matched_at is not None:
        parts.append(f"last match {rough(now - stream.matched_at)} ago")
    lines = [f"{stream.name}: {', '.join(parts)} ({stream.selector})"]
    return lines + [f"{stream.name}: {each}" for each in (stream.note, stream.warning) if each is not None]


def _state_as_json(stream: StreamState) -> dict[str, Any]:
    return {
        "feed_id": stream.feed_id,
        "name": stream.name,
        "items": stream.members,
        "newest_item_at": stream.newest_at and instant(stream.newest_at),
        "last_match_at": stream.matched_at and instant(stream.matched_at),
        "unmatched_documents": stream.unmatched_documents,
        "values_seen": list(stream.values_seen),
        "error": stream.error,
        "warning": stream.warning,
        "note": stream.note,
    }
