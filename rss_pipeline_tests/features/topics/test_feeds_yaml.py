"""`topics:` of feeds.yaml: each mistake with its line, and their text in the database."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from rss_pipeline.collector.models.feed import Member, Registry
from rss_pipeline.collector.registry.load import parse_registry
from rss_pipeline.errors import RegistryError
from rss_pipeline.features.topics.model import TopicSpec

SEED = """
feeds:
  - url: https://blog.example.jp/idol/index.rdf
    id: idol
    streams:
      haruna: {author: 小嶋 陽菜}
      minami: {author: [高橋 みなみ, たかみな]}
      staff:  {category: スタッフ, not: {title: "*お知らせ*"}}
      sound:  {xpath: "//item[enclosure]"}
  - url: https://natalie.example/owarai.xml
    id: natalie
topics:
  no3b:
    title: ノースリーブス
    of: [idol/haruna, idol/minami, natalie]
    each: 1
"""


def read(text: str, environ: Mapping[str, str] | None = None) -> Registry:
    return parse_registry(text, path=Path("feeds.yaml"), environ=environ or {})


def mistakes(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(RegistryError) as caught:
        read(text, environ)
    return caught.value.mistakes


def topic(keys: str, feed: str = "") -> str:
    return f"feeds:\n- {{url: 'https://a.example/', id: a{feed}}}\ntopics:\n  t:\n    {keys}\n"


def test_the_topic_of_the_manual_arrives() -> None:
    registry = read(SEED)
    assert registry.of_features["topics"] == (
        TopicSpec(
            id="no3b",
            title="ノースリーブス",
            of=(Member("idol", "haruna"), Member("idol", "minami"), Member("natalie")),
            each=1,
        ),
    )


def test_every_key_of_a_topic_arrives() -> None:
    [one] = read(
        topic(
            "{of: a, items: 20, every: 1h, content: summary, link: 'https://a.example/t', public: yes,"
            " hub: ['https://hub.example/', 'https://hub2.example/'], title: '${T}'}"
        ),
        {"T": "News"},
    ).of_features["topics"]
    assert (one.items, one.every, one.content, one.public) == (20, timedelta(hours=1), "summary", True)
    assert (one.link, one.hub) == ("https://a.example/t", ("https://hub.example/", "https://hub2.example/"))
    assert (one.title, one.each, one.of) == ("News", None, (Member("a"),))


@pytest.mark.parametrize(
    ("keys", "line", "mistake"),
    [
        ("{of: b}", 5, 't.of: no feed has the id "b"; write the `id:` of a feed'),
        ("\n      of:\n        - a\n        - ab", 8, 't.of[1]: no feed has the id "ab"; did you mean "a"?'),
        ("{of: a/one}", 5, 't.of: the feed "a" has no stream "one"; write it under `streams:` of the feed'),
        ("{of: [a, t]}", 5, 't.of[1]: "t" is the topic itself, and a topic has feeds and streams only'),
        ("{of: [a, a]}", 5, "t.of[1]: a is also of[0]; remove one of them"),
        ("{of: 'https://a.example/'}", 5, '"https://a.example/" is no member; write the id of a feed, or'),
        ("{of: a/b/c}", 5, '"a/b/c" is no member'),
        ("{of: []}", 5, "t.of: has no members; write them, `of: [one-feed"),
        ("{of: }", 5, "t.of: has no members"),
        ("{title: x}", 5, "t.of: is missing; write the members"),
        ("[a]", 5, "t: is a list; write keys and values, `of: [one-feed, another-feed/stream]`"),
        ("{of: a, each: 0}", 5, '"0" is no number of items; write one from 1 to 50'),
        ("{of: a, items: 51}", 5, '"51" is no number of items'),
        ("{of: a, items: many}", 5, '"many" is no number of items'),
        ("{of: a, every: 1m}", 5, '"1m" is too short'),
        ("{of: a, every: 2d}", 5, '"2d" is too long; write 24h or less'),
        ("{of: a, every: auto}", 5, '"auto" is not an interval; write 30m, 2h'),
        ("{of: a, content: none of it}", 5, "is not known; write full, summary or none"),
        ("{of: a, link: 'ftp://a.example/'}", 5, "t.link: "),
        ("{of: a, hub: [https://h.example/, nowhere]}", 5, "t.hub[1]: "),
        ("{of: a, hub: [https://h.example/, https://h.example/]}", 5, "t.hub: has the same hub twice"),
        ("{of: a, link: 'https://me:secret@a.example/'}", 5, "this address is published, and has a password"),
        ("{of: a, public: perhaps}", 5, '"perhaps" is not a truth value'),
        ("{of: a, title: " + "x" * 1_000_000 + "}", 5, "t.title: write a title of 1 to 500 printable"),
        ("{of: a, interval: 1h}", 5, 't.interval: unknown key; did you mean "every"?'),
        ("{of: a, colour: red}", 5, "unknown key; remove it (known here: of, title, each, items, every,"),
        (f"{{of: {[f'f{n}' for n in range(1_001)]}}}", 5, "t.of: has 1,001 members; at most 1,000 are read"),
    ],
)
def test_a_mistake_in_a_topic_has_its_line(keys: str, line: int, mistake: str) -> None:
    found = mistakes(topic(keys))
    assert found[0].startswith(f"line {line}: topics.t"), found[0]
    assert mistake in found[0]
    assert "secret" not in str(found)


def test_a_page_that_is_not_watched_is_no_member() -> None:
    [found] = mistakes(topic("{of: a}", feed=", watch: false"))
    assert found == 'line 5: topics.t.of: the feed "a" has no items, by `watch: false`: remove it here'


@pytest.mark.parametrize(
    ("topics", "mistake"),
    [
        ("{index: {of: a}}", "topics.index: this is the name of the list of topics; write another id"),
        ("{No: {of: a}}", "topics.No: this is not a valid id; write 1 to 80 characters"),
        ("[a]", "topics: is a list; write an id and its keys on each line below"),
        ("", "topics: has no value"),
        ("{one: {of: a}, two: {of: one}}", 'topics.two.of: "one" is a topic, and a topic has feeds'),
    ],
)
def test_a_mistake_in_the_list_of_topics_has_its_line(topics: str, mistake: str) -> None:
    [found] = mistakes(f"feeds: [{{url: 'https://a.example/', id: a}}]\ntopics: {topics}\n")
    assert found.startswith(f"line 2: {mistake}")


def test_a_feed_in_a_list_alone_has_no_topics_and_none_need_be_written() -> None:
    assert read("- https://a.example/\n").of_features["topics"] == ()
    assert read("feeds: []\ntopics: {}\n") == Registry((), {"topics": ()})


@pytest.mark.parametrize(
    ("feed", "why"),
    [
        (", headers: {X-Token: secret}", "headers or a password"),
        (", allow_private: true", "allow_private"),
        (", allow_private: [nas.lan]", "allow_private"),
    ],
)
def test_what_only_its_owner_may_read_is_in_no_topic_that_does_not_say_public(feed: str, why: str) -> None:
    [found] = mistakes(topic("{of: a}", feed))
    assert found.startswith(
        f'line 5: topics.t.of: the feed "a" has {why}, and a topic can be read by everybody'
    )
    assert "`public: true`" in found
    assert len(mistakes(topic("{of: a, public: no}", feed))) == 1
    assert read(topic("{of: a, public: true}", feed)).of_features["topics"][0].public
    password = "feeds: [{url: 'https://me:pw@a.example/', id: a}]\ntopics: {t: {of: a}}\n"
    assert "has headers or a password" in mistakes(password)[0]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://topics.example/topics/no3b.atom", "R2_TOPICS_PUBLIC_URL"),
        ("http://TOPICS.example:80/topics/no3b.json", "R2_TOPICS_PUBLIC_URL"),
        ("https://pub.example/x/topics/index.json", "R2_PUBLIC_URL"),
        ("https://pub.example/topics/no3b.atom", None),
        ("https://other.example/topics/no3b.atom", None),
    ],
)
def test_a_topic_of_ours_is_no_feed_of_ours(url: str, name: str | None) -> None:
    environ = {"R2_TOPICS_PUBLIC_URL": "https://topics.example/", "R2_PUBLIC_URL": "https://pub.example/x"}
    if name is None:
        assert read(f"- {url}\n", environ).feeds[0].url == url
    else:
        [found] = mistakes(f"- {url}\n", environ)
        assert found.startswith(f"line 1: feeds[0].url: is published by this installation ({name})")
    assert read(f"- {url}\n").feeds[0].url == url


def test_all_mistakes_are_reported_at_once_and_none_that_follows_from_another() -> None:
    text = """feeds:
  - url: ftp://a.example/
    id: a
    streams:
      one: {author: ''}
  - url: https://b.example/
    id: b
    streams:
      One: {xpath: "//item["}
topics:
  t: {of: [a, a/one, b/One, b/two, c, "?"], every: 1m}
  u: {of: []}
"""
    places = [": ".join(mistake.split(": ")[:2]) for mistake in mistakes(text)]
    assert places == [
        "line 2: feeds[0].url",
        "line 9: feeds[1].streams.One",
        "line 9: feeds[1].streams.One.xpath",
        "line 11: topics.t.of[2]",
        "line 11: topics.t.of[5]",
        "line 11: topics.t.every",
        "line 11: topics.t.of[3]",
        "line 11: topics.t.of[4]",
        "line 12: topics.u.of",
    ]


def test_a_feed_with_an_id_that_is_unknown_because_of_a_mistake_makes_no_second_mistake() -> None:
    [found] = mistakes("feeds:\n- {url: 'ftp://a.example/'}\ntopics: {t: {of: a-example}}\n")
    assert found.startswith("line 2: feeds[0].url")


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
