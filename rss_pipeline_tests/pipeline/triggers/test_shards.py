"""Which shards' polls start: the decision, case by case."""

from dataclasses import replace
from datetime import datetime, time, timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import shards
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait
from rss_pipeline.pipeline.triggers.starts import (
    SHARD_TAG,
    decide_by_shard,
    decide_sweep_by_shard,
    polls_of_all,
)
from rss_pipeline.storage.feeds.due import DueSummary
from rss_pipeline_tests.support.pipeline import NOON

ONE, TWO, THREE = shards(3)
NOTHING = DueSummary(due=0, never_fetched=0, oldest_due_at=None, live_run_ids=())
MANY = DueSummary(due=100, never_fetched=0, oldest_due_at=instant(NOON), live_run_ids=())
EARLIER = NOON - timedelta(minutes=5)


def run(state: str, shard: str | None, *, since: datetime | None = None, of_all: bool = False) -> JobRun:
    return JobRun(
        run_id="r" * 12,
        state=state,
        shard=shard,
        started_at=NOON - timedelta(minutes=1),
        ended_at=NOON if state in ("failed", "succeeded") else None,
        all_since=since,
        is_of_all=of_all or since is not None,
    )


def decided(
    *runs: JobRun, due: tuple[DueSummary, ...] = (MANY, NOTHING, MANY), left: datetime | None = None
) -> list[str]:
    """The starts as the words of their shards, or the reason to wait."""
    found = decide_by_shard(
        dict(zip((ONE, TWO, THREE), due, strict=True)), runs, left={TWO: left} if left else {}, now=NOON
    )
    return [found.reason] if isinstance(found, Wait) else [start.tags[SHARD_TAG] for start in found]


def started(found: list[Start] | Wait) -> list[Start]:
    assert isinstance(found, list), found
    return found


def test_each_shard_with_feeds_that_are_due_gets_a_run_of_its_own() -> None:
    found = decide_by_shard({ONE: MANY, TWO: NOTHING, THREE: MANY}, (), left={}, now=NOON)
    assert found == [
        Start(
            reason=f"Shard {shard}: 100 feeds or more are due.",
            run_config={"ops": {"claim": {"config": {"shard": shard.number, "shards": 3}}}},
            tags={SHARD_TAG: str(shard)},
        )
        for shard in (ONE, THREE)
    ]


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_a_shard_with_a_run_in_progress_gets_no_second_one(state: str) -> None:
    assert decided(run(state, "1 of 3")) == ["3 of 3"]
    [reason] = decided(run(state, "1 of 3"), run(state, "3 of 3"))
    assert reason.startswith("Shard 1 of 3: Run rrrrrrrr is ")
    assert "Shard 3 of 3: Run" in reason


@pytest.mark.parametrize("shard", [None, "1 of 4", "3 of 8"])
def test_a_persons_poll_and_one_of_another_number_of_shards_hold_up_none(shard: str | None) -> None:
    assert decided(run("running", shard)) == ["1 of 3", "3 of 3"]


def test_a_shard_backs_off_after_its_own_failures() -> None:
    failed = replace(run("failed", "1 of 3"), ended_at=NOON - timedelta(seconds=30))
    assert decided(failed) == ["3 of 3"]
    assert decided(replace(failed, shard="2 of 3")) == ["1 of 3", "3 of 3"]


def test_nothing_due_is_one_short_sentence_and_many_waits_are_cut() -> None:
    assert decided(due=(NOTHING, NOTHING, NOTHING)) == ["No feed is due."]
    every = dict.fromkeys(shards(6), MANY)
    found = decide_by_shard(every, [run("waiting", str(shard)) for shard in every], left={}, now=NOON)
    assert found.reason.endswith("Shard 4 of 6: Run rrrrrrrr is about to start. 2 more shards wait.")


def test_what_a_poll_of_all_feeds_left_goes_on_by_shard() -> None:
    [start] = started(decide_by_shard({TWO: NOTHING}, (), left={TWO: EARLIER}, now=NOON))
    assert start.run_config["ops"]["claim"]["config"] == {
        "all": True,
        "not_visited_since": instant(EARLIER),
        "shard": 2,
        "shards": 3,
    }
    assert decided(run("running", "2 of 3", since=EARLIER), left=EARLIER) == ["1 of 3", "3 of 3"]


def test_while_a_poll_of_all_feeds_runs_no_shards_poll_starts_that_would_hide_it() -> None:
    assert decided(run("waiting", None, of_all=True))[0].startswith("Shard 1 of 3: Run rrrrrrrr polls feeds")
    assert decided(run("waiting", "1 of 2", of_all=True))[0].startswith("Shard 1 of 3: Run rrrrrrrr polls")
    assert decided(run("succeeded", None, since=EARLIER)) == ["1 of 3", "3 of 3"]


def test_each_shard_goes_on_with_the_newest_poll_of_all_feeds_that_was_for_it() -> None:
    of_all, earlier = run("succeeded", None, since=EARLIER), NOON - timedelta(hours=1)
    assert polls_of_all(shards(3), [of_all]) == dict.fromkeys((ONE, TWO, THREE), EARLIER)
    mine = run("succeeded", "2 of 3", since=earlier)
    assert polls_of_all(shards(3), [mine]) == {TWO: earlier}
    assert polls_of_all(shards(3), [of_all, mine]) == dict.fromkeys((ONE, TWO, THREE), EARLIER)
    usual, named = run("succeeded", "1 of 3"), run("succeeded", None)
    assert polls_of_all(shards(3), [named, usual, of_all]) == dict.fromkeys((TWO, THREE), EARLIER)
    assert polls_of_all(shards(3), [run("failed", None, since=EARLIER), mine]) == {}


def test_the_daily_poll_of_all_feeds_is_a_run_for_each_shard_once() -> None:
    def sweep(*runs: JobRun) -> list[Start] | Wait:
        return decide_sweep_by_shard(shards(3), runs, now=NOON, at=time(11, 0), timezone="UTC")

    starts = started(sweep())
    assert [start.tags[SHARD_TAG] for start in starts] == ["1 of 3", "2 of 3", "3 of 3"]
    config = starts[0].run_config["ops"]["claim"]["config"]
    assert config == {"all": True, "not_visited_since": instant(NOON), "shard": 1, "shards": 3}
    [left] = started(sweep(run("running", "1 of 3", since=NOON), run("waiting", "3 of 3", since=NOON)))
    assert left.tags == {SHARD_TAG: "2 of 3"}
    assert sweep(run("succeeded", None, since=EARLIER)) == Wait(
        reason="Run rrrrrrrr is today's poll of all feeds."
    )
