"""The Referer of an image request: none, and after a refusal the page of its item, once; no other one."""

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
def test_a_refused_image_is_requested_once_more_from_the_page_of_its_item(
    refusal: int, server: FeedServer, tmp_path: Path
) -> None:
    answer = outcome(server, tmp_path, wants(SITE, refusal=refusal), PAGE + "#top")
    assert isinstance(answer, KeptImage)
    assert sent(server) == [None, SITE]
    server.forget()
    answer = outcome(server, tmp_path, wants("nothing", refusal=refusal), PAGE)
    assert sent(server) == [None, SITE]
    assert failure(answer, "http_status").message == (
        f"{refusal} {'Forbidden' if refusal == 403 else 'Unauthorized'}: {A} refuses the image, requested"
        " without Referer and with the page of its item as Referer."
    )


def test_a_host_of_the_page_itself_gets_its_whole_address_as_from_a_browser(
    server: FeedServer, tmp_path: Path
) -> None:
    site = f"{A}:{server.port}"
    outcome(server, tmp_path, wants(), f"http://me:secret@{site}/post?a=é#x")
    outcome(server, tmp_path, wants(), f"http://{site}/{'x' * 5000}")
    assert sent(server)[1::2] == [f"http://{site}/post?a=%C3%A9", f"http://{site}/"]


@pytest.mark.parametrize(
    "link", [None, "https://blog.example/over-tls", "nonsense", "mailto:a@b.example", "http://[/"]
)
def test_where_there_is_no_page_to_name_nothing_is_invented(
    link: str | None, server: FeedServer, tmp_path: Path
) -> None:
    answer = outcome(server, tmp_path, wants(), link)
    assert sent(server) == [None]
    assert failure(answer, "http_status").message.endswith("refuses the image, requested without Referer.")


def test_no_password_and_no_fragment_goes_out(server: FeedServer, tmp_path: Path) -> None:
    outcome(server, tmp_path, wants(), "http://me:secret@blog.example:81/é?x=y#x")
    assert sent(server)[1] == "http://blog.example:81/"


def test_a_challenge_and_another_answer_end_it(server: FeedServer, tmp_path: Path) -> None:
    challenge = Answer(status=403, headers={"cf-mitigated": "challenge"})
    failure(outcome(server, tmp_path, challenge, PAGE), "challenge")
    assert sent(server) == [None]
    server.forget()
    url = server.route(A, "/other", Answer(status=403), Answer(status=404))
    [answer] = fetch([url], tmp_path, item_link=PAGE)
    assert failure(answer, "http_status").status == 404
    assert sent(server) == [None, SITE]


def test_the_second_request_waits_its_turn(server: FeedServer, tmp_path: Path) -> None:
    pace = InstantPace()
    outcome(server, tmp_path, wants(), PAGE, pace=pace, connections_per_host=1)
    assert pace.slept == [pytest.approx(0.2)]


def test_the_page_is_named_over_redirects_and_no_further_host_gets_two_requests(
    server: FeedServer, tmp_path: Path
) -> None:
    target = server.route(B, "/image", wants(SITE))
    referers = Referers()
    led = Answer(status=302, headers={"Location": target})
    assert isinstance(outcome(server, tmp_path, led, PAGE, referers=referers), KeptImage)
    assert (sent(server), sent(server, B)) == ([None], [None, SITE])
    assert referers.changes() == {A: True, B: True}
    server.forget()
    assert isinstance(outcome(server, tmp_path, led, PAGE, referers=Referers([A])), KeptImage)
    assert (sent(server), sent(server, B)) == ([SITE], [SITE])
    server.forget()
    back = server.route(B, "/image", Answer(status=403), Answer(status=302, headers={"Location": "/third"}))
    server.route(B, "/third", Answer(status=403))
    [answer] = fetch([back], tmp_path, item_link=PAGE)
    failure(answer, "http_status")
    assert sent(server, B) == [None, SITE, SITE]


def test_what_a_host_needed_comes_first_for_its_other_images_until_it_needs_something_else(
    server: FeedServer, tmp_path: Path
) -> None:
    urls = [server.route(A, f"/{n}", wants(SITE)) for n in range(4)]
    referers = Referers()
    fetch(urls, tmp_path, item_link=PAGE, referers=referers, connections_per_host=1)
    assert sent(server).count(None) <= 2
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


def test_a_host_that_refuses_everybody_does_not_get_two_requests_for_each_of_its_images(
    server: FeedServer, tmp_path: Path
) -> None:
    urls = [server.route(A, f"/{n}", wants()) for n in range(20)]
    fetch(urls, tmp_path, item_link=PAGE, connections_per_host=1)
    assert 20 <= len(server.asked(A)) <= 25
