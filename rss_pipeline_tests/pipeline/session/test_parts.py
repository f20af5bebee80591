"""The parts of a session alone: leases that are kept alive, the spool, and the order in which all close."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.pipeline.session.lease_keeper import CUT_OFF_SECONDS, LeaseKeeper
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.feeds.claimable import Due, Named
from rss_pipeline_tests.storage.values import NOW, feed_row, register, spec
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.waiting import soon


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Two feeds, due."""
    database = migrated(tmp_path / "rss.sqlite")
    register(database, spec("a"), spec("b"))
    yield database
    database.close()


def _expiries(database: Database) -> list[str]:
    return [row["expires_at"] for row in database.query("SELECT expires_at FROM leases").rows]


@pytest.mark.slow
def test_a_claim_is_renewed_until_it_is_ended(database: Database) -> None:
    keeper = LeaseKeeper(database, run_id="run", lease_seconds=3)
    claim = keeper.claim(Due(now=NOW), limit=10)
    assert [feed.id for feed in claim.feeds] == ["a", "b"]
    [first] = _expiries(database)
    soon(lambda: _expiries(database) > [first])
    assert keeper.merely_due == [claim.token]
    keeper.end({claim.token})
    assert _expiries(database) == []
    assert keeper.merely_due == []
    keeper.close()
    assert "lease renewal" not in [thread.name for thread in threading.enumerate()]


def test_a_run_that_was_stopped_for_longer_than_its_lease_knows_it_at_once(database: Database) -> None:
    at = 100.0
    keeper = LeaseKeeper(database, run_id="run", lease_seconds=180, monotonic=lambda: at)
    assert keeper.is_leased()
    claim = keeper.claim(Due(now=NOW), limit=10)
    at += 179
    assert keeper.is_leased()
    at += 1
    assert not keeper.is_leased()
    keeper.end({claim.token})
    assert keeper.is_leased(), "the next claim is a new one"
    keeper.close()


def test_a_run_of_several_machines_that_is_cut_off_stops_before_its_lease_lapses(database: Database) -> None:
    at = 100.0
    keeper = LeaseKeeper(
        database, run_id="run", lease_seconds=180, cut_off_seconds=CUT_OFF_SECONDS, monotonic=lambda: at
    )
    keeper.claim(Due(now=NOW), limit=10)
    at += CUT_OFF_SECONDS - 1
    assert keeper.is_leased()
    at += 1
    assert not keeper.is_leased()
    keeper.close()


@pytest.mark.slow
def test_a_lease_that_another_run_took_over_is_lost_although_the_time_is_not(database: Database) -> None:
    keeper = LeaseKeeper(database, run_id="run", lease_seconds=3, monotonic=lambda: 100.0)
    keeper.claim(Due(now=NOW), limit=10)
    database.query("UPDATE leases SET expires_at = '2020-01-01T00:00:00Z'")
    soon(lambda: not keeper.is_leased())
    keeper.close()


class _Slow:
    """A database of which the batches with these statements take until leases were renewed meanwhile."""

    waits_before = waits_after = ""

    def __init__(self, database: Database) -> None:
        self._database = database

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        names = {statement.name for statement in statements}
        if self.waits_before in names:
            self._wait()
        results = self._database.batch(statements)
        if self.waits_after in names:
            self._wait()
        return results

    def _wait(self) -> None:
        before = _expiries(self._database)
        soon(lambda: _expiries(self._database) != before)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [("claim feeds", ""), ("", "end lease")])
def test_a_lease_that_just_begins_or_ends_while_others_are_renewed_has_not_lapsed(
    database: Database, caplog: pytest.LogCaptureFixture, before: str, after: str
) -> None:
    slow = _Slow(database)
    keeper = LeaseKeeper(slow, run_id="run", lease_seconds=12)
    keeper.claim(Named(ids=["a"], now=NOW), limit=1)
    slow.waits_before, slow.waits_after = before, after
    claim = keeper.claim(Named(ids=["b"], now=NOW), limit=1)
    assert len(claim.feeds) == 1
    keeper.end({claim.token})
    assert keeper.is_leased()
    slow.waits_after = ""
    keeper.close()
    assert caplog.messages == []


def test_a_claim_of_nothing_leaves_no_lease_and_starts_no_renewal(database: Database) -> None:
    keeper = LeaseKeeper(database, run_id="run", lease_seconds=180)
    assert keeper.claim(Named(ids=["no-such-feed"], now=NOW), limit=10).feeds == ()
    assert "lease renewal" not in [thread.name for thread in threading.enumerate()]
    keeper.close()
    assert _expiries(database) == []


@pytest.mark.parametrize(("forgiven", "claims"), [(True, 0), (False, 1)])
def test_closing_ends_what_is_left_and_forgives_unless_a_document_may_be_at_fault(
    database: Database, forgiven: bool, claims: int
) -> None:
    keeper = LeaseKeeper(database, run_id="run", lease_seconds=180)
    keeper.claim(Due(now=NOW), limit=10)
    if not forgiven:
        keeper.do_not_forgive()
    keeper.close()
    assert _expiries(database) == []
    row = feed_row(database, "a")
    assert (row["lease_token"], row["unclosed_claims"]) == (None, claims)


def test_a_spool_has_a_folder_from_its_first_use_until_it_is_removed(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", run_id="0123456789")
    spool.remove()
    assert not (tmp_path / "spool").exists(), "not used so far"
    (spool.folder / "body").write_bytes(b"...")
    assert spool.folder.name.startswith("01234567-")
    assert spool.folder.parent == tmp_path / "spool"
    spool.remove()
    assert list((tmp_path / "spool").iterdir()) == []


def _session(tmp_path: Path, database: Database, **parts: Any) -> Session:
    return Session(
        RunContext(
            settings=Settings(
                home=tmp_path, feeds_file=tmp_path / "feeds.yaml", user_agent="rss_pipeline/test"
            ),
            database=database,
            objects=FolderStore(tmp_path / "objects"),
            run_id="run",
            clock=lambda: NOW,
        ),
        **parts,
    )


@pytest.mark.parametrize(
    ("error", "claims"), [(DatabaseUnavailable("away"), 0), (RuntimeError("a bug"), 1), (None, 0)]
)
def test_a_session_forgives_a_store_s_failure_and_no_other_exception(
    tmp_path: Path, database: Database, error: Exception | None, claims: int
) -> None:
    def run() -> None:
        with _session(tmp_path, database) as session, session.step():
            session.leases.claim(Due(now=NOW), limit=10)
            (session.spool.folder / "body").write_bytes(b"...")
            if error is not None:
                raise error

    if error is None:
        run()
    else:
        with pytest.raises(type(error)):
            run()
    assert feed_row(database, "a")["unclosed_claims"] == claims
    assert _expiries(database) == []
    assert list(Settings(home=tmp_path, feeds_file=tmp_path, user_agent="t").spool_path.iterdir()) == []
