"""Values of headers, as tables of real ones."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.http.headers import (
    Head,
    charset_of,
    content_codings,
    fresh_seconds,
    http_date,
    parse_retry_after,
    requested_wait,
)

NOW = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("120", 120),
        (" 120 ", 120),
        ("0", 0),
        ("1.5", 2),
        ("86401", 86_400),
        ("9" * 500, 86_400),
        ("-1", None),
        ("", None),
        ("later", None),
        ("٣", None),
        ("Wed, 18 Feb 2026 08:31:00 GMT", 60),
        ("Wednesday, 18-Feb-26 08:31:00 GMT", 60),
        ("Wed Feb 18 08:31:00 2026", 60),
        ("Wed, 18 Feb 2026 08:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
        ("Wed, 99 Feb 2026 08:00:00 GMT", None),
        ("120s", 120),
        ("2 seconds", 2),
        ("120, 300", 300),
        ("600;comment=busy", 600),
        ("1e3", None),
        ("12 monkeys", None),
        ("2026-02-18T08:31:00Z", 60),
        ("2026-02-18 09:31:00+01:00", 60),
        (str(int(NOW.timestamp()) + 90), 90),
        (str((int(NOW.timestamp()) + 90) * 1000), 90),
        (str(int(NOW.timestamp()) - 90), 0),
    ],
)
def test_retry_after(text: str | None, seconds: int | None) -> None:
    assert parse_retry_after(text, now=NOW) == seconds


@pytest.mark.parametrize(
    ("status", "fields", "seconds"),
    [
        (429, {"x-ratelimit-reset": "5400"}, 5400),
        (429, {"x-ratelimit-remaining": "0.0", "x-ratelimit-reset": "0.5"}, 1),
        (429, {"X-RateLimit-Reset": "5400", "Retry-After": "0"}, 5400),
        (429, {"X-RateLimit-Reset": "5400", "Retry-After": "60"}, 60),
        (429, {"X-RateLimit-Reset": "5400", "Retry-After": "soon"}, 5400),
        (429, {"X-RateLimit-Reset": str(int(NOW.timestamp()) + 90)}, 90),
        (429, {"X-RateLimit-Reset": str((int(NOW.timestamp()) + 90) * 1000)}, 90),
        (429, {"X-Rate-Limit-Reset": str(int(NOW.timestamp()) - 90)}, None),
        (429, {"X-Rate-Limit-Reset": "Wed, 18 Feb 2026 08:40:00 GMT"}, 600),
        (429, {"RateLimit-Reset": "60, 60;w=60"}, 60),
        (503, {"Retry-After": "60", "RETRY-AFTER": "Wed, 18 Feb 2026 08:40:00 GMT"}, 600),
        (429, {"X-RateLimit-Reset": "9" * 400}, 86_400),
        (429, {"X-RateLimit-Reset": "0", "Retry-After": "0"}, 0),
        (429, {"X-RateLimit-Reset": "-5"}, None),
        (429, {"X-RateLimit-Reset": "2026-02-18T08:40:00Z"}, 600),
        (429, {"X-RateLimit-Reset-After": "1.5"}, 2),
        (429, {"RateLimit": "limit=10, remaining=0, reset=300"}, 300),
        (403, {"RateLimit": '"default";r=0;t=300'}, 300),
        (403, {"RateLimit": '"default";r=3;t=300'}, None),
        (503, {"RateLimit-Remaining": "0, 0;w=60", "RateLimit-Reset": "60"}, 60),
        (403, {"X-Rate-Limit-Remaining": "0", "X-Rate-Limit-Reset": "60"}, 60),
        (429, {}, None),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"}, 60),
        (403, {"X-RateLimit-Remaining": "10", "X-RateLimit-Reset": "60"}, None),
        (403, {"X-RateLimit-Reset": "60"}, None),
        (503, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"}, 60),
        (503, {"Retry-After": "60"}, 60),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"}, None),
        (200, {"Retry-After": "60"}, 60),
    ],
)
def test_the_end_of_a_rate_limit_is_a_wait_like_retry_after(
    status: int, fields: dict[str, str], seconds: int | None
) -> None:
    head = Head([(name.encode(), value.encode()) for name, value in fields.items()])
    assert requested_wait(status, head, now=NOW) == seconds


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, None),
        ({"Cache-Control": "public"}, None),
        ({"Cache-Control": "max-age=3600"}, 3600),
        ({"Cache-Control": 'public, MAX-AGE="3600", must-revalidate'}, 3600),
        ({"Cache-Control": "max-age = 60"}, 60),
        ({"Cache-Control": "max-age=3600", "Age": "600"}, 3000),
        ({"Cache-Control": "max-age=3600", "Age": "9999"}, 0),
        ({"Cache-Control": "max-age=3600", "Age": "old"}, 3600),
        ({"Cache-Control": "max-age=" + "9" * 99}, 2**31),
        ({"Cache-Control": "s-maxage=3600"}, None),
        ({"Cache-Control": "no-cache, max-age=3600"}, 0),
        ({"Cache-Control": "max-age=3600, no-store"}, 0),
        ({"Cache-Control": 'no-cache="Set-Cookie", max-age=60'}, 60),
        ({"Cache-Control": "max-age=60", "Expires": "Wed, 18 Feb 2026 09:30:00 GMT"}, 60),
        ({"Cache-Control": "max-age=x", "Expires": "Wed, 18 Feb 2026 09:30:00 GMT"}, 3600),
        ({"Expires": "Wed, 18 Feb 2026 09:30:00 GMT"}, 3600),
        ({"Expires": "Wed, 18 Feb 2026 09:30:00 GMT", "Date": "Wed, 18 Feb 2026 09:00:00 GMT"}, 1800),
        ({"Expires": "Wed, 18 Feb 2026 09:30:00 GMT", "Date": "today"}, 3600),
        ({"Expires": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"Expires": "0"}, 0),
        ({"Expires": "-1"}, 0),
    ],
)
def test_freshness(fields: dict[str, str], seconds: int | None) -> None:
    head = Head((name.encode(), value.encode()) for name, value in fields.items())
    assert fresh_seconds(head, now=NOW) == seconds


def test_cache_control_may_come_in_several_fields() -> None:
    head = Head([(b"Cache-Control", b"public"), (b"cache-control", b"max-age=60")])
    assert fresh_seconds(head, now=NOW) == 60


@pytest.mark.parametrize(
    ("content_type", "charset"),
    [
        (None, ""),
        ("text/xml", ""),
        ("text/xml; charset=UTF-8", "utf-8"),
        ('text/xml;charset="GB2312"', "gb2312"),
        ("text/xml ; version=1; Charset = 'x'; a=b", "x"),
        ("text/xml; charset=", ""),
        ("text/xml; notcharset=utf-8", ""),
        ("text/xml; charset=utf-8; charset=gbk", "utf-8"),
    ],
)
def test_charset(content_type: str | None, charset: str) -> None:
    assert charset_of(content_type) == charset


@pytest.mark.parametrize(
    ("text", "codings"),
    [
        (None, []),
        ("identity", []),
        ("UTF-8", []),
        (" GZIP ", ["gzip"]),
        ("x-gzip, identity", ["gzip"]),
        ("gzip,br", ["gzip", "br"]),
    ],
)
def test_codings(text: str | None, codings: list[str]) -> None:
    assert content_codings(text) == codings


@given(st.text())
def test_nothing_a_server_says_raises(text: str) -> None:
    http_date(text)
    charset_of(text)
    content_codings(text)
    seconds = parse_retry_after(text, now=NOW)
    assert seconds is None or 0 <= seconds <= 86_400
    head = Head((name, text.encode()) for name in (b"cache-control", b"age", b"expires", b"date"))
    fresh = fresh_seconds(head, now=NOW)
    assert fresh is None or 0 <= fresh <= 2**31
