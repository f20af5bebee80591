"""The fields of subscription/edit as changes to feeds."""

from dataclasses import dataclass
from typing import Literal

from rss_pipeline.api.fields import MAX_FOLDER_CHARACTERS, MAX_TITLE_CHARACTERS, has_controls
from rss_pipeline.api.google_reader.answers import not_understood
from rss_pipeline.api.google_reader.forms import Fields
from rss_pipeline.api.google_reader.parameters import Feed, FeedAddress, FeedStream, Label, read_tag

Action = Literal["subscribe", "edit", "unsubscribe"]

MAX_FEEDS = 500
"""Feeds of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEdit:
    """The change to one feed. A title or folder None stays as it is."""

    feed: Feed
    title: str | None = None
    folder: str | None = None
    left_folders: tuple[str, ...] = ()
    """The feed has no folder any more if it is in one of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionEdit:
    action: Action
    feeds: tuple[FeedEdit, ...]


def read_subscription_edit(fields: Fields) -> SubscriptionEdit:
    """The edit of repeated `s` and `t`, and of `a` and `r`, which are for all of these feeds.

    NetNewsWire moves a feed by `a` and `r` in one request. A feed is in one folder here, so the last `a`
    counts. Liferea adds `i=null`, which means nothing.

    Raises:
        Refused: no action or feed, or one that is not understood.
    """
    action = _action(fields.first("ac"))
    streams = [text for text in fields.all("s") if text.strip()]
    if not streams:
        raise not_understood("No feed is named: s is missing.")
    if len(streams) > MAX_FEEDS:
        raise not_understood(f"At most {MAX_FEEDS} feeds in one request.")
    entered, left = _labels(fields, "a"), _labels(fields, "r")
    titles = fields.all("t")
    edits = [
        FeedEdit(
            feed=_feed(text),
            title=_title(titles[n]) if n < len(titles) else None,
            folder=entered[-1] if entered else None,
            left_folders=left,
        )
        for n, text in enumerate(streams)
    ]
    return SubscriptionEdit(action=action, feeds=tuple(edits))


def folder_name(label: Label) -> str:
    """The name of a folder, if it can be stored.

    Raises:
        Refused: it is too long, or has control characters.
    """
    if len(label.name) > MAX_FOLDER_CHARACTERS or has_controls(label.name):
        raise not_understood(
            f"A folder's name has at most {MAX_FOLDER_CHARACTERS} characters, and no control character."
        )
    return label.name


def _action(text: str | None) -> Action:
    match text:
        case "subscribe" | "edit" | "unsubscribe":
            return text
    raise not_understood("ac is one of subscribe, edit, unsubscribe.")


def _feed(text: str) -> Feed:
    tag = read_tag(text)
    if not isinstance(tag, FeedStream | FeedAddress):
        raise not_understood("s is no feed: give feed/ID or feed/URL.")
    return tag


def _labels(fields: Fields, name: str) -> tuple[str, ...]:
    """The folders among the tags; a state says nothing of a feed."""
    tags = [read_tag(text) for text in fields.all(name) if text.strip()]
    return tuple(folder_name(tag) for tag in tags if isinstance(tag, Label))


def _title(text: str) -> str | None:
    title = " ".join(text.split())
    if len(title) > MAX_TITLE_CHARACTERS or has_controls(title):
        raise not_understood(
            f"A title has at most {MAX_TITLE_CHARACTERS} characters, and no control character."
        )
    return title or None
