"""How many examples a property is tried with."""

from hypothesis import settings


def examples(wanted: int) -> int:
    """Of so many the part that the profile has of 100: half in `make test`, a fifth in `make quick`."""
    return max(1, wanted * settings().max_examples // 100)
