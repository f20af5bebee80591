"""Paths in JSON, which SQLite writes as `'$.name'` and `'$[0].name'`, for Postgres."""

import re
from collections.abc import Sequence

from rss_pipeline.storage.backends.postgres.tokens import Node, Token

_STEP = re.compile(r"""\.(?P<name>\w+)|\."(?P<quoted>[^"']+)"|\[(?P<index>\d+)\]""")


def keys_of(path: Sequence[Node]) -> list[str] | None:
    """The steps of a path that is a literal, as literals of Postgres: `'name'` and `0`; None for others."""
    if len(path) != 1 or not isinstance(path[0], Token) or path[0].kind != "string":
        return None
    text = path[0].text[1:-1]
    if not text.startswith("$"):
        return None
    keys, at = [], 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        keys.append(step["index"] or f"'{step['name'] or step['quoted']}'")
        at = step.end()
    return keys or None


def path_of(keys: Sequence[str]) -> str:
    """Several steps as one path."""
    return "ARRAY[" + ", ".join(key if key.startswith("'") else f"'{key}'" for key in keys) + "]"
