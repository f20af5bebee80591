"""Passwords: what may be one, what is kept of it, and how many are checked at once."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from argon2 import PasswordHasher, extract_parameters

from rss_pipeline.errors import HashingBusy, PasswordRefused
from rss_pipeline.reader.accounts import passwords
from rss_pipeline.reader.accounts.passwords import (
    check_new,
    hash_password,
    is_outdated,
    is_right,
)
from rss_pipeline_tests.support.waiting import soon

OF_THE_DECOY = "x" * 20


def test_a_password_is_right_by_its_hash_and_no_other_is() -> None:
    hashed = hash_password("correct horse")
    assert is_right("correct horse", hashed)
    assert not is_right("correct horsf", hashed)
    assert not is_right("correct horse ", hashed)
    assert "correct" not in hashed
    assert hash_password("correct horse") != hashed
    assert not is_outdated(hashed)


def test_hashes_have_owasp_s_parameters_and_so_has_the_decoy() -> None:
    for hashed in (hash_password("correct horse"), passwords._DECOY):
        found = extract_parameters(hashed)
        assert hashed.startswith("$argon2id$")
        assert (found.memory_cost, found.time_cost, found.parallelism) == (19 * 1024, 2, 1)
    assert is_outdated(PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash("correct horse"))


def test_without_a_user_a_hash_is_computed_all_the_same_and_none_is_right() -> None:
    for _ in range(2):
        passwords._AT_ONCE.acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(is_right, "correct horse", None)
        soon(lambda: passwords._WAITING._value == 15)
        assert not waiting.done()
        for _ in range(2):
            passwords._AT_ONCE.release()
        assert waiting.result(60) is False
    assert not is_right(OF_THE_DECOY, None)


@pytest.mark.parametrize("password", ["", "seven77", "x" * 1025, "x" * 20_000_000])
def test_what_is_too_short_or_too_long_is_no_password(password: str) -> None:
    with pytest.raises(PasswordRefused, match="from 8 to 1,024 characters"):
        check_new(password)
    with pytest.raises(PasswordRefused):
        hash_password(password)
    assert not is_right(password, passwords._DECOY)


@pytest.mark.parametrize(
    "password", ["eight-88", "31-love-1999", "x" * 1024, "пароль на русском", "\0" * 24, "\ud800" * 24]
)
def test_any_characters_make_a_password_and_none_is_cut(password: str) -> None:
    hashed = hash_password(password)
    assert is_right(password, hashed)
    assert not is_right(password[:-1] + "?", hashed)


@pytest.mark.parametrize(
    "password",
    [
        *("password", "12345678", "PassWord", "football2024!", "1qaz2wsx", "qwertyuiop", "sunshine1"),
        *(
            "love1234",
            "!pass2024",
            "2026password",
            "!Sunshine",
            "aaaaaaaa",
            "abcabcabc",
            "testtest",
            "passwordpassword",
        ),
        *(
            "abcdefgh",
            "zyxwvuts",
            "ann-marie",
            "Ann-Marie 1999",
            "2026ann-marie!",
            "RSS-Pipeline",
            "rss_pipeline1",
        ),
    ],
)
def test_a_password_that_is_tried_first_is_refused(password: str) -> None:
    with pytest.raises(PasswordRefused, match="tried first"):
        hash_password(password, name="ann-marie")
    assert not is_right(password, "none"), "an old one is looked at all the same"


def test_a_flood_of_strangers_leaves_places_for_those_who_are_known() -> None:
    hashed = hash_password("correct horse")
    for _ in range(12):
        assert passwords._OF_STRANGERS.acquire(blocking=False)
    try:
        with pytest.raises(HashingBusy):
            is_right("correct horse", hashed)
        assert is_right("correct horse", hashed, is_stranger=False)
    finally:
        for _ in range(12):
            passwords._OF_STRANGERS.release()


def test_one_text_typed_in_two_ways_is_one_password() -> None:
    assert is_right("Zu\u0308rich-1", hash_password("Z\u00fcrich-1"))


def test_a_hash_that_is_none_fits_nothing() -> None:
    assert not is_right("correct horse", "none")
    assert not is_right("correct horse", "")


@pytest.mark.slow
def test_two_passwords_are_checked_at_once_and_fourteen_wait() -> None:
    for _ in range(2):
        passwords._AT_ONCE.acquire()
    with ThreadPoolExecutor(16) as pool:
        check = partial(is_right, "correct horse", None, is_stranger=False)
        waiting = [pool.submit(check) for _ in range(16)]
        soon(lambda: passwords._WAITING._value == 0)
        with pytest.raises(HashingBusy):
            check()
        assert not any(each.done() for each in waiting)
        for _ in range(2):
            passwords._AT_ONCE.release()
        assert [each.result(60) for each in waiting] == [False] * 16
    assert not is_right("correct horse", None)
