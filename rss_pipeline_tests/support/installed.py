"""The features that are there: what a test of another room says of one is left out without it."""

from rss_pipeline.features import FEATURES

INSTALLED = frozenset(feature.name for feature in FEATURES)

_ADDRESSES = {"opml": "/settings/opml", "search": "/search", "statistics": "/statistics"}


def there(*addresses: str) -> list[str]:
    """The addresses of the reader among these that no removed feature had."""
    gone = [part for name, part in _ADDRESSES.items() if name not in INSTALLED]
    return [each for each in addresses if not any(part in each for part in gone)]
