"""The size of an image in pixels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImageSize:
    """Width and height as a browser shows them, both at least 1."""

    width: int
    height: int
