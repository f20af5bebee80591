"""The result of `poll`: a summary, a table of failures, and why requested feeds were not visited.

The poll itself is in pipeline/visits/rounds.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from rich.text import Text

from rss_pipeline.cli.output.terminal import ROWS_SHOWN, new_console, new_table, plain
from rss_pipeline.collector.models.feed_names import feed_name, short_title

if TYPE_CHECKING:
    from rss_pipeline.pipeline.visits.rounds import NotVisited, Round


_TOPICS_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PollResult:
    """The result of the rounds of a poll."""

    counts: Mapping[str, int]
    failures: Sequence[tuple[str, str | None, str, str]]
    """Feed id, title, kind and sentence."""
    errors: Sequence[str]
    runs: Sequence[str]
    left: "Sequence[NotVisited]" = ()
    published: Sequence[str] = ()
    """Topics with changed documents."""
    publication_error: str | None = None
    """The failure of the store of topics. The next poll tries again."""
    nothing_reached: str | None = None
    """No feed could be reached: now, or a short time ago if nothing was due."""
    claimed: int = 0
    """Feeds that are due, where nothing was visited: other runs have claimed them, or their hosts."""
    requested: int = 0
    """Visits that users of the reader waited for."""
    registry_error: str | None = None
    """The mistakes of feeds.yaml: the poll was one of the feeds of before."""

    @classmethod
    def of(
        cls,
        rounds: "Sequence[Round]",
        left: "Sequence[NotVisited]" = (),
        *,
        counts: Mapping[str, int] | None = None,
    ) -> Self:
        """`counts` are of all visits, where the rounds have only those that did not go well."""
        from rss_pipeline.pipeline.visits.summary import failures, summary

        visits = [visit for round_ in rounds for visit in round_.visits]
        return cls(
            counts=summary(visits) if counts is None else counts,
            failures=[(each.feed_id, each.title, each.kind, each.message) for each in failures(visits)],
            errors=[round_.error for round_ in rounds if round_.error is not None],
            runs=[round_.run_id for round_ in rounds],
            left=left,
            published=[topic for round_ in rounds for topic in round_.published],
            publication_error=next(
                (each.publication_error for each in rounds if each.publication_error), None
            ),
        )

    @property
    def needs_a_person(self) -> bool:
        """True for what no later poll repairs by itself. Feeds that fail are not among it."""
        found = (self.errors, self.publication_error, self.nothing_reached, self.registry_error)
        return any(found)

    def as_json(self) -> dict[str, Any]:
        return {
            **self.counts,
            "failures": [
                dict(zip(("feed_id", "title", "kind", "message"), row, strict=True)) for row in self.failures
            ],
            "not_visited": [asdict(each) for each in self.left],
            "errors": list(self.errors),
            "published": list(self.published),
            "publication_error": self.publication_error,
            "nothing_reached": self.nothing_reached,
            "registry_error": self.registry_error,
            "requested": self.requested,
            "runs": list(self.runs),
        }

    def not_visited(self) -> list[str]:
        """A sentence with the reason for each feed that was not visited; of many, the first ones."""
        sentences = [
            f"{feed_name(each.feed_id, each.title)} was not visited: {each.message}"
            for each in self.left[:ROWS_SHOWN]
        ]
        if len(self.left) > ROWS_SHOWN:
            sentences.append(f"... and {len(self.left) - ROWS_SHOWN} more; --json has them all")
        return sentences

    def _nothing_due(self) -> str:
        if not self.claimed:
            return "Nothing was due."
        feeds = "1 feed is" if self.claimed == 1 else f"{self.claimed:,} feeds are"
        return f"{feeds} due, and other runs have claimed them or their hosts: nothing was left to visit."

    def show(self) -> None:
        """Print the summary, then a table of the failed visits, then the errors of runs."""
        console = new_console()
        visited = sum(self.counts[name] for name in ("stored", "unchanged", "failed"))
        if self.requested:
            visits = "1 visit was" if self.requested == 1 else f"{self.requested:,} visits were"
            console.print(f"{visits} made for users of the reader.")
        if visited == 0 and self.errors:
            pass  # The error says it all.
        elif visited == 0 and self.nothing_reached is not None:
            pass  # As below.
        elif visited == 0 and self.requested:
            pass
        elif visited == 0:
            has_reason = self.left or self.registry_error
            console.print("No feed was visited." if has_reason else self._nothing_due())
        else:
            console.print(
                f"{visited} feeds visited: {self.counts['stored']} with a new document,"
                f" {self.counts['unchanged']} unchanged, {self.counts['failed']} failed;"
                f" {self.counts['items_new']} new items."
            )
            if gaps := self.counts["gaps"]:
                console.print(
                    f"{gaps} feeds had no item in common with the document before, so items were probably"
                    " missed; `rss-pipeline status` names them."
                )
        if self.published:
            names = ", ".join(self.published[:_TOPICS_SHOWN])
            more = (
                f" and {len(self.published) - _TOPICS_SHOWN} more" if self.published[_TOPICS_SHOWN:] else ""
            )
            console.print(f"{len(self.published)} topics published: {names}{more}.")
        if self.failures:
            table = new_table("feed", "title", "kind", "what happened")
            for feed, title, kind, message in self.failures[:ROWS_SHOWN]:
                table.add_row(feed, short_title(title), kind, plain(message))
            console.print(table)
            if len(self.failures) > ROWS_SHOWN:
                console.print(f"... and {len(self.failures) - ROWS_SHOWN} more; --json has them all")
        if self.nothing_reached is not None:
            console.print(Text(self.nothing_reached, style="red"), soft_wrap=True)
        for error in self.errors:
            console.print(Text(f"The run failed: {plain(error)}", style="red"), soft_wrap=True)
