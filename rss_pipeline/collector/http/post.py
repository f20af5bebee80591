"""One POST to a public host, on a connection of its own, with the same guard as requests for feeds.

No redirect is followed, and no body of an answer is read.
"""

import ssl
from contextlib import suppress

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.http.errors import request_error
from rss_pipeline.collector.http.guarded_transport import guarded_transport
from rss_pipeline.collector.http.request_url import ExactURL, RequestUrl
from rss_pipeline.httpx_without_cli import httpx
from rss_pipeline.tls import tls_context


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
    headers = {"User-Agent": policy.user_agent, "Content-Type": content_type, "Connection": "close"}
    timeout = {"connect": policy.connect_timeout, "read": None, "write": None, "pool": None}
    request = httpx.Request(
        "POST", url.address, headers=headers, content=body, extensions={"timeout": timeout}
    )
    request.url = ExactURL(url)
    try:
        async with guarded_transport(
            allowed,
            policy.network,
            trust=tls_context(policy.ca_file) if is_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=0),
            proxy=policy.proxy,
        ) as transport:
            response = await transport.handle_async_request(request)
            with suppress(httpx.HTTPError, OSError):
                await response.aclose()
            return response.status_code
    # The libraries parse bytes of any server: every error they raise on them is that server's.
    except Exception as error:
        raise request_error(error, url.host, connect_timeout=policy.connect_timeout) from error
