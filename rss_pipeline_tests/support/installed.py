"""The features that are there: what a test of another room says of one is left out without it."""

from collections.abc import Iterable

from rss_pipeline.features import FEATURES

INSTALLED = frozenset(feature.name for feature in FEATURES)

_ADDRESSES = {"opml": "/settings/opml", "search": "/search", "statistics": "/statistics"}


def there(*addresses: str) -> list[str]:
    """The addresses of the reader among these that no removed feature had."""
    gone = [part for name, part in _ADDRESSES.items() if name not in INSTALLED]
    return [each for each in addresses if not any(part in each for part in gone)]


def of_features(**names: Iterable[str]) -> set[str]:
    """The names, by feature, of what belongs to the features that are there."""
    return {each for feature, its_own in names.items() if feature in INSTALLED for each in its_own}
