"""Requests by TLS: certificates that are trusted or not, and handshakes that fail. A real server."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rss_pipeline.collector.http.network_errors import request_error
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline_tests.collector.fetch.rounds import RSS, feed, fetch
from rss_pipeline_tests.collector.http.exchange import HOST, failure, served_once
from rss_pipeline_tests.support.server import Answer, FeedServer

TLS = Path(__file__).parents[2] / "support" / "tls"
"""A test authority and three certificates of its own for 127.0.0.2, valid from 2020 to 2120 or 2021."""


@contextmanager
def handshake_refused(context: ssl.SSLContext) -> Iterator[str]:
    """The address of a listener that tries one handshake, says why it fails, and closes."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client, suppress(ssl.SSLError):
                context.wrap_socket(client, server_side=True)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"{HOST}:{listener.getsockname()[1]}"
        thread.join()


class TestTls:
    @staticmethod
    def serve(certificate: str) -> FeedServer:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / f"{certificate}.pem")
        return FeedServer(tls=context)

    @pytest.mark.parametrize(
        ("certificate", "trusted", "says"),
        [
            ("expired", "authority", "has expired; the publisher has to renew it"),
            ("not_yet_valid", "not_yet_valid", "is not valid yet; check this machine's clock"),
            ("wrong_name", "authority", "(wrong name); the site may have moved"),
            ("good", None, "unknown authority"),
            ("good", None, "If the authority is your own or your company's, name its file in RSS_CA_FILE."),
            ("self_signed", None, "is self-signed"),
            (
                "self_signed",
                None,
                "If the server is your own, name the file of its certificate in RSS_CA_FILE.",
            ),
        ],
    )
    def test_a_certificate_that_is_not_accepted_says_why(
        self, certificate: str, trusted: str | None, says: str, tmp_path: Path
    ) -> None:
        with self.serve(certificate) as server:
            url = server.route(HOST, "/feed", Answer(body=RSS))
            ca_file = TLS / f"{trusted}.pem" if trusted else None
            outcome = failure(fetch(feed(url), tmp_path, ca_file=ca_file), "tls", tmp_path)
            assert says in outcome.message
            assert server.requests == []

    @pytest.mark.parametrize(("code", "says"), [(9, "this machine's clock"), (23, "revoked")])
    def test_rarer_faults_of_certificates(self, code: int, says: str) -> None:
        error = ssl.SSLCertVerificationError()
        error.verify_code, error.verify_message = code, "certificate revoked"
        trouble = request_error(error, "a.example", connect_timeout=1)
        assert trouble.kind == "tls"
        assert says in trouble.message

    def test_a_certificate_of_one_s_own_is_accepted_where_it_is_trusted(self, tmp_path: Path) -> None:
        with self.serve("self_signed") as server:
            url = server.route(HOST, "/feed", Answer(body=RSS))
            assert isinstance(fetch(feed(url), tmp_path, ca_file=TLS / "self_signed.pem"), Document)

    def test_a_server_that_speaks_only_versions_that_are_too_old(self, tmp_path: Path) -> None:
        context = self.serving("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with handshake_refused(context) as address:
            outcome = failure(fetch(feed(f"https://{address}/feed"), tmp_path), "tls", tmp_path)
        assert "older than 1.2); the publisher has to update the server" in outcome.message

    def test_a_server_with_which_no_cipher_is_shared(self, tmp_path: Path) -> None:
        context = self.serving("AES128-SHA:@SECLEVEL=0")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with handshake_refused(context) as address:
            outcome = failure(fetch(feed(f"https://{address}/feed"), tmp_path), "tls", tmp_path)
        assert "The TLS handshake with " in outcome.message
        assert "handshake failure. Check the host in its URL, or contact the publisher." in outcome.message

    @staticmethod
    def serving(ciphers: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "good.pem")
        context.set_ciphers(ciphers)
        return context

    def test_a_certificate_that_is_accepted(self, tmp_path: Path) -> None:
        with self.serve("good") as server:
            url = server.route(HOST, "/feed", Answer(body=RSS, gzip=True))
            assert isinstance(fetch(feed(url), tmp_path, ca_file=TLS / "authority.pem"), Document)

    def test_https_at_a_port_that_speaks_http(self, tmp_path: Path) -> None:
        with served_once(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
            outcome = failure(fetch(feed(f"https://{address}/feed"), tmp_path), "tls", tmp_path)
        assert "does not speak TLS at this port. Write http://" in outcome.message
        assert not outcome.answered

    def test_a_handshake_that_no_one_answers(self, server: FeedServer, tmp_path: Path) -> None:
        url = server.url("127.0.0.1", "/feed").replace("http:", "https:")
        assert failure(fetch(feed(url), tmp_path, connect_timeout=0.2), "timeout", tmp_path).accepted

    def test_a_handshake_that_is_cut_off(self, tmp_path: Path) -> None:
        with served_once(b"") as address:
            outcome = failure(fetch(feed(f"https://{address}/feed"), tmp_path), "connect", tmp_path)
        assert outcome.message == f"{HOST} closed the TLS connection before it answered."

    def test_authorization_does_not_go_from_https_to_http(self, server: FeedServer, tmp_path: Path) -> None:
        target = server.route(HOST, "/feed", Answer(body=RSS))
        with self.serve("good") as secure:
            url = secure.route(HOST, "/feed", Answer(status=301, headers={"Location": target}))
            access = Access(username="me", password="hunter2")
            outcome = fetch(feed(url), tmp_path, access=access, ca_file=TLS / "authority.pem")
            assert isinstance(outcome, Document)
            assert "authorization" in secure.requests[0].headers
        assert "authorization" not in server.requests[0].headers
