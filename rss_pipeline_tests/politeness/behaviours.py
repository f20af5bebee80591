"""Behaviours of publishers that take more than a line. The kinds are kinds.py's."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from rss_pipeline_tests.politeness.publishers import (
    FIRST_ITEMS,
    Ask,
    Page,
    both,
    document,
    edition_date,
    edition_etag,
    fixed,
    http_date,
    page,
)
from rss_pipeline_tests.support.server import Answer


def asks(value: str) -> Page:
    """A feed with this Cache-Control."""
    return page(etag=edition_etag, modified=edition_date, headers=lambda _: {"Cache-Control": value})


def says(status: int, **headers: str) -> Page:
    """An error, with a page for people."""
    return fixed(
        Answer(
            status=status,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            body=b"<html><body>Sorry.</body></html>",
        )
    )


def _spelt(ask: Ask, *, line: str, body: bytes | None = None) -> Answer:
    """A 304 with a body, or HTTP/1.0."""
    answer = both(ask)
    fields = dict(answer.headers) | {"Content-Type": "application/rss+xml"}
    if body is None:
        body = answer.body
    else:
        fields["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return Answer(raw=f"{line}\r\n{head}\r\n".encode("latin-1") + body)


def http10(ask: Ask) -> Answer:
    return _spelt(ask, line=f"HTTP/1.0 {both(ask).status} Whatever")


def fat_304(ask: Ask) -> Answer:
    answer = both(ask)
    return _spelt(ask, line="HTTP/1.1 304 Not Modified", body=b"nothing") if answer.status == 304 else answer


def dropping(ask: Ask) -> Answer:
    """Both validators, then none, then one, then the other."""
    turn = int(ask.day // 2) % 4
    return page(
        etag=lambda a: edition_etag(a) if turn in (0, 3) else None,
        modified=lambda a: edition_date(a) if turn in (0, 2) else None,
    )(ask)


def until_date(ask: Ask) -> Answer:
    return Answer(status=429, headers={"Retry-After": http_date(ask.at + timedelta(hours=5))})


def packed(ask: Ask) -> Answer:
    """Gzip for whoever takes it, with an ETag of each form's own (RFC 9110 8.8.3.3)."""
    accepts = "gzip" in (ask.header("accept-encoding") or "")
    answer = page(etag=lambda a: f'"{a.edition}-gzip"' if accepts else f'"{a.edition}"')(ask)
    headers = {**dict(answer.headers), "Vary": "Accept-Encoding"}
    return Answer(status=answer.status, headers=headers, body=answer.body, gzip=accepts)


def negotiated(ask: Ask) -> Answer:
    """A feed for those who accept one, a page for those who take anything first."""
    accept = ask.header("accept") or "*/*"
    if "application/rss+xml" not in accept:
        return Answer(status=406, headers={"Vary": "Accept"})
    return page(etag=edition_etag, headers=lambda _: {"Vary": "Accept"})(ask)


def cookies(ask: Ask) -> Answer:
    answer = both(ask)
    cookie = ("Set-Cookie", f"visitor={ask.number}; Path=/; Max-Age=31536000")
    return Answer(status=answer.status, headers=(*dict(answer.headers).items(), cookie), body=answer.body)


def walled(ask: Ask) -> Answer:
    """Sends everybody without a cookie to the same address, with a new one."""
    if ask.header("cookie"):
        return both(ask)
    headers = {"Location": ask.request.target, "Set-Cookie": f"seen={ask.number}; Path=/; Max-Age=31536000"}
    return Answer(status=302, headers=headers)


def two_edges(ask: Ask) -> Answer:
    """Two caches behind one name: each has its own ETag, and answers 304 to both."""
    tag = f'"{ask.edition}-edge-{ask.number % 2}"'
    if (ask.header("if-none-match") or "").startswith(f'"{ask.edition}-edge-'):
        return Answer(status=304, headers={"ETag": tag})
    return Answer(body=document(ask.edition), headers={"ETag": tag})


def stuck(ask: Ask) -> Answer:
    """Once it has answered, a cache that says 304 to each conditional request, whatever has been
    published."""
    if ask.header("if-none-match") or ask.header("if-modified-since"):
        return Answer(status=304)
    return both(ask)


def frozen(
    *,
    etag: Callable[[Ask], str | None] = lambda _: None,
    modified: Callable[[Ask], str | None] = lambda _: None,
) -> Page:
    """304 to each conditional request, whatever has been published, under validators that say nothing of
    that."""

    def serve(ask: Ask) -> Answer:
        now = {"ETag": etag(ask), "Last-Modified": modified(ask)}
        headers = {name: value for name, value in now.items() if value is not None}
        if "if-none-match" in ask.request.headers or "if-modified-since" in ask.request.headers:
            return Answer(status=304, headers=headers)
        return Answer(body=_old(ask), headers=headers)

    return serve


def stuck_for_a_week(ask: Ask) -> Answer:
    """As `stuck`, by a publisher with a rhythm that shows."""
    answer = stuck(ask)
    return replace(answer, body=_old(ask)) if answer.status == 200 else answer


def _old(ask: Ask) -> bytes:
    """A feed with a rhythm from its first day on."""
    return document(ask.edition + FIRST_ITEMS, is_dated=True)


def gone_for_good(ask: Ask) -> Answer:
    return Answer(status=410) if ask.day >= 3 else both(ask)
