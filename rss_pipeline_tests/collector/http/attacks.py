"""Servers and documents that are built to hold, fill or break whoever reads them, and what becomes of each.

No test is in here. What comes over the wire is tried in test_bounds.py, all of it in one poll in
pipeline/visits/faults/test_hostile.py.
"""

import gzip
import zlib
from collections.abc import Callable

from rss_pipeline_tests.support.server import Answer

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = OK + b"Content-Encoding: gzip\r\n\r\n"
DEFLATE = OK + b"Content-Encoding: deflate\r\n\r\n"
SLOW = {
    "status line": Answer(raw=b"HTTP/1.1 200 ", endless=b"O", drip=(1, 0.01)),
    "a header": Answer(raw=OK + b"X-Slow: ", endless=b"x", drip=(1, 0.01)),
    "header after header": Answer(raw=OK, endless=b"X-A: b\r\n", drip=(1, 0.01)),
    "interim answers": Answer(raw=b"", endless=b"HTTP/1.1 102 Processing\r\n\r\n", drip=(1, 0.005)),
    "body to its close": Answer(raw=OK + b"\r\n", endless=b"x", drip=(1, 0.01)),
    "body with a length": Answer(raw=OK + b"Content-Length: 9999999\r\n\r\n", endless=b"x", drip=(1, 0.01)),
    "a chunk's length": Answer(raw=CHUNKED, endless=b"0", drip=(1, 0.02)),
    "chunk after chunk": Answer(raw=CHUNKED, endless=b"1\r\nx\r\n", drip=(1, 0.01)),
    "a chunk's extension": Answer(raw=CHUNKED + b"1;a=", endless=b"x", drip=(1, 0.01)),
    "trailers": Answer(raw=CHUNKED + b"0\r\n", endless=b"X-A: b\r\n", drip=(1, 0.01)),
    "gzip's header": Answer(raw=GZIP + b"\x1f\x8b\x08\x08" + bytes(6), endless=b"n", drip=(1, 0.01)),
    "nothing at all": Answer(delay=60),
    "nothing after a head": Answer(raw=OK + b"Content-Length: 5\r\n\r\n", endless=b"\0", drip=(1, 60)),
}
"""Servers that send, but never to an end: each is a `timeout`."""


def _zeros(wbits: int) -> bytes:
    """A hundred megabytes of them, deflated, without an end: a piece of one megabyte again and again."""
    packer = zlib.compressobj(wbits=wbits)
    first, next_ = (packer.compress(bytes(MB)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + 99 * next_


MB = 1_000_000
EMPTY_MEMBER = gzip.compress(b"")
FLOODS = {
    "one header": ("too_large", Answer(raw=OK + b"X-A: ", endless=b"b" * 65536)),
    "headers": ("too_large", Answer(raw=OK, endless=b"".join(b"X-%d: b\r\n" % n for n in range(2000)))),
    "status line": ("too_large", Answer(raw=b"HTTP/1.1 200 ", endless=b"O" * 65536)),
    "interim answers": ("too_large", Answer(raw=b"", endless=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)),
    "large interim answers": (
        "too_large",
        Answer(raw=b"", endless=b"HTTP/1.1 103 Early Hints\r\nLink: " + b"a" * 50_000 + b"\r\n\r\n"),
    ),
    "blank lines": ("connect", Answer(raw=b"", endless=b"\r\n" * 30_000)),
    "body to its close": ("too_large", Answer(raw=OK + b"\r\n", endless=b"x" * 65536)),
    "chunks": ("too_large", Answer(raw=CHUNKED, endless=b"10000\r\n" + b"x" * 65536 + b"\r\n")),
    "a chunk of any length": ("truncated", Answer(raw=CHUNKED + b"f" * 30 + b"\r\n", endless=b"x" * 65536)),
    "chunk extensions": ("too_large", Answer(raw=CHUNKED, endless=b"1;" + b"e" * 60_000 + b"\r\nx\r\n")),
    "one chunk extension": ("too_large", Answer(raw=CHUNKED + b"1;", endless=b"e" * 65536)),
    "trailers": ("too_large", Answer(raw=CHUNKED + b"1\r\nx\r\n0\r\n", endless=b"X-A: b\r\n" * 5000)),
    "a name in gzip's header": (
        "too_large",
        Answer(raw=GZIP + b"\x1f\x8b\x08\x08" + bytes(6), endless=b"n" * 65536),
    ),
    "gzip's empty members": ("bad_compression", Answer(raw=GZIP, endless=EMPTY_MEMBER * 1000)),
    "gzip of zeros, 1000 to 1": ("too_large", Answer(raw=GZIP, endless=gzip.compress(bytes(5_000_000)))),
    "deflate of zeros": ("too_large", Answer(raw=DEFLATE + _zeros(15))),
    "raw deflate of zeros": ("too_large", Answer(raw=DEFLATE + _zeros(-15))),
    "zeros after a member": (
        "too_large",
        Answer(raw=GZIP + gzip.compress(b"<rss/>"), endless=bytes(65536)),
    ),
    "anything after a member": (
        "too_large",
        Answer(raw=GZIP + gzip.compress(b"<rss/>"), endless=b"x" * 65536),
    ),
    "gzip within gzip within gzip": (
        "bad_compression",
        Answer(raw=GZIP.replace(b"gzip", b"gzip, gzip, gzip"), endless=EMPTY_MEMBER * 1000),
    ),
    "body of a refusal": ("http_status", Answer(raw=b"HTTP/1.1 403 No\r\n\r\n", endless=b"x" * 65536)),
    "body of a redirect": ("redirect", Answer(raw=b"HTTP/1.1 301 M\r\n\r\n", endless=b"x" * 65536)),
    "protocol that was not asked for": (
        "connect",
        Answer(raw=b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", endless=b"x" * 65536),
    ),
}
"""Servers that send more than anybody can read, and the failure kind each is."""


def rss(items: str, head: str = "") -> str:
    return (
        f'<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>'
        f"<title>T</title>{head}{items}</channel></rss>"
    )


def item(fields: str, guid: str = "1") -> str:
    return f"<item><guid>{guid}</guid>{fields}</item>"


def _laughs(levels: int) -> str:
    declared = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "lol"}">' for n in range(levels + 1))
    return f"<!DOCTYPE rss [{declared}]>" + rss(item(f"<title>&e{levels};</title>"))


def _entity(declaration: str, references: int = 1) -> str:
    return f"<!DOCTYPE rss [{declaration}]>" + rss(item(f"<title>{'&a;' * references}</title>"))


def _many(count: int, fields: Callable[[int], str], head: str = "") -> str:
    return rss("".join(item(fields(n), str(n)) for n in range(count)), head)


_DEEP_LINK = "<link>http://example.com/" + "p" * 7_900 + "/</link>"
_JSON = '{"version":"https://jsonfeed.org/version/1","title":"T","items":['

DOCUMENTS: dict[str, tuple[str, Callable[[], str]]] = {
    "billion laughs": ("stored", lambda: _laughs(12)),
    "300,000 references to a megabyte": (
        "stored",
        lambda: _entity(f'<!ENTITY a "{"a" * MB}">', 300_000),
    ),
    "a hundred thousand references to a thousand": (
        "stored",
        lambda: _entity(f'<!ENTITY a "{"a" * 1000}">', 100_000),
    ),
    "external entity": ("stored", lambda: _entity('<!ENTITY a SYSTEM "file:///etc/passwd">')),
    "external document type": (
        "stored",
        lambda: '<!DOCTYPE rss SYSTEM "{elsewhere}">' + rss(item("<title>&a;</title>")),
    ),
    "40,000 attributes": (
        "stored",
        lambda: rss("<item " + "".join(f'a{n}="" ' for n in range(40_000)) + "><guid>1</guid></item>"),
    ),
    "200,000 attributes, ill-formed": (
        "stored",
        lambda: rss("<item " + "".join(f'a{n}="" ' for n in range(200_000)) + "><guid>1</guid></itme>"),
    ),
    "nested 100,000 deep": ("stored", lambda: rss(item("<a>" * 100_000 + "</a>" * 100_000))),
    "nested 20,000 deep, ill-formed": ("stored", lambda: rss(item("<a>" * 20_000 + "</b>" * 20_000))),
    "a name of 19 MB": ("stored", lambda: rss(item(f"<{'a' * 19 * MB}/>"))),
    "an attribute of 19 MB": ("stored", lambda: rss(item(f"<a b='{'a' * 19 * MB}'/>"))),
    "a text of 19 MB": (
        "stored",
        lambda: rss(item("<description>" + "\U0001f600a" * (19 * MB // 5) + "</description>")),
    ),
    "CDATA of 19 MB": (
        "stored",
        lambda: rss(item("<description><![CDATA[" + "<p>é</p>" * (19 * MB // 9) + "]]></description>")),
    ),
    "a guid of 19 MB": ("stored", lambda: rss("<item><guid>" + "g" * 19 * MB + "</guid></item>")),
    "a title of 19 MB": ("stored", lambda: rss(item(""), head=f"<title>{'t' * 19 * MB}</title>")),
    "a date of 19 MB": ("stored", lambda: rss(item("<pubDate>" + "9" * 19 * MB + "</pubDate>"))),
    "200,000 items": ("stored", lambda: _many(200_000, lambda n: f"<title>t{n}</title>")),
    "19 MB of items": (
        "stored",
        lambda: _many(5000, lambda _: "<description>" + "\U0001f600&lt;p&gt;hello" * 200 + "</description>"),
    ),
    "a long base and many links": ("stored", lambda: _many(5000, lambda n: f"<link>{n}</link>", _DEEP_LINK)),
    "a longer base": (
        "stored",
        lambda: _many(5000, lambda n: f"<link>{n}</link>", f"<link>http://e.example/{'p' * MB}/</link>"),
    ),
    "a long base and many images": (
        "stored",
        lambda: _many(
            500,
            lambda n: (
                "<description><![CDATA["
                + "".join(f"<img src='{n}-{k}'>" for k in range(50))
                + "]]></description>"
            ),
            _DEEP_LINK,
        ),
    ),
    "hostile HTML": (
        "stored",
        lambda: rss(
            item(
                "<description><![CDATA["
                + "<picture>" * 50_000
                + "<img "
                + " ".join(f"a{n}" for n in range(50_000))
                + " src=a>]]></description>"
            )
        ),
    ),
    "a page nested without end": ("html", lambda: "<html><body>" + "<div>" * MB),
    "JSON nested 9,000,000 deep": ("not_a_feed", lambda: _JSON + "[" * 9 * MB),
    "an attribute that is escaped to 450 MB": (
        "parse_memory",
        lambda: rss(item("<description><a b='\U0001f600" + '"' * 19 * MB + "'/></description>")),
    ),
    "JSON with a number of 19 MB": (
        "stored",
        lambda: _JSON + '{"id":' + "9" * 19 * MB + "}]}",
    ),
}
"""Documents, and the failure kind each is, or that it is stored. `{elsewhere}` is a listener's URL."""
