"""Lists of feeds that users upload: all of one or nothing, and lists of ours are read back equal."""

import string
from datetime import UTC, datetime
from ipaddress import ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.registry.feed_url import same_as
from rss_pipeline.collector.registry.values import printable
from rss_pipeline.features.opml.service import (
    ExportedFeed,
    OpmlRefused,
    UploadedList,
    export_subscriptions,
    read_upload,
)
from rss_pipeline_tests.support.cost import costs_less_than
from rss_pipeline_tests.support.examples import examples

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def document(outlines: str, *, head: str = '<?xml version="1.0" encoding="UTF-8"?>\n') -> bytes:
    return f'{head}<opml version="2.0"><body>\n{outlines}\n</body></opml>'.encode()


def read(body: bytes) -> UploadedList:
    upload = read_upload(body, AddressPolicy())
    upload.check(())
    return upload


def mistakes(body: bytes) -> list[str]:
    with pytest.raises(OpmlRefused) as refused:
        read(body)
    return [str(mistake) for mistake in refused.value.mistakes]


def feed(url: str, **attributes: str) -> str:
    rest = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<outline type="rss" xmlUrl="{url}"{rest}/>'


def test_feeds_come_once_in_their_order_with_title_and_folder() -> None:
    found = read(
        document(
            feed("https://a.example/f", text="A")
            + f'<outline text="News"><outline text="West">{feed("https://b.example/f#x")}</outline>'
            + feed("HTTPS://A.example:443/f", text="Other", title="Other")
            + "</outline>"
            + feed("https://b.example/f", title="B")
        )
    )
    assert [(each.url, each.title, each.folder) for each in found.feeds] == [
        ("https://a.example/f", "A", "News"),
        ("https://b.example/f", "B", "News/West"),
    ]
    assert found.merged == 2


def test_every_mistake_is_reported_with_its_line_and_in_their_order() -> None:
    found = mistakes(
        document(
            "\n".join(
                [
                    feed("https://a.example/f"),
                    feed("ftp://b.example/f"),
                    feed("http://127.0.0.1/f"),
                    feed("https://name:secret@c.example/f"),
                    '<outline type="rss" text="D"/>',
                    feed("http://localhost:8080/f"),
                ]
            )
        )
    )
    assert [line.partition(":")[0] for line in found] == ["line 4", "line 5", "line 6", "line 7", "line 8"]
    assert "secret" not in "".join(found)


@pytest.mark.parametrize(
    "host",
    ["10.0.0.1", "192.168.1.1", "[::1]", "[fd00::1]", "169.254.169.254", "100.64.0.1", "2130706433", "0x7f.1",
     "localhost", "a.localhost", "[::ffff:127.0.0.1]", "a.example:22"],
)  # fmt: skip
def test_addresses_of_private_networks_are_refused(host: str) -> None:
    [mistake] = mistakes(document(feed(f"http://{host}/feed")))
    assert mistake.startswith("line 3: xmlUrl: ")


def test_a_network_that_the_settings_open_is_open_to_lists_too() -> None:
    policy = AddressPolicy(networks=(ip_network("127.0.0.0/8"),), ports=frozenset({8080}))
    assert len(read_upload(document(feed("http://127.0.0.1:8080/f")), policy).feeds) == 1


def test_no_variable_of_the_environment_is_read_into_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSS_READER_SECRET", "secret")
    [found] = read(document(feed("https://a.example/${RSS_READER_SECRET}"))).feeds
    assert found.url == "https://a.example/${RSS_READER_SECRET}"


BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    + ']>\n<opml version="2.0"><body><outline text="&j;"/></body></opml>'
)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not XML"),
        (b"\xff\xfe\x00", "not XML"),
        (b"<html><body>Log in</body></html>", "this is <html>, not OPML"),
        (b"<rss version='2.0'><channel/></rss>", "this is <rss>, not OPML"),
        (document(""), "the file lists no feed"),
        (BOMB.encode(), "line 2: the file declares a document type"),
        (b'<!DOCTYPE opml SYSTEM "file:///etc/passwd"><opml/>', "line 1: the file declares a document type"),
        (b"<!DOCTYPE opml><opml/>", "line 1: the file declares a document type"),
        (document("<outline text='a'>" * 11 + "</outline>" * 11), "nested deeper than 10"),
        (document("<outline text='a'>" * 9_000), "nested deeper than 10"),
        (document("<outline text='a'/>" * 10_001), "more than 10,000 outlines"),
        (b"<opml>" + b" " * 1_000_000, "larger than 1 MB"),
        (b"<opml><body><outline", "not XML"),
    ],
)
def test_what_is_no_list_of_feeds_is_refused_in_words_and_at_once(body: bytes, told: str) -> None:
    with costs_less_than(5):
        [mistake] = mistakes(body)
    assert told in mistake


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "windows-1252", "iso-8859-1", "windows-1251"])
def test_a_list_is_read_in_its_encoding(encoding: str) -> None:
    title = "Новости" if encoding == "windows-1251" else "Zürich – né" if encoding == "windows-1252" else "né"
    head = f'<?xml version="1.0" encoding="{encoding}"?>\n'
    body = document(feed("https://a.example/f", text=title), head=head).decode().encode(encoding)
    assert read(body).feeds[0].title == title


@pytest.mark.slow
def test_a_list_of_ten_thousand_feeds_is_read_within_seconds() -> None:
    body = document("\n".join(feed(f"https://a.example/{number}") for number in range(10_000)))
    assert len(body) < 1_000_000
    with costs_less_than(10):
        assert len(read(body).feeds) == 10_000


TEXT = st.text(
    st.characters(codec="utf-8") | st.sampled_from("<>&\"' \t\n\u200d\u202e\x00\x0b\ufffe"),
    max_size=40,
)
TITLE = TEXT.map(printable).map(lambda text: text or None)
SEGMENT = TEXT.map(lambda text: printable(text.replace("/", "")).strip()).filter(bool)
FOLDER = st.none() | st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)
PATH = st.text(string.ascii_letters + string.digits + "/?&=%$'{}()+,;:~.-_é語", max_size=60)


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            ExportedFeed,
            url=st.builds("https://{}.example/{}".format, st.sampled_from("abc"), PATH),
            title=TITLE,
            folder=FOLDER,
            html_url=st.none() | st.just("https://a.example/?a=1&b=<2>"),
        ),
        min_size=1,
        max_size=12,
        unique_by=lambda each: same_as(each.url),
    )
)
@settings(max_examples=examples(150))
def test_a_list_of_ours_is_read_back_equal(subscriptions: list[ExportedFeed]) -> None:
    found = read(export_subscriptions(subscriptions, now=NOW))
    # Folders are written at the place of their first feed.
    assert {each.url: (each.title, each.folder) for each in found.feeds} == {
        each.url: (None if each.title == each.url else each.title, each.folder) for each in subscriptions
    }
    assert found.merged == 0
    again = [
        ExportedFeed(url=each.url, title=each.title, folder=each.folder, html_url=None)
        for each in found.feeds
    ]
    assert read(export_subscriptions(again, now=NOW)).feeds[0].url == found.feeds[0].url
