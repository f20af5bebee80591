"""The registry: what an operator may write of a feed, key by key."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from rss_pipeline.collector.registry.load import load_registry
from rss_pipeline.errors import RegistryError
from rss_pipeline_tests.collector.registry.reading import SECRET, mistakes, one, specs


def test_a_bare_url_is_a_feed_with_everything_at_its_default() -> None:
    spec = one("- https://example.org/feed.xml\n")
    assert (spec.url, spec.host) == ("https://example.org/feed.xml", "example.org")
    assert (spec.title, spec.interval, spec.key) == (None, None, "guid")
    assert (spec.images, spec.enabled, spec.allow_private) == (True, True, False)
    assert spec.access.is_open


def test_every_key_arrives() -> None:
    spec = one(
        """
        feeds:
          - url: https://example.org/feed.xml
            id: example
            title: "An   example: with a colon"
            interval: 1h30m
            key: title+date
            images: no
            enabled: off
            allow_private: True
            headers:
              Authorization: Bearer ${TOKEN}
              Cookie: a=b
            shared: yes
        """,
        TOKEN=SECRET,
    )
    assert (spec.id, spec.title) == ("example", "An example: with a colon")
    assert spec.interval == timedelta(minutes=90)
    assert spec.key == "title+date"
    assert (spec.images, spec.enabled, spec.allow_private) == (False, False, True)
    assert spec.access.headers == {"Authorization": f"Bearer {SECRET}", "Cookie": "a=b"}
    assert spec.shared


@pytest.mark.parametrize(
    ("keys", "is_public"),
    [
        ("{url: 'https://example.org/'}", True),
        ("{url: 'https://example.org/', shared: true}", True),
        ("{url: 'https://a:b@example.org/'}", False),
        ("{url: 'https://example.org/', headers: {X-Token: a}}", False),
        ("{url: 'https://example.org/', allow_private: true}", False),
        ("{url: 'https://example.org/', allow_private: [nas.lan]}", False),
    ],
)
def test_a_feed_with_headers_a_password_or_private_hosts_is_not_public(keys: str, is_public: bool) -> None:
    assert one(f"- {keys}").is_public is is_public


@pytest.mark.parametrize(
    ("written", "hosts"),
    [
        ("true", ()),
        ("[nas.lan]", ("nas.lan",)),
        ("[NAS.lan., bücher.example]", ("nas.lan", "xn--bcher-kva.example")),
        ("[192.168.1.5, '[fd00::1]', 'fd00::2', 127.1]", ("192.168.1.5", "fd00::1", "fd00::2", "127.0.0.1")),
        ("[192.168.1.0/24, 'fd00::/8', 10.0.0.5/32]", ("192.168.1.0/24", "fd00::/8", "10.0.0.5/32")),
        ("['${NAS}']", ("nas.lan",)),
    ],
)
def test_private_hosts_are_opened_by_name(written: str, hosts: tuple[str, ...]) -> None:
    spec = one(f"- url: http://feeds.lan/\n  allow_private: {written}\n", NAS="nas.lan")
    assert (spec.allow_private, spec.private_hosts) == (True, hosts)
    assert not one("- url: http://feeds.lan/\n  allow_private: no\n").allow_private


@pytest.mark.parametrize(
    ("written", "line", "mistake"),
    [
        ("nas.lan", 2, '"nas.lan" is neither true nor false; write true for the feed\'s own host, or a list'),
        ("[]", 2, "has no entries; write true"),
        ("{a: b}", 2, "is a mapping; write true, false, or a list"),
        (
            "\n  - nas.lan\n  - http://nas.lan/",
            4,
            '[1]: "http://nas.lan/" is no host and no network; write a name',
        ),
        ("\n  - nas.lan:8080", 3, '[0]: "nas.lan:8080" is no host and no network'),
        ("\n  - '*.lan'", 3, "is no host and no network"),
        ("\n  - nas.lan\n  -", 4, "[1]: has no value"),
        ("\n  - 192.168.1.5/24", 3, '"192.168.1.5/24" is no network; write 192.168.1.0/24 or 192.168.1.5'),
        ("\n  - 169.254.169.254", 3, '"169.254.169.254" stays blocked: link-local, metadata'),
        ("\n  - 'fe80::/10'", 3, "stays blocked"),
        ("\n  - [nas.lan]", 3, "[0]: is a list; write a single value"),
        (str([f"{n}.lan" for n in range(51)]), 2, "has more than 50 entries"),
    ],
)
def test_a_mistake_in_the_private_hosts_has_its_line(written: str, line: int, mistake: str) -> None:
    (found,) = mistakes(f"- url: http://feeds.lan/\n  allow_private: {written}\n")
    assert found.startswith(f"line {line}: feeds[0].allow_private")
    assert mistake in found


def test_feeds_come_in_the_order_of_the_file() -> None:
    urls = [f"https://example.org/{n}" for n in (3, 1, 2)]
    assert [spec.url for spec in specs("feeds:\n" + "".join(f"  - {url}\n" for url in urls))] == urls


def test_no_feeds_at_all_may_be_said() -> None:
    assert specs("feeds: []") == []
    assert specs("[]") == []


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("1984", "1984"),
        ("No", "No"),
        ("2004-01-01", "2004-01-01"),
        ("1:30", "1:30"),
        ("'null'", "null"),
        ("1.0", "1.0"),
    ],
)
def test_a_title_is_the_text_that_was_written_and_not_what_yaml_makes_of_it(written: str, title: str) -> None:
    assert one(f"- url: https://example.org/\n  title: {written}\n").title == title


@pytest.mark.parametrize(
    "text", ['- {url: "https://a.example/x", id: 2004}', '- {"url":"https://a.example/x","id":2004}']
)
def test_an_id_of_digits_is_an_id(text: str) -> None:
    assert one(text).id == "2004"


@pytest.mark.parametrize(
    ("written", "minutes"),
    [
        ("5m", 5),
        ("30m", 30),
        ("2h", 120),
        ("1h30m", 90),
        ("1h 30m", 90),
        ("90m", 90),
        ("1d", 1440),
        ("24h", 1440),
    ],
)
def test_an_interval_is_a_duration(written: str, minutes: int) -> None:
    assert one(f"- url: https://example.org/\n  interval: {written}\n").interval == timedelta(minutes=minutes)


def test_a_feed_s_own_word_wins_over_the_defaults_auto_too() -> None:
    text = """
        defaults: {interval: 2h, images: false}
        feeds:
          - https://example.org/1
          - {url: https://example.org/2, interval: auto, images: yes}
    """
    first, second = specs(text)
    assert (first.interval, first.images) == (timedelta(hours=2), False)
    assert (second.interval, second.images) == (None, True)


def test_a_mapping_can_be_shared_by_alias_and_merge_key() -> None:
    text = """
        - &slow {url: https://example.org/1, interval: 12h, images: false}
        - {<<: *slow, url: https://example.org/2, images: true}
    """
    _, second = specs(text)
    assert (second.url, second.interval, second.images) == (
        "https://example.org/2",
        timedelta(hours=12),
        True,
    )


class TestJson:
    def test_as_python_writes_it_with_characters_beyond_the_first_plane(self) -> None:
        text = json.dumps({"feeds": [{"url": "https://example.org/", "title": "😀 \\ud83d"}]})
        assert one(text).title == "😀 \\ud83d"

    def test_indented_with_tabs_and_with_escaped_slashes(self) -> None:
        text = '{\n\t"feeds": [\n\t\t{"url":"https:\\/\\/example.org\\/", "images": false}\n\t]\n}'
        spec = one(text)
        assert (spec.url, spec.images) == ("https://example.org/", False)

    def test_mistakes_have_their_lines_too(self) -> None:
        text = json.dumps(
            [{"url": "https://example.org/"}, {"url": "https://example.net/", "image": True}], indent=1
        )
        assert mistakes(text) == ['line 7: feeds[1].image: unknown key; did you mean "images"?']


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("30MB", 30_000_000),
        ("30 mb", 30_000_000),
        ("30M", 30_000_000),
        ("1.5MiB", 1_500_000),
        ("500KB", 500_000),
        ("0.2GB", 200_000_000),
        ("26000000", 26_000_000),
        ("30", None),
        ("0MB", None),
        ("201MB", None),
        ("-5MB", None),
        ("large", None),
        ("MB", None),
        ("9" * 5_000, None),
    ],
)
def test_a_feed_may_be_as_large_as_it_says(written: str, size: int | None) -> None:
    text = f"defaults: {{max_size: 25MB}}\nfeeds:\n- {{url: 'https://example.org/', max_size: '{written}'}}\n"
    if size is None:
        with pytest.raises(
            RegistryError, match="is not the size of a feed; write a number and a unit such as"
        ):
            one(text)
    else:
        assert one(text).max_size == size
        assert one("defaults: {max_size: 25MB}\nfeeds:\n- https://example.org/\n").max_size == 25_000_000


@pytest.mark.parametrize(
    ("written", "days"), [("90d", 90), ("1d", 1), ("forever", 36_500), ("0d", None), ("3 weeks", None)]
)
def test_keep_is_an_age_in_days_or_for_ever(tmp_path: Path, written: str, days: int | None) -> None:
    path = tmp_path / "feeds.yaml"
    path.write_text(f"feeds:\n  - url: https://example.org/feed\n    keep: {written}\n")
    if days is None:
        with pytest.raises(RegistryError, match="is not an age; write days such as 90d"):
            load_registry(path, environ={})
    else:
        assert load_registry(path, environ={}).feeds[0].keep_days == days


@pytest.mark.parametrize(("written", "folder"), [("News", "News"), ("' News /  Europe '", "News/Europe")])
def test_a_folder_is_a_name_or_names_with_slashes(written: str, folder: str) -> None:
    assert one(f"- url: https://example.org/\n  folder: {written}\n").folder == folder


@pytest.mark.parametrize("written", ["''", "/News", "News//Europe", "x" * 501, '"a\\u0007b"'])
def test_a_folder_without_a_name_is_a_mistake_with_its_line(written: str) -> None:
    (mistake,) = mistakes(f"- url: https://example.org/\n  folder: {written}\n")
    assert mistake.startswith("line 2: feeds[0].folder: write a folder of 1 to 500")
