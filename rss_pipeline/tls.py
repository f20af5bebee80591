"""The TLS context of all clients: the usual certificate authorities, and those in RSS_CA_FILE."""

import ssl
from functools import cache
from pathlib import Path

from rss_pipeline.httpx_without_cli import httpx


def tls_context(ca_file: Path | None, *, trust_env: bool = False) -> ssl.SSLContext:
    """A context for clients, TLS 1.2 or later, that trusts `ca_file` (PEM) besides the usual authorities.

    With `trust_env`, the usual ones come from SSL_CERT_FILE and SSL_CERT_DIR. Their files are read at each
    call, in some 20 ms, because they may be renewed; those that come with httpx once a process.
    """
    return _usual() if ca_file is None and not trust_env else _new(ca_file, trust_env=trust_env)


@cache
def _usual() -> ssl.SSLContext:
    return _new(None, trust_env=False)


def _new(ca_file: Path | None, *, trust_env: bool) -> ssl.SSLContext:
    trust = httpx.create_ssl_context(trust_env=trust_env)
    # The default minimum differs between versions of Python.
    trust.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        trust.load_verify_locations(ca_file)
    return trust
