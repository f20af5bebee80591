"""A story says what each of its items adds to those before it."""

import pytest

from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.person import added


@pytest.mark.parametrize(
    ("first", "copy", "news", "adds"),
    [
        (
            "The iron bridge was closed on Tuesday. Engineers found forty cracks in its piers.",
            "Engineers found forty cracks in the piers of the iron bridge, which was closed.",
            "The iron bridge is closed. A petition of shopkeepers had 3,100 names, at 12.5 a day. It rains.",
            "A petition of shopkeepers had 3,100 names, at 12.5 a day.",
        ),
        (
            "铁桥周二关闭。工程师在桥墩发现四十条裂缝。",
            "工程师在桥墩发现四十条裂缝。",
            "铁桥关闭。店主的请愿书已有三千人签名。",
            "店主的请愿书已有三千人签名。",
        ),
    ],
)
def test_an_item_adds_the_sentence_with_the_most_that_is_new(
    first: str, copy: str, news: str, adds: str
) -> None:
    texts = (first, copy, news, news, "")
    entries = [Entry(id=text, feed="a", title="", text=text) for text in texts]
    assert [*added(entries)] == ["", "", adds, "", ""]
