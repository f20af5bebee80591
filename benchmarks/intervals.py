"""What the rules for intervals cost and miss in a year of publishing: `auto` beside those of its peers.

The feeds and the visits are those of the tests (rss_pipeline_tests/collector/schedule); here are the table
and the factors. No network; the same every time.
`python -m benchmarks.intervals [--feeds 100] [--seed 1]`
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from rss_pipeline_tests.collector.schedule.simulated_year import (
    PEERS,
    Auto,
    Peer,
    Rule,
    Score,
    visit_for_a_year,
)
from rss_pipeline_tests.collector.schedule.synthetic_feeds import CLASSES, SyntheticFeed, synthetic_feeds


class Year:
    """The feeds, and the processes in which rules visit them."""

    def __init__(self, feeds: Sequence[SyntheticFeed], pool: ProcessPoolExecutor) -> None:
        self._feeds = feeds
        self._pool = pool

    def scores(self, make: Callable[[SyntheticFeed], Rule]) -> dict[str, Score]:
        """A rule's score, a class and "all"."""
        found = {kind: Score() for kind in (*CLASSES, "all")}
        visits = self._pool.map(_visited, [make] * len(self._feeds), self._feeds, chunksize=3)
        for feed, score in zip(self._feeds, visits, strict=True):
            found[feed.kind].add(score)
            found["all"].add(score)
        return found

    def scaled(self, name: str, requests: int) -> tuple[float, dict[str, Score]]:
        """A peer's rule with the factor at which it makes as many requests, within 0.5 %, and its score."""
        factor = 1.0
        while True:
            found = self.scores(Peer(name=name, factor=factor))
            more = found["all"].requests / requests
            if abs(more - 1) <= 0.005:
                return factor, found
            # Bounds keep some feeds from following the factor, so it goes a little further.
            factor *= more**1.4


def _visited(make: Callable[[SyntheticFeed], Rule], feed: SyntheticFeed) -> Score:
    return visit_for_a_year(feed, make(feed))


def table(rows: Mapping[str, Mapping[str, Score]], kind: str) -> Iterator[str]:
    """The lines of a Markdown table."""
    yield "| rule | requests | missed items | mean delay | 90th percentile |"
    yield "|---|---:|---:|---:|---:|"
    for name, score in rows.items():
        of = score[kind]
        yield (
            f"| {name} | {of.requests:,} | {of.missed:,} "
            f"| {of.mean_minutes:.1f} min | {of.ninetieth_minutes:.1f} min |"
        )


def main() -> None:
    """Visit for a year by each rule, and print the tables in Markdown."""
    parser = argparse.ArgumentParser(description="Compare rules for intervals over a synthetic year.")
    parser.add_argument("--feeds", type=int, default=100, help="how many, a multiple of 20 (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="another year (default 1)")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        year = Year(synthetic_feeds(arguments.feeds, seed=arguments.seed), pool)
        ours = year.scores(Auto)
        rules = {"**auto**": ours, **{name: year.scores(Peer(name=name)) for name in PEERS}}
        scaled = {"**auto**": ours}
        for name in ("fixed 60 min", "commafeed", "miniflux"):
            factor, found = year.scaled(name, ours["all"].requests)
            scaled[f"{name} × {factor:.2f}"] = found
    items = len(ours["all"].waits) + ours["all"].missed
    print(f"{arguments.feeds} feeds, {items:,} items, seed {arguments.seed}")
    print("\n## Each rule as it stands")
    for kind in ("all", *CLASSES):
        print(f"\n{kind}:\n", *table(rules, kind), sep="\n")
    print("\n## Each peer's rule scaled to as many requests as auto, from 15 min to 24 h")
    for kind in ("all", *CLASSES):
        print(f"\n{kind}:\n", *table(scaled, kind), sep="\n")
    peers = [found["all"] for name, found in scaled.items() if name != "**auto**"]
    best, fewest = min(peer.mean_minutes for peer in peers), min(peer.missed for peer in peers)
    print(
        f"\nMean delay of auto beside the best of the others at as many requests:"
        f" {ours['all'].mean_minutes / best:.2f} (goal: at most 0.80)."
        f" Missed: {ours['all'].missed:,} beside {fewest:,} (goal: no more)."
    )


if __name__ == "__main__":
    main()
