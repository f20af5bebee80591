"""Notices to WebSub hubs that a topic changed, so that they send it to subscribers at once.

A notice is best effort: readers that come by themselves find the document without it.
https://www.w3.org/TR/websub/#publishing; hubs take a form with hub.mode=publish and a hub.url for each URL.
"""

import asyncio
import logging
import ssl
from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

import httpcore

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.guarded_transport import exact_url, guarded_transport
from rss_pipeline.collector.http.network_errors import request_error
from rss_pipeline.collector.http.request_url import RequestUrl, request_url
from rss_pipeline.tls import tls_context

SECONDS = 10.0
"""For one notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """URLs of a topic that changed, for one hub."""

    hub: str
    topic_id: str
    urls: tuple[str, ...]


def notify(policy: FetchPolicy, notices: Sequence[Notice]) -> list[str]:
    """Send the notices, those of one hub after each other; a sentence for each hub that did not take one.

    A hub is requested as a feed is: at public addresses only, unless a setting allows others. After a
    failure it gets no more of these notices.
    """
    return asyncio.run(_notify(policy, notices))


async def _notify(policy: FetchPolicy, notices: Sequence[Notice]) -> list[str]:
    # At DEBUG it logs the URL of each request, and a hub's may hold a token.
    logging.getLogger("httpcore").setLevel(logging.WARNING)
    hubs: defaultdict[str, list[Notice]] = defaultdict(list)
    for notice in notices:
        hubs[notice.hub].append(notice)
    turns = asyncio.Semaphore(policy.concurrency)
    sentences = await asyncio.gather(*(_notify_hub(policy, turns, some) for some in hubs.values()))
    return [sentence for sentence in sentences if sentence is not None]


async def _notify_hub(policy: FetchPolicy, turns: asyncio.Semaphore, notices: Sequence[Notice]) -> str | None:
    for number, notice in enumerate(notices):
        async with turns:
            reason = await _send(policy, notice)
        if reason is not None:
            left = ", ".join(each.topic_id for each in notices[number:])
            host = urlsplit(notice.hub).hostname
            return f"The hub {host} was not notified of changed topics ({left}): {reason}"
    return None


async def _send(policy: FetchPolicy, notice: Notice) -> str | None:
    """The reason why the hub did not take it."""
    form = urlencode([("hub.mode", "publish"), *(("hub.url", url) for url in notice.urls)])
    try:
        async with asyncio.timeout(SECONDS):
            status = await post(
                policy,
                request_url(notice.hub),
                form.encode(),
                content_type="application/x-www-form-urlencoded",
            )
    except TimeoutError:
        return f"it did not answer within {SECONDS:g} s"
    except FetchError as error:
        return error.message
    return None if 200 <= status < 300 else f"it answered with status {status}"


# One POST to a public host, on a connection of its own, with the same guard as requests for feeds.
# No redirect is followed, and no body of an answer is read.


async def post(policy: FetchPolicy, url: RequestUrl, body: bytes, *, content_type: str) -> int:
    """The status of the answer. The caller limits the time. Raises `FetchError` if no answer comes."""
    allowed = AddressPolicy(
        allow_private=False,
        is_own_host=False,
        named=(),
        networks=policy.allow_networks,
        ports=policy.allow_ports,
        machine=policy.machine,
    )
    is_tls = url.scheme == "https"
    headers = [
        (b"Host", url.address.netloc),
        (b"User-Agent", policy.user_agent.encode()),
        (b"Content-Type", content_type.encode()),
        (b"Content-Length", str(len(body)).encode()),
        (b"Connection", b"close"),
    ]
    timeout = {"connect": policy.connect_timeout, "read": None, "write": None, "pool": None}
    request = httpcore.Request(
        "POST", exact_url(url), headers=headers, content=body, extensions={"timeout": timeout}
    )
    try:
        transport = guarded_transport(
            allowed,
            policy.network,
            trust=tls_context(policy.ca_file) if is_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            proxy=policy.proxy,
        )
        async with aclosing(transport):
            response = await transport.handle_async_request(request)
            with suppress(httpcore.NetworkError, httpcore.ProtocolError, OSError):
                await response.aclose()
            return response.status
    # The libraries parse bytes of any server: every error they raise on them is that server's.
    except Exception as error:
        raise request_error(
            error, url.host, connect_timeout=policy.connect_timeout, proxy=policy.proxy
        ) from error
