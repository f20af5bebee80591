"""Contents of many items while the store fails: the client sees an error, never a part that looks whole."""

import httpx
import pytest

from rss_pipeline.api.google_reader.listings import WHOLE_BYTES
from rss_pipeline_tests.api.google_reader.conftest import Two
from rss_pipeline_tests.api.google_reader.phone import API, arrive
from rss_pipeline_tests.support.counted import failing
from rss_pipeline_tests.support.reader import HOST, served
from rss_pipeline_tests.support.waiting import PATIENCE

pytestmark = pytest.mark.slow

CONTENTS = f"{API}stream/items/contents"
ITEMS = 450


def fields(numbers: list[int]) -> dict[str, list[str]]:
    return {"i": [str(number) for number in numbers]}


def test_a_store_that_fails_after_the_first_items_is_an_error_in_their_place(two: Two) -> None:
    numbers = arrive(two.database, "a", *(f"m{n}" for n in range(ITEMS)))
    reader, database = failing(two.ann.reader)
    with reader.client(authorization=f"GoogleLogin auth={two.ann.auth}") as client:
        assert len(client.post(CONTENTS, data=fields(numbers)).json()["items"]) == ITEMS
        database.fails_at = database.requests + 2
        answer = client.post(CONTENTS, data=fields(numbers))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["kind"] == "store_unavailable"


def test_contents_of_usual_size_are_compressed_however_many(two: Two) -> None:
    numbers = arrive(two.database, "a", *(f"m{n}" for n in range(ITEMS)), content_html="<p>Text</p>" * 200)
    answer = two.ann.post("stream/items/contents", fields(numbers))
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.json()["items"]) == ITEMS


def test_a_large_answer_is_compressed_piece_by_piece(two: Two) -> None:
    content = f"<p>{'text ' * 4_000}</p>"
    numbers = [
        number
        for start in range(0, ITEMS, 90)
        for number in arrive(two.database, "a", *(f"{start + n}" for n in range(90)), content_html=content)
    ]
    numbers.reverse()
    for _ in range(2):
        answer = two.ann.post("stream/items/contents", fields(numbers))
        assert answer.headers["content-encoding"] == "gzip"
        assert len(answer.content) > WHOLE_BYTES
        assert [int(item["timestampUsec"]) for item in answer.json()["items"]] == numbers


def test_a_large_answer_that_cannot_be_completed_has_no_end(
    two: Two, caplog: pytest.LogCaptureFixture
) -> None:
    content = f"<p>{'text ' * 4_000}</p>"
    numbers = [
        number
        for start in range(0, ITEMS, 90)
        for number in arrive(two.database, "a", *(f"{start + n}" for n in range(90)), content_html=content)
    ]
    reader, database = failing(two.ann.reader)
    headers = {"Authorization": f"GoogleLogin auth={two.ann.auth}", "Host": HOST}
    with (
        served(reader.app) as found,
        httpx.Client(base_url=f"http://127.0.0.1:{found.port}", headers=headers, timeout=PATIENCE) as client,
    ):

        def items() -> int:
            return len(client.post(CONTENTS, data=fields(numbers)).json()["items"])

        assert items() == ITEMS
        before = database.requests
        assert items() == ITEMS
        database.fails_at = database.requests + (database.requests - before)
        with pytest.raises(httpx.RemoteProtocolError):
            items()
        database.fails_at = None
        assert items() == ITEMS
    [line] = [each for each in caplog.records if each.name == "rss_pipeline.api.answers"]
    assert line.getMessage() == f"POST {CONTENTS} was broken off: database is locked"
    assert [each.exc_info for each in caplog.records if each.exc_info] == []
