"""The registry: what an operator may write, and that each mistake is told with its line and its remedy."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.registry import unchanged
from rss_pipeline.collector.registry.load import load_registry, parse_registry
from rss_pipeline.errors import RegistryError

PATH = Path("feeds.yaml")
SECRET = "s3cr3t/with@signs#and%41"


def specs(text: str, **environ: str) -> list[FeedSpec]:
    return parse_registry(text, path=PATH, environ=environ)


def one(text: str, **environ: str) -> FeedSpec:
    (spec,) = specs(text, **environ)
    return spec


def mistakes(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(RegistryError) as caught:
        parse_registry(text, path=PATH, environ=environ or {})
    return caught.value.mistakes


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
        """,
        TOKEN=SECRET,
    )
    assert (spec.id, spec.title) == ("example", "An example: with a colon")
    assert spec.interval == timedelta(minutes=90)
    assert spec.key == "title+date"
    assert (spec.images, spec.enabled, spec.allow_private) == (False, False, True)
    assert spec.access.headers == {"Authorization": f"Bearer {SECRET}", "Cookie": "a=b"}


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


class TestId:
    def test_is_slug_and_digest_of_the_url_without_userinfo_and_fragment(self) -> None:
        digest = hashlib.sha256(b"https://example.org/Blog/feed.xml?n=1").hexdigest()[:10]
        spec = one("- https://u:p@example.org/Blog/feed.xml?n=1#top")
        assert spec.id == f"example-org-blog-feed-xml-{digest}"

    def test_has_at_most_60_characters_before_the_digest_and_no_double_dash(self) -> None:
        spec = one(f"- https://example.org/{'a' * 47}/b/c")
        slug = spec.id[:-11]
        assert slug == f"example-org-{'a' * 47}"[:60].rstrip("-")
        assert spec.id[-11] == "-"

    @pytest.mark.parametrize(
        "url", ["http://[::1]:8080/", "https://日本語.example/フィード", "https://a_b.example./x"]
    )
    def test_is_made_of_what_partition_keys_and_folders_take(self, url: str) -> None:
        assert set(one(f"- {url}").id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")

    @pytest.mark.parametrize("written", ["A", "-a", "a_b", "a/b", "../x", "a.b", "a" * 81])
    def test_one_that_could_not_be_a_folder_is_refused(self, written: str) -> None:
        (mistake,) = mistakes(f"- url: https://example.org/\n  id: {written}\n")
        assert mistake.startswith("line 2: feeds[0].id: ")
        assert mistake.endswith(
            "is not a valid id; write 1 to 80 characters of a-z, 0-9 and -, beginning with a letter or digit"
        )


class TestUrl:
    @pytest.mark.parametrize(
        ("written", "url", "host"),
        [
            ("HTTPS://Example.ORG/Feed", "HTTPS://Example.ORG/Feed", "example.org"),
            ("https://example.org:8443/a?b=c&d", "https://example.org:8443/a?b=c&d", "example.org"),
            ("https://example.org", "https://example.org", "example.org"),
            ("https://bücher.example/x", "https://bücher.example/x", "xn--bcher-kva.example"),
            ("http://127.1.2.3:9/x", "http://127.1.2.3:9/x", "127.1.2.3"),
            ("'http://[0:0::1]:9/x'", "http://[0:0::1]:9/x", "::1"),
            (
                "https://medium.example/feed/@someone",
                "https://medium.example/feed/@someone",
                "medium.example",
            ),
            ("https://example.org/a%20b#c", "https://example.org/a%20b", "example.org"),
            ("https://@example.org/a", "https://example.org/a", "example.org"),
        ],
    )
    def test_is_kept_as_written(self, written: str, url: str, host: str) -> None:
        spec = one(f"- {written}")
        assert (spec.url, spec.host) == (url, host)
        assert spec.access.is_open

    @pytest.mark.parametrize(
        ("written", "advice"),
        [
            ("example.org/feed", 'is not an http or https URL; write "https://example.org/feed"'),
            ("feed://example.org/x", 'write "https://example.org/x"'),
            ("feed:https://example.org/x", 'write "https://example.org/x"'),
            ("ftp://example.org/x", "is not an http or https URL"),
            ("file:///etc/passwd", "is not an http or https URL"),
            ("javascript:alert(1)", "is not an http or https URL"),
            ("'#news'", "is not an http or https URL"),
            ("url:https://example.org/x", "write a space after the colon"),
            ("https:///feed", "has no host"),
            ("https://example.org:/feed", "has no valid port"),
            ("https://example.org:0/feed", "has no valid port"),
            ("https://example.org:99999/", "a port is a number from 1 to 65535"),
            ("'https://[::1/x'", "an IPv6 address is written in brackets"),
            ("'http://[fe80::1%eth0]/x'", "has an invalid IPv6 address"),
            ("https://exa mple.org/x", "a space is not allowed in a URL"),
            ("https://example.org/a\u00a0b", "U+00A0 is not allowed in a URL"),
            ("https://-a.example/", "host name that no domain can have"),
            ("https://a..example/", "host name that no domain can have"),
            ("https://a%41.example/", "host name that no domain can have"),
            ("https://\u2100.example/", "is not a URL"),
            ("https://日本\u00ad\u200b語\u0378.example/", "host name that no domain can have"),
            ("https://example.org/" + "a" * 2000, "longer than 2,000 characters"),
        ],
    )
    def test_what_cannot_be_fetched_is_refused_with_advice(self, written: str, advice: str) -> None:
        (mistake,) = mistakes(f"- {written}")
        assert mistake.startswith("line 1: feeds[0].url: ")
        assert advice in mistake

    @pytest.mark.parametrize(
        "again",
        [
            "https://example.org/a",
            "HTTPS://EXAMPLE.org:443/a",
            "https://u:p@example.org/a",
            "https://example.org/a#b",
        ],
    )
    def test_the_same_url_twice_names_both_lines(self, again: str) -> None:
        text = f"feeds:\n  - https://example.org/a\n\n  - url: {again}\n    id: other\n"
        assert mistakes(text) == [
            "line 4: feeds[1].url: is the same URL as feeds[0] in line 2; remove one of them"
        ]

    def test_the_same_url_twice_in_one_line_of_json(self) -> None:
        assert len(mistakes('["https://example.org/a","https://example.org/a"]')) == 1

    def test_http_and_https_are_two_urls(self) -> None:
        assert len(specs("[http://example.org/a, https://example.org/a]")) == 2

    def test_the_same_id_twice_names_both_lines(self) -> None:
        text = "- url: https://example.org/a\n  id: x\n- url: https://example.org/b\n  id: x\n"
        assert mistakes(text) == [
            'line 4: feeds[1].id: the id "x" is also the id of feeds[0] in line 2; write another `id:`'
        ]

    @pytest.mark.parametrize("mistake", ["intervall: 30m", "interval: 30", "id: 'Not an id'", "headers: [a]"])
    def test_the_same_url_twice_is_listed_with_the_other_mistakes_of_its_entries(self, mistake: str) -> None:
        """Corrected one after the other, each mistake would cost a person another look."""
        for first, second in ((mistake, "key: guid"), ("key: guid", mistake)):
            text = f"- url: https://example.org/a\n  {first}\n- url: https://example.org/a\n  {second}\n"
            found = mistakes(text)
            assert len(found) == 2, found
            assert "line 3: feeds[1].url: is the same URL as feeds[0] in line 1; remove one of them" in found

    def test_the_same_id_twice_is_listed_with_the_other_mistakes_of_its_entries(self) -> None:
        text = (
            "- url: https://example.org/a\n  id: x\n  images: maybe\n"
            "- url: https://example.org/b\n  id: x\n"
            "- url: https://example.org/a\n  id: x\n"
        )
        assert [mistake.partition(":")[0] for mistake in mistakes(text)] == ["line 3", "line 5", "line 6"]

    def test_a_password_beside_a_header_is_listed_with_the_other_mistakes_of_its_entry(self) -> None:
        text = "- url: https://u:p@example.org/\n  interval: 1s\n  headers: {Authorization: x}\n"
        assert [mistake.partition(":")[0] for mistake in mistakes(text)] == ["line 2", "line 3"]


class TestPassword:
    @pytest.mark.parametrize(
        ("userinfo", "username", "password"),
        [
            ("u:p", "u", "p"),
            ("u%40x:p%2Fq%3A", "u@x", "p/q:"),
            ("u:p:q", "u", "p:q"),
            ("a@b:c@d", "a@b", "c@d"),
            ("u:", "u", ""),
            ("token", "token", None),
            ("u:${PW}", "u", SECRET),
            ("${BOTH}", "u", "p%40"),
            ("u:%24-$${x}", "u", "$-${x}"),
        ],
    )
    def test_is_split_off(self, userinfo: str, username: str, password: str | None) -> None:
        spec = one(f"- https://{userinfo}@example.org/a#b", PW=SECRET, BOTH="u:p%40")
        assert spec.url == "https://example.org/a"
        assert (spec.access.username, spec.access.password) == (username, password)

    def test_in_a_url_that_is_all_one_variable_is_split_off_and_decoded(self) -> None:
        spec = one("- ${URL}", URL="https://u:p%40@example.org/$${a}/$b")
        assert spec.url == "https://example.org/$${a}/$b"
        assert (spec.access.username, spec.access.password) == ("u", "p@")

    def test_shows_in_no_repr(self) -> None:
        spec = one("- {url: 'https://u53r:${PW}@example.org/', headers: {X-Token: '${PW}'}}", PW=SECRET)
        assert SECRET not in repr(spec)
        assert "u53r" not in repr(spec)

    @pytest.mark.parametrize(
        "written",
        [
            "- https://user:{}@example.org:99999/",
            "- https://user:{}@exa mple.org/",
            "- https://user:{}@/feed",
            "- user:{}@example.org/feed",
            "- url:https://user:{}@example.org/",
            "- ftp://user:{}@example.org/",
            "- https://user:slash/{}@example.org/",
            "- https://user:question?{}@example.org/",
            "- {{url: https://example.org/, id: 'https://user:{}@example.org/'}}",
            "- {{url: https://example.org/, interval: 'x:{}@'}}",
            "- {{url: https://example.org/, 'https://user:{}@example.org/': x}}",
            "- https://user:{0}@example.org/\n- https://user:{0}@example.org/",
            "https://user:{}@example.org/: https://example.org",
            "- [https://user:{}@example.org/, 'x",
        ],
    )
    def test_shows_in_no_message(self, written: str) -> None:
        with pytest.raises(RegistryError) as caught:
            specs(written.format("hunter2"))
        assert "hunter2" not in str(caught.value) + repr(caught.value)
        assert caught.value.__cause__ is None

    def test_and_an_authorization_header_exclude_each_other(self) -> None:
        text = "- url: https://u:p@example.org/\n  headers:\n    authorization: Bearer x\n"
        (mistake,) = mistakes(text)
        assert mistake.startswith(
            "line 2: feeds[0].headers: a password in the URL and an Authorization header"
        )


class TestVariable:
    def test_stands_anywhere_in_a_text_and_can_be_escaped(self) -> None:
        spec = one(
            '- {url: "https://${HOST}/${PATH}", title: "$${HOST} $HOME ${HOST}"}',
            HOST="example.org",
            PATH="a/b",
        )
        assert spec.url == "https://example.org/a/b"
        assert spec.title == "${HOST} $HOME example.org"

    def test_may_give_an_interval_or_a_flag(self) -> None:
        spec = one(
            '- {url: "https://example.org/", interval: "${EVERY}", images: "${I}"}', EVERY="2h", I="no"
        )
        assert (spec.interval, spec.images) == (timedelta(hours=2), False)

    def test_its_value_is_not_expanded_again(self) -> None:
        assert one('- {url: "https://example.org/", title: "${A}"}', A="${B}").title == "${B}"

    def test_that_is_missing_or_empty_is_named(self) -> None:
        text = "- url: https://u:${MISSING}@example.org/\n  title: ${EMPTY} ${MISSING}\n"
        assert mistakes(text, {"EMPTY": ""}) == [
            "line 1: feeds[0].url: the environment variable MISSING is not set; "
            "set it (in .env, for instance)",
            "line 2: feeds[0].title: the environment variable EMPTY is empty; give it a value; "
            "the environment variable MISSING is not set; set it (in .env, for instance)",
        ]

    @pytest.mark.parametrize("written", ["${}", "${9A}", "${A B}", "${A", "${A:-x}"])
    def test_that_is_not_a_name_is_refused(self, written: str) -> None:
        (mistake,) = mistakes(f"- url: https://example.org/\n  title: {written}\n", {"A": "x"})
        assert 'line 2: feeds[0].title: "${" is not followed by a variable; write ${NAME}' in mistake

    @pytest.mark.parametrize("key", ["url", "id", "title", "interval", "key", "images", "enabled"])
    def test_its_value_shows_in_no_message(self, key: str) -> None:
        text = "- url: https://example.org/\n" if key != "url" else ""
        text += f"{'  ' if text else '- '}{key}: ${{V}}\n"
        with pytest.raises(RegistryError) as caught:
            specs(text, V="hunter2 \u0000")
        assert "hunter2" not in str(caught.value)


class TestHeaders:
    @pytest.mark.parametrize(
        "name", ["Host", "if-none-match", "Accept-Encoding", "Content-Length", "Range", "TE", "Referer"]
    )
    def test_those_the_client_must_own_are_refused(self, name: str) -> None:
        (mistake,) = mistakes(f"- url: https://example.org/\n  headers:\n    {name}: x\n")
        assert mistake.startswith(f"line 3: feeds[0].headers.{name}: this header cannot be set here: ")

    @pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00b", "é", "   x\x7f"])
    def test_values_that_would_break_a_request_are_refused_unseen(self, value: str) -> None:
        text = '- url: https://example.org/\n  headers: {X-Token: "${V}"}\n'
        (mistake,) = mistakes(text, {"V": value})
        assert mistake.startswith("line 2: feeds[0].headers.X-Token: a header's value ")
        assert value not in mistake

    def test_a_line_break_at_the_end_of_a_mounted_secret_does_no_harm(self) -> None:
        spec = one('- {url: "https://example.org/", headers: {X-Token: "${V}"}}', V="abc\n")
        assert spec.access.headers == {"X-Token": "abc"}

    def test_names_that_are_none_are_refused(self) -> None:
        assert (
            'headers."a b": this is not a header name'
            in mistakes('- url: https://example.org/\n  headers: {"a b": c}\n')[0]
        )

    def test_the_same_name_in_another_case_is_refused(self) -> None:
        (mistake,) = mistakes("- url: https://example.org/\n  headers: {X-A: b, x-a: c}\n")
        assert "has the same header twice" in mistake

    @pytest.mark.parametrize(
        ("written", "sentence"), [("", "has no value"), ("x", "is a single value"), ("[x]", "is a list")]
    )
    def test_anything_but_a_mapping_is_refused(self, written: str, sentence: str) -> None:
        assert sentence in mistakes(f"- url: https://example.org/\n  headers: {written}\n")[0]

    def test_more_than_fifty_are_refused(self) -> None:
        headers = ", ".join(f"X-{n}: a" for n in range(51))
        assert (
            "more than 50 headers" in mistakes(f"- {{url: https://example.org/, headers: {{{headers}}}}}")[0]
        )


def test_all_mistakes_are_told_at_once_in_the_order_of_lines() -> None:
    text = """defaults:
  imagse: no
feeds:
  - url: https://example.org/a
    intervall: 30m
    interval: 30
  - url: https://example.org/b
    images: maybe
    key: gid
    title:
  - title: No address
  - [https://example.org/c]
  -
  - url: https://example.org/d
    interval: 1m
    tags: [a, b]
  - {url: https://example.org/e, interval: 2d}
  - {name: x, url: [y]}
feed: []
"""
    assert mistakes(text) == [
        'line 2: defaults.imagse: unknown key; did you mean "images"?',
        'line 5: feeds[0].intervall: unknown key; did you mean "interval"?',
        'line 6: feeds[0].interval: "30" is not an interval; '
        'write auto, 30m, 2h, 1h30m or 1d ("30m" for minutes)',
        'line 8: feeds[1].images: "maybe" is not a truth value; write true or false',
        'line 9: feeds[1].key: "gid" is not an item key; write guid, link or title+date',
        "line 10: feeds[1].title: has no value; write one, or remove the key",
        "line 11: feeds[2].url: is missing; write the feed's address, `url: https://example.org/feed.xml`",
        "line 12: feeds[3]: is a list; write keys and values, `url: ...`",
        "line 13: feeds[4]: is empty; write `- url: https://example.org/feed.xml`, or remove the line",
        'line 15: feeds[5].interval: "1m" is too short, publishers block such readers; '
        "write 5m or more, or auto",
        "line 16: feeds[5].tags: unknown key; remove it "
        "(known here: url, id, title, folder, interval, key, images, keep, enabled, allow_private, headers)",
        'line 17: feeds[6].interval: "2d" is too long, '
        "each feed is visited at least once a day; write 24h or less",
        "line 18: feeds[7].url: is a list; write a single value",
        'line 18: feeds[7].name: unknown key; did you mean "title"?',
        'line 19: feed: unknown key; did you mean "feeds"?',
    ]


def test_mistakes_of_syntax_hide_none_of_the_other_entries() -> None:
    text = """feeds:
  - url: https://example.org/a
    intervall: 30m
  - url: https://example.org/b
    title: Foo: bar
  - url: !include c
    images: maybe
  - url: *there
  - ? [a, b]
    : c
  - title: "not closed
    interval: 30
  - url: https://example.org/a
    key: gid
"""
    found = mistakes(text)
    assert [int(mistake.removeprefix("line ").partition(":")[0]) for mistake in found] == [
        *(3, 5, 6, 6, 7, 8, 8, 9, 9, 11, 13, 14),
    ]
    assert "line 13: feeds[6].url: is the same URL as feeds[0] in line 2; remove one of them" in found


def test_an_entry_that_cannot_be_read_is_no_mistake_of_another_kind() -> None:
    assert len(mistakes("feeds:\n  - title: Foo: bar\n")) == 1
    assert len(mistakes("feeds:\n- title: Foo: bar\ndefaults: {interval: 1}\n")) == 2
    assert len(mistakes("- a: b: c\n" * 100)) == 20


@pytest.mark.parametrize(
    "written", ["", "hourly", "30 minutes", "PT30M", "30s", "-5m", "1.5h", "99999999999d", "٣٠m", "m"]
)
def test_an_interval_that_is_none_is_refused(written: str) -> None:
    (mistake,) = mistakes(f'- url: https://example.org/\n  interval: "{written}"\n')
    assert mistake.startswith("line 2: feeds[0].interval: ")
    assert "write auto, 30m, 2h, 1h30m or 1d" in mistake


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file is empty; write a list of feeds"),
        ("# nothing yet\n", "the file is empty; write a list of feeds"),
        ("feeds:\n", "line 1: feeds: has no entries; write `feeds: []` for an empty list"),
        ("feeds: x\n", "line 1: feeds: is a single value; write a list of feeds"),
        ("title: x\nurl: y\n", "line 1: feeds: is missing; write `feeds:` and below it"),
        ("feeds: []\ndefaults: []\n", "line 2: defaults: is a list; write keys and values"),
        ("https://example.org/\n", "line 1: feeds: is a single value; write a list of feeds"),
        ("<?xml version='1.0'?><opml/>", "line 1: this is XML (OPML?), not YAML"),
        ("feeds:\n\t- url: x\n", "line 2: a tab is used where YAML requires spaces; indent with spaces"),
        ("feeds:\n  - url: x\n  \t  title: y\n", "line 3: a tab is used where YAML requires spaces"),
        (
            "- title: Foo: bar\n",
            'line 1: a colon is not allowed here; put a text that contains ": " in quotes',
        ),
        ("- title: @foo\n", 'line 1: a text cannot begin with "@"; put it in quotes'),
        ("- title: 100% sure\n- title: %x\n", 'line 2: a text cannot begin with "%"; put it in quotes'),
        ('- url: a\n- title: "Foo\n- url: b\n', "line 2: a quote is opened here and not closed"),
        ('- title: "C:\\Users"\n', "line 1: unknown escape in double quotes"),
        ("- [a, b\n- c\n", "check indentation, quotes and brackets"),
        ("- url: a\n   title: b\n", "line 2: a colon is not allowed here"),
        ("- url: a\n title: b\n", "line 2: not valid YAML here: "),
        ("- a\n--- \n- b\n", "line 2: a second document begins here; write all feeds into one document"),
        ("- url: *there\n", "line 1: *there refers to no anchor above it"),
        ("- &a [*a]\n", "line 1: *a refers to no anchor above it"),
        ("- url: !include x\n", 'line 1: the tag "!include" has no meaning here; remove it'),
        ("- !!python/object/apply:os.system [ls]\n", "line 1: the tag "),
        ("- <<: x\n  url: y\n", "line 1: `<<` takes an alias of a mapping"),
        ("- ? [a, b]\n  : c\n", "line 1: a list or mapping cannot be a key"),
        ("- url: a\n- title: x\x07y\n", "line 2: the character U+0007 is not allowed in YAML; remove it"),
        (
            "- url: https://example.org/\n  url: x\n",
            'line 2: the key "url" is here again (first in line 1)',
        ),
        ('[{"url": "https://example.org/", "title": "\\ud800"}]', "line 1: "),
    ],
)
def test_broken_syntax_is_told_with_its_line(text: str, expected: str) -> None:
    assert any(mistake.startswith(expected) or expected in mistake for mistake in mistakes(text)), mistakes(
        text
    )


@pytest.mark.parametrize(
    "text", ["[" * 2_000_000, "{a: " * 500_000, "- " * 1_000_000, "[" * 50_000 + "]" * 50_000]
)
def test_nesting_that_overflows_libyaml_s_own_composer_is_a_mistake(text: str) -> None:
    assert mistakes(text) == ["line 1: the values are nested too deeply for a list of feeds"]


def test_ten_lines_of_aliases_that_stand_for_billions_are_refused_at_once() -> None:
    lines = ["feeds:", "  - &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"  - &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]" for n in range(9)]
    assert "the aliases of this file repeat more than a million values" in mistakes("\n".join(lines))[0]


class TestFile:
    def refused(self, path: Path) -> str:
        with pytest.raises(RegistryError) as caught:
            load_registry(path, environ={})
        assert caught.value.path == str(path)
        (mistake,) = caught.value.mistakes
        return mistake

    def test_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "feeds.yaml"
        path.write_bytes(
            "\ufeff- https://example.org/\r\n- {url: https://example.net/, title: 新闻}\r\n".encode()
        )
        first, second = load_registry(path, environ={})
        assert (first.url, second.title) == ("https://example.org/", "新闻")

    def test_missing(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path / "none.yaml").startswith(
            "the file does not exist; create it, or set RSS_FEEDS_FILE"
        )

    def test_a_folder(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path).startswith("this is a folder")

    def test_behind_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert self.refused(tmp_path / "file" / "feeds.yaml") == "the file cannot be read: Not a directory"

    def test_gbk(self, tmp_path: Path) -> None:
        path = tmp_path / "feeds.yaml"
        path.write_bytes("- url: https://example.org/\n  title: 新闻\n".encode("gbk"))
        assert self.refused(path) == "line 2: byte 0xd0 is not UTF-8; save the file as UTF-8"

    def test_utf_16_from_a_windows_editor(self, tmp_path: Path) -> None:
        path = tmp_path / "feeds.yaml"
        path.write_text("- https://example.org/\n", encoding="utf-16")
        assert self.refused(path) == "the file is UTF-16; save it as UTF-8"

    def test_larger_than_any_list_of_feeds(self, tmp_path: Path) -> None:
        path = tmp_path / "feeds.yaml"
        path.write_bytes(b"#" * 32_000_001)
        assert self.refused(path) == "the file is larger than 32 MB; it cannot be a list of feeds"


@pytest.fixture(scope="module")
def fifty_thousand() -> str:
    """A file of 5 MB."""
    return "feeds:\n" + "".join(
        f"- url: https://host{n % 9_000}.example.org/blogs/{n}/feed.xml\n  title: The notes of number {n}\n"
        for n in range(50_000)
    )


@pytest.mark.slow
def test_fifty_thousand_feeds_with_titles_load_in_five_seconds(fifty_thousand: str) -> None:
    begun = time.process_time()
    assert len(specs(fifty_thousand)) == 50_000
    assert time.process_time() - begun < 10  # 3 s on a quiet machine


@pytest.mark.slow
def test_one_feed_more_is_refused_by_its_number(fifty_thousand: str) -> None:
    [mistake] = mistakes_or_none(fifty_thousand + "- https://example.org/\n")
    assert mistake == "line 2: feeds: has 50,001 feeds; at most 50,000 are read: remove some of them"


def settle(path: Path, minutes: int) -> None:
    """As if it had been written that many minutes after a day long ago."""
    at = 1_700_000_000 + 60 * minutes
    os.utime(path, (at, at))


def test_a_file_is_read_again_only_when_it_or_a_variable_in_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "feeds.yaml"
    path.write_text("- https://example.org/a\n- {url: 'https://example.org/b', title: '${TITLE}'}\n")
    # Only a file that has not changed for two seconds is remembered; the test does not wait for that.
    monkeypatch.setattr(unchanged, "_SETTLED_NS", 0)
    first = load_registry(path, environ={"TITLE": "one", "OTHER": "x"})
    same = load_registry(path, environ={"TITLE": "one", "OTHER": "y"})
    assert same == first
    assert same is not first
    assert all(a is b for a, b in zip(first, same, strict=True)), "it was not read again"
    assert load_registry(path, environ={"TITLE": "two"})[1].title == "two"
    with pytest.raises(RegistryError, match="TITLE is not set"):
        load_registry(path, environ={})

    path.write_text(path.read_text().replace("/a", "/c"))
    assert load_registry(path, environ={"TITLE": "one"})[0].url == "https://example.org/c"
    settle(path, 1)
    again = load_registry(path, environ={"TITLE": "one"})
    path.write_text(path.read_text().replace("/c", "/d"))
    settle(path, 1)
    assert load_registry(path, environ={"TITLE": "one"})[0].url == "https://example.org/d", "ctime"
    assert again[0].url == "https://example.org/c"
    path.unlink()
    with pytest.raises(RegistryError, match="does not exist"):
        load_registry(path, environ={"TITLE": "one"})


def test_a_file_that_was_changed_just_now_is_not_relied_on(tmp_path: Path) -> None:
    """Two changes within one tick of the file system's clock look the same."""
    path = tmp_path / "feeds.yaml"
    path.write_text("- https://example.org/a\n")
    first = load_registry(path, environ={})
    assert load_registry(path, environ={})[0] is not first[0]


def mistakes_or_none(text: str) -> list[str]:
    try:
        specs(text)
    except RegistryError as error:
        return error.mistakes or ["a refusal without a mistake"]
    return []


@given(st.text(max_size=200))
def test_any_text_is_a_list_of_feeds_or_mistakes(text: str) -> None:
    assert "a refusal without a mistake" not in mistakes_or_none(text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=60))
def test_any_url_is_accepted_without_userinfo_or_refused_with_a_sentence(text: str) -> None:
    registry = json.dumps([{"url": "https://" + text}], ensure_ascii=False)
    if found := mistakes_or_none(registry):
        assert all(mistake.startswith("line ") for mistake in found)
    else:
        assert "@" not in one(registry).url.removeprefix("https://").partition("/")[0].partition("?")[0]


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
        assert load_registry(path, environ={})[0].keep_days == days


@pytest.mark.parametrize(("written", "folder"), [("News", "News"), ("' News /  Europe '", "News/Europe")])
def test_a_folder_is_a_name_or_names_with_slashes(written: str, folder: str) -> None:
    assert one(f"- url: https://example.org/\n  folder: {written}\n").folder == folder


@pytest.mark.parametrize("written", ["''", "/News", "News//Europe", "x" * 501, '"a\\u0007b"'])
def test_a_folder_without_a_name_is_a_mistake_with_its_line(written: str) -> None:
    (mistake,) = mistakes(f"- url: https://example.org/\n  folder: {written}\n")
    assert mistake.startswith("line 2: feeds[0].folder: write a folder of 1 to 500")
