"""How many examples a property is tried with."""

from hypothesis import settings


def examples(wanted: int) -> int:
    """So many in `make test`, and in `make quick` the part of them that its profile has of the usual 100."""
    return max(1, wanted * settings().max_examples // 100)
