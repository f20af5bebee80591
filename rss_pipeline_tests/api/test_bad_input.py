"""Bodies that no client means, at the addresses that take the most, sent to a real server: each is refused
with the reason, changes nothing, and keeps nobody else waiting."""

import json
import threading
import time
from collections.abc import Callable

import httpx
import pytest

from rss_pipeline.api.request_values import ADDRESS_CHARACTERS
from rss_pipeline_tests.api.google_reader.phone import Phone
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.reader import Reader
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
XML = {"Content-Type": "text/x-opml"}
JSON = {"Content-Type": "application/json"}
BOMB = (
    b'<!DOCTYPE opml [<!ENTITY a0 "ha">'
    + b"".join(b'<!ENTITY a%d "&a%d;&a%d;">' % (n, n - 1, n - 1) for n in range(1, 40))
    + b"]><opml version='2.0'><body><outline xmlUrl='https://b.example/f' text='&a39;'/></body></opml>"
)
BAD: dict[str, tuple[str, bytes, dict[str, str], int | tuple[int, ...]]] = {
    "20 MB to a JSON address": ("/api/items/mark", b"x" * 20_000_000, JSON, 413),
    "20 MB to edit-tag": ("edit-tag", b"i=" + b"1" * 20_000_000, FORM, 413),
    "100,000 fields": ("edit-tag", b"&".join(b"x%d=1" % n for n in range(100_000)), FORM, 413),
    "100,000 empty fields": ("edit-tag", b"&" * 100_000, FORM, 413),
    "100,000 ids": ("edit-tag", b"a=user/-/state/com.google/read" + b"&i=1" * 100_000, FORM, 413),
    "100,000 members": (
        "/api/items/mark",
        json.dumps({"ids": ["1"], "is_read": True} | {f"x{n}": 1 for n in range(5_000)}).encode()[:64_000],
        JSON,
        (400, 422),
    ),
    "broken UTF-8 in JSON": ("/api/items/mark", b'{"ids": ["\xff\xfe"], "is_read": true}', JSON, (400, 422)),
    "broken UTF-8 in a form": ("edit-tag", b"i=%FF&a=%C3%28", FORM, 400),
    "nested JSON": ("/api/items/mark", b"[" * 60_000, JSON, (400, 422)),
    "a URL of 10 KB": (
        "/api/feeds",
        json.dumps({"url": f"https://x.example/{'y' * 10_240}"}).encode(),
        JSON,
        422,
    ),
    "a URL of 10 KB for quickadd": (
        "subscription/quickadd",
        b"quickadd=https://x.example/" + b"y" * 10_240,
        FORM,
        400,
    ),
    "a number of 10,000 digits": (
        "/api/feeds/a/mark-read",
        b'{"up_to": ' + b"9" * 10_000 + b"}",
        JSON,
        (400, 422),
    ),
}
if "opml" in INSTALLED:
    BAD |= {
        "20 MB to a list of feeds": ("/api/import/opml", b"<opml>" + b" " * 20_000_000, XML, 413),
        "broken UTF-8 in a list": ("/api/import/opml", b"<opml><body>\xff\xfe</body></opml>", XML, 422),
        "nested outlines": ("/api/import/opml", b"<opml><body>" + b"<outline>" * 90_000, XML, 422),
        "entities in a list": ("/api/import/opml", BOMB, XML, 422),
    }


@pytest.mark.slow
def test_bad_bodies_are_refused_and_others_are_served_meanwhile(reader: Reader) -> None:
    user = ann(reader, a=3)
    phone = Phone.of_new_user(reader, "phone")
    before = user.client.get("/api/feeds").json()
    tokens = {"api": f"Bearer {user.token}", "greader": f"GoogleLogin auth={phone.auth}"}
    over = threading.Event()
    waits: list[float] = []

    with reader.served() as client:

        def others() -> None:
            with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=PATIENCE) as own:
                while not over.is_set() or not waits:
                    began = time.monotonic()
                    answer = own.get("/api/feeds", headers={"Authorization": tokens["api"]})
                    assert answer.status_code == 200
                    waits.append(time.monotonic() - began)

        failed: list[BaseException] = []
        thread = threading.Thread(target=_kept(others, failed))
        thread.start()
        found = {}
        for name, (path, body, headers, _) in BAD.items():
            api = "api" if path.startswith("/") else "greader"
            address = path if api == "api" else f"/greader/reader/api/0/{path}"
            began = time.monotonic()
            answer = client.post(
                address, content=body, headers=headers | {"Authorization": tokens[api]}, timeout=PATIENCE
            )
            assert time.monotonic() - began < PROMPT, name
            assert answer.text, name
            if api == "api":
                assert answer.headers["content-type"] == "application/problem+json", name
            found[name] = answer.status_code
        over.set()
        thread.join()
    assert failed == []
    expected = {
        name: status if isinstance(status, tuple) else (status,) for name, (*_, status) in BAD.items()
    }
    assert {name: status for name, status in found.items() if status not in expected[name]} == {}
    assert max(waits) < PROMPT
    assert user.client.get("/api/feeds").json() == before


def _kept(work: Callable[[], None], failed: list[BaseException]) -> Callable[[], None]:
    """`work` for a thread, with what it raises kept."""

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - compared by the test
            failed.append(error)

    return run


def test_an_address_may_have_its_most_characters_and_no_more(reader: Reader) -> None:
    user = ann(reader)
    url = "https://x.example/".ljust(ADDRESS_CHARACTERS, "y")
    assert user.client.post("/api/feeds", json={"url": url}).status_code == 202
    assert user.client.post("/api/feeds", json={"url": f"{url}y"}).status_code == 422


def test_an_id_of_another_user_s_feed_or_item_is_not_found_by_any_write(reader: Reader) -> None:
    user = ann(reader, a=1)
    [item] = user.client.get("/api/items").json()["items"]
    register(reader.database, spec("a"), spec("b"))
    bob = reader.user("bob")
    subscribe(reader.database, bob.id, "b")
    for path, given in (
        ("/api/feeds/a/mark-read", {"up_to": item["cursor"]}),
        ("/api/feeds/a/refresh", None),
        ("/api/items/mark", {"ids": [item["id"]], "is_starred": True}),
    ):
        answer = bob.client.post(path, json=given)
        assert (answer.status_code, answer.json()["kind"]) == (404, "not_found"), path
    assert user.client.get("/api/items").json()["items"] == [item]
