"""Rows of items as JSON objects, in the words of all JSON that the command prints.

An object's own id is `id`, and a feed's elsewhere `feed_id`; instants end in `_at`; flags are true or false.
The fields that an export has too (storage.items.read.StoredItem) have the same names there.
"""

import json
from typing import Any

from rss_pipeline.storage.database import Row
from rss_pipeline.storage.items.items import stored_authors

_NAMES = {"pub_date": "published_at", "pub_date_raw": "published_raw", "created_at": "collected_at"}
_LISTS = frozenset({"categories", "enclosures"})


def item_as_json(row: Row) -> dict[str, Any]:
    """A row of `storage.items.items`, of one item or of a list."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name == "pub_date_source":
            found["is_dated"] = value == "feed"
        elif name == "authors":
            found[name] = list(stored_authors(row))
        elif name in _LISTS:
            found[name] = json.loads(value)
        else:
            whole = isinstance(value, float) and value.is_integer()
            found[_NAMES.get(name, name)] = int(value) if whole else value
    return found
