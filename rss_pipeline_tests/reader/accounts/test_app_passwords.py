"""App passwords: shown once, named, used by one app, ended alone."""

import pytest

from rss_pipeline.errors import AppPasswordRefused, NoSession
from rss_pipeline.reader.accounts import app_passwords
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.login import LoggedIn, LoginRefused, log_in_with_app_password, log_out
from rss_pipeline.reader.accounts.tokens import read_opaque
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.reader.accounts.conftest import Time
from rss_pipeline_tests.reader.accounts.signed_in import signed_in


@pytest.fixture
def ada(database: Database, time: Time) -> Caller:
    return signed_in(database, "ada", clock=time)


def app(
    caller: Caller, secret: str, *, name: str = "ada", address: str = "192.0.2.1"
) -> LoggedIn | LoginRefused:
    return log_in_with_app_password(
        caller.database, name=name, password=secret, address=address, client="a phone", clock=caller.clock
    )


def phone_of(caller: Caller, secret: str) -> Caller:
    entered = app(caller, secret)
    assert isinstance(entered, LoggedIn)
    assert entered.user_id == caller.user_id
    return Caller(read_opaque(entered.token, "google_reader"), caller.database, caller.clock)


def test_a_secret_is_shown_once_and_stored_nowhere(ada: Caller, database: Database) -> None:
    new = app_passwords.create(ada, "  Ada's   phone ")
    assert len(new.secret.replace("-", "")) == 32
    rows = database.query("SELECT * FROM app_passwords", name="read app passwords").rows
    assert new.secret not in str(rows)
    assert new.secret.replace("-", "") not in str(rows)
    [listed] = ada.ask(app_passwords.listed(ada.user_id))
    assert (listed.id, listed.name, listed.last_used_at) == (new.id, "Ada's phone", None)
    assert new.secret not in repr(listed)


def test_a_secret_opens_as_it_is_typed_on_a_phone(ada: Caller) -> None:
    secret = app_passwords.create(ada, "phone").secret
    for typed in (secret, secret.upper(), secret.replace("-", ""), f" {secret.replace('-', ' ')} "):
        phone_of(ada, typed).read()
    for wrong in ("", secret[:-1], secret + "a", "\ud800", "\0", "x" * 100_000):
        assert app(ada, wrong) == LoginRefused()


def test_a_secret_is_one_user_s(ada: Caller, database: Database, time: Time) -> None:
    ben = signed_in(database, "ben", clock=time)
    secret = app_passwords.create(ada, "phone").secret
    bens = app_passwords.create(ben, "phone")
    for name in ("ben", "", "nobody", "ada\0", "%"):
        assert app(ada, secret, name=name) == LoginRefused()
    assert not app_passwords.revoke(ada, bens.id)
    assert [each.id for each in ben.ask(app_passwords.listed(ben.user_id))] == [bens.id]
    assert isinstance(app(ben, bens.secret, name="ben"), LoggedIn)


def test_to_revoke_one_ends_its_sessions_and_no_others(ada: Caller) -> None:
    first, second = (app_passwords.create(ada, name) for name in ("phone", "tablet"))
    phones = [phone_of(ada, first.secret) for _ in range(2)]
    tablet = phone_of(ada, second.secret)
    assert app_passwords.revoke(ada, first.id)
    assert not app_passwords.revoke(ada, first.id)
    for phone in phones:
        with pytest.raises(NoSession):
            phone.read()
        with pytest.raises(NoSession):
            phone.write()
    assert app(ada, first.secret) == LoginRefused()
    tablet.read()
    ada.read()


def test_the_last_use_is_shown(ada: Caller, time: Time) -> None:
    secret = app_passwords.create(ada, "phone").secret

    def last_use() -> str:
        [listed] = ada.ask(app_passwords.listed(ada.user_id))
        return str(listed.last_used_at)

    phone = phone_of(ada, secret)
    assert last_use() == "2026-02-18 08:30:00+00:00"
    time.passes(minutes=5)
    phone.write()
    assert last_use() == "2026-02-18 08:30:00+00:00"
    time.passes(minutes=5)
    phone.read()
    assert phone.touch_is_due
    phone.touch()
    assert last_use() == "2026-02-18 08:40:00+00:00"


def test_names_are_one_user_s_own_and_once_each(ada: Caller, database: Database, time: Time) -> None:
    app_passwords.create(ada, "phone")
    with pytest.raises(AppPasswordRefused, match="revoke it, or choose another name"):
        app_passwords.create(ada, " phone")
    app_passwords.create(signed_in(database, "ben", clock=time), "phone")
    for name in ("", " ", "x" * 65, "a\0b", "\ud800", "a\x1b[31m"):
        with pytest.raises(AppPasswordRefused, match="1 to 64 characters"):
            app_passwords.create(ada, name)


def test_a_user_has_fifty_at_most(ada: Caller) -> None:
    for n in range(50):
        app_passwords.create(ada, f"app {n}")
    with pytest.raises(AppPasswordRefused, match="revoke one that is not used"):
        app_passwords.create(ada, "one more")


def test_a_wrong_app_password_comes_less_often_and_locks_no_one_out(ada: Caller) -> None:
    secret = app_passwords.create(ada, "phone").secret
    answers = [app(ada, "a revoked one") for _ in range(30)]
    assert answers.count(LoginRefused()) == 20
    assert answers[-1] == LoginRefused(1)
    phone_of(ada, secret).read()
    assert app(ada, "a revoked one", address="198.51.100.7") == LoginRefused()


def test_an_app_logs_out_alone(ada: Caller) -> None:
    secret = app_passwords.create(ada, "phone").secret
    first, second = phone_of(ada, secret), phone_of(ada, secret)
    log_out(ada.database, first.key.session_id)
    with pytest.raises(NoSession):
        first.read()
    second.read()
