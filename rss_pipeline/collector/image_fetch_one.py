"""One image asked once: redirects, the Referer ladder, and whether what came is an image.

Not here: the round over many images (`image_fetch.py`), and which bytes are an image (`image_types.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from rss_pipeline.collector.image_types import ImageType
from rss_pipeline.collector.models import Failure, GivenBack

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """One image to be asked for."""

    id: str
    """Distinct in a round, and a file name: the image task's id."""
    url: str
    item_link: str | None = None
    """The page it stands on, where a refusing host may be told; None keeps it from all (a private feed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that has come whole."""

    type: ImageType
    size: int
    """Bytes of the body."""
    body: bytes | Path = field(repr=False)
    """A large one lies in the spool, until it has been kept."""
    url: str
    """Of the hop that gave it."""


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """The image came and was kept."""

    value: T
    """What keeping it returned."""


ImageOutcome = Kept[T] | Failure | GivenBack
Keep = Callable[[ImageRequest, Image], T]
