"""The registry: URLs, ids, passwords, variables and headers of a feed."""

import hashlib
import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.errors import RegistryError
from rss_pipeline_tests.collector.registry.reading import SECRET, mistakes, mistakes_or_none, one, specs


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
    def test_may_be_anywhere_in_a_text_and_can_be_escaped(self) -> None:
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


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=60))
def test_any_url_is_accepted_without_userinfo_or_refused_with_a_sentence(text: str) -> None:
    registry = json.dumps([{"url": "https://" + text}], ensure_ascii=False)
    if found := mistakes_or_none(registry):
        assert all(mistake.startswith("line ") for mistake in found)
    else:
        assert "@" not in one(registry).url.removeprefix("https://").partition("/")[0].partition("?")[0]
