"""Streams and topics as texts of the database."""

from datetime import timedelta

from rss_pipeline.features.streams.model import FieldSelector, StreamSpec, streams_of_json, streams_to_json
from rss_pipeline.features.topics.model import Member, TopicSpec


def test_streams_come_back_from_their_text() -> None:
    streams = (
        StreamSpec(name="haruna", selector=FieldSelector(author=("小嶋 陽菜", "Haruna"))),
        StreamSpec(
            name="staff",
            selector=FieldSelector(category=("スタッフ",), negated=FieldSelector(title=("*お知らせ*",))),
        ),
        StreamSpec(name="sound", selector="//item[enclosure]"),
    )
    text = streams_to_json(streams)
    assert streams_of_json(text) == streams
    assert streams_to_json(streams_of_json(text)) == text
    assert streams_to_json(()) is None
    assert streams_of_json(None) == ()


def test_a_topic_comes_back_from_its_text() -> None:
    plain = TopicSpec(id="all", of=(Member("a"),))
    full = TopicSpec(
        id="no3b",
        title="ノースリーブス",
        of=(Member("idol", "haruna"), Member("natalie")),
        each=1,
        items=10,
        every=timedelta(hours=1),
        content="summary",
        link="https://example.org/",
        hub=("https://hub.example.org/",),
        public=True,
    )
    assert [TopicSpec.of_json(each.to_json()) for each in (plain, full)] == [plain, full]
    assert [str(member) for member in full.of] == ["idol/haruna", "natalie"]
