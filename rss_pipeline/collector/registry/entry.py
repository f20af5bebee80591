"""The keys of one feed in feeds.yaml as pydantic models, and the message for each mistake.

The models get the nodes of `yaml_nodes.py`, so that a message can show the text as written (`${TOKEN}`) and
never the value. The line of a mistake is added in `validate.py`; streams are read in features/streams.
"""

import re
from datetime import timedelta
from ipaddress import ip_network
from typing import Annotated, ClassVar, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo

from rss_pipeline.collector.http.addresses import is_never_opened, literal_address, single_address
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.headers import REFUSED_HEADERS
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.feed import FOREVER_DAYS, ItemKey
from rss_pipeline.collector.registry.feed_url import RegisteredUrl, read_url
from rss_pipeline.collector.registry.validate import EntryModel
from rss_pipeline.collector.registry.values import (
    FLAGS,
    describe,
    duration_of,
    environ_of,
    expanded_text,
    flag_of,
    id_of,
    invalid,
    is_printable,
    title_of,
    written_text,
)
from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.collector.registry.yaml_nodes import MappingNode, ScalarNode, SequenceNode

MIN_INTERVAL = timedelta(minutes=5)
"""Publishers block readers that come more often."""
MAX_INTERVAL = timedelta(hours=24)
MAX_HEADERS = 50
MAX_PRIVATE_HOSTS = 50
MAX_FOLDER_CHARACTERS = 500
MAX_HEADER_CHARACTERS = 4_000

MIN_SIZE, MAX_SIZE = 1_000, 200_000_000
"""Bytes of a document. A parser process may take fifty times as many."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_HOST = re.compile(r"[\s/?#@:\\\\]")


def _url(value: object, info: ValidationInfo) -> RegisteredUrl:
    try:
        return read_url(written_text(value), environ_of(info))
    except ValueError as error:
        raise invalid(str(error)) from None


def _folder(value: object, info: ValidationInfo) -> str:
    names = [" ".join(name.split()) for name in expanded_text(value, info).split("/")]
    folder = "/".join(names)
    if not all(names) or len(folder) > MAX_FOLDER_CHARACTERS or not is_printable(folder):
        raise invalid(
            f"write a folder of 1 to {MAX_FOLDER_CHARACTERS} printable characters, News or News/Europe, or"
            " remove the key"
        )
    return folder


def _interval(value: object, info: ValidationInfo) -> timedelta | None:
    if expanded_text(value, info) == "auto":
        return None
    interval = duration_of(value, info, also="auto, ")
    written = shown(written_text(value))
    if interval < MIN_INTERVAL:
        raise invalid(f"{written} is too short, publishers block such readers; write 5m or more, or auto")
    if interval > MAX_INTERVAL:
        raise invalid(f"{written} is too long, each feed is visited at least once a day; write 24h or less")
    return interval


def _keep(value: object, info: ValidationInfo) -> int:
    text = expanded_text(value, info)
    if text == "forever":
        return FOREVER_DAYS
    match = re.fullmatch(r"([0-9]{1,5})d", text)
    if match is None or not 1 <= int(match[1]) <= FOREVER_DAYS:
        raise invalid(
            f"{shown(written_text(value))} is not an age; write days such as 90d, from 1d to "
            f"{FOREVER_DAYS}d, or forever"
        )
    return int(match[1])


def _size(value: object, info: ValidationInfo) -> int:
    text = expanded_text(value, info)
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,3})?) ?([kmg]?)i?b?", text, re.IGNORECASE)
    size = 0 if match is None else int(float(match[1]) * _UNITS[match[2].lower()])
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise invalid(
            f"{shown(written_text(value))} is not the size of a feed; write a number and a unit such as "
            f"30MB, from {MIN_SIZE // 10**3}KB to {MAX_SIZE // 10**6}MB"
        )
    return size


def _key(value: object, info: ValidationInfo) -> str:
    text = expanded_text(value, info)
    if text not in get_args(ItemKey):
        raise invalid(f"{shown(written_text(value))} is not an item key; write guid, link or title+date")
    return text


def _private(value: object, info: ValidationInfo) -> object:
    """None for false, no hosts for true, else the nodes of the hosts."""
    match value:
        case SequenceNode(items=()):
            raise invalid("has no entries; write true for the feed's own host, or hosts: [nas.lan]")
        case SequenceNode() if len(value.items) > MAX_PRIVATE_HOSTS:
            raise invalid(f"has more than {MAX_PRIVATE_HOSTS} entries; write networks instead of hosts")
        case SequenceNode():
            return value.items
        case MappingNode():
            raise invalid("is a mapping; write true, false, or a list of hosts and networks: [nas.lan]")
        case _:
            flag = FLAGS.get(expanded_text(value, info).lower())
            if flag is None:
                written = written_text(value)
                raise invalid(
                    f"{shown(written)} is neither true nor false; write true for the feed's own host, "
                    "or a list of hosts and networks: [nas.lan, 192.168.1.0/24]"
                )
            return () if flag else None


def _private_host(value: object, info: ValidationInfo) -> str:
    """A name as it is resolved, an address, or a network."""
    text = expanded_text(value, info)
    written = shown(written_text(value))
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        network = ip_network(bare, strict=False)
    except ValueError:
        network = None
    if network is None:
        try:
            host = "" if _NOT_IN_A_HOST.search(text) else request_url(f"http://{text}/").host
        except FetchError:
            host = ""
        if not host:
            raise invalid(
                f"{written} is no host and no network; write a name, an address or a network, without "
                "http:// and port: nas.lan, 192.168.1.5, 192.168.1.0/24"
            )
        # 127.1 and 0x7f.1 are addresses as well.
        address = literal_address(host)
        if address is None:
            return host.removesuffix(".")
        network = single_address(address)
    elif "/" in bare and str(network.network_address) != bare.partition("/")[0]:
        raise invalid(f"{written} is no network; write {network} or {bare.partition('/')[0]}")
    if is_never_opened(network):
        raise invalid(
            f"{written} stays blocked: link-local, metadata, multicast and unspecified addresses are never "
            "requested; remove it"
        )
    return str(network if "/" in bare else network.network_address)


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise invalid("this is not a header name; write letters, digits and -")
    if reason := REFUSED_HEADERS.get(name.lower()):
        raise invalid(f"this header cannot be set here: {reason}")
    return name


def _header_value(value: object, info: ValidationInfo) -> str:
    text = expanded_text(value, info)
    if "\r" in text or "\n" in text:
        raise invalid("a header's value cannot contain a line break")
    if not text or not text.isascii() or not text.replace("\t", " ").isprintable():
        raise invalid("a header's value must be visible ASCII characters; HTTP allows no others")
    if len(text) > MAX_HEADER_CHARACTERS:
        raise invalid(f"the value is longer than {MAX_HEADER_CHARACTERS:,} characters; shorten it")
    return text


def _header_table(value: object) -> object:
    match value:
        case MappingNode() if len(value.items) <= MAX_HEADERS:
            return value.items
        case MappingNode():
            raise invalid(f"has more than {MAX_HEADERS} headers; remove some of them")
        case ScalarNode(is_null=True):
            raise invalid("has no value; write one, or remove the key")
        case _:
            raise invalid(
                f"is {describe(value)}; write a name and a value on each line below, `X-Token: ${{TOKEN}}`"
            )


def _distinct(headers: dict[str, str]) -> dict[str, str]:
    if len({name.lower() for name in headers}) < len(headers):
        raise invalid("has the same header twice (upper and lower case are the same); keep one of them")
    return headers


_Interval = Annotated[timedelta | None, BeforeValidator(_interval)]
_Key = Annotated[ItemKey, BeforeValidator(_key)]
_Size = Annotated[int | None, BeforeValidator(_size)]
_Keep = Annotated[int | None, BeforeValidator(_keep)]
_Flag = Annotated[bool, BeforeValidator(flag_of)]
_PrivateHost = Annotated[str, BeforeValidator(_private_host)]
_Private = Annotated[tuple[_PrivateHost, ...] | None, BeforeValidator(_private)]
_HeaderName = Annotated[str, BeforeValidator(_header_name)]
_HeaderValue = Annotated[str, BeforeValidator(_header_value)]
_Headers = Annotated[
    dict[_HeaderName, _HeaderValue], BeforeValidator(_header_table), AfterValidator(_distinct)
]
STRICT = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)


class FeedDefaults(EntryModel):
    """The keys of `defaults:`, for all feeds; a feed's own keys have precedence."""

    model_config = STRICT
    example: ClassVar[str] = "`keep: 90d`"
    missing: ClassVar[str] = "is missing"

    interval: _Interval = None
    key: _Key = "guid"
    images: _Flag = True
    keep: _Keep = None
    max_size: _Size = None


class FeedEntry(EntryModel):
    """The keys of one feed."""

    model_config = STRICT
    example: ClassVar[str] = "`url: ...`"
    missing: ClassVar[str] = "is missing; write the feed's address, `url: https://example.org/feed.xml`"

    url: Annotated[RegisteredUrl, BeforeValidator(_url)]
    id: Annotated[str | None, BeforeValidator(id_of)] = None
    title: Annotated[str | None, BeforeValidator(title_of)] = None
    folder: Annotated[str | None, BeforeValidator(_folder)] = None
    interval: _Interval = None
    key: _Key = "guid"
    images: _Flag = True
    keep: _Keep = None
    max_size: _Size = None
    enabled: _Flag = True
    watch: _Flag = True
    """False: there is no feed, and `url` is a page for people."""
    allow_private: _Private = None
    """Hosts that it opens besides its own one; None opens not even that."""
    headers: _Headers = Field(default_factory=dict)
    shared: _Flag = False
