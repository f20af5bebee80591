"""The items that a session has listed."""

from rss_pipeline.api.google_reader.call import NewestSeen


def test_the_newest_of_the_streams_that_were_listed_counts() -> None:
    seen = NewestSeen()
    seen.show("s", "feed/a", 5)
    seen.show("s", "all", 9)
    assert seen.newest("s", ["feed/a", "all"]) == 9
    assert seen.newest("s", ["feed/a"]) == 5
    assert seen.newest("s", ["feed/b"]) is None
    assert seen.last("s") == 9
    assert seen.last("t") is None


def test_a_session_knows_nothing_of_another_one() -> None:
    seen = NewestSeen()
    seen.show("s", "all", 9)
    assert seen.newest("t", ["all"]) is None


def test_an_answer_that_was_overtaken_takes_nothing_back() -> None:
    seen = NewestSeen()
    seen.show("s", "all", 9)
    seen.show("s", "all", 7)
    assert seen.newest("s", ["all"]) == 9


def test_the_longest_unlisted_stream_is_forgotten_first() -> None:
    seen = NewestSeen(most=2)
    seen.show("s", "a", 1)
    seen.show("s", "b", 2)
    seen.show("s", "a", 3)
    seen.show("s", "c", 4)
    assert seen.newest("s", ["b"]) is None
    assert seen.newest("s", ["a"]) == 3
