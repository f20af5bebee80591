"""The ids of streams and tags as clients write them."""

import pytest

from rss_pipeline.api.google_reader.answers import Refused
from rss_pipeline.api.google_reader.streams import (
    READING_LIST,
    FeedAddress,
    FeedStream,
    Label,
    OtherState,
    State,
    Tag,
    read_label,
    read_stream,
    read_tag,
)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        pytest.param("feed/example-org", FeedStream("example-org"), id="a feed by its id"),
        pytest.param("feed%2Fexample-org", FeedStream("example-org"), id="Liferea: escaped twice"),
        pytest.param("feed/1", FeedStream("1"), id="a feed whose id is a number"),
        pytest.param(
            "feed/https://example.org/a?b=1&c=2",
            FeedAddress("https://example.org/a?b=1&c=2"),
            id="Readrops: a feed by its address",
        ),
        pytest.param(
            "feed/example.org/rss", FeedAddress("example.org/rss"), id="an address without a scheme"
        ),
        pytest.param("feed/feed/example-org", FeedAddress("feed/example-org"), id="a feed of a feed"),
        pytest.param("user/-/state/com.google/reading-list", READING_LIST, id="all"),
        pytest.param("user/1001/state/com.google/read", State("read"), id="Reeder: a user's number"),
        pytest.param("user/me@example.org/state/com.google/starred", State("starred"), id="a user's name"),
        pytest.param("user//state/com.google/kept-unread", State("kept-unread"), id="no user"),
        pytest.param("user/-/state/com.google/fresh", State("fresh"), id="newsboat: fresh"),
        pytest.param("user/-/state/com.google/broadcast", OtherState("broadcast"), id="newsboat: share"),
        pytest.param(
            "user/-/state/com.google/tracking-kept-unread",
            OtherState("tracking-kept-unread"),
            id="Liferea: tracking-kept-unread",
        ),
        pytest.param("user/-/label/Tech/News", Label("Tech/News"), id="a folder in a folder"),
        pytest.param("user/-/label/Ümläute & Co", Label("Ümläute & Co"), id="a folder with signs"),
        pytest.param("user/-/label/  a  b ", Label("a b"), id="a folder with blanks"),
        pytest.param(
            "user/-/label/state/com.google/read", Label("state/com.google/read"), id="a folder like a state"
        ),
        pytest.param("\nfeed/example-org\n", FeedStream("example-org"), id="a newline"),
    ],
)
def test_a_tag_is_read(text: str, tag: Tag) -> None:
    assert read_tag(text) == tag


@pytest.mark.parametrize(
    "text",
    [
        "",
        "feed/",
        "feeds/x",
        "user/-/label/",
        "user/-/label/  ",
        "user/-/state/com.google/",
        "user/-/state/org/read",
        "example-org",
        "null",
        "splice/a|b",
        "pop/topic/x",
        "feed/" + "a" * 5000 + ".org",
        "feed/a\x00b",
    ],
)
def test_what_is_no_tag_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        read_tag(text)
    assert refused.value.status == 400


def test_a_state_that_no_item_has_is_no_stream_and_not_an_empty_one() -> None:
    with pytest.raises(Refused) as refused:
        read_stream("user/-/state/com.google/broadcast-friends")
    assert refused.value.status == 404


@pytest.mark.parametrize("text", [None, "", " "])
def test_a_stream_has_to_be_named(text: str | None) -> None:
    with pytest.raises(Refused):
        read_stream(text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        pytest.param("user/-/label/News", Label("News"), id="a tag"),
        pytest.param("News", Label("News"), id="a bare name"),
        pytest.param("user/1/label/News", Label("News"), id="another user's number"),
    ],
)
def test_a_folder_is_read(text: str, label: Label) -> None:
    assert read_label(text) == label


@pytest.mark.parametrize("text", [None, "", "feed/x", "user/-/state/com.google/starred"])
def test_what_is_no_folder_is_refused(text: str | None) -> None:
    with pytest.raises(Refused):
        read_label(text)


@pytest.mark.parametrize(
    "tag", [FeedStream("a-b"), Label("x y"), State("read"), FeedAddress("https://a.b/?c")]
)
def test_a_tag_is_written_as_it_is_read(tag: Tag) -> None:
    assert read_tag(str(tag)) == tag
