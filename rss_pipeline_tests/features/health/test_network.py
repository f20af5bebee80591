"""The network as `doctor` checks it. The look-ups are replaced: a name server is not ours to stop."""

import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.features.health.doctor import HOSTS, HasRoute, check_network, examine, has_route
from rss_pipeline.settings import Settings
from rss_pipeline_tests.support.healthy_home import healthy_home
from rss_pipeline_tests.support.pipeline import NOON

SETTINGS = Settings(home=Path("/nowhere"), feeds_file=Path("/nowhere/feeds.yaml"), user_agent="tests")


def specs(*hosts: str, **options: Any) -> list[FeedSpec]:
    return [FeedSpec(url=f"http://{host}/", id=host, host=host, **options) for host in hosts]


class Names:
    """A name server that knows some names, and the names that it was given."""

    def __init__(self, *known: str) -> None:
        self.known = known
        self.asked: list[str] = []

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return ["127.0.0.1"]


def test_one_host_of_a_feed_that_resolves_is_enough() -> None:
    found = check_network(specs("a.example", "b.example"), SETTINGS, resolve=Names("b.example"))
    assert (found.state, found.found) == ("ok", "b.example resolves, and there is a route to it")


def test_no_host_that_resolves_is_a_failure_that_says_what_to_do() -> None:
    names = Names()
    found = check_network(specs(*(f"{n}.example" for n in range(40))), SETTINGS, resolve=names)
    assert (found.state, found.found) == (
        "failure",
        f"no host of a feed resolves (0.example, 1.example, 2.example and {HOSTS - 3} more)",
    )
    assert "Connect this machine to the network" in found.fix
    assert sorted(names.asked) == sorted(f"{n}.example" for n in range(HOSTS))


def test_one_or_two_names_beside_feeds_of_our_own_or_a_route_are_misspelt() -> None:
    misspelt, own = specs("blgo.example"), specs("nas", allow_private=True)
    cases: list[tuple[list[FeedSpec], HasRoute]] = [
        ([*misspelt, *own], lambda _: False),
        (misspelt, lambda _: True),
    ]
    for feeds, route in cases:
        found = check_network(feeds, SETTINGS, resolve=Names(), has_route=route)
        assert (found.state, found.found) == ("warning", "blgo.example does not resolve")
        assert found.fix.startswith("Correct the address in feeds.yaml")
    alone = check_network(misspelt, SETTINGS, resolve=Names(), has_route=lambda _: False)
    assert "Connect this machine to the network" in alone.fix


def test_a_name_server_that_gives_no_answer_does_not_hold_it_up() -> None:
    over = threading.Event()

    def silent(host: str) -> list[str]:
        over.wait()
        return ["127.0.0.1"]

    found = check_network(
        specs("a.example"), SETTINGS, resolve=silent, has_route=lambda _: False, seconds=0.05
    )
    assert found.state == "failure"
    over.set()


def test_a_name_that_resolves_without_a_route_is_a_failure() -> None:
    found = check_network(specs("a.example"), SETTINGS, resolve=Names("a.example"), has_route=lambda _: False)
    assert found.found == "a.example resolves, but this machine has no route to it"
    assert (has_route("127.0.0.1"), has_route("255.255.255.255")) == (True, False)


def test_no_name_is_looked_up_for_feeds_that_need_no_network_beyond_our_own() -> None:
    names = Names()
    feeds = [
        *specs("nas", "192.168.1.5", allow_private=True),
        *specs("off.example", enabled=False),
        *specs("localhost", "127.0.0.1", "10.0.0.5"),
    ]
    assert check_network(feeds, SETTINGS, resolve=names).state == "ok"
    assert names.asked == []


def test_with_a_proxy_only_the_proxy_is_looked_up() -> None:
    names = Names("proxy.example")
    settings = Settings(
        home=Path("/nowhere"),
        feeds_file=Path("/nowhere/feeds.yaml"),
        user_agent="tests",
        proxy="http://me:secret@proxy.example:3128",
    )
    found = check_network(specs("a.example"), settings, resolve=names, no_connection=lambda *_: None)
    assert found.state == "ok"
    assert names.asked == ["proxy.example"]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        here = replace(settings, proxy=f"http://me:secret@127.0.0.1:{port}")
        down = check_network(specs("a.example"), here)
    assert (down.state, down.found) == (
        "failure",
        f"the proxy 127.0.0.1:{port} takes no connection: Connection refused",
    )
    assert "RSS_PROXY" in down.fix


def test_doctor_has_the_check(tmp_path: Path) -> None:
    home = healthy_home(tmp_path)
    tmp_path.joinpath("feeds.yaml").write_text("- http://nowhere.invalid/feed\n", "utf-8")
    checks = examine({"RSS_PIPELINE_HOME": str(home)}, cwd=tmp_path, clock=lambda: NOON)
    (found,) = (check for check in checks if check.name == "network")
    assert found.state != "ok"
    assert "nowhere.invalid" in found.found
