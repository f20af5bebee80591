"""The items that a session has listed."""

from pathlib import Path

from rss_pipeline.api.google_reader.call import NewestSeen, recall
from rss_pipeline.api.google_reader.folded import NamedItems
from rss_pipeline.api.server import listening, server
from rss_pipeline_tests.api.google_reader.phone import API, Phone, arrive
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.reader import Reader


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


def test_what_was_listed_is_known_to_the_server_that_comes_next(reader: Reader) -> None:
    register(reader.database, spec("a"))
    phone = Phone.of_new_user(reader, "ann")
    phone.subscribe("a")
    arrive(reader.database, "a", "1")
    phone.ids()
    door = listening("127.0.0.1", 0)
    first = server(reader.app, ended=reader.app.state.google_reader.keep)
    # As after five minutes without a client.
    first.should_exit = True
    first.run(sockets=[door])
    [late] = arrive(reader.database, "a", "late")
    reader.clock.pass_(minutes=30)
    reader = Reader(reader.stores, reader.loop)
    reader.clock.pass_(minutes=30)
    client = reader.client(authorization=f"GoogleLogin auth={phone.auth}")
    assert client.post(f"{API}mark-all-as-read", data={"s": "feed/a"}).text == "OK"
    assert phone.unread() == {late}


def test_a_file_that_is_none_is_nothing_that_was_listed(tmp_path: Path) -> None:
    path = tmp_path / "reader_sessions"
    for body in (b"", b"{", b"[]", b'{"seen":[1],"named":2}', b'{"seen":{"s":{"all":"x"}},"named":[[1]]}'):
        path.write_bytes(body)
        seen, named = NewestSeen(), NamedItems()
        recall(path, seen, named)
        assert seen.last("s") is None
        assert named.others("s", [1]) == []
