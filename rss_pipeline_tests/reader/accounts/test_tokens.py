"""A token of ours names its session; any other text names none."""

import base64
import json
from datetime import timedelta
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.errors import NoSession
from rss_pipeline.reader.accounts.tokens import new_opaque, read_jwt, read_opaque, sign_jwt
from rss_pipeline_tests.reader.accounts.conftest import Time

KEY = b"a key of sixty-four bytes or more, so that no algorithm warns of it"
USER = "0123456789abcdef" * 2
SESSION = "fedcba9876543210" * 4


def signed(time: Time) -> str:
    return sign_jwt(KEY, user_id=USER, session_id=SESSION, now=time())[0]


def claims(time: Time, **changed: Any) -> dict[str, Any]:
    """The claims of a token of ours, some of them others; Ellipsis leaves one out."""
    ours = jwt.decode(signed(time), options={"verify_signature": False})
    return {name: value for name, value in {**ours, **changed}.items() if value is not ...}


def token(claims: dict[str, Any], *, key: Any = KEY, algorithm: str = "HS256", **header: Any) -> str:
    return jwt.encode(claims, key, algorithm, headers={"typ": "rss-session+jwt", **header})


def refused(text: str, time: Time) -> bool:
    with pytest.raises(NoSession):
        read_jwt(KEY, text, now=time())
    return True


def test_a_token_names_its_session_for_half_an_hour(time: Time) -> None:
    text, expires_at = sign_jwt(KEY, user_id=USER, session_id=SESSION, now=time())
    assert expires_at == time() + timedelta(minutes=30)
    for _ in range(2):
        key = read_jwt(KEY, text, now=time())
        assert (key.user_id, key.session_id, key.purpose) == (USER, SESSION, "login")
        time.passes(minutes=29, seconds=59)
    time.passes(seconds=2)
    assert refused(text, time)


def test_what_the_tests_forge_is_refused_for_what_is_forged_alone(time: Time) -> None:
    assert read_jwt(KEY, token(claims(time)), now=time()).session_id == SESSION


WRONG: tuple[Any, ...] = (..., None, "", "x", 1.5, True, [], {}, ["x"])
NUMBERS = (0, -1, 2**70)
FORGED = [
    *((name, value) for name in ("iss", "aud", "sub", "exp", "iat", "jti") for value in WRONG),
    # When a token was issued decides nothing.
    *((name, value) for name in ("iss", "aud", "sub", "exp", "jti") for value in NUMBERS),
]


@pytest.mark.parametrize(("name", "value"), FORGED)
def test_a_claim_that_is_missing_or_another_is_refused(time: Time, name: str, value: Any) -> None:
    assert refused(token_of(claims(time, **{name: value})), time)


def token_of(forged: dict[str, Any]) -> str:
    """Signed with our key, of claims that PyJWT would not sign."""
    return jwt.api_jws.encode(
        json.dumps(forged).encode(), KEY, algorithm="HS256", headers={"typ": "rss-session+jwt"}
    )


def test_a_token_without_a_signature_or_with_another_s_is_refused(time: Time) -> None:
    ours = claims(time)
    unsigned = jwt.encode(ours, None, "none", headers={"typ": "rss-session+jwt"})  # type: ignore[arg-type]
    head, body, signature = signed(time).split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","typ":"rss-session+jwt"}').rstrip(b"=").decode()
    other = token(ours, key=KEY[::-1])
    for forged in (
        *(unsigned, f"{none}.{body}.", f"{none}.{body}.{signature}", f"{head}.{body}.", f"{head}.{body}"),
        *(other, token(ours, algorithm="HS512"), token(ours, key=KEY[:-1]), token(ours, key=KEY + b"!")),
        f"{head}.{other.split('.')[1]}.{other.split('.')[2]}",
        signed(time)[:-2] + ("AA" if signed(time)[-2:] != "AA" else "BB"),
    ):
        assert refused(forged, time)


@pytest.mark.parametrize("typ", ["JWT", "at+jwt", "", None, "RSS-SESSION+JWT"])
def test_a_token_of_another_type_is_refused(time: Time, typ: str | None) -> None:
    assert refused(token(claims(time), typ=typ), time)


def test_a_header_that_brings_its_own_key_brings_nothing(time: Time) -> None:
    jwk = {"kty": "oct", "k": base64.urlsafe_b64encode(b"x" * 32).decode()}
    assert refused(
        token(claims(time), key=b"x" * 32, jwk=jwk, kid="../../dev/null", jku="http://127.0.0.1/"), time
    )
    assert refused(token(claims(time), crit=["b64"], b64=False), time)


def test_a_token_of_a_clock_that_was_ahead_is_refused(time: Time) -> None:
    time.passes(days=365)
    ahead = signed(time)
    time.passes(days=-365)
    assert refused(ahead, time)
    time.passes(days=365, minutes=-1)
    assert read_jwt(KEY, ahead, now=time()).session_id == SESSION


@pytest.mark.slow
@given(st.text(max_size=80) | st.text("ab.-_=/\ud800\0é", max_size=40))
def test_no_other_text_is_a_token(text: str) -> None:
    time = Time()
    assert refused(text, time)
    assert refused(f"{signed(time)}{text}.", time)
    for purpose in ("login", "google_reader"):
        with pytest.raises(NoSession):
            read_opaque(text, purpose)


def test_a_long_text_is_refused_unread(time: Time) -> None:
    assert refused(token(claims(time, more="x" * 1_000)), time)


def test_an_opaque_token_names_its_session_and_no_other_text_does() -> None:
    opaque = new_opaque()
    text = opaque.of(USER)
    assert not set("= \n&+%") & set(text)
    key = read_opaque(text, "google_reader")
    assert (key.user_id, key.session_id, key.purpose) == (USER, opaque.session_id, "google_reader")
    assert opaque.session_id not in text
    assert new_opaque().session_id != opaque.session_id
    for other in (text + "\n", " " + text, text[:-1], text + "A", text.upper(), text.replace("/", "//")):
        with pytest.raises(NoSession):
            read_opaque(other, "google_reader")
    with pytest.raises(NoSession):
        read_opaque(f"{'٠' * 32}/{opaque.secret}", "google_reader")
