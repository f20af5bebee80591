"""Whose certificates are accepted: the usual authorities', and those of the file that RSS_CA_FILE names."""

import ssl
from pathlib import Path

import httpx


def tls_context(ca_file: Path | None, *, trust_env: bool = False) -> ssl.SSLContext:
    """A context for clients, TLS 1.2 or later, that accepts `ca_file` (PEM) besides the usual authorities.

    With `trust_env`, SSL_CERT_FILE and SSL_CERT_DIR say which the usual ones are. It reads files: some 20 ms.
    """
    trust = httpx.create_ssl_context(trust_env=trust_env)
    # Pythons differ in what is the least by default.
    trust.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        trust.load_verify_locations(ca_file)
    return trust
