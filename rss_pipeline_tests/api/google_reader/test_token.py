"""T, the token of writes: where it opens a call, and where it does not."""

from collections.abc import Iterator

import httpx
import pytest

from rss_pipeline_tests.api.google_reader.phone import Phone
from rss_pipeline_tests.support.reader import Reader

LOGIN = "/greader/accounts/ClientLogin"
INFO = "/greader/reader/api/0/user-info"
TOKEN = "/greader/reader/api/0/token"
CONTENTS = "/greader/reader/api/0/stream/items/contents"


@pytest.fixture
def phone(reader: Reader) -> Phone:
    return Phone.of_new_user(reader, "ann")


@pytest.fixture
def anybody(reader: Reader) -> Iterator[httpx.Client]:
    with reader.client() as client:
        yield client


def test_t_can_go_into_a_form_as_it_is(phone: Phone, anybody: httpx.Client) -> None:
    """newsboat and Liferea send it unescaped, with its newline if it has one."""
    token = phone.get("token").text
    assert token == token.strip()
    assert not set(token) & set("+&=%# ")


def test_liferea_gets_contents_by_t_alone(phone: Phone, anybody: httpx.Client) -> None:
    body = f"output=json&mediaRss=true&T={phone.auth}&i=1763822000123456"
    answer = anybody.post(CONTENTS, content=body)
    assert answer.status_code == 200
    assert answer.json()["items"] == []


def test_t_alone_opens_no_other_call_and_not_in_an_address(phone: Phone, anybody: httpx.Client) -> None:
    assert anybody.get(INFO, params={"T": phone.auth}).status_code == 401
    assert anybody.post(CONTENTS, params={"T": phone.auth, "i": "1"}).status_code == 401
    edit = {"T": phone.auth, "i": "1", "a": "user/-/state/com.google/read"}
    assert anybody.post("/greader/reader/api/0/edit-tag", data=edit).status_code == 401


def test_a_wrong_t_alone_says_so(anybody: httpx.Client) -> None:
    answer = anybody.post(CONTENTS, data={"T": "0" * 32 + "/" + "x" * 43, "i": "1"})
    assert answer.status_code == 401
    assert answer.headers["x-reader-google-bad-token"] == "true"


@pytest.mark.parametrize("t", [None, "", "null", "of another session"])
def test_t_beside_the_header_is_not_needed(phone: Phone, t: str | None) -> None:
    fields = {"i": "1763822000123456", "a": "user/-/state/com.google/read"} | ({} if t is None else {"T": t})
    assert phone.post("edit-tag", fields).text == "OK"
