"""A first start without network, in whole runs: no feed is blamed, and all come back in five minutes.

How such a round is recognized is in collector/schedule/test_our_outage.py.
"""

import socket
from collections.abc import Iterable, Sequence
from datetime import timedelta

import httpcore
import pytest

from rss_pipeline.collector.http.guarded_transport import Network
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import NothingReached
from rss_pipeline.storage.installation import PollTrouble, poll_trouble, poll_trouble_of
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

MINUTE = timedelta(minutes=1)


async def no_name_server(host: str, port: int) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


async def a_name_server(host: str, port: int) -> Sequence[str]:
    return ["1.1.1.1"]


class Refused(httpcore.AsyncNetworkBackend):
    """A dialer that reaches no one, and sends nothing."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError


OFFLINE = Network(no_name_server, Refused())
DEAD_HOST = Network(a_name_server, Refused())


def public(pipeline: Pipeline, *ids: str) -> list[str]:
    return [pipeline.register(f"http://{id}.example/feed", id, allow_private=False) for id in ids]


def failures(pipeline: Pipeline, *ids: str) -> list[int]:
    return [int(pipeline.feed(id)["consecutive_failures"]) for id in ids]


def test_a_first_start_offline_counts_no_failure_and_comes_back_in_five_minutes(place: Pipeline) -> None:
    ids = public(place, "a", "b", "c")
    began = place.clock.now.replace(microsecond=0) + timedelta(seconds=1)
    for _ in range(3):
        (round_,) = place.try_poll(network=OFFLINE)
        assert round_.error is not None
        assert round_.error.startswith("fetch: No feed could be reached. Is this machine online? No failure")
        assert failures(place, *ids) == [0, 0, 0]
        feed = place.feed("a")
        later = instant(place.clock.now.replace(microsecond=0) + 5 * MINUTE)
        assert (feed["next_fetch_at"], feed["last_error"], feed["unclosed_claims"]) == (later, None, 0)
        assert feed["schedule_reason"] == "no feed could be reached: 5 min"
        assert met(place) == PollTrouble(kind="offline", since=began)
        place.clock.turn(minutes=5)
    assert place.rows("SELECT token FROM leases") == []
    with FeedServer() as server:
        place.register(server.route("127.0.0.2", "/feed", Answer(body=rss("1"))), "up")
        place.poll()
    assert met(place) is None


def met(pipeline: Pipeline) -> PollTrouble | None:
    return poll_trouble_of(pipeline.database.batch([poll_trouble()])[0])


def test_a_first_refresh_by_hand_offline_says_the_same(pipeline: Pipeline) -> None:
    ids = public(pipeline, "a", "b", "c")
    pipeline.sync()
    with pytest.raises(NothingReached, match=r"No feed could be reached\. Is this machine online\? No"):
        pipeline.refresh(*ids, network=OFFLINE)
    assert failures(pipeline, *ids) == [0, 0, 0]


@pytest.mark.slow
def test_one_name_that_does_not_resolve_is_in_doubt_for_an_hour_and_then_fails(pipeline: Pipeline) -> None:
    public(pipeline, "a")
    doubtful = 0
    for _ in range(13):
        (round_,) = pipeline.try_poll(network=OFFLINE)
        if round_.error is not None:
            assert "Is this machine online? Or is the address misspelt? No failure" in round_.error
            doubtful += 1
        pipeline.clock.turn(minutes=5)
    assert doubtful == 12
    assert (failures(pipeline, "a"), pipeline.feed("a")["last_error_kind"]) == ([1], "dns")


def test_a_dead_host_fails_at_once_if_its_name_resolves(pipeline: Pipeline) -> None:
    public(pipeline, "a")
    pipeline.poll(network=DEAD_HOST)
    assert (failures(pipeline, "a"), pipeline.feed("a")["last_error_kind"]) == ([1], "connect")


def test_a_host_that_answers_shows_that_the_others_are_down_now_and_later(pipeline: Pipeline) -> None:
    ids = public(pipeline, "a", "b", "c")
    with FeedServer() as server:
        pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("1"))), "up", interval="30m")
        pipeline.poll(network=Network(no_name_server))
    assert failures(pipeline, *ids, "up") == [1, 1, 1, 0]
    pipeline.clock.turn(hours=1)
    pipeline.poll(network=OFFLINE)
    assert failures(pipeline, *ids, "up") == [2, 2, 2, 1]


def test_a_server_on_this_machine_that_is_down_is_a_failing_feed(pipeline: Pipeline) -> None:
    with FeedServer() as gone:
        pipeline.register(gone.route("127.0.0.2", "/feed", Answer(body=rss("1"))), "here")
    pipeline.poll()
    assert failures(pipeline, "here") == [1]
