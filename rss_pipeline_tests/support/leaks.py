"""A search of all files of a folder for secrets, in each form in which a text may repeat them."""

import base64
import html
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote


def forms(secret: str, user: str = "me") -> set[bytes]:
    """The secret as it is, as URL and HTML write it, and in base64 with its user; in lower case."""
    texts = {
        secret,
        quote(secret),
        quote(secret, safe=""),
        html.escape(secret),
        "".join(f"&#{ord(character)};" for character in secret),
        "".join(f"&#x{ord(character):x};" for character in secret),
        "".join(f"%{octet:02x}" for octet in secret.encode()),
        base64.b64encode(secret.encode()).decode().rstrip("="),
        base64.b64encode(f"{user}:{secret}".encode()).decode().rstrip("="),
    }
    return {text.lower().encode() for text in texts}


def leaks(folder: Path, secrets: Iterable[bytes]) -> set[str]:
    """Files that hold one of these, given in lower case: as bytes, or compressed in a database."""
    secrets = set(secrets)
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file()
        for text in _texts(path)
        if (lower := text.lower()) and any(secret in lower for secret in secrets)
    }


def _texts(path: Path) -> Iterator[bytes]:
    """A file's bytes, and what of a database's values is compressed."""
    yield path.read_bytes()
    if path.suffix not in {".db", ".sqlite"}:
        return
    with closing(sqlite3.connect(path)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            for row in database.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, bytes):
                        with suppress(zlib.error):
                            yield zlib.decompress(value)
