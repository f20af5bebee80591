"""The fields of a request in every way in which a client sends them."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rss_pipeline.api.google_reader.forms import MAX_FIELDS, Fields, form_fields, query_fields
from rss_pipeline.api.google_reader.responses import RefusedCall


def read_fields(query: bytes, content_type: str | None, body: bytes) -> Fields:
    return form_fields(content_type, body).over(query_fields(query))


FORM = "application/x-www-form-urlencoded"


def _multipart(*fields: tuple[str, bytes], file: bytes | None = None) -> bytes:
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value
        for name, value in fields
    ]
    if file is not None:
        head = b'--b\r\nContent-Disposition: form-data; name="opml"; filename="../x.opml"\r\n\r\n'
        parts.append(head + file)
    return b"\r\n".join([*parts, b"--b--\r\n"])


@pytest.mark.parametrize("content_type", [FORM, f"{FORM}; charset=UTF-8", None, "", "text/plain", "nonsense"])
def test_a_form_is_read_whatever_its_content_type(content_type: str | None) -> None:
    fields = read_fields(b"", content_type, b"i=1&i=2&a=user%2F-%2Flabel%2FA+b&empty=&T=x%0A")
    assert fields.all("i") == ("1", "2")
    assert fields.first("a") == "user/-/label/A b"
    assert fields.first("empty") is None
    assert "empty" in fields
    assert fields.first("T") == "x"


# No letter that is a hexadecimal digit: an escape such as %a1 is not UTF-8, and refused.
@given(st.text("ki=&;%+ 1/", max_size=20))
@example("&&i=1=2&=&i&a;b=1&")
def test_fields_are_the_same_with_and_without_an_escape(text: str) -> None:
    expected: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        expected.setdefault(name, []).append(value)
    fields = read_fields(b"", FORM, text.encode())
    assert {name: list(fields.all(name)) for name in fields.names} == expected


def test_newsboat_sends_a_url_that_is_not_escaped() -> None:
    fields = read_fields(
        b"", FORM, b"service=reader&Email=a%40b&Passwd=p%26w&continue=http://www.google.com/"
    )
    assert fields.first("Passwd") == "p&w"
    assert fields.first("continue") == "http://www.google.com/"


def test_readrops_logs_in_by_a_multipart_form() -> None:
    body = _multipart(("Email", b"ann"), ("Passwd", "gehe\u00efm &=".encode()))
    fields = read_fields(b"", "multipart/form-data; boundary=b", body)
    assert (fields.first("Email"), fields.first("Passwd")) == ("ann", "gehe\u00efm &=")


def test_a_file_in_a_form_is_a_field() -> None:
    fields = read_fields(b"", 'multipart/form-data; boundary="b"', _multipart(file=b"<opml/>"))
    assert fields.first("opml") == "<opml/>"


def test_rss_guard_puts_everything_into_the_query_of_a_post() -> None:
    fields = read_fields(b"ac=edit&s=feed%2Fx&t=New%20title&a=user/-/label/A", None, b"")
    assert (fields.first("ac"), fields.first("s"), fields.first("t")) == ("edit", "feed/x", "New title")


def test_read_you_sends_an_address_torn_in_the_query_and_whole_in_the_form() -> None:
    query = b"quickadd=https://example.org/?a=1&b=2"
    fields = read_fields(query, FORM, b"quickadd=https%3A%2F%2Fexample.org%2F%3Fa%3D1%26b%3D2")
    assert fields.all("quickadd") == ("https://example.org/?a=1&b=2",)
    assert fields.first("b") == "2"


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param(1_002, id="NetNewsWire: 1,000 ids, T and a"),
        pytest.param(10_000, id="RSS Guard: 9,999 ids"),
    ],
)
def test_a_form_has_as_many_ids_as_clients_send(ids: int) -> None:
    body = "&".join(f"i={number}" for number in range(ids)) + "&a=user/-/state/com.google/read&T=x"
    fields = read_fields(b"", FORM, body.encode())
    assert len(fields.all("i")) == ids
    assert fields.first("a") == "user/-/state/com.google/read"
    assert fields.first("T") == "x"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "content_type", "body", "status"),
    [
        pytest.param(b"", FORM, b"i=1&" * (MAX_FIELDS + 1), 413, id="more fields than any client sends"),
        pytest.param(b"i=1&" * (MAX_FIELDS + 1), None, b"", 413, id="as many in the query"),
        pytest.param(b"", FORM, b"a=%ff%fe", 400, id="broken UTF-8, escaped"),
        pytest.param(b"", FORM, b"a=\xff\xfe", 400, id="broken UTF-8"),
        pytest.param(b"a=%ff", None, b"", 400, id="broken UTF-8 in the query"),
        pytest.param(b"", FORM, b"a=%00", 400, id="U+0000"),
        pytest.param(b"", "multipart/form-data", b"", 400, id="multipart without a boundary"),
        pytest.param(b"", "multipart/form-data; boundary=b", b"--c\r\nnothing", 400, id="broken multipart"),
        pytest.param(b"", f"multipart/form-data; boundary={'b' * 300}", b"x", 400, id="a long boundary"),
        pytest.param(
            b"",
            "multipart/form-data; boundary=b",
            _multipart(("a", b"\xff")),
            400,
            id="multipart, broken UTF-8",
        ),
        pytest.param(
            b"",
            "multipart/form-data; boundary=b",
            _multipart(*[("i", b"1")] * (MAX_FIELDS + 1)),
            413,
            id="multipart, too many fields",
        ),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(
    query: bytes, content_type: str | None, body: bytes, status: int
) -> None:
    with pytest.raises(RefusedCall) as refused:
        read_fields(query, content_type, body)
    assert refused.value.status == status
