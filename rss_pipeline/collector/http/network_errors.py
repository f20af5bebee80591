"""The `FetchError` for an exception that the network, or a library for it, raised during a request.

A message names hosts only: a path or a query may hold a secret.
"""

import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import anyio
import httpcore

from rss_pipeline.collector.http.fetch_error import FetchError, bad_host

_NOT_ABOUT_TLS = (
    ssl.SSLWantReadError,
    ssl.SSLWantWriteError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
    ssl.SSLSyscallError,
)
"""Errors that a time-out or a closed connection also raises."""


_FROM_SOMEBODY = (ConnectionRefusedError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
"""Errors that an answer on the network causes (TCP RST), not its absence."""


_FRAMING = {
    "Content-Length": ": its Content-Length is no number, or there are several",
    "Transfer-Encoding": ": its Transfer-Encoding is not `chunked`",
}
"""By the header that h11 names, which has no type or code for it: the end of the body is not known."""


def request_error(
    error: Exception, host: str, *, connect_timeout: float, proxy: str | None = None
) -> FetchError:
    """The `FetchError` for any exception that a request to `host` raised before its response. Through a
    `proxy` (its URL) that is the only one to which a connection is made."""
    if proxy is not None and isinstance(error, httpcore.ConnectError | httpcore.ConnectTimeout):
        causes = list(_causes(error))
        if not any(isinstance(cause, FetchError | ssl.SSLError) for cause in causes):
            parts = urlsplit(proxy)
            where = f"{parts.hostname}" if parts.port is None else f"{parts.hostname}:{parts.port}"
            found = (
                "its name does not resolve"
                if any(isinstance(cause, socket.gaierror) for cause in causes)
                else f"no answer within {connect_timeout:g} s"
                if isinstance(error, httpcore.ConnectTimeout)
                else _system(error)
            )
            sentence = f"No connection to the outbound proxy {where}: {found}."
            return FetchError("connect", sentence, advice="Start it, or correct RSS_PROXY.")
    for cause in _causes(error):
        # Raised by the address policy within a connection attempt.
        if isinstance(cause, FetchError):
            return cause
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate(cause, host)
        # Without a reason it was the connection: some versions raise the bare class if a peer closes it.
        if isinstance(cause, ssl.SSLError) and cause.reason and not isinstance(cause, _NOT_ABOUT_TLS):
            return _handshake(cause.reason, host)
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return FetchError(
                "connect", f"{host} closed the TLS connection before it answered.", reached=True
            )
        if isinstance(cause, socket.gaierror):
            return _name(cause, host)
        if _is_too_long(cause):
            return _too_long(host)
    match error:
        case httpcore.ConnectTimeout():
            return FetchError("timeout", f"{host} did not accept a connection within {connect_timeout:g} s.")
        case httpcore.ProxyError():
            return FetchError("connect", f"The outbound proxy could not connect to {host}: is it running?")
        case httpcore.LocalProtocolError():
            # The exception's text quotes the header, which may be a password.
            return FetchError(
                "bad_url",
                f"The request to {host} is not valid HTTP.",
                advice="A header that is set for this feed contains a line break or another character "
                "that HTTP does not allow.",
            )
        case httpcore.RemoteProtocolError() if _is_closed_by_peer(error):
            return FetchError(
                "connect", f"{host} closed the connection before it had answered.", reached=True
            )
        case httpcore.RemoteProtocolError():
            about = next((said for name, said in _FRAMING.items() if name in str(error)), "")
            return FetchError("connect", f"{host} sent an answer that is not HTTP{about}.", reached=True)
        case httpcore.UnsupportedProtocol():
            return bad_host(host)
        case (
            httpcore.TimeoutException()
            | httpcore.NetworkError()
            | OSError()
            | anyio.BrokenResourceError()
            | anyio.ClosedResourceError()
        ):
            reached = any(isinstance(cause, _FROM_SOMEBODY) for cause in _causes(error))
            return FetchError("connect", f"No connection to {host}: {_system(error)}.", reached=reached)
        case ValueError():
            return bad_host(host)
        case _:
            return FetchError("connect", f"The answer of {host} could not be read.")


def body_error(error: Exception, host: str) -> FetchError:
    """The `FetchError` for any exception that ended a body early, except the visit's own deadline."""
    for cause in _causes(error):
        if isinstance(cause, FetchError):
            return cause
        if _is_too_long(cause):
            return _too_long(host)
    if isinstance(error, httpcore.RemoteProtocolError) and not _is_closed_by_peer(error):
        return FetchError(
            "truncated",
            f"{host} sent bytes that are not HTTP within the body; the next visit requests it again.",
        )
    return FetchError(
        "truncated",
        f"{host} closed the connection before the body was complete; the next visit requests it again.",
    )


def _is_closed_by_peer(error: httpcore.RemoteProtocolError) -> bool:
    """h11 and httpcore give this error and a syntax error the same class: only their texts differ."""
    return str(error).startswith(("peer closed", "Server disconnected"))


def _is_too_long(cause: BaseException) -> bool:
    """True for h11's error for a head, or a chunk's framing, of more than 100 KB (RFC 6585 5)."""
    return getattr(cause, "error_status_hint", None) == 431


def _too_long(host: str) -> FetchError:
    return FetchError("too_large", f"{host} sent a header or chunk framing of more than 100 KB.")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and all its causes; contexts too, since httpcore raises `from None`."""
    waiting: list[BaseException | None] = [error]
    met: set[int] = set()
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in met:
            continue
        met.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting.extend(cause.exceptions)
        waiting += [cause.__context__, cause.__cause__]


def _system(error: Exception) -> str:
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            # asyncio puts the address into strerror: "Connect call failed ('192.0.2.1', 80)".
            refused = isinstance(cause, ConnectionRefusedError)
            return "connection refused" if refused else cause.strerror.lower()
    return "the host closed it or cannot be reached"


def _name(error: socket.gaierror, host: str) -> FetchError:
    if error.errno == socket.EAI_AGAIN:
        return FetchError(
            "dns", f"The name server gave no answer for {host}; if this continues, check this machine's DNS."
        )
    return FetchError(
        "dns",
        f"The host name {host} does not resolve: it is misspelt, or the site is gone.",
        advice="Check its spelling.",
    )


# Reasons of OpenSSL's sslerr.h.
_NO_TLS = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "RECORD_LAYER_FAILURE",
        "PACKET_LENGTH_TOO_LONG",
        "HTTP_REQUEST",
        "UNKNOWN_PROTOCOL",
    }
)
_OLD_TLS = frozenset({"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"})


def _handshake(reason: str, host: str) -> FetchError:
    if reason in _NO_TLS:
        return FetchError(
            "tls",
            f"{host} does not speak TLS at this port.",
            advice="Write http:// in feeds.yaml, or the port that speaks TLS.",
        )
    if reason in _OLD_TLS:
        return FetchError(
            "tls",
            f"{host} supports only versions of TLS that are no longer safe (older than 1.2); the publisher "
            "has to update the server.",
        )
    return FetchError(
        "tls",
        f"The TLS handshake with {host} failed: {reason.replace('_', ' ').lower()}.",
        advice="Check the host in its URL, or contact the publisher.",
    )


# X509_V_ERR_* of OpenSSL's x509_vfy.h.
_EXPIRED, _NOT_YET_VALID, _SELF_SIGNED = 10, 9, 18
_WRONG_NAME = frozenset({62, 64})
_UNKNOWN_AUTHORITY = frozenset({2, 19, 20, 21, 27})


def _certificate(error: ssl.SSLCertVerificationError, host: str) -> FetchError:
    advice = ""
    match error.verify_code:
        case code if code == _EXPIRED:
            why = "has expired; the publisher has to renew it (or this machine's clock is ahead)"
        case code if code == _NOT_YET_VALID:
            why = "is not valid yet; check this machine's clock"
        case code if code in _WRONG_NAME:
            why = "is for another name (wrong name); the site may have moved, or its server is misconfigured"
            advice = "Check the host in its URL."
        case code if code == _SELF_SIGNED:
            why = "is self-signed: no authority has signed it"
            advice = "If the server is your own, name the file of its certificate in RSS_CA_FILE."
        case code if code in _UNKNOWN_AUTHORITY:
            why = (
                "is signed by an unknown authority, or the server does not send the intermediate "
                "certificates; the publisher has to fix that"
            )
            advice = "If the authority is your own or your company's, name its file in RSS_CA_FILE."
        case _:
            why = f"is not accepted: {error.verify_message}"
    return FetchError("tls", f"The TLS certificate of {host} {why}.", advice=advice)
