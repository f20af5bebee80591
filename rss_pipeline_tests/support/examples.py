"""The number of examples of a property."""

from hypothesis import settings


def examples(wanted: int) -> int:
    """The profile's share of so many examples: half in `make test`, a fifth in `make quick`."""
    return max(1, wanted * settings().max_examples // 100)
