"""The TLS context of all clients: the usual certificate authorities, and those in RSS_CA_FILE."""

import ssl
from pathlib import Path

from rss_pipeline.httpx_without_cli import httpx


def tls_context(ca_file: Path | None, *, trust_env: bool = False) -> ssl.SSLContext:
    """A context for clients, TLS 1.2 or later, that trusts `ca_file` (PEM) besides the usual authorities.

    With `trust_env`, the usual ones come from SSL_CERT_FILE and SSL_CERT_DIR. It reads files: some 20 ms.
    """
    trust = httpx.create_ssl_context(trust_env=trust_env)
    # The default minimum differs between versions of Python.
    trust.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        trust.load_verify_locations(ca_file)
    return trust
