"""The results of subscription/edit, in the forms that clients send."""

import pytest

from rss_pipeline.api.google_reader.forms import query_fields
from rss_pipeline.api.google_reader.parameters import FeedByUrl, FeedStream
from rss_pipeline.api.google_reader.responses import RefusedCall
from rss_pipeline.api.google_reader.subscription_calls import (
    FeedEdit,
    SubscriptionEdit,
    read_subscription_edit,
)

AB = FeedStream("a-b")


def read(text: str) -> SubscriptionEdit:
    return read_subscription_edit(query_fields(text.encode()))


@pytest.mark.parametrize(
    ("text", "action", "feeds"),
    [
        pytest.param(
            "ac=subscribe&s=feed/https://example.org/%3Fa%3D1%26b",
            "subscribe",
            [FeedEdit(feed=FeedByUrl("https://example.org/?a=1&b"))],
            id="an address",
        ),
        pytest.param(
            "ac=subscribe&s=feed%2Fa-b&i=null&T=x", "subscribe", [FeedEdit(feed=AB)], id="Liferea: i=null"
        ),
        pytest.param(
            "ac=edit&s=feed/a-b&a=user/-/label/New&r=user/-/label/Old",
            "edit",
            [FeedEdit(feed=AB, folder="New", left_folders=("Old",))],
            id="NetNewsWire: moved",
        ),
        pytest.param(
            "ac=edit&s=feed/https://a.b/c&t=My+title",
            "edit",
            [FeedEdit(feed=FeedByUrl("https://a.b/c"), title="My title")],
            id="Readrops: by its address",
        ),
        pytest.param(
            "ac=unsubscribe&s=feed/a-b&s=feed/c",
            "unsubscribe",
            [FeedEdit(feed=AB), FeedEdit(feed=FeedStream("c"))],
            id="several",
        ),
        pytest.param(
            "ac=edit&s=feed/a&t=A&s=feed/b&t=B",
            "edit",
            [FeedEdit(feed=FeedStream("a"), title="A"), FeedEdit(feed=FeedStream("b"), title="B")],
            id="a title for each",
        ),
        pytest.param("ac=edit&s=feed/a-b&t=", "edit", [FeedEdit(feed=AB)], id="an empty title is none"),
        pytest.param(
            "ac=edit&s=feed/a-b&a=user/-/state/com.google/broadcast",
            "edit",
            [FeedEdit(feed=AB)],
            id="a state of a feed says nothing",
        ),
    ],
)
def test_fields_are_changes(text: str, action: str, feeds: list[FeedEdit]) -> None:
    found = read(text)
    assert found.action == action
    assert list(found.feeds) == feeds


@pytest.mark.parametrize(
    "text",
    [
        "s=feed/a",
        "ac=edit",
        "ac=edit&s=",
        "ac=delete&s=feed/a",
        "ac=edit&s=user/-/label/X",
        "ac=edit&s=nonsense",
        "ac=edit&s=feed/a&t=" + "x" * 501,
        "ac=edit&s=feed/a&a=user/-/label/" + "x" * 501,
        "ac=edit" + "&s=feed/a" * 501,
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(RefusedCall) as refused:
        read(text)
    assert refused.value.status == 400
