"""Feeds for tests: the fields a test is about by their own names, at whatever depth of a `Feed` they are."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from rss_pipeline.collector.models.feed import Feed, FeedAddress

T = TypeVar("T")


def make_feed(id: str, url: str, host: str, **changes: Any) -> Feed:
    """A feed of which nothing else is known than what `changes` says."""
    return amend(Feed(id=id, url=url, address=FeedAddress(host=host)), **changes)


def amend(value: T, **changes: Any) -> T:
    """The value with other fields, its own or those of a value in it: `amend(feed, etag='"1"')`."""
    amended, unknown = _amended(value, changes)
    assert not unknown, f"no field is named {', '.join(unknown)}"
    return amended


def _amended(value: Any, changes: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    own = {field.name for field in fields(value)}
    new = {name: changed for name, changed in changes.items() if name in own}
    left = {name: changed for name, changed in changes.items() if name not in own}
    for name in own - set(new):
        inner = getattr(value, name)
        if left and is_dataclass(inner):
            amended, left = _amended(inner, left)
            if amended is not inner:
                new[name] = amended
    return (replace(value, **new) if new else value), left
