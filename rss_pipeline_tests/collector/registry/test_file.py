"""The registry's file: what cannot be one, how large it may be, and when it is read again."""

import os
from pathlib import Path

import pytest

from rss_pipeline.collector.registry import load
from rss_pipeline.collector.registry.load import load_registry
from rss_pipeline.errors import RegistryError
from rss_pipeline_tests.collector.registry.reading import mistakes_or_none, specs
from rss_pipeline_tests.support.cost import costs_less_than


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
        first, second = load_registry(path, environ={}).feeds
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
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            path.write_text("- https://example.org/\n", encoding=encoding)
            assert self.refused(path) == "the file is UTF-16; save it as UTF-8"

    @pytest.mark.slow
    def test_larger_than_any_list_of_feeds(self, tmp_path: Path) -> None:
        path = tmp_path / "feeds.yaml"
        path.write_bytes(b"#" * 32_000_001)
        assert self.refused(path) == "the file is larger than 32 MB; it cannot be a list of feeds"


@pytest.mark.slow
@pytest.mark.parametrize("feeds", [10_000, pytest.param(200_000, marks=pytest.mark.soak)])
def test_ten_thousand_feeds_with_titles_load_in_a_second_and_two_hundred_thousand_in_twenty(
    feeds: int,
) -> None:
    """A machine may take twice as long."""
    text = "feeds:\n" + "".join(
        f"- url: https://host{n % 9_000}.example.org/blogs/{n}/feed.xml\n  title: The notes of number {n}\n"
        for n in range(feeds)
    )
    with costs_less_than(2 * feeds / 10_000):
        assert len(specs(text)) == feeds


@pytest.mark.soak
def test_one_feed_more_is_refused_by_its_number() -> None:
    [mistake] = mistakes_or_none("feeds:\n" + "- a\n" * 500_001)
    assert mistake == "line 2: feeds: has 500,001 feeds; at most 500,000 are read: remove some of them"


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
    monkeypatch.setattr(load, "_SETTLED_NS", 0)
    first = load_registry(path, environ={"TITLE": "one", "OTHER": "x"})
    same = load_registry(path, environ={"TITLE": "one", "OTHER": "y"})
    assert same is first, "it was not read again"
    assert load_registry(path, environ={"TITLE": "two"}).feeds[1].title == "two"
    with pytest.raises(RegistryError, match="TITLE is not set"):
        load_registry(path, environ={})

    path.write_text(path.read_text().replace("/a", "/c"))
    assert load_registry(path, environ={"TITLE": "one"}).feeds[0].url == "https://example.org/c"
    settle(path, 1)
    again = load_registry(path, environ={"TITLE": "one"})
    path.write_text(path.read_text().replace("/c", "/d"))
    settle(path, 1)
    assert load_registry(path, environ={"TITLE": "one"}).feeds[0].url == "https://example.org/d", "ctime"
    assert again.feeds[0].url == "https://example.org/c"
    path.unlink()
    with pytest.raises(RegistryError, match="does not exist"):
        load_registry(path, environ={"TITLE": "one"})


def test_a_file_that_was_changed_just_now_is_not_relied_on(tmp_path: Path) -> None:
    """Two changes within one tick of the file system's clock look the same."""
    path = tmp_path / "feeds.yaml"
    path.write_text("- https://example.org/a\n")
    first = load_registry(path, environ={})
    assert load_registry(path, environ={}).feeds[0] is not first.feeds[0]
