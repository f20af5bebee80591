"""Two polls of served documents, held against what was served: the main job's acceptance on real input.

Serving is server.py's; whether it is asked for, serve_folder.py's.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.documents import has_index
from benchmarks.feeds_file import feed_id
from benchmarks.processes import environment, rss_pipeline
from benchmarks.server import Asked, Feed, Running
from benchmarks.stored import StoredFeed, stored_feeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What one `rss-pipeline poll` said, left, and asked for."""

    said: Mapping[str, Any]
    feeds: Mapping[str, StoredFeed]
    failures: Mapping[str, tuple[str, str]]
    """Feed id to kind and sentence."""
    asked: Mapping[str, Sequence[Asked]]
    """URL to the requests for it."""


def accept(server: Running, scratch: Path, feeds_file: Path, folder: Path) -> bool:
    """Poll what is due, then everything; print a line a document, and whether all was as it must be."""
    home = scratch / "home"
    first = _poll(server, home, feeds_file, cwd=scratch)
    second = _poll(server, home, feeds_file, "--all", cwd=scratch)
    indexed = has_index(folder)
    wrong = [*_of_the_polls(first, second)]
    print(f"{'document':<66}{'held':>6}{'doubled':>9}{'stored':>8}  {'second poll':<16}how it ended")
    for number, feed in enumerate(server.feeds):
        id = feed_id(number, feed)
        found = [
            *_of_the_first(feed, first.feeds[id], first.failures.get(id), folder, indexed=indexed),
            *_of_the_second(feed, first.feeds[id], second.feeds[id], second.asked.get(feed.url, ())),
        ]
        wrong += [f"{feed.name}: {sentence}" for sentence in found]
        print(_line(feed, first.feeds[id], first.failures.get(id), second.asked.get(feed.url, ())))
    print(
        f"\nfirst poll:  {_counts(first)}\nsecond poll: {_counts(second)} (--all)\n"
        + ("\n".join(f"WRONG: {sentence}" for sentence in wrong) or "All as it must be.")
    )
    return not wrong


def _poll(server: Running, home: Path, feeds_file: Path, *options: str, cwd: Path) -> Poll:
    server.forget()
    done = subprocess.run(
        [rss_pipeline(), "poll", "--json", *options],
        cwd=cwd,
        env=environment(
            RSS_PIPELINE_HOME=str(home),
            RSS_FEEDS_FILE=str(feeds_file),
            RSS_HOST_DELAY_SECONDS="0",
            RSS_FETCH_CONCURRENCY="10",
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    try:
        said = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(
            f"`rss-pipeline poll` ended with {done.returncode} and no JSON:\n{done.stdout}{done.stderr}"
        ) from None
    asked: dict[str, list[Asked]] = {}
    for request in server.asked():
        asked.setdefault(request.url, []).append(request)
    return Poll(
        said=said,
        feeds=stored_feeds(home),
        failures={each["feed_id"]: (each["kind"], each["message"]) for each in said["failures"]},
        asked=asked,
    )


def _of_the_polls(first: Poll, second: Poll) -> Iterator[str]:
    for name, poll in (("first", first), ("second", second)):
        for error in poll.said["errors"]:
            yield f"the {name} poll's run failed: {error}"
    for name in ("stored", "items_new"):
        if second.said[name] != 0:
            yield f"the second poll says {name} {second.said[name]}"
    stored = sum(feed.was_stored for feed in first.feeds.values())
    if second.said["unchanged"] != stored:
        yield f"the second poll says unchanged {second.said['unchanged']}, but {stored} feeds were stored"


def _of_the_first(
    feed: Feed, stored: StoredFeed, failure: tuple[str, str] | None, folder: Path, *, indexed: bool
) -> Iterator[str]:
    """What is wrong with what the first poll made of one document.

    A count of 0 says that there are no items, in a feed or in a page that is none.
    """
    if failure is None and not stored.was_stored:
        yield "neither stored nor a failure"
    if failure is not None and not all(failure):
        yield "a failure without a kind or a sentence"
    if indexed and feed.items is None and failure is None:
        yield "is no feed, but did not fail"
    if indexed and feed.items and failure is not None:
        yield f"holds {feed.items} items, but failed"
    left_out = stored.duplicate_guids + stored.is_cut_off
    if indexed and stored.items + left_out != (feed.items or 0):
        yield f"{stored.items} items, {left_out} doubled or cut off, but it holds {feed.items}"
    if stored.was_stored and len(stored.backups) != 1:
        yield f"{len(stored.backups)} backups"
    if any(backup.read_bytes() != (folder / feed.name).read_bytes() for backup in stored.backups):
        yield "its backup is not what was served"


def _of_the_second(
    feed: Feed, before: StoredFeed, after: StoredFeed, asked: Sequence[Asked]
) -> Iterator[str]:
    """What is wrong with how everything was requested again.

    A failed feed is requested without validators, and so is one whose document was cut off.
    """
    if after.items != before.items:
        yield f"{after.items - before.items} items more after the second poll"
    if len(after.backups) != len(before.backups):
        yield "another backup after the second poll"
    if len(asked) != 1:
        yield f"the second poll asked for it {len(asked)} times"
    if not before.was_stored:
        return
    if before.is_cut_off:
        return
    for request in asked:
        if (request.etag, request.last_modified) != (feed.etag, feed.last_modified):
            yield f"asked for with {request.etag} and {request.last_modified}, not with its last validators"
        if request.status != 304:
            yield f"answered {request.status} at the second poll, so it was read again"


def _line(feed: Feed, stored: StoredFeed, failure: tuple[str, str] | None, asked: Sequence[Asked]) -> str:
    held = "-" if feed.items is None else str(feed.items)
    again = ", ".join(f"{a.status}{' conditional' if a.is_conditional else ''}" for a in asked)
    end = "stored" if failure is None else f"{failure[0]}: {failure[1]}"
    name = feed.name if len(feed.name) <= 64 else feed.name[:61] + "..."
    return f"{name:<66}{held:>6}{stored.duplicate_guids or '':>9}{stored.items:>8}  {again:<16}{end}"


def _counts(poll: Poll) -> str:
    return ", ".join(
        f"{poll.said[name]} {name.replace('_', ' ')}"
        for name in ("stored", "unchanged", "failed", "items_new")
    )
