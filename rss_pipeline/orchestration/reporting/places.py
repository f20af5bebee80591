"""The place of an object as metadata that a browser can use."""

from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import dagster as dg


def place(url: str) -> dg.MetadataValue[Any]:
    """A link, or for a file its path: browsers follow no link from the UI to a file."""
    if url.startswith("file:"):
        return dg.MetadataValue.path(url2pathname(urlsplit(url).path))
    return dg.MetadataValue.url(url)
