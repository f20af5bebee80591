"""Which addresses may be connected to: a table of ranges, and the laws behind it."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.http.addresses import AddressRange, is_never_opened, refusal
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url

PUBLIC = ["1.1.1.1", "93.184.215.14", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0"]
PUBLIC += ["192.169.0.1", "198.17.255.255", "198.20.0.0", "223.255.255.255", "126.255.255.255", "128.0.0.0"]
PUBLIC += ["2606:4700:4700::1111", "2a00:1450:4001:82b::200e", "2001:4860:4860::8888", "64:ff9b::101:101"]
PRIVATE = ["127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255"]
PRIVATE += ["192.168.0.0", "192.168.255.255", "::1", "fc00::", "fd12:3456::1"]
SPECIAL = ["100.64.0.1", "100.127.255.255", "192.0.0.8", "192.0.0.170", "192.0.2.1", "192.88.99.1"]
SPECIAL += ["198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "240.0.0.1", "255.255.255.254"]
SPECIAL += ["::2", "::7f00:1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8"]
SPECIAL += ["::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8"]
SPECIAL += ["100::1", "2001::1", "2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1"]
SPECIAL += ["3fff::1", "4000::1", "5f00::1", "e000::1", "fec0::1", "feff::1", "200::1"]
NEVER = ["0.0.0.0", "0.1.2.3", "255.255.255.255", "224.0.0.1", "239.255.255.255", "169.254.0.1"]
NEVER += ["169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "::"]
NEVER += ["fd20:ce::254", "fe80::1", "fe80::1%2", "febf::1", "ff02::1", "ff0e::1"]
NEVER += ["::ffff:169.254.169.254", "::169.254.169.254", "2002:a9fe:a9fe::", "64:ff9b::169.254.169.254"]
NEVER += ["64:ff9b:1::169.254.169.254", "64:ff9b::224.0.0.1", "::ffff:0.0.0.0", "::ffff:0:169.254.169.254"]
NEVER += ["2001:0:1234::5601:5601"]
"""The last is Teredo's way to write 169.254.169.254: inverted."""

EVERYTHING: tuple[AddressRange, ...] = (ip_network("0.0.0.0/0"), ip_network("::/0"))


def is_open(address: str, *, allow_private: bool = False, networks: tuple[AddressRange, ...] = ()) -> bool:
    return refusal(ip_address(address), allow_private=allow_private, networks=networks) is None


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_open(address: str) -> None:
    assert is_open(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_one_is_opened_by_its_feed_or_by_the_setting(address: str) -> None:
    assert not is_open(address)
    assert is_open(address, allow_private=True)
    assert is_open(address, networks=EVERYTHING)


@pytest.mark.parametrize("address", SPECIAL)
def test_a_special_one_is_opened_by_the_setting_only(address: str) -> None:
    assert not is_open(address)
    assert not is_open(address, allow_private=True)
    assert is_open(address, networks=EVERYTHING)


@pytest.mark.parametrize("address", NEVER)
def test_some_are_opened_by_nothing(address: str) -> None:
    assert not is_open(address, allow_private=True, networks=EVERYTHING)


@pytest.mark.parametrize(
    ("network", "vain"),
    [
        ("169.254.0.0/16", True),
        ("169.254.169.254", True),
        ("fe80::/64", True),
        ("224.0.0.0/8", True),
        ("198.18.0.0/15", False),
        ("0.0.0.0/0", False),
        ("fd00::/8", False),
        ("::/0", False),
    ],
)
def test_a_setting_that_opens_nothing_is_known(network: str, vain: bool) -> None:
    assert is_never_opened(ip_network(network)) is vain


ADDRESSES = st.ip_addresses(v=4) | st.ip_addresses(v=6)


@given(ADDRESSES)
def test_what_python_calls_not_global_or_multicast_is_never_open_by_itself(
    address: IPv4Address | IPv6Address,
) -> None:
    # Python calls all of ::/8 reserved, NAT64 included.
    is_reserved = address.is_reserved and address not in ip_network("64:ff9b::/96")
    if not address.is_global or address.is_multicast or is_reserved or address.is_link_local:
        assert refusal(address, allow_private=False)


@given(ADDRESSES)
def test_allow_private_opens_loopback_rfc_1918_and_unique_local_and_no_more(
    address: IPv4Address | IPv6Address,
) -> None:
    if refusal(address, allow_private=False) and not refusal(address, allow_private=True):
        homes = ["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"]
        assert any(address in ip_network(home) for home in homes)


@given(st.ip_addresses(v=4))
def test_no_form_of_ipv6_reaches_an_ipv4_address_that_is_shut(inner: IPv4Address) -> None:
    bits = int(inner)
    nat64 = IPv6Address(int(IPv6Address("64:ff9b::")) | bits)
    assert (refusal(nat64, allow_private=True) is None) == (refusal(inner, allow_private=False) is None)
    for form in (
        bits,
        0xFFFF << 32 | bits,
        0xFFFF << 48 | bits,
        0x2002 << 112 | bits << 80 | 1,
        int(IPv6Address("64:ff9b:1::")) | bits,
        0x20010000 << 96 | (bits ^ 0xFFFFFFFF),
    ):
        assert refusal(IPv6Address(form), allow_private=True) or form == 1


@given(st.ip_addresses(v=4), st.data())
def test_every_spelling_of_an_ipv4_address_is_that_address(address: IPv4Address, data: st.DataObject) -> None:
    parts = [*address.packed]
    count = data.draw(st.integers(1, 4))
    last = int.from_bytes(address.packed[count - 1 :], "big")
    numbers = [*parts[: count - 1], last]
    spellings = [
        data.draw(st.sampled_from(["{}", "0x{:x}", "0X{:X}", "0{:o}", "0x000{:x}"])) for _ in numbers
    ]
    host = ".".join(spelling.format(number) for spelling, number in zip(spellings, numbers, strict=True))
    digits = data.draw(st.sampled_from(["0123456789", "０１２３４５６７８９", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"]))
    dot = data.draw(st.sampled_from([".", "。", "．"]))
    host = host.translate(str.maketrans("0123456789.", digits + dot))
    assert request_url(f"http://{host}:8080/").host == str(address)
    assert request_url(f"http://{host}.:8080/").port == 8080


@pytest.mark.parametrize("host", ["face.cafe", "1.2.3.4.5", "dead-beef.example", "0xbeef.example", "a.0x"])
def test_a_name_that_looks_like_a_number_stays_a_name(host: str) -> None:
    assert request_url(f"http://{host}/").host == host


@pytest.mark.parametrize(
    ("addresses", "says"),
    [
        (["10.0.0.5"], "a.example resolves to 10.0.0.5, an address of a local network"),
        (["93.184.215.14", "::1"], "a.example resolves to ::1, this machine itself"),
        (["198.18.0.9"], "ALLOW_NETWORKS=198.18.0.0/15"),
        (
            ["10.0.0.5"],
            "`allow_private: true` for this feed in feeds.yaml, or set ALLOW_NETWORKS=10.0.0.5/32",
        ),
        (
            ["10.0.0.5", "169.254.169.254"],
            "169.254.169.254, the address of cloud credentials for this machine",
        ),
        (["169.254.169.254"], "never allowed"),
        (["64:ff9b::a00:5"], "10.0.0.5 behind NAT64"),
        (["2002:a9fe:a9fe::"], "169.254.169.254 in another form"),
    ],
)
def test_a_refusal_says_what_it_is_and_what_opens_it(addresses: list[str], says: str) -> None:
    with pytest.raises(FetchError) as caught:
        AddressPolicy().check("a.example", 80, [ip_address(text) for text in addresses])
    assert caught.value.kind == "blocked_address"
    assert says in caught.value.advised
    assert "feeds.yaml" not in caught.value.message


def test_ports() -> None:
    public = [ip_address("1.1.1.1")]
    for port in (80, 443):
        AddressPolicy().check("a.example", port, public)
    with pytest.raises(FetchError, match="Port 8080") as caught:
        AddressPolicy(ports=frozenset({8443})).check("a.example", 8080, public)
    assert caught.value.kind == "blocked_address"
    assert "ALLOW_PORTS=8080" in caught.value.advised
    AddressPolicy(ports=frozenset({8080})).check("a.example", 8080, public)
    AddressPolicy(allow_private=True).check("a.example", 8080, public)
