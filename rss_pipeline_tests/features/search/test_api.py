"""GET /api/search: what a client gets. What is found is tested in pipeline/search."""

import logging
import os
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import httpx
import pytest

from rss_pipeline.api.app import create_app
from rss_pipeline.features.search.api import IndexReaders
from rss_pipeline.features.search.index_build import bring_up_to_date
from rss_pipeline.features.search.index_file import index_path, open_to_write, throw_away
from rss_pipeline_tests.api.reading import ann, subscribed
from rss_pipeline_tests.storage.values import item, register, spec, visit
from rss_pipeline_tests.support.reader import HOST, Reader, User, served
from rss_pipeline_tests.support.waiting import PATIENCE


def index(reader: Reader) -> None:
    with open_to_write(index_path(reader.settings)) as file:
        bring_up_to_date(file, reader.database, now=reader.clock())


def titles(answer: Any) -> list[str]:
    return [each["title"] for each in answer.json()["items"]]


def read_all(user: User, **query: str | int) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        params = query if cursor is None else {**query, "cursor": cursor}
        answer = user.client.get("/api/search", params=params)
        assert answer.status_code == 200
        found += titles(answer)
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            return found


def test_items_are_found_with_their_states_and_snippets(reader: Reader) -> None:
    user = ann(reader, a=2)
    visit(reader.database, [item("x", title="A & <b>", content_html="<p>東京 & <i>x</i></p>")], id="a")
    index(reader)
    answer = user.client.get("/api/search", params={"q": "東京"})
    assert answer.status_code == 200
    [found] = answer.json()["items"]
    of_list = user.client.get("/api/items").json()["items"][0]
    assert found.pop("title_html") == "A &amp; &lt;b&gt;"
    assert found.pop("snippet_html") == "<mark>東京</mark> &amp; x"
    assert found.pop("others") == []
    assert found == {name: value for name, value in of_list.items() if name != "html"}
    assert (answer.json()["next_cursor"], answer.json()["left_out"]) == (None, [])


def test_all_pages_together_are_everything_in_both_orders(reader: Reader) -> None:
    user = ann(reader, a=7, b=4)
    index(reader)
    by_date = read_all(user, q="title", limit=100)
    assert len(by_date) == 11
    for limit in (1, 3, 11):
        assert read_all(user, q="title", limit=limit) == by_date
        assert sorted(read_all(user, q="title", limit=limit, order="rank")) == sorted(by_date)


def test_a_cursor_that_is_none_is_an_invalid_request(reader: Reader) -> None:
    user = ann(reader, a=1)
    index(reader)
    for cursor in ("", "x", "1_2_3", "٣"):
        answer = user.client.get("/api/search", params={"q": "title", "cursor": cursor})
        assert (answer.status_code, answer.json()["kind"]) == (422, "invalid_request")


@pytest.mark.parametrize(
    "text",
    ['"' * 10_000, "word " * 2_000, "東京" * 1_700, "author:", "\0\ud7ff\x1f", "()*^{}:", "-" * 10_000],
)
def test_no_text_is_an_error_and_what_was_left_out_is_said(reader: Reader, text: str) -> None:
    user = ann(reader, a=1)
    index(reader)
    with reader.served() as client:
        client.headers["Authorization"] = f"Bearer {user.token}"
        answer = client.get("/api/search", params={"q": text})
    assert answer.status_code == 200
    assert answer.json()["items"] == []
    assert len(text) < 100 or answer.json()["left_out"]


def test_no_one_sees_what_only_another_subscribes(reader: Reader) -> None:
    user = ann(reader, a=2)
    register(reader.database, spec("a"), spec("hidden"))
    visit(reader.database, [item("s", title="Title of hidden")], id="hidden")
    index(reader)
    assert len(read_all(user, q="title")) == 2
    for query in ("hidden", "feed:hidden", "-nothing hidden", "author:hidden"):
        assert read_all(user, q=query) == []
        assert read_all(user, q=query, order="rank") == []


def test_without_an_index_a_problem_says_so(reader: Reader, caplog: pytest.LogCaptureFixture) -> None:
    user = ann(reader, a=1)
    with caplog.at_level(logging.ERROR):
        answer = user.client.get("/api/search", params={"q": "title"})
    assert (answer.status_code, answer.json()["kind"]) == (503, "search_unavailable")
    assert answer.headers["Retry-After"]
    assert str(reader.settings.home) not in answer.text
    index(reader)
    assert len(read_all(user, q="title")) == 1
    throw_away(index_path(reader.settings))
    index(reader)
    assert len(read_all(user, q="title")) == 1
    assert caplog.records == []


def test_a_search_right_after_the_start_waits_for_the_first_index_and_only_two_of_a_user_do(
    reader: Reader,
) -> None:
    first, second = ann(reader, a=1), reader.user("bob")
    third = subscribed(reader, reader.user("cid"), b=1)
    readers = IndexReaders(index_path(reader.settings), first_until=time.monotonic() + PATIENCE)
    app = create_app(replace(reader.stores, objects_of_features={IndexReaders: readers}))
    with served(app) as found, ThreadPoolExecutor(6) as threads:
        url = f"http://127.0.0.1:{found.port}/api/search?q=title"

        def search(user: User) -> httpx.Response:
            headers = {"Authorization": f"Bearer {user.token}", "Host": HOST}
            return httpx.get(url, headers=headers, timeout=2 * PATIENCE)

        waiting = []
        for user in (first, second):
            searches = [threads.submit(search, user) for _ in range(3)]
            # Two wait, the third is refused.
            [refused] = wait(searches, PATIENCE, FIRST_COMPLETED).done
            answer = refused.result()
            assert (answer.status_code, answer.json()["kind"]) == (429, "too_many_requests")
            assert int(answer.headers["Retry-After"]) > 0
            waiting += [each for each in searches if each is not refused]
        # All places are taken: who has none waiting is answered at once.
        assert threads.submit(search, third).result().status_code == 503
        index(reader)
        assert [each.result().status_code for each in waiting] == [200] * 4


def test_an_index_that_is_damaged_while_it_is_used_is_a_problem(reader: Reader) -> None:
    user = ann(reader, a=1)
    index(reader)
    assert len(read_all(user, q="title")) == 1
    path = index_path(reader.settings)
    throw_away(path)
    path.write_bytes(b"no database" * 1_000)
    os.utime(reader.settings.database_path, (1, 1))
    before = reader.settings.database_path.stat().st_mtime_ns
    answer = user.client.get("/api/search", params={"q": "title"})
    assert (answer.status_code, answer.json()["kind"]) == (503, "search_unavailable")
    changed = reader.settings.database_path.stat().st_mtime_ns
    assert not path.exists(), "it is built where the database has changed"
    assert changed > before
    index(reader)
    assert len(read_all(user, q="title")) == 1


def test_a_client_that_has_the_answer_gets_304(reader: Reader) -> None:
    user = ann(reader, a=1)
    index(reader)
    first = user.client.get("/api/search", params={"q": "title"})
    again = user.client.get(
        "/api/search", params={"q": "title"}, headers={"If-None-Match": first.headers["ETag"]}
    )
    assert again.status_code == 304
