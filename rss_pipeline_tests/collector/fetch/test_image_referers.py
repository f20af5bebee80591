"""The Referer of an image request: none, and at the attempt after a refusal the page of its item."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.fetch.image_visit import KeptImage, Referers
from rss_pipeline_tests.collector.fetch.images_at_hosts import GOOD, A, B, failure, fetch
from rss_pipeline_tests.collector.fetch.rounds import InstantPace
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

PAGE = "http://blog.example/post?a=1"
SITE = "http://blog.example/"


def wants(*referers: str | None, refusal: int = 403) -> Callable[[Request], Answer]:
    return lambda request: (
        GOOD if request.headers.get("referer") in referers else Answer(status=refusal, body=b"no")
    )


def sent(server: FeedServer, host: str = A) -> list[str | None]:
    return [request.headers.get("referer") for request in server.asked(host)]


def outcome(server: FeedServer, spool: Path, route: Any, item_link: str | None, **more: Any) -> Any:
    [outcome] = fetch([server.route(A, "/image", route)], spool, item_link=item_link, **more)
    return outcome


@pytest.mark.parametrize("refusal", [401, 403])
def test_a_refused_image_is_requested_from_the_page_of_its_item_at_its_next_attempt(
    refusal: int, server: FeedServer, tmp_path: Path
) -> None:
    route, name = wants(SITE, refusal=refusal), "Forbidden" if refusal == 403 else "Unauthorized"
    for attempts, how in enumerate(["without Referer", None, "without Referer"]):
        answer = outcome(server, tmp_path, route, PAGE + "#top", attempts=attempts)
        if how is None:
            assert isinstance(answer, KeptImage)
        else:
            message = f"{refusal} {name}: {A} refuses the image, requested {how}."
            assert failure(answer, "http_status").message == message
    assert sent(server) == [None, SITE, None]


def test_a_host_of_the_page_itself_gets_its_whole_address_as_from_a_browser(
    server: FeedServer, tmp_path: Path
) -> None:
    site = f"{A}:{server.port}"
    outcome(server, tmp_path, wants(), f"http://me:secret@{site}/post?a=é#x", attempts=1)
    outcome(server, tmp_path, wants(), f"http://{site}/{'x' * 5000}", attempts=1)
    assert sent(server) == [f"http://{site}/post?a=%C3%A9", f"http://{site}/"]


@pytest.mark.parametrize(
    "link", [None, "https://blog.example/over-tls", "nonsense", "mailto:a@b.example", "http://[/"]
)
def test_where_there_is_no_page_to_name_nothing_is_invented(
    link: str | None, server: FeedServer, tmp_path: Path
) -> None:
    answer = outcome(server, tmp_path, wants(), link, attempts=1)
    assert sent(server) == [None]
    assert failure(answer, "http_status").message.endswith("refuses the image, requested without Referer.")


def test_no_password_and_no_fragment_goes_out(server: FeedServer, tmp_path: Path) -> None:
    outcome(server, tmp_path, wants(), "http://me:secret@blog.example:81/é?x=y#x", attempts=1)
    assert sent(server)[0] == "http://blog.example:81/"


def test_the_page_is_named_over_redirects_and_what_is_learned_there_holds_for_both_hosts(
    server: FeedServer, tmp_path: Path
) -> None:
    target = server.route(B, "/image", wants(SITE))
    referers = Referers()
    led = Answer(status=302, headers={"Location": target})
    failure(outcome(server, tmp_path, led, PAGE, referers=referers), "http_status")
    assert isinstance(outcome(server, tmp_path, led, PAGE, referers=referers, attempts=1), KeptImage)
    assert (sent(server), sent(server, B)) == ([None, SITE], [None, SITE])
    assert referers.changes() == {A: True, B: True}
    server.forget()
    assert isinstance(outcome(server, tmp_path, led, PAGE, referers=Referers([A])), KeptImage)
    assert (sent(server), sent(server, B)) == ([SITE], [SITE])


@pytest.mark.parametrize(("wait", "is_kept"), [(5, True), (600, False)])
def test_a_redirect_is_followed_after_its_wait_or_not_at_all(
    wait: int, is_kept: bool, server: FeedServer, tmp_path: Path
) -> None:
    headers = {"Location": server.route(B, "/image", GOOD), "Retry-After": str(wait)}
    pace = InstantPace()
    answer = outcome(server, tmp_path, Answer(status=302, headers=headers), PAGE, pace=pace)
    assert isinstance(answer, KeptImage) is is_kept
    assert (wait in pace.slept) is is_kept
    if not is_kept:
        assert failure(answer, "redirect").retry_after == wait
    assert len(server.asked(B)) == is_kept


def test_what_a_host_needed_comes_first_for_its_other_images_until_it_needs_something_else(
    server: FeedServer, tmp_path: Path
) -> None:
    urls = [server.route(A, f"/{n}", wants(SITE)) for n in range(4)]
    referers = Referers()
    fetch(urls, tmp_path, item_link=PAGE, referers=referers, connections_per_host=1)
    assert sent(server).count(None) <= 2
    assert len(sent(server)) == 4, "none is requested twice"
    assert referers.changes() == {A: True}
    assert referers.changes() == {}
    server.forget()
    urls = [server.route(A, f"/{n}", wants(None)) for n in range(4)]
    fetch(urls, tmp_path, item_link=PAGE, referers=referers, connections_per_host=1)
    assert sent(server).count(SITE) <= 2
    assert referers.changes() == {A: False}
    server.forget()
    # An item without a page has none to name, whatever its host needs.
    fetch(urls[:1], tmp_path, referers=Referers([A]))
    assert sent(server) == [None]


def test_a_host_that_refuses_everybody_gets_one_request_for_each_of_its_images(
    server: FeedServer, tmp_path: Path
) -> None:
    urls = [server.route(A, f"/{n}", wants()) for n in range(20)]
    fetch(urls, tmp_path, item_link=PAGE, connections_per_host=1)
    assert len(server.asked(A)) == 20
