"""Newsboat on a folder of its own, as a person at a terminal uses it: set up by docs/reader.md, then by its
commands, and by keys in tmux.

No test is in here.
"""

import fcntl
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline_tests.support.waiting import PATIENCE, soon

MISSING = [name for name in ("newsboat", "tmux") if shutil.which(name) is None]
"""The program that has to be installed for it and is not."""
STAR = "s"
"""The flag that is a star."""
_MANUAL = Path(__file__).parents[3] / "docs" / "reader.md"


@dataclass(frozen=True, slots=True)
class Article:
    guid: str
    title: str
    link: str
    content: str
    is_unread: bool
    flags: str


class Newsboat:
    """One user's newsboat, with a Google Reader account (its kind FeedHQ)."""

    def __init__(self, folder: Path, *, url: str, name: str, password: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._cache = folder / "cache.db"
        config = folder / "config"
        ours = ("confirm-exit no", "mark-as-read-on-hover no", "")
        config.write_text("\n".join([*_lines_of_the_manual(url, name, password), *ours]), "utf-8")
        urls = folder / "urls"
        urls.write_text("", "utf-8")
        self._command = ["newsboat", "-C", str(config), "-u", str(urls), "-c", str(self._cache)]

    def reload(self) -> str:
        """Load all feeds without a terminal; the count of unread articles as newsboat says it."""
        done = subprocess.run(
            [*self._command, "-x", "reload", "print-unread"],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self._environ(),
        )
        return done.stdout.strip()

    def articles(self) -> list[Article]:
        """All articles that newsboat has stored, by title."""
        with closing(sqlite3.connect(f"file:{self._cache}?mode=ro", uri=True)) as cache:
            rows = cache.execute(
                "SELECT guid, title, url, content, unread, coalesce(flags, '') FROM rss_item"
                " WHERE deleted = 0 ORDER BY title"
            ).fetchall()
        return [Article(*row[:4], is_unread=bool(row[4]), flags=row[5]) for row in rows]

    @contextmanager
    def at_terminal(self) -> Iterator["Terminal"]:
        """Newsboat in a terminal, until the end of the block."""
        terminal = Terminal(self._folder / "tmux")
        terminal.start(self._command, self._environ())
        try:
            yield terminal
        finally:
            terminal.end()
            soon(self._is_over)

    def _is_over(self) -> bool:
        """True if no newsboat has the lock of the cache any more: another one would not start."""
        lock = self._cache.with_name(f"{self._cache.name}.lock")
        if not lock.exists():
            return True
        with lock.open("r+") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        return True

    def _environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self._folder), "LANG": "C.UTF-8", "TERM": "xterm", "no_proxy": "*"}


class Terminal:
    """A terminal of tmux: keys go in, lines come out."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", os.devnull]

    def start(self, command: list[str], environ: dict[str, str]) -> None:
        size = ["-x", "120", "-y", "40"]
        subprocess.run([*self._tmux, "new-session", "-d", *size, *command], check=True, env=environ)

    def keys(self, *keys: str) -> None:
        """Press these keys."""
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def screen(self) -> str:
        done = subprocess.run([*self._tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True)
        return done.stdout

    def shows(self, text: str) -> None:
        """Wait until the screen has this text."""

        def is_there() -> bool:
            return text in self.screen()

        soon(is_there)

    def end(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


def _lines_of_the_manual(url: str, name: str, password: str) -> list[str]:
    """The values that docs/reader.md says to write, with these values in place of its own."""
    lines = re.search(r"^```ini\n(urls-source.*?)^```", _MANUAL.read_text("utf-8"), re.M | re.S)
    assert lines is not None
    values = {"feedhq-url": url, "feedhq-login": name, "feedhq-password": password}
    return [
        f'{option} "{values.get(option, value)}"'
        for option, value in re.findall(r'^(\S+) "?(.*?)"?$', lines[1], re.M)
    ]
