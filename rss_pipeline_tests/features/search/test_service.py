"""Searches as users do them: what is found, in which order, for whom, and how it is shown."""

from datetime import UTC, datetime

import pytest

from rss_pipeline_tests.features.search.conftest import Library


def test_words_are_found_in_title_author_and_content(library: Library) -> None:
    library.arrive("news", "1", "<p>Water on the moon</p>")
    library.arrive("news", "2", title="Water, at last")
    library.arrive("news", "3", authors=("Walter Water",), author="Walter Water")
    library.arrive("news", "4", "<p>Nothing of it</p>")
    library.index()
    assert library.found("water") == ["3", "2", "1"]
    assert library.found("author:water") == ["3"]
    assert library.found("water -author:walter") == ["2", "1"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("北京大学发布了新的研究", "北京"),
        ("北京大学发布了新的研究", "京"),
        ("北京大学发布了新的研究", "研究"),
        ("北京大学发布了新的研究", "究"),
        ("北京大学发布了新的研究", "北京大学"),
        ("北京大学发布了新的研究", '"大学发布了"'),
        ("東京オリンピックの開催", "オリンピック"),
        ("東京オリンピックの開催", "東京 開催"),
        ("ｱﾌﾟﾘ", "アプリ"),
        ("iPhone15の発売日", "iphone15"),
        ("iPhone15の発売日", "iPhone15の"),
        ("iPhone15の発売日", "発売"),
        ("학교에서 만나요", "학교"),
        ("ภาษาไทยไม่มีช่องว่าง", "ไทย"),
        ("Ｗｉｄｅ letters", "wide"),
        ("Café Zürich", "cafe zurich"),
        ("Cafe Zurich", "café zürich"),
        ("Caf\u0065\u0301", "café"),
        ("co\u00adope\u00adrate", "cooperate"),
        ("हिन्दी भाषा", "हिन्दी"),
        ("Привет, Мир", "мир"),
        ("state-of-the-art", "of-the"),
        ("re<b>mark</b>able", "remarkable"),
        ("one</p><p>two", '"one two"'),
        ("AT&amp;T &lt;b&gt;", "AT&T"),
    ],
)
def test_a_word_of_any_script_is_found(library: Library, text: str, query: str) -> None:
    library.arrive("news", "other", "<p>上海 大京学北 something else</p>" if query != "京" else "")
    library.arrive("news", "1", f"<p>{text}</p>")
    library.index()
    assert library.found(query) == ["1"]
    [found] = library.search(query).found
    assert "<mark>" in found.snippet_html


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("blue sky", ["2", "1"]),
        ('"blue sky"', ["1"]),
        ("sky -blue", ["3"]),
        ('sky -"blue sky"', ["3", "2"]),
        ("-blue", ["3"]),
        ("feed:blog", ["3"]),
        ("sky feed:blog", ["3"]),
        ("sky -feed:blog", ["2", "1"]),
        ("sky feed:nothing", []),
        ("after:2026-02-01", ["3", "2"]),
        ("sky before:2026-02", ["1"]),
        ("after:2026-01-10 before:2026-02-10", ["2", "1"]),
        ("after:2026-01-11 before:2026-02-10", ["2"]),
        ("after:2027 sky", []),
        ("before:0001-01-01 sky", []),
        ("after:9999-12-31 sky", []),
        ("after:30d", ["3", "2"]),
        ("", []),
        ("green", []),
    ],
)
def test_the_language_of_queries(library: Library, query: str, found: list[str]) -> None:
    def on(month: int, day: int) -> datetime:
        return datetime(2026, month, day, 12, tzinfo=UTC)

    library.arrive("news", "1", "The blue sky", pub_date=on(1, 10))
    library.arrive("news", "2", "Blue is the sky", pub_date=on(2, 1))
    library.arrive("blog", "3", "A sky", pub_date=on(2, 17))
    library.index()
    assert library.found(query) == found


def test_no_one_finds_what_only_another_subscribes(library: Library) -> None:
    library.arrive("news", "1", "common word")
    library.arrive("secret", "2", "common word, hidden word")
    library.index()
    assert library.found("common") == ["1"]
    assert library.found("hidden") == []
    assert library.found("feed:secret") == []
    assert library.found("-nothing") == ["1"]
    assert library.found("common", order="rank") == ["1"]
    assert library.found("common", user="bob") == ["2", "1"]
    assert library.found("common", user="nobody") == []


def test_the_marks_of_the_index_are_no_words(library: Library) -> None:
    library.arrive("secret", "1", "x")
    library.arrive("news", "2", "\ue000f1 \ue000x")
    library.index()
    for query in ("\ue000f1", "\ue000x", "scope:x", "\ue000y2026"):
        assert library.found(query) in ([], ["2"])
    assert library.found("\ue000y2026") == []


def test_pages_go_on_where_the_last_one_ended_whatever_comes_in_meanwhile(library: Library) -> None:
    for guid in map(str, range(7)):
        library.arrive("news", guid, "word")
    library.index()
    first = library.search("word", limit=3)
    library.arrive("news", "new", "word")
    library.index()
    second = library.search("word", limit=3, key=first.next_key)
    assert [each.item.title for each in second.found] == [f"Title of {guid}" for guid in "321"]
    for limit in (1, 2, 3, 7, 8, 50):
        assert library.found("word", limit=limit) == ["new", *"6543210"]
        assert sorted(library.found("word", limit=limit, order="rank")) == [*"0123456", "new"]


def test_by_rank_a_title_is_more_than_a_mention(library: Library) -> None:
    library.arrive("news", "about", "All of it", title="Jupiter")
    library.arrive("news", "mention", "Some planets, among them Jupiter")
    library.arrive("news", "none", "Saturn")
    library.index()
    assert library.found("jupiter", order="rank") == ["about", "mention"]
    assert library.found("jupiter", order="date") == ["mention", "about"]


def test_a_user_of_hundreds_of_feeds_finds_as_one_of_few(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    for guid in map(str, range(5)):
        library.arrive("news", guid, "word")
        library.arrive("secret", f"s{guid}", "word")
        library.arrive("blog", f"b{guid}", "word rare" if guid == "0" else "word")
    library.index()
    few = [library.found(query, limit=2) for query in ("word", "rare", "-rare", "word feed:news")]
    monkeypatch.setattr("rss_pipeline.features.search.finding.MARKED_FEEDS", 0)
    assert [library.found(query, limit=2) for query in ("word", "rare", "-rare", "word feed:news")] == few
    assert len(few[0]) == 10


def test_a_snippet_is_escaped_and_shows_the_hits(library: Library) -> None:
    html = f"<p>{'word ' * 200}&lt;script&gt;alert(1)&lt;/script&gt; the Hit, and & more {'end ' * 200}</p>"
    library.arrive("news", "1", html, title="<x>Hit</x> & run")
    library.index()
    [found] = library.search("hit").found
    assert found.title_html == "&lt;x&gt;<mark>Hit</mark>&lt;/x&gt; &amp; run"
    assert "&lt;script&gt;alert(1)&lt;/script&gt; the <mark>Hit</mark>, and &amp; more" in found.snippet_html
    assert "<script" not in found.snippet_html
    assert len(found.snippet_html) < 400


def test_a_snippet_shows_the_place_with_the_most_hits(library: Library) -> None:
    library.arrive("news", "1", f"one {'x ' * 500} one two three {'x ' * 500} three")
    library.index()
    [found] = library.search("one two three").found
    assert "<mark>one</mark> <mark>two</mark> <mark>three</mark>" in found.snippet_html


def test_a_feed_is_named_by_the_users_own_title_or_its_id(library: Library) -> None:
    library.arrive("news", "1", "word")
    library.arrive("blog", "2", "word")
    library.database.query("UPDATE subscriptions SET title = 'Éditions de Paris' WHERE feed_id = 'blog'")
    library.index()
    assert library.found('feed:"editions de"') == ["2"]
    assert library.found("feed:NEWS") == ["1"]
    page = library.search("word feed:unknown")
    assert page.found == ()
    assert page.left_out == ("None of your feeds has “unknown” in its title.",)


@pytest.mark.parametrize("key", ["", "x", "1; DROP", "-1", "1_2", "9" * 17, "1_nan_1"])
def test_a_key_that_is_none_of_ours_is_refused(library: Library, key: str) -> None:
    for order in ("date", "rank"):
        with pytest.raises(ValueError, match="the page before"):
            library.search("word", key=key, order=order)
