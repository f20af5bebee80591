"""The peak memory of `rss-pipeline poll` for one large podcast: 26 MB, 800 episodes of 33 KB.

It comes from a server on loopback, packed with gzip and as it is; the memory is that of the whole process
tree. `python -m benchmarks.large_feed [--episodes 800] [--kilobytes 33]`
"""

import argparse
import gzip
import json
import random
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.processes import environment, measure, rss_pipeline

HOST = "127.0.0.2"


def document(episodes: int, kilobytes: int) -> bytes:
    """A podcast with notes of made-up words, each episode's its own: they pack as prose does."""
    chance = random.Random(1)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(4_000)
    ]

    def notes() -> Iterator[str]:
        left = kilobytes * 1000
        while left > 0:
            part = (
                f'<p>{" ".join(chance.choices(words, k=60))} <a href="https://a.example/{left}">more</a></p>'
            )
            left -= len(part)
            yield part

    enclosure = "<enclosure url='https://a.example/{}.mp3' length='1' type='audio/mpeg'/>"
    items = "".join(
        f"<item><title>Episode {n}</title><guid>{n}</guid>{enclosure.format(n)}"
        f"<description><![CDATA[{''.join(notes())}]]></description></item>"
        for n in range(episodes)
    )
    return f"<rss version='2.0'><channel><title>Podcast</title>{items}</channel></rss>".encode()


@contextmanager
def served(body: bytes) -> Iterator[int]:
    """A server of the document at /plain and /gzip; gives its port."""
    answers = {"/plain": (body, ""), "/gzip": (gzip.compress(body), "gzip")}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent, coding = answers[self.path]
            self.send_response(200)
            self.send_header("Content-Type", "application/rss+xml")
            self.send_header("Content-Length", str(len(sent)))
            if coding:
                self.send_header("Content-Encoding", coding)
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=800)
    parser.add_argument("--kilobytes", type=int, default=33)
    options = parser.parse_args()
    body = document(options.episodes, options.kilobytes)
    with served(body) as port:
        for path in ("/gzip", "/plain"):
            with tempfile.TemporaryDirectory() as folder:
                _poll(Path(folder), f"http://{HOST}:{port}{path}", body, options.episodes)


def _poll(home: Path, url: str, body: bytes, episodes: int) -> None:
    feed = {"url": url, "allow_private": True, "max_size": "200MB"}
    (home / "feeds.yaml").write_text(json.dumps({"feeds": [feed]}))
    disk = {"RSS_IMAGE_FREE_PERCENT": "0", "RSS_IMAGE_FREE_GB": "0"}
    env = environment(RSS_PIPELINE_HOME=str(home / "var"), **disk)
    measured = measure([rss_pipeline(), "poll"], cwd=home, env=env)
    with closing(sqlite3.connect(home / "var" / "rss.sqlite")) as database:
        [(count,)] = database.execute("SELECT count(*) FROM items").fetchall()
    if count != episodes:
        raise SystemExit(f"{count} of {episodes} episodes were stored:\n{measured.stdout}{measured.stderr}")
    size = f"{len(body) / 1e6:.1f} MB, {count} episodes"
    print(
        f"{url.rpartition('/')[2]:<5}  {size}: {measured.seconds:.1f} s,"
        f" peak {measured.peak_rss / 1e6:.0f} MB,"
        f" {(measured.peak_pss or 0) / 1e6:.0f} MB with shared pages counted once",
        flush=True,
    )


if __name__ == "__main__":
    main()
