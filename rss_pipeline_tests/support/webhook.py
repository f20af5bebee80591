"""A webhook on loopback, with Discord's limits, which are the narrowest."""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECRET = "T0/B0/sEcReT"


class Webhook:
    """A server that takes alerts within Discord's limits, or answers with another status."""

    def __init__(self, *, certificate: Path | None = None) -> None:
        self.status = 200
        self.asked = 0
        self.taken: list[dict[str, Any]] = []
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                webhook.asked += 1
                status = webhook.status if is_taken_by_discord(message) else 400
                if status == 200:
                    webhook.taken.append(message)
                self.send_response(status)
                self.end_headers()
                said = "ok" if status == 200 else f"invalid_token for {self.path}"
                self.wfile.write(said.encode())

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.2", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://127.0.0.2:{self._server.server_port}/services/{SECRET}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def is_taken_by_discord(message: dict[str, Any]) -> bool:
    fields = [field for attachment in message.get("attachments", ()) for field in attachment["fields"]]
    return (
        len(message["text"]) <= 2_000
        and len(fields) <= 25
        and all(0 < len(field["title"]) <= 256 and 0 < len(field["value"]) <= 1_024 for field in fields)
        and sum(len(field["title"]) + len(field["value"]) for field in fields) <= 6_000
    )
