"""The address guard over real connections: what is shut is never connected to, by no way that leads there.

No machine has listeners at 169.254.169.254 and in all of 10.0.0.0/8, so `World` brings every connection, to
whatever address it goes, to one listener on loopback that counts. Its name server gives the wrong addresses
that a test wants.
"""

import asyncio
import re
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpcore
import pytest

from rss_pipeline.collector.fetch.image_round import fetch_images, image_policy
from rss_pipeline.collector.fetch.image_visit import ImageOutcome, ImageRequest, KeptImage
from rss_pipeline.collector.http.address_policy import PrivateHosts, private_hosts
from rss_pipeline.collector.http.guarded_transport import MAX_ADDRESSES, Network
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Document, FetchOutcome
from rss_pipeline_tests.collector.fetch.rounds import RSS, InstantPace, feed, fetch, now
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"
PUBLIC = "93.184.215.14"
TLS = Path(__file__).parents[2] / "support" / "tls"


class World(httpcore.AsyncNetworkBackend):
    """A name server with given answers, each at the next query, and the last one for ever."""

    def __init__(self, server: FeedServer, **names: Sequence[Sequence[str]]) -> None:
        server.listen(HOST)
        self.dialled: list[str] = []
        self.asked: list[str] = []
        self._server = server
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self._dial = httpcore.AnyIOBackend()

    @property
    def network(self) -> Network:
        return Network(self.resolve, self)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._names.get(host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.dialled.append(host)
        return await self._dial.connect_tcp(HOST, self._server.port, timeout=timeout)


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


def image(
    url: str,
    spool: Path,
    *,
    network: Network | None = None,
    private: PrivateHosts | None = None,
    **policy: Any,
) -> ImageOutcome[str]:
    [outcome] = fetch_images(
        [ImageRequest(id="task", url=url, private=private or PrivateHosts())],
        policy=replace(
            image_policy(user_agent="tests"), deadline=30.0, network=network or Network(), **policy
        ),
        spool=spool,
        keep=lambda _, image: image.type.extension,
        clock=now,
        pace=InstantPace(),
    )
    return outcome


def blocked(outcome: FetchOutcome | ImageOutcome[Any], *, says: str = "") -> Failure:
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == "blocked_address", outcome
    assert outcome.message.endswith(".")
    assert says in outcome.message
    assert "ALLOW_NETWORKS" in outcome.message or "never allowed" in outcome.message
    assert not outcome.answered
    return outcome


SHUT = {
    "loopback": "127.0.0.1",
    "loopback, another of its addresses": "127.200.0.9",
    "loopback in IPv6": "[::1]",
    "loopback in IPv6, written out": "[0:0:0:0:0:0:0:1]",
    "RFC 1918": "10.1.2.3",
    "RFC 1918 in the middle": "172.20.0.1",
    "RFC 1918, the router at home": "192.168.0.1",
    "unique local": "[fd12:3456:789a::1]",
    "link-local": "169.254.1.1",
    "link-local in IPv6": "[fe80::1]",
    "metadata": "169.254.169.254",
    "metadata of AWS in IPv6": "[fd00:ec2::254]",
    "metadata of Azure": "168.63.129.16",
    "metadata of Alibaba": "100.100.100.200",
    "IPv4-mapped": "[::ffff:127.0.0.1]",
    "IPv4-mapped, in hexadecimal": "[::ffff:7f00:1]",
    "IPv4-mapped metadata": "[::ffff:169.254.169.254]",
    "IPv4-compatible": "[::127.0.0.1]",
    "IPv4-translated": "[::ffff:0:127.0.0.1]",
    "6to4": "[2002:7f00:1::]",
    "6to4 of metadata": "[2002:a9fe:a9fe::1]",
    "NAT64": "[64:ff9b::10.0.0.1]",
    "NAT64 of loopback": "[64:ff9b::7f00:1]",
    "local NAT64": "[64:ff9b:1::10.0.0.1]",
    "Teredo": "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
    "multicast": "224.0.0.1",
    "multicast in IPv6": "[ff02::1]",
    "a provider's network": "100.64.0.1",
    "this network": "0.0.0.0",
    "unspecified": "[::]",
    "broadcast": "255.255.255.255",
    "site-local": "[fec0::1]",
    "reserved": "240.0.0.1",
    "documentation": "192.0.2.1",
    "measurements": "198.18.0.1",
    "short": "127.1",
    "short, of zero": "0",
    "hexadecimal": "0x7f.1",
    "hexadecimal, in one": "0x7f000001",
    "octal": "0177.0.0.1",
    "decimal": "2130706433",
    "decimal metadata": "2852039166",
    "with a dot behind": "127.0.0.1.",
    "full-width digits": "１２７.０.０.１",
    "circled digits": "①②⑦.⓪.⓪.①",
    "ideographic full stops": "127。0。0。1",
    "full-width hexadecimal": "０ｘ７ｆ.1",
    "a name": "inside.example",
    "a name with a public address first": "half.example",
    "a name with a public address last": "other-half.example",
    "a name that is only in IPv6": "six.example",
    "a name written in full width": "ｉｎｓｉｄｅ.example",
    "the machine's own name": "localhost",
}
NAMES = {
    "inside.example": [["10.0.0.7"]],
    "half.example": [[PUBLIC, "127.0.0.1"]],
    "other-half.example": [["fd00::5", "2606:4700::1111"]],
    "six.example": [["::ffff:10.0.0.7"]],
    "localhost": [["::1", "127.0.0.1"]],
    "public.example": [[PUBLIC]],
}


@pytest.fixture
def world(server: FeedServer) -> World:
    return World(server, **{name.replace(".", "_"): answers for name, answers in NAMES.items()})


class TestWhatIsShut:
    @pytest.mark.parametrize("host", SHUT.values(), ids=SHUT)
    def test_a_feed_there(self, host: str, server: FeedServer, world: World, tmp_path: Path) -> None:
        url = f"http://{host}/feed"
        blocked(fetch(feed(url, allow_private=False), tmp_path, network=world.network))
        assert (world.dialled, server.most_open) == ([], {})

    @pytest.mark.parametrize("host", SHUT.values(), ids=SHUT)
    def test_a_redirect_there(self, host: str, server: FeedServer, world: World, tmp_path: Path) -> None:
        away = f"http://{host}/feed".encode().decode("latin-1")
        server.route(HOST, "/feed", Answer(status=302, headers={"Location": away}))
        found = feed("http://public.example/feed", allow_private=False)
        blocked(fetch(found, tmp_path, network=world.network))
        assert world.dialled == [PUBLIC]
        assert len(server.requests) == 1

    @pytest.mark.parametrize("host", SHUT.values(), ids=SHUT)
    def test_an_image_there(self, host: str, server: FeedServer, world: World, tmp_path: Path) -> None:
        failure = blocked(image(f"https://{host}/a.png", tmp_path, network=world.network))
        assert "feeds.yaml" not in failure.message
        assert (world.dialled, server.most_open) == ([], {})

    @pytest.mark.parametrize("host", SHUT.values(), ids=SHUT)
    def test_an_image_that_redirects_there(
        self, host: str, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        away = f"//{host}/b.png".encode().decode("latin-1")
        server.route(HOST, "/a.png", Answer(status=301, headers={"Location": away}, keep_alive=True))
        blocked(image("http://public.example/a.png", tmp_path, network=world.network))
        assert world.dialled == [PUBLIC]
        assert len(server.requests) == 1

    @pytest.mark.parametrize("host", ["127.0.0.2", "127.2", "2130706434", "１２７.0.0.2", "localhost"])
    def test_listeners_that_are_really_there(self, host: str, server: FeedServer, tmp_path: Path) -> None:
        """With the system's own name server and connections."""
        server.route("127.0.0.1", "/feed", Answer(body=RSS))
        server.route(HOST, "/feed", Answer(body=RSS))
        url = f"http://{host}:{server.port}/feed"
        blocked(fetch(feed(url, allow_private=False), tmp_path))
        blocked(image(url, tmp_path))
        blocked(fetch(feed(url, allow_private=False), tmp_path, allow_ports=frozenset({server.port})))
        assert server.most_open == {}
        assert isinstance(fetch(feed(url), tmp_path), Document)

    @pytest.mark.parametrize("host", ["[::1]", "[::ffff:127.0.0.1]"])
    def test_a_listener_in_ipv6(self, host: str, tmp_path: Path) -> None:
        with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
            listener.setblocking(False)
            url = f"http://{host}:{listener.getsockname()[1]}/feed"
            blocked(fetch(feed(url, allow_private=False), tmp_path))
            blocked(image(url, tmp_path))
            with pytest.raises(BlockingIOError):
                listener.accept()


_NO_HOME = (
    "link-local|metadata|IPv4-|6to4|NAT64|Teredo|multicast|provider|this network|unspecified|broadcast"
    "|site-local|reserved|documentation|measurements|of zero|only in IPv6"
)
_REST = [host for name, host in SHUT.items() if re.search(_NO_HOME, name)]


class TestWhatAFeedOpens:
    HOMES = (
        "127.0.0.1",
        "[::1]",
        "10.1.2.3",
        "172.20.0.1",
        "192.168.0.1",
        "[fd12:3456:789a::1]",
        "127.1",
        "inside.example",
        "half.example",
        "localhost",
        "0x7f.1",
        "１２７.０.０.１",
    )

    @pytest.mark.parametrize("host", HOMES)
    def test_it_and_its_images_may_be_at_home(
        self, host: str, server: FeedServer, world: World, tmp_path: Path
    ) -> None:
        server.route(HOST, "/feed", Answer(body=RSS))
        server.route(HOST, "/a.png", Answer(body=pictures.PNG))
        at_home = feed(f"http://{host}:8123/feed", allow_private=True, private_hosts=())
        spool = tmp_path / "spool"
        spool.mkdir()
        assert isinstance(fetch(at_home, tmp_path, network=world.network), Document)
        url = f"http://{host}:8123/a.png"
        private = private_hosts(url, allow_private=True)
        assert image(url, spool, network=world.network, private=private) == KeptImage("png")

    @pytest.mark.parametrize("host", _REST)
    def test_the_rest_stays_shut(self, host: str, server: FeedServer, world: World, tmp_path: Path) -> None:
        blocked(
            fetch(
                feed(f"http://{host}/feed", allow_private=True, private_hosts=()),
                tmp_path,
                network=world.network,
            )
        )
        private = private_hosts(f"http://{host}/", allow_private=True)
        blocked(image(f"http://{host}/", tmp_path, network=world.network, private=private))
        assert (world.dialled, server.most_open) == ([], {})

    def test_it_may_redirect_into_the_world(self, server: FeedServer, world: World, tmp_path: Path) -> None:
        away = {"Location": "http://public.example/there"}
        server.route(HOST, "/feed", Answer(status=302, headers=away))
        server.route(HOST, "/there", Answer(body=RSS))
        found = feed("http://192.168.0.9:8080/feed", allow_private=True, private_hosts=())
        assert isinstance(fetch(found, tmp_path, network=world.network), Document)
        assert world.dialled == ["192.168.0.9", PUBLIC]

    def test_a_connection_kept_for_its_images_serves_no_other_feed(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        url = server.route(HOST, "/a.png", Answer(body=pictures.PNG, keep_alive=True))
        requests = [
            ImageRequest(
                id=f"task-{number}", url=url, private=private_hosts(url, allow_private=allow_private)
            )
            for number, allow_private in enumerate([True, False, True, False, True])
        ]
        outcomes = fetch_images(
            requests,
            policy=image_policy(user_agent="tests", connections_per_host=1, host_delay=0.0),
            spool=tmp_path,
            keep=lambda *_: None,
            clock=now,
        )
        assert [isinstance(outcome, KeptImage) for outcome in outcomes] == [True, False, True, False, True]
        blocked(outcomes[1])
        assert len(server.requests) == 3


class TestNames:
    def test_an_answer_that_changes_after_the_check_changes_nothing(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        server.route(HOST, "/feed", Answer(body=RSS))
        world = World(server, rebinds_example=[[PUBLIC], ["127.0.0.1"]])
        found = feed("http://rebinds.example/feed", allow_private=False)
        assert isinstance(fetch(found, tmp_path, network=world.network), Document)
        assert (world.asked, world.dialled) == (["rebinds.example"], [PUBLIC])

    def test_each_hop_is_checked_anew(self, server: FeedServer, tmp_path: Path) -> None:
        server.route(HOST, "/feed", Answer(status=302, headers={"Location": "/there"}))
        world = World(server, rebinds_example=[[PUBLIC], ["127.0.0.1"]])
        found = feed("http://rebinds.example/feed", allow_private=False)
        blocked(fetch(found, tmp_path, network=world.network), says="rebinds.example resolves to 127.0.0.1")
        assert world.dialled == [PUBLIC]

    def test_the_next_address_is_tried_where_one_refuses(self, server: FeedServer, tmp_path: Path) -> None:
        server.route(HOST, "/feed", Answer(body=RSS))

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.88", "127.0.0.89", HOST]

        outcome = fetch(feed(f"http://two.example:{server.port}/feed"), tmp_path, network=Network(resolve))
        assert isinstance(outcome, Document)
        assert server.requests[0].headers["host"] == f"two.example:{server.port}"

    @pytest.mark.slow
    def test_the_next_address_is_tried_where_one_says_nothing(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        """IPv6 that leads nowhere is common; the deadline must not go into it."""
        server.route(HOST, "/feed", Answer(body=RSS))
        ended = []

        class Silent(World):
            async def connect_tcp(self, host: str, *args: Any, **more: Any) -> httpcore.AsyncNetworkStream:
                if ":" in host:
                    try:
                        await asyncio.sleep(60)
                    finally:
                        ended.append(host)
                return await super().connect_tcp(host, *args, **more)

        world = Silent(server, both_example=[["2606:4700::1", "2606:4700::2", PUBLIC]])
        found = feed("http://both.example/feed", allow_private=False)
        assert isinstance(fetch(found, tmp_path, network=world.network), Document)
        assert world.dialled == [PUBLIC]
        assert ended == ["2606:4700::1"]

    def test_no_name_makes_us_knock_at_a_thousand_doors(self, server: FeedServer, tmp_path: Path) -> None:
        class Refusing(World):
            async def connect_tcp(self, host: str, *args: Any, **more: Any) -> httpcore.AsyncNetworkStream:
                self.dialled.append(host)
                return await self._dial.connect_tcp("127.0.0.88", server.port)

        world = Refusing(server, many_example=[[f"9.9.{n // 250}.{n % 250}" for n in range(1000)]])
        outcome = fetch(feed("http://many.example/", allow_private=False), tmp_path, network=world.network)
        assert isinstance(outcome, Failure)
        assert (outcome.kind, len(world.dialled)) == ("connect", MAX_ADDRESSES)
        assert "connection refused" in outcome.message

    @pytest.mark.slow
    def test_addresses_that_all_say_nothing_are_a_time_out(self, server: FeedServer, tmp_path: Path) -> None:
        class Silent(World):
            async def connect_tcp(self, host: str, *args: Any, **more: Any) -> httpcore.AsyncNetworkStream:
                await asyncio.sleep(60)
                raise AssertionError

        world = Silent(server, silent_example=[[PUBLIC, "9.9.9.9"]])
        found = feed("http://silent.example/", allow_private=False)
        outcome = fetch(found, tmp_path, network=world.network, connect_timeout=0.3)
        assert isinstance(outcome, Failure)
        assert (outcome.kind, outcome.message[-13:]) == ("timeout", "within 0.3 s.")

    def test_a_name_server_without_an_answer_is_distinguished_from_a_silent_host(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        hangs = threading.Event()

        async def resolve(host: str, port: int) -> list[str]:
            hangs.set()
            await asyncio.sleep(60)
            return []

        outcome = fetch(feed("http://a.example/"), tmp_path, network=Network(resolve), connect_timeout=0.1)
        assert hangs.is_set()
        assert isinstance(outcome, Failure)
        assert (outcome.kind, "no answer for a.example within 0.1 s" in outcome.message) == ("dns", True)

    @pytest.mark.parametrize("answer", [[], ["not an address"]])
    def test_a_name_without_addresses_does_not_resolve(
        self, answer: list[str], server: FeedServer, tmp_path: Path
    ) -> None:
        world = World(server, empty_example=[answer])
        outcome = fetch(feed("http://empty.example/"), tmp_path, network=world.network)
        assert isinstance(outcome, Failure)
        assert (outcome.kind, world.dialled) == ("dns", [])


class TestTls:
    def test_the_certificate_is_requested_and_checked_by_name(self, tmp_path: Path) -> None:
        asked: list[str | None] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "good.pem")
        context.sni_callback = lambda _, name, __: asked.append(name)

        async def resolve(host: str, port: int) -> list[str]:
            return [HOST]

        with FeedServer(tls=context) as server:
            server.route(HOST, "/feed", Answer(body=RSS))
            more: dict[str, Any] = {"ca_file": TLS / "authority.pem", "network": Network(resolve)}
            fine = fetch(feed(f"https://localhost:{server.port}/feed"), tmp_path, **more)
            wrong = fetch(feed(f"https://other.example:{server.port}/feed"), tmp_path, **more)
        assert isinstance(fine, Document)
        assert isinstance(wrong, Failure)
        assert (wrong.kind, "wrong name" in wrong.message) == ("tls", True)
        assert asked == ["localhost", "other.example"]


class TestSettings:
    def test_a_range_that_is_opened(self, server: FeedServer, tmp_path: Path) -> None:
        server.route(HOST, "/feed", Answer(body=RSS))
        server.route(HOST, "/a.png", Answer(body=pictures.PNG))
        world = World(server, any_example=[["198.18.3.4"]])
        found = feed("http://any.example/feed", allow_private=False)
        refused = blocked(fetch(found, tmp_path, network=world.network))
        assert "ALLOW_NETWORKS=198.18.0.0/15" in refused.message
        opened = (ip_network("198.18.0.0/15"),)
        assert image(
            "http://any.example/a.png", tmp_path, network=world.network, allow_networks=opened
        ) == KeptImage("png")
        outcome = fetch(found, tmp_path, network=world.network, allow_networks=opened)
        assert isinstance(outcome, Document)
        blocked(fetch(replace(found, url="http://10.0.0.1/"), tmp_path, allow_networks=opened))

    def test_ports(self, server: FeedServer, world: World, tmp_path: Path) -> None:
        server.route(HOST, "/feed", Answer(body=RSS))
        found = feed("http://public.example:8080/feed", allow_private=False)
        outcome = fetch(found, tmp_path, network=world.network)
        assert isinstance(outcome, Failure)
        assert outcome.kind == "blocked_address"
        assert "ALLOW_PORTS=8080" in outcome.message
        assert world.dialled == []
        opened = frozenset({8080})
        assert isinstance(fetch(found, tmp_path, network=world.network, allow_ports=opened), Document)

    @pytest.mark.parametrize(
        "host", ["10.0.0.1", "[::1]", "127.1", "169.254.169.254", "localhost", "a.localhost"]
    )
    def test_through_a_proxy_what_is_written_out_is_still_shut(
        self, host: str, server: FeedServer, tmp_path: Path
    ) -> None:
        server.listen("127.0.0.9")
        proxy = server.url("127.0.0.9", "")
        for scheme in ("http", "https"):
            blocked(fetch(feed(f"{scheme}://{host}/", allow_private=False), tmp_path, proxy=proxy))
            blocked(image(f"{scheme}://{host}/", tmp_path, proxy=proxy))
        assert server.most_open == {}

    def test_a_proxy_that_is_down_is_named_and_not_the_publisher(self, tmp_path: Path) -> None:
        found = feed("http://a.example/feed", allow_private=False)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
            failed = fetch(found, tmp_path, proxy=f"http://me:secret@127.0.0.1:{port}")
        assert isinstance(failed, Failure)
        assert (failed.kind, failed.reached) == ("connect", False)
        assert failed.message.startswith(
            f"No connection to the outbound proxy 127.0.0.1:{port}: connection ref"
        )
        assert "RSS_PROXY" in failed.message
        assert "secret" not in failed.message

    def test_through_a_proxy_names_are_the_proxys(self, server: FeedServer, tmp_path: Path) -> None:
        server.route("127.0.0.9", "http://a.example/feed", Answer(body=RSS))
        proxy = server.url("127.0.0.9", "")
        found = feed("http://a.example/feed", allow_private=False)
        assert isinstance(fetch(found, tmp_path, proxy=proxy), Document)
        odd = fetch(feed("http://a.example:22/", allow_private=False), tmp_path, proxy=proxy)
        assert isinstance(odd, Failure)
        assert odd.kind == "blocked_address"
