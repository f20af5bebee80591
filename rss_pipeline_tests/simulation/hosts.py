"""Hosts of a simulated fleet: how many feeds each has.

Heavy-tailed as in two public collections, read in November 2026:

- `lists`: plenaryapp/awesome-rss-feeds at 9ff012e, 781 feeds on 585 hosts. The largest are
  feeds.feedburner.com (69 feeds), www.youtube.com (29) and www.reddit.com (16). With more feeds these hosts
  grow, and the small ones become more.
- `smallweb`: smallweb.txt of kagisearch/smallweb at 761ee5c, 36,515 feeds on 36,225 hosts, with 5 at most.
"""

from collections.abc import Sequence

_LISTS_LARGE = (69, 29, 16, 8, 7, 7, 6, 6, 6, 5, 5)
_LISTS = 781
_LISTS_SMALL = {4: 0.036, 2: 0.072}
_SMALLWEB_SMALL = {3: 0.002, 2: 0.013}


def hosts(kind: str, feeds: int) -> list[int]:
    """The number of feeds of each host; `kind` is `lists`, `smallweb`, or a number of equal hosts."""
    if kind == "lists":
        return _spread(feeds, [size * feeds // _LISTS for size in _LISTS_LARGE], _LISTS_SMALL)
    if kind == "smallweb":
        return _spread(feeds, [], _SMALLWEB_SMALL)
    count = int(kind)
    return [feeds // count + (number < feeds % count) for number in range(count)]


def _spread(feeds: int, large: Sequence[int], small: dict[int, float]) -> list[int]:
    found = [size for size in large if size]
    for size, share in small.items():
        found += [size] * int(feeds * share / size)
    return [*found, *[1] * (feeds - sum(found))]
