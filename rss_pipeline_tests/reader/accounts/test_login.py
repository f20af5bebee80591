"""Logging in: by the right password only, throttled before it is looked at, ended at once.

A password's hash takes 50 ms, so most tests try few.
"""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from rss_pipeline.errors import NoSession, PasswordRefused
from rss_pipeline.reader.accounts import app_passwords, passwords
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.login import (
    LoggedIn,
    LoginRefused,
    change_own_password,
    log_in,
    log_in_with_app_password,
    log_out,
    renew,
)
from rss_pipeline.reader.accounts.tokens import read_jwt, read_opaque
from rss_pipeline.reader.accounts.users import add_user, change_password, remove_user
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.reader.accounts.conftest import Time
from rss_pipeline_tests.reader.accounts.signed_in import signed_in

KEY = b"a key of thirty-two bytes or more"
PASSWORD = "correct horse"
HOME, AWAY = "192.0.2.1", "198.51.100.7"


class Door:
    """Logins at one database."""

    def __init__(self, database: Database, time: Time) -> None:
        self.database, self.time = database, time

    def log_in(
        self, name: str = "ada", password: str = PASSWORD, *, address: str = HOME
    ) -> LoggedIn | LoginRefused:
        return log_in(
            self.database,
            KEY,
            name=name,
            password=password,
            address=address,
            client="a test",
            clock=self.time,
        )

    def app(self, password: str, *, name: str = "ada", address: str = HOME) -> LoggedIn | LoginRefused:
        return log_in_with_app_password(
            self.database, name=name, password=password, address=address, client="a phone", clock=self.time
        )

    def enter(self, name: str = "ada", password: str = PASSWORD, *, address: str = HOME) -> LoggedIn:
        entered = self.log_in(name, password, address=address)
        assert isinstance(entered, LoggedIn)
        return entered

    def caller(self, entered: LoggedIn) -> Caller:
        """The caller of a request with this token."""
        if entered.renewal is None:
            return Caller(read_opaque(entered.token, "google_reader"), self.database, self.time)
        return Caller(read_jwt(KEY, entered.token, now=self.time()), self.database, self.time)

    def opens(self, entered: LoggedIn) -> bool:
        with contextlib.suppress(NoSession):
            self.caller(entered).read()
            return True
        return False

    def count(self, sql: str) -> int:
        return int(self.database.query(f"SELECT count(*) AS n FROM {sql}", name="count").rows[0]["n"])


@pytest.fixture
def door(database: Database, time: Time) -> Door:
    """A database with a user `ada`."""
    add_user(database, name="Ada", password=PASSWORD, clock=time)
    return Door(database, time)


@pytest.fixture
def home(sqlite: SqliteDatabase, time: Time) -> Door:
    """The same, on SQLite only: for many attempts."""
    add_user(sqlite, name="ada", password=PASSWORD, clock=time)
    return Door(sqlite, time)


def test_the_right_password_begins_a_session(door: Door) -> None:
    entered = door.enter(" ADA ")
    caller = door.caller(entered)
    caller.read()
    caller.write()
    assert (caller.key.user_id, caller.key.session_id) == (entered.user_id, entered.session_id)
    assert (entered.expires_at - door.time()).total_seconds() == 30 * 60
    assert door.count("login_failures") == 0


@pytest.mark.parametrize(
    ("name", "password"),
    [
        *(("ada", "wrong horse"), ("ada", ""), ("ada", PASSWORD + " "), ("ada", "x" * 2_000)),
        *(
            ("ben", PASSWORD),
            ("", PASSWORD),
            ("ada\0", PASSWORD),
            ("ada' --", PASSWORD),
            ("a" * 65, PASSWORD),
        ),
        *(("%", PASSWORD), ("ad_", PASSWORD), ("\ud800", "\ud800" * 8)),
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_every_wrong_login_is_refused_alike(door: Door, name: str, password: str) -> None:
    assert door.log_in(name, password) == LoginRefused(None)
    assert door.count("sessions") == 0


def test_logging_out_ends_the_session_at_once_and_no_other(door: Door) -> None:
    first, second = door.enter(), door.enter()
    log_out(door.database, first.session_id)
    log_out(door.database, first.session_id)
    assert (door.opens(first), door.opens(second)) == (False, True)
    assert first.renewal is not None
    with pytest.raises(NoSession):
        renew(door.database, KEY, renewal=first.renewal, clock=door.time)


def test_another_password_ends_every_session_and_apps_log_in_again(door: Door) -> None:
    entered = door.enter()
    secret = app_passwords.create(door.caller(entered), "phone").secret
    phone = door.app(secret)
    assert isinstance(phone, LoggedIn)
    change_password(door.database, name="ada", password="another horse", revoke_apps=False)
    assert not door.opens(entered)
    assert not door.opens(phone)
    assert door.log_in() == LoginRefused()
    door.enter(password="another horse")
    assert isinstance(door.app(secret), LoggedIn)
    change_password(door.database, name="ada", password="a third horse", revoke_apps=True)
    assert door.app(secret) == LoginRefused()


@pytest.mark.slow
def test_a_user_gives_another_password_and_stays_where_it_was_given(door: Door) -> None:
    here, elsewhere = door.enter(), door.enter(address=AWAY)
    secret = app_passwords.create(door.caller(here), "phone").secret
    phone = door.app(secret)
    assert isinstance(phone, LoggedIn)
    assert another(door, here) is None
    assert door.opens(here)
    assert not door.opens(elsewhere)
    assert not door.opens(phone)
    assert isinstance(door.app(secret), LoggedIn)
    assert door.log_in() == LoginRefused()
    door.enter(password="another horse")
    assert another(door, here, current="another horse", new="a third horse", revoke_apps=True) is None
    assert door.app(secret) == LoginRefused()
    assert door.count("login_failures WHERE key LIKE 'account:%'") == 0


@pytest.mark.slow
def test_whoever_has_a_session_cannot_guess_the_password(home: Door) -> None:
    found = home.enter()
    for _ in range(5):
        assert another(home, found, current="wrong horse") == LoginRefused()
    refused = another(home, found)
    assert refused is not None
    assert refused.retry_after is not None
    home.time.passes(minutes=20)
    with pytest.raises(PasswordRefused):
        another(home, found, new="short")
    home.enter()
    elsewhere = home.enter()
    assert another(home, elsewhere) is None
    with pytest.raises(NoSession):
        another(home, found, current="another horse")
    home.enter(password="another horse")


def another(
    door: Door,
    entered: LoggedIn,
    *,
    current: str = PASSWORD,
    new: str = "another horse",
    revoke_apps: bool = False,
) -> LoginRefused | None:
    return change_own_password(door.caller(entered), current=current, new=new, revoke_apps=revoke_apps)


def test_a_removed_user_is_gone_with_everything(door: Door, tmp_path: Path) -> None:
    entered = door.enter()
    secret = app_passwords.create(door.caller(entered), "phone").secret
    phone = door.app(secret)
    assert isinstance(phone, LoggedIn)
    remove_user(door.database, FolderStore(tmp_path / "objects"), name="ada", clock=door.time)
    assert not door.opens(entered)
    assert not door.opens(phone)
    assert door.log_in() == LoginRefused()
    assert door.app(secret) == LoginRefused()
    for table in ("users", "sessions", "app_passwords", "known_clients"):
        assert door.count(table) == 0
    # Whoever has the name next is somebody else.
    add_user(door.database, name="ada", password=PASSWORD, clock=door.time)
    assert not door.opens(entered)


def test_a_session_is_renewed_as_long_as_it_is_used(door: Door) -> None:
    entered = door.enter()
    assert entered.renewal is not None
    for _ in range(3):
        door.time.passes(days=29)
        assert not door.opens(entered)
        entered = renew(door.database, KEY, renewal=entered.renewal or "", clock=door.time)
        assert door.opens(entered)
    door.time.passes(days=30)
    with pytest.raises(NoSession):
        renew(door.database, KEY, renewal=entered.renewal or "", clock=door.time)


def test_only_the_renewal_of_a_login_renews(door: Door) -> None:
    entered = door.enter()
    phone = door.app(app_passwords.create(door.caller(entered), "phone").secret)
    assert isinstance(phone, LoggedIn)
    assert entered.renewal is not None
    other = signed_in(door.database, "ben", clock=door.time)
    foreign = f"{other.user_id}/{entered.renewal.partition('/')[2]}"
    for text in (phone.token, entered.token, foreign, "", entered.renewal + "x", entered.session_id):
        with pytest.raises(NoSession):
            renew(door.database, KEY, renewal=text, clock=door.time)
    # Nor does the renewal open what an app's token opens.
    with pytest.raises(NoSession):
        Caller(read_opaque(entered.renewal, "google_reader"), door.database, door.time).read()


@pytest.mark.slow
def test_an_account_is_locked_for_longer_with_each_failure(door: Door) -> None:
    for _ in range(4):
        assert door.log_in(password="wrong horse") == LoginRefused()
    for seconds in (1, 2, 4, 8):
        assert door.log_in(password="wrong horse") == LoginRefused()
        # The right password makes no difference meanwhile, and is not counted.
        for password in (PASSWORD, "wrong horse", PASSWORD):
            assert door.log_in(password=password) == LoginRefused(seconds)
        door.time.passes(seconds=seconds)
    door.enter()


@pytest.mark.slow
def test_a_lock_is_a_quarter_of_an_hour_at_most_and_forgotten_in_a_day(home: Door) -> None:
    for _ in range(30):
        refused = home.log_in(password="wrong horse")
        assert isinstance(refused, LoginRefused)
        assert (refused.retry_after or 0) <= 900
        home.time.passes(seconds=refused.retry_after or 0)
    home.time.passes(hours=25)
    for _ in range(4):
        assert home.log_in(password="wrong horse") == LoginRefused()
    home.enter()


@pytest.mark.slow
def test_a_thousand_wrong_logins_elsewhere_do_not_lock_the_owner_out_at_home(home: Door) -> None:
    home.enter()
    checked = sum(home.log_in(password=f"wrong {n}", address=AWAY) == LoginRefused() for n in range(1_000))
    assert checked == 5
    assert isinstance(home.log_in(address=AWAY), LoginRefused)
    home.enter()
    # Nor do failures of other names from the owner's own address.
    for n in range(100):
        home.log_in(f"user{n}", "wrong horse")
    assert home.log_in("somebody", "wrong horse") != LoginRefused()
    home.enter()
    assert home.count("login_failures") < 30


def test_at_home_too_only_so_many_passwords_are_tried(home: Door) -> None:
    home.enter()
    assert sum(home.log_in(password=f"wrong {n}") == LoginRefused() for n in range(100)) == 5
    assert home.log_in() == LoginRefused(1)
    home.time.passes(seconds=1)
    home.enter()
    assert home.log_in(password="wrong horse") == LoginRefused()


@pytest.mark.slow
def test_a_right_password_forgets_the_wrong_ones_before_it(home: Door) -> None:
    home.enter()
    for _ in range(2):
        for _ in range(4):
            assert home.log_in(password="wrong horse") == LoginRefused()
        home.enter()


@pytest.mark.slow
def test_a_right_login_locks_no_one_else_at_its_address(home: Door) -> None:
    for n in range(19):
        assert home.log_in(f"user{n}", "wrong horse") == LoginRefused()
    home.enter()
    assert home.log_in("somebody", "wrong horse") == LoginRefused()
    assert home.log_in("somebody", "wrong horse") == LoginRefused(1)


@pytest.mark.slow
def test_from_one_address_only_so_many_accounts_are_tried(home: Door) -> None:
    answers = [home.log_in(f"user{n}", "wrong horse", address=f"2001:db8:0:1::{n:x}") for n in range(60)]
    assert answers.count(LoginRefused()) == 20
    assert isinstance(home.log_in(address="2001:db8:0:1:ffff::1"), LoginRefused)
    home.enter(address="2001:db8:0:2::1")


@pytest.mark.parametrize(
    "address", ["", "unknown", "testclient", "fe80::1%eth0", "::ffff:192.0.2.1", "1.2.3"]
)
def test_an_address_of_any_form_is_counted(home: Door, address: str) -> None:
    assert sum(home.log_in(password="wrong horse", address=address) == LoginRefused() for _ in range(9)) == 5


def test_wrong_logins_made_at_once_are_counted_before_they_are_checked(home: Door) -> None:
    begun = threading.Barrier(12)

    def attempt(n: int) -> LoginRefused | LoggedIn:
        with contextlib.closing(SqliteDatabase(home.database.path)) as connection:  # type: ignore[attr-defined]
            begun.wait(30)
            return Door(connection, home.time).log_in(password=f"wrong {n}")

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(attempt, range(12)))
    assert answers.count(LoginRefused()) == 5


@pytest.mark.slow
def test_right_logins_made_at_once_are_all_let_in(home: Door) -> None:
    with ThreadPoolExecutor(4) as pool:
        entered = list(pool.map(lambda _: home.enter(), range(12)))
    assert len({each.session_id for each in entered}) == 12
    assert all(home.opens(each) for each in entered)
    assert home.count("login_failures") == 0


def test_while_too_many_are_checked_a_login_waits_and_does_not_count(home: Door) -> None:
    taken = [passwords._WAITING.acquire() for _ in range(16)]
    try:
        for _ in range(10):
            assert home.log_in() == LoginRefused(2)
        assert home.count("login_failures") == 0
    finally:
        for _ in taken:
            passwords._WAITING.release()
    home.enter()


def test_a_password_changed_while_it_is_checked_begins_no_session(home: Door) -> None:
    for _ in range(2):
        passwords._AT_ONCE.acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(home.log_in)
        while passwords._WAITING._value == 16:
            pass
        other = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash("another horse")
        home.database.query("UPDATE users SET password_hash = ?", [other], name="change the password")
        for _ in range(2):
            passwords._AT_ONCE.release()
        assert waiting.result(60) == LoginRefused()
    assert home.count("sessions") == 0


@pytest.mark.slow
def test_a_hash_with_old_parameters_is_renewed_by_logins_made_at_once(home: Door) -> None:
    old = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash(PASSWORD)
    home.database.query("UPDATE users SET password_hash = ?", [old], name="put an old hash")
    with ThreadPoolExecutor(4) as pool:
        entered = list(pool.map(lambda _: home.enter(), range(4)))
    assert all(home.opens(each) for each in entered)
    [row] = home.database.query("SELECT password_hash FROM users", name="read a hash").rows
    assert not passwords.is_outdated(row["password_hash"])
    home.enter()


def test_a_password_that_could_be_no_new_one_goes_on_opening_and_is_no_new_one(home: Door) -> None:
    """It was set before it was on the list; meanwhile the parameters of hashes have changed."""
    old = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash("sunshine1")
    home.database.query("UPDATE users SET password_hash = ?", [old], name="put an old hash")
    entered = home.log_in(password="sunshine1")
    assert isinstance(entered, LoggedIn)
    for refused in ("ada-1815", "1815.Ada!"):
        with pytest.raises(PasswordRefused):
            another(home, entered, current="sunshine1", new=refused)
        with pytest.raises(PasswordRefused):
            change_password(home.database, name="ADA", password=refused, revoke_apps=False)
    with pytest.raises(PasswordRefused):
        add_user(home.database, name="Grace", password="grace1906", clock=home.time)
