"""Liferea on a folder of its own, with a display and a session bus that are only its own.

No test is in here.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from rss_pipeline_tests.support.waiting import PATIENCE

MISSING = [
    name for name in ("liferea", "xvfb-run", "dbus-run-session", "gdbus") if shutil.which(name) is None
]
"""The program that has to be installed for it and is not."""

_FEED_LIST = """<?xml version="1.0"?>
<opml version="1.0"><head><title>Liferea Feed List Export</title></head><body>
<outline title="Reader" text="Reader" description="Reader" type="source" id="areader"
  sourceType="fl_google_reader" xmlUrl={url} username={name} password={password} updateInterval="-1"/>
</body></opml>
"""


@dataclass(frozen=True, slots=True)
class Headline:
    id: int
    source_id: str
    title: str
    link: str
    text: str
    is_read: bool
    is_starred: bool


class Liferea:
    """One user's Liferea, with a Google Reader account."""

    def __init__(self, folder: Path, *, url: str, name: str, password: str) -> None:
        self._folder = folder
        config = folder / "config" / "liferea"
        config.mkdir(parents=True)
        feed_list = _FEED_LIST.format(url=quoteattr(url), name=quoteattr(name), password=quoteattr(password))
        (config / "feedlist.opml").write_text(feed_list, "utf-8")
        settings = folder / "config" / "glib-2.0" / "settings"
        settings.mkdir(parents=True)
        # A question in a dialog would end the wait for an answer.
        (settings / "keyfile").write_text("[org/gnome/liferea]\nconfirm-mark-all-read=false\n", "utf-8")
        self._database = folder / "data" / "liferea" / "liferea.db"
        self._bus = folder / "bus"

    @contextmanager
    def running(self) -> Iterator["Liferea"]:
        """Liferea, until the end of the block. It loads its feeds when it starts."""
        started = f'printf %s "$DBUS_SESSION_BUS_ADDRESS" > {self._bus}; exec liferea --debug-net'
        command = ["xvfb-run", "-a", "dbus-run-session", "--", "sh", "-c", started]
        with (self._folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environ(),
                start_new_session=True,
            )
            try:
                yield self
            finally:
                self._end(process)

    def activate(self, action: str) -> None:
        """The action of a menu entry."""
        command = ["gdbus", "call", "--address", self._bus.read_text(), "--dest", "net.sourceforge.liferea"]
        call = ["--object-path", "/net/sourceforge/liferea", "--method", "org.gtk.Actions.Activate"]
        subprocess.run(
            [*command, *call, action, "[]", "{}"],
            check=True,
            capture_output=True,
            env=self._environ(),
            timeout=PATIENCE,
        )

    def headlines(self) -> list[Headline]:
        """All headlines that Liferea has stored, by title."""
        if not self._database.exists():
            return []
        place = f"file:{self._database}?mode=ro"
        with closing(sqlite3.connect(place, uri=True, timeout=PATIENCE)) as database:
            # At its first start it has a file before it has a table.
            if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'items'").fetchone():
                return []
            rows = database.execute(
                "SELECT item_id, source_id, title, source, description, read, marked FROM items"
                " WHERE comment = 0 ORDER BY title"
            ).fetchall()
        return [Headline(*row[:5], is_read=bool(row[5]), is_starred=bool(row[6])) for row in rows]

    def log(self) -> str:
        return (self._folder / "log").read_text("utf-8", "replace")

    def _environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        own = {
            f"XDG_{kind}_HOME": str(self._folder / kind.lower())
            for kind in ("CONFIG", "DATA", "CACHE", "STATE")
        }
        runtime = self._folder / "runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        fixed = {
            "HOME": str(self._folder),
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(runtime),
            "GSETTINGS_BACKEND": "keyfile",
            "NO_AT_BRIDGE": "1",
            "WEBKIT_DISABLE_COMPOSITING_MODE": "1",
            "WEBKIT_FORCE_SANDBOX": "0",
            "no_proxy": "*",
        }
        return {**kept, **own, **fixed}

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """The whole group: xvfb-run leaves its display behind when it is only ended."""
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)
