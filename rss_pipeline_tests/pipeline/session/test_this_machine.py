"""Facts of this machine: interfaces, and the ports of programs of Dagster and of this project."""

import subprocess
import sys
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from rss_pipeline.pipeline.session.this_machine import (
    interfaces_of,
    is_ours,
    listening_ports,
    own_servers,
    this_machine,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.s3.backend import R2Backend
from rss_pipeline.web.authority import Authority

SETTINGS = Settings(home=Path("/nowhere"), feeds_file=Path("/nowhere/feeds.yaml"), user_agent="tests")
LISTENER = """
import socket
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    input()
"""


class Found(NamedTuple):
    """An address as `psutil.net_if_addrs` returns it."""

    address: str
    netmask: str | None
    ptp: str | None = None


@pytest.mark.parametrize(
    ("found", "network"),
    [
        (Found("93.184.220.20", "255.255.255.240"), "93.184.220.16/28"),
        (Found("93.184.220.20", "255.255.255.255"), "93.184.220.20/32"),
        (Found("93.184.220.20", None), "93.184.220.20/32"),
        (Found("93.184.220.20", "0.0.0.0"), "93.184.220.20/32"),
        (Found("2606:2800:220:1::20", "ffff:ffff:ffff:ffff::"), "2606:2800:220:1::/64"),
        (
            Found("2606:2800:220:1::20%eth0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            "2606:2800:220:1::/64",
        ),
        (Found("2606:2800:220:1::20", "ffff:ffff:ffff:ff00::"), "2606:2800:220::/56"),
        (Found("2606:2800:220:1::20", "e000::"), "2606:2800:220:1::/64"),
        (Found("10.8.0.2", "255.255.255.255", "93.184.220.1"), "93.184.220.1/32"),
        (Found("192.168.0.7", "255.255.255.0"), None),
        (Found("fe80::1%eth0", "ffff:ffff:ffff:ffff::"), None),
        (Found("::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), None),
        (Found("02:fc:00:00:00:01", None), None),
    ],
)
def test_the_network_of_a_global_address_is_this_machines(found: Found, network: str | None) -> None:
    interfaces = interfaces_of({"lo": [], "eth0": [found]})
    assert interfaces.networks == (() if network is None else (ip_network(network),))
    is_address = not found.address.startswith("02:")
    assert (ip_address(found.address.partition("%")[0]) in interfaces.addresses) if is_address else True


def test_the_interfaces_of_this_machine_are_read() -> None:
    machine = this_machine(SETTINGS)
    assert ip_address("127.0.0.1") in machine.interfaces().addresses
    assert machine.interfaces() is machine.interfaces()


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("/x/.venv/bin/python /x/.venv/bin/rss-pipeline up", True),
        ("/usr/bin/python3.12 -B -X dev -m dagster dev -p 3001", True),
        ("python -m dagster_webserver -h 127.0.0.1", True),
        ("python -m dagster api grpc --socket /tmp/s", True),
        ("/Library/Frameworks/Python -m rss_pipeline.api", True),
        ("dagster-webserver", True),
        ("python", False),
        ("python -c dagster", False),
        ("python -m pytest rss_pipeline_tests", False),
        ("python -m rss_pipeline_tests.support", False),
        ("python /home/me/dagster/serve.py", False),
        ("vim rss-pipeline", False),
        ("", False),
    ],
)
def test_our_programs_are_known_by_their_command(command: str, ours: bool) -> None:
    assert is_ours(command.split()) is ours


def test_the_ports_of_our_programs_and_of_what_they_start_are_known(tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(LISTENER, "utf-8")
    ours = tmp_path / "dagster-webserver"
    ours.write_text(
        LISTENER.replace(
            "    input()", f"    import subprocess, sys\n    subprocess.run([sys.executable, {str(child)!r}])"
        ),
        "utf-8",
    )

    def listens(script: Path, ports: int) -> tuple["subprocess.Popen[str]", list[int]]:
        started = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert started.stdout is not None
        return started, [int(started.stdout.readline()) for _ in range(ports)]

    server, known = listens(ours, 2)
    stranger, unknown = listens(child, 1)
    try:
        found = listening_ports()
        assert set(known) <= found
        assert not set(unknown) & found
    finally:
        with suppress(psutil.NoSuchProcess):
            for grandchild in psutil.Process(server.pid).children():
                grandchild.kill()
        for started in (server, stranger):
            started.kill()
            started.communicate()


def test_the_servers_that_settings_name() -> None:
    settings = Settings(
        home=Path("/nowhere"),
        feeds_file=Path("/nowhere/feeds.yaml"),
        user_agent="tests",
        port=3100,
        ui_hosts=(Authority("rss.example", None), Authority("[fd00::1]", 8443)),
        database_server=D1Backend(url="https://D1.example.workers.dev/exec", token="x"),
        objects_server=R2Backend(
            endpoint_url="http://nas.lan:9000", bucket="b", access_key_id="i", secret_access_key="s"
        ),
    )
    assert [(server.host, server.port) for server in own_servers(settings)] == [
        ("127.0.0.1", 3100),
        ("rss.example", 80),
        ("rss.example", 443),
        ("fd00::1", 8443),
        ("127.0.0.1", 3001),
        ("d1.example.workers.dev", 443),
        ("nas.lan", 9000),
    ]
    assert [server.port for server in own_servers(SETTINGS)] == [3000, 3001]
