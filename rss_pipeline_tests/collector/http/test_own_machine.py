"""The servers of this installation are never requested, and this machine's global addresses are private.

`World` of test_guarded_transport.py brings every connection to one listener that counts.
"""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.fetch.image_visit import KeptImage
from rss_pipeline.collector.http.address_policy import OwnMachine, OwnServer, PrivateHosts, private_hosts
from rss_pipeline.collector.http.addresses import Interfaces
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline_tests.collector.fetch.rounds import RSS, feed, fetch
from rss_pipeline_tests.collector.http.test_guarded_transport import HOST, PUBLIC, World, blocked, image
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.server import Answer, FeedServer

INTERFACES = Interfaces(
    addresses=frozenset(map(ip_address, ("192.168.0.7", "fd12::7", "93.184.220.20", "2606:2800:220:1::20"))),
    networks=(ip_network("93.184.220.0/28"), ip_network("2606:2800:220:1::/64")),
)
MACHINE = OwnMachine(
    interfaces=lambda: INTERFACES,
    servers=(
        OwnServer(what="the UI", host="127.0.0.1", port=3000),
        OwnServer(what="the D1 proxy", host="d1.lan", port=8787),
        OwnServer(what="the object store", host="127.0.0.1", port=9000),
        OwnServer(what="the UI behind a proxy", host="rss.lan", port=80, by_name=True),
        OwnServer(what="the D1 proxy in the cloud", host="d1.example.workers.dev", port=443),
    ),
    listening=lambda: frozenset({4000, 9464}),
)
EVERYTHING = (ip_network("0.0.0.0/0"), ip_network("::/0"))
PORTS = frozenset({3000, 8787, 9000, 4000, 9464, 5005})
NAMES = {
    "localhost": ["::1", "127.0.0.1"],
    "a.localhost": ["127.0.0.1"],
    "box": ["127.0.1.1"],
    "box.lan": ["192.168.0.7"],
    "box.example": ["2606:2800:220:1::20"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
    "half.example": [PUBLIC, "127.0.0.1"],
    "other-half.example": ["127.0.0.1", PUBLIC],
    "zoned.example": ["::1%1"],
    "zoned-lan.example": ["fd12::7%eth0"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "d1.lan": ["192.168.0.9"],
    "rss.lan": ["192.168.0.9"],
    "blog.lan": ["192.168.0.9"],
    "alias.example": ["192.168.0.9"],
    "half-alias.example": [PUBLIC, "192.168.0.9"],
    "nat.example": ["64:ff9b::c0a8:9"],
    "d1.example.workers.dev": [PUBLIC],
    "public.example": [PUBLIC],
    "nas.lan": ["192.168.0.30"],
}
TRICKS = [
    "127.0.0.1:3000",
    "127.0.0.2:3000",
    "127.255.255.254:3000",
    "127.1:3000",
    "127.0.1:3000",
    "0x7f.1:3000",
    "0x7f000001:3000",
    "0X7F.0.0.0X1:3000",
    "2130706433:3000",
    "0177.0.0.1:3000",
    "017700000001:3000",
    "127.0.0.1.:3000",
    "127.0.0.1:03000",
    "localhost:3000",
    "LOCALHOST:3000",
    "localhost.:3000",
    "a.localhost:3000",
    "[::1]:3000",
    "[0:0:0:0:0:0:0:1]:3000",
    "[::0001]:3000",
    "[::ffff:127.0.0.1]:3000",
    "[::ffff:7f00:1]:3000",
    "[0:0:0:0:0:ffff:127.0.0.1]:3000",
    "[::127.0.0.1]:3000",
    "[::ffff:0:127.0.0.1]:3000",
    "[64:ff9b::127.0.0.1]:3000",
    "[64:ff9b::7f00:1]:3000",
    "[64:ff9b:1::127.0.0.1]:3000",
    "[2002:7f00:1::]:3000",
    "[2002:7f00:1::5]:3000",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]:3000",
    "0.0.0.0:3000",
    "0:3000",
    "0.0.0.5:3000",
    "[::]:3000",
    "[::ffff:0.0.0.0]:3000",
    "192.168.0.7:3000",
    "3232235527:3000",
    "[fd12::7]:3000",
    "[::ffff:192.168.0.7]:3000",
    "[64:ff9b::c0a8:7]:3000",
    "[2002:c0a8:7::]:3000",
    "93.184.220.20:3000",
    "[2606:2800:220:1::20]:3000",
    "[::ffff:93.184.220.20]:3000",
    "[64:ff9b::5db8:dc14]:3000",
    "box:3000",
    "box.lan:3000",
    "BOX.lan.:3000",
    "box.example:3000",
    "ｂｏｘ.lan:3000",
    "box。lan:3000",
    "１２７.０.０.１:3000",
    "①②⑦.⓪.⓪.①:3000",
    "127。0。0。1:3000",
    "127.0.0.1.nip.example:3000",
    "half.example:3000",
    "other-half.example:3000",
    "zoned.example:3000",
    "zoned-lan.example:3000",
    "mapped.example:3000",
    "me@127.0.0.1:3000",
    "public.example:80@127.0.0.1:3000",
    "public.example@@localhost:3000",
    "d1.lan:8787",
    "D1.LAN:8787",
    "d1.lan.:8787",
    "192.168.0.9:8787",
    "[::ffff:192.168.0.9]:8787",
    "alias.example:8787",
    "half-alias.example:8787",
    "nat.example:8787",
    "rss.lan:80",
    "127.0.0.1:9000",
    "192.168.0.7:9000",
    "[::1]:9000",
    "box:9000",
    "127.0.0.1:4000",
    "[::1]:4000",
    "box.lan:4000",
    "localhost:9464",
    "box.example:9464",
    "[64:ff9b::127.0.0.1]:9464",
]
"""Ways to a server of ours: the UI, the D1 proxy in the LAN, the object store, and whatever else listens."""


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


@pytest.fixture
def world(server: FeedServer) -> World:
    names = {name + dot: [answer] for name, answer in NAMES.items() for dot in ("", ".")}
    return World(server, **{name.replace(".", "_"): answers for name, answers in names.items()})


def opened(*urls: str) -> PrivateHosts:
    """The most that a feed can open."""
    return private_hosts(urls[0], allow_private=True, named=["0.0.0.0/0", "::/0", *NAMES])


class TestServersOfOurs:
    @pytest.mark.parametrize("place", TRICKS)
    def test_no_setting_opens_them_by_any_way(
        self, place: str, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        """As a feed, as an image, and by a redirect of each kind from a host that is allowed."""
        number = TRICKS.index(place)
        status = (301, 302, 303, 307, 308)[number % 5]
        scheme = ("http:", "")[number % 2]
        away = f"{scheme}//{place}/graphql?query=x".encode().decode("latin-1")
        for path in ("/feed", "/a.png"):
            server.route(HOST, path, Answer(status=status, headers={"Location": away}))
        every: dict[str, Any] = {
            "network": world.network,
            "machine": MACHINE,
            "allow_networks": EVERYTHING,
            "allow_ports": PORTS,
        }
        url = f"http://{place}/graphql?query=x"
        named = ("0.0.0.0/0", "::/0", *NAMES)
        spool = tmp_path / "spool"
        spool.mkdir()

        blocked(fetch(feed(url, private_hosts=named), tmp_path, **every), says="never allowed")
        blocked(image(url, spool, private=opened(url), **every), says="never allowed")
        assert (world.dialled, server.most_open) == ([], {})

        led = feed("http://public.example/feed", private_hosts=named)
        blocked(fetch(led, tmp_path, **every), says="never allowed")
        blocked(
            image("http://public.example/a.png", spool, private=opened(url), **every), says="never allowed"
        )
        assert world.dialled == [PUBLIC, PUBLIC]
        assert {request.target for request in server.requests} == {"/feed", "/a.png"}

    def test_other_ports_of_this_machine_are_as_open_as_before(
        self, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        server.route(HOST, "/feed", Answer(body=RSS))
        for place in ("blog.lan", "127.0.0.1:5005", "192.168.0.7:8787", "localhost:5005", "93.184.220.20:80"):
            # The D1 proxy at port 8787 is on another machine.
            found = feed(f"http://{place}/feed", private_hosts=())
            assert isinstance(fetch(found, tmp_path, network=world.network, machine=MACHINE), Document)

    @pytest.mark.parametrize("host", ["d1.example.workers.dev", "D1.example.WORKERS.dev."])
    def test_a_server_in_the_cloud_is_known_by_its_name(
        self, host: str, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        found = feed(f"https://{host}/exec", private_hosts=())
        blocked(fetch(found, tmp_path, network=world.network, machine=MACHINE), says="the D1 proxy")
        assert world.dialled == []
        # Thousands of sites have the addresses of a CDN.
        fetch(feed("http://public.example/"), tmp_path, network=world.network, machine=MACHINE)
        assert world.dialled == [PUBLIC]

    def test_a_server_with_a_name_that_changes_its_address_is_found_there(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        world = World(server, d1_lan=[["192.168.0.9"], ["192.168.0.44"]])
        url = "http://192.168.0.44:8787/"
        fetch(feed(url, private_hosts=()), tmp_path, network=world.network, machine=MACHINE)
        blocked(fetch(feed(url, private_hosts=()), tmp_path, network=world.network, machine=MACHINE))
        assert world.dialled == ["192.168.0.44"]

    @pytest.mark.parametrize(
        "place",
        ["127.0.0.1:3000", "localhost:3000", "2130706433:3000", "[::1]:4000", "box.lan:3000", "d1.lan:8787"],
    )
    def test_through_a_proxy_too(self, place: str, server: FeedServer, world: World, tmp_path: Path) -> None:
        server.listen("127.0.0.9")
        every: dict[str, Any] = {
            "network": world.network,
            "machine": MACHINE,
            "allow_networks": EVERYTHING,
            "allow_ports": PORTS,
            "proxy": server.url("127.0.0.9", ""),
        }
        for scheme in ("http", "https"):
            url = f"{scheme}://{place}/graphql"
            blocked(fetch(feed(url), tmp_path, **every), says="never allowed")
            blocked(image(url, tmp_path, private=opened(url), **every), says="never allowed")
        assert server.most_open == {}


class TestOtherPrivateHosts:
    """`allow_private: true` is for the host of the feed's URL alone."""

    ELSEWHERE = (
        "192.168.0.30",
        "nas.lan",
        "10.0.0.1",
        "127.0.0.1",
        "[::1]",
        "localhost",
        "box.lan",
        "[fd00::9]",
    )

    @pytest.mark.parametrize("host", ELSEWHERE)
    def test_an_image_elsewhere_at_home(
        self, host: str, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        private = private_hosts("http://192.168.0.1/feed", allow_private=True)
        refused = blocked(image(f"http://{host}/a.png", tmp_path, network=world.network, private=private))
        assert f"`allow_private: [{host.strip('[]')}]`" in refused.message
        assert world.dialled == []

    @pytest.mark.parametrize("host", ELSEWHERE)
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_a_redirect_elsewhere_at_home(
        self, status: int, host: str, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        server.route(HOST, "/feed", Answer(status=status, headers={"Location": f"http://{host}/there"}))
        server.route(HOST, "/there", Answer(body=RSS))
        at_home = feed("http://192.168.0.1/feed", private_hosts=())
        refused = blocked(fetch(at_home, tmp_path, network=world.network))
        assert f"write `allow_private: [{host.strip('[]')}]` for this feed in feeds.yaml" in refused.message
        assert world.dialled == ["192.168.0.1"]
        named = feed("http://192.168.0.1/feed", private_hosts=(host.strip("[]"),))
        assert isinstance(fetch(named, tmp_path, network=world.network), Document)

    @pytest.mark.parametrize("named", ["nas.lan", "192.168.0.30", "192.168.0.0/24"])
    def test_what_is_named_is_open_at_any_port(
        self, named: str, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        server.route(HOST, "/a.png", Answer(body=pictures.PNG))
        private = private_hosts("http://feeds.lan/feed", allow_private=True, named=[named])
        url = "http://nas.lan:8123/a.png"
        assert image(url, tmp_path, network=world.network, private=private) == KeptImage("png")
        blocked(image("http://10.0.0.1/", tmp_path, network=world.network, private=private))
        blocked(image("http://169.254.169.254/", tmp_path, network=world.network, private=private))

    def test_without_the_flag_not_even_its_own_host_is_open(self, world: World, tmp_path: Path) -> None:
        refused = blocked(
            fetch(feed("http://nas.lan/", allow_private=False), tmp_path, network=world.network)
        )
        assert "write `allow_private: true` for this feed" in refused.message

    def test_odd_ports_of_the_world_stay_shut(self, world: World, tmp_path: Path) -> None:
        private = private_hosts("http://nas.lan/feed", allow_private=True)
        outcome = image("http://public.example:22/", tmp_path, network=world.network, private=private)
        assert isinstance(outcome, Failure)
        assert (outcome.kind, world.dialled) == ("blocked_address", [])


class TestThisMachinesGlobalAddresses:
    PLACES = (
        "93.184.220.20",
        "93.184.220.3",
        "[2606:2800:220:1::20]",
        "[2606:2800:220:1:abcd::1]",
        "[64:ff9b::5db8:dc14]",
        "box.example",
    )

    @pytest.mark.parametrize("host", PLACES)
    def test_they_are_private(self, host: str, server: FeedServer, world: World, tmp_path: Path) -> None:
        server.route(HOST, "/feed", Answer(body=RSS))
        url = f"http://{host}/feed"
        every: dict[str, Any] = {"network": world.network, "machine": MACHINE}
        refused = blocked(fetch(feed(url, allow_private=False), tmp_path, **every))
        assert "this machine" in refused.message
        blocked(image(url, tmp_path, **every))
        private = private_hosts("http://nas.lan/", allow_private=True)
        blocked(image(url, tmp_path, private=private, **every))
        assert world.dialled == []
        opening = fetch(feed(url, allow_private=False), tmp_path, allow_networks=EVERYTHING, **every)
        assert isinstance(opening, Document)
        if "64:ff9b" not in host:
            assert isinstance(fetch(feed(url, private_hosts=()), tmp_path, **every), Document)

    @pytest.mark.parametrize("host", ["93.184.220.16", "[2606:2800:220:2::20]", "public.example"])
    def test_the_addresses_beside_them_are_not(
        self, host: str, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        server.route(HOST, "/feed", Answer(body=RSS))
        found = feed(f"http://{host}/feed", allow_private=False)
        assert isinstance(fetch(found, tmp_path, network=world.network, machine=MACHINE), Document)
