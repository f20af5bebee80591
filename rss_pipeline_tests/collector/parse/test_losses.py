"""Losses of a document: which of too many items are read, what is cut off, which doubles are losses."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from rss_pipeline.collector.models.warning import document_warnings
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.collector.parse.raw_feed import newest_items
from rss_pipeline.errors import NotAFeed
from rss_pipeline_tests.support.feeds import make_feed

NOW = datetime(2026, 3, 2, tzinfo=UTC)
MANY = 6_000


def a_day(n: int) -> str:
    return f"{2000 + n // 336}-{n % 336 // 28 + 1:02}-{n % 28 + 1:02}"


def rss(items: str) -> str:
    return f'<rss version="2.0"><channel><title>T</title>{items}</channel></rss>'


def atom(items: str) -> str:
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><id>f</id>{items}</feed>'


FORMATS = {
    "rss": lambda dates: rss(
        "".join(f"<item><guid>{n}</guid><pubDate>{date}</pubDate></item>" for n, date in enumerate(dates))
    ),
    "atom": lambda dates: atom(
        "".join(f"<entry><id>{n}</id><updated>{date}</updated></entry>" for n, date in enumerate(dates))
    ),
    "loose": lambda dates: rss(
        "<item><description><b>x</description></item>"
        + "".join(f"<item><guid>{n}</guid><pubDate>{date}</pubDate></item>" for n, date in enumerate(dates))
    ),
    "json": lambda dates: json.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "items": [{"id": str(n), "date_published": date} for n, date in enumerate(dates)],
        }
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_of_too_many_items_the_newest_are_read_in_every_format(form: str) -> None:
    parsed = parse_feed(FORMATS[form]([a_day(n) for n in range(MANY)]).encode(), now=NOW)
    guids = [item.guid for item in parsed.items]
    assert guids[-1] == str(MANY - 1)
    assert len(guids) == 5_000
    assert parsed.dropped_items in {1_000, 1_001}


def test_dates_with_an_offset_that_no_zone_has_are_a_warning() -> None:
    dates = [
        "Sun, 01 Mar 2026 10:00:00 -4400",
        "2026-02-28T10:00:00+99:00",
        "Sun, 01 Mar 2026 10:00:00 -0400",
    ]
    parsed = parse_feed(FORMATS["rss"](dates).encode(), now=NOW)
    assert [item.pub_date and item.pub_date.isoformat()[:13] for item in parsed.items] == [
        "2026-03-01T10",
        "2026-02-28T10",
        "2026-03-01T14",
    ]
    [warning] = document_warnings(parsed, feed=make_feed("f", "https://example.com/feed", "example.com"))
    assert warning.kind == "impossible_zone"
    assert warning.sentence.startswith("2 of 3 items")


def kept(dates: Sequence[str | None]) -> list[int]:
    places = list(range(len(dates)))
    return newest_items(places, lambda n: [date for date in [dates[n]] if date], now=NOW)


BOTH_ENDS = [*range(2_500), *range(3_500, MANY)]


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        ([a_day(n) for n in range(MANY)], [*range(1_000, MANY)]),
        ([a_day(MANY - n) for n in range(MANY)], [*range(5_000)]),
        ([None] * MANY, BOTH_ENDS),
        ([a_day(0)] * MANY, BOTH_ENDS),
        (["soon"] * MANY, BOTH_ENDS),
        ([a_day(n) if n % 3 == 0 else None for n in range(MANY)], BOTH_ENDS),
        ([a_day(n) if n % 3 else None for n in range(MANY)], [*range(1_000, MANY)]),
        ([a_day(9)] * 3_000 + [a_day(5)] * 3_000, [*range(4_000), *range(5_000, MANY)]),
        ([a_day(n) for n in range(5_000)], [*range(5_000)]),
    ],
    ids=["oldest first", "newest first", "undated", "one date", "unreadable", "few dates", "gaps", "two days",
         "just as many"],
)  # fmt: skip
def test_which_items_are_the_newest(dates: Sequence[str | None], expected: list[int]) -> None:
    assert kept(dates) == expected


ITEM = "<item><guid>1</guid><title>t</title></item>"


@pytest.mark.parametrize(
    ("text", "cut_off"),
    [
        (rss(ITEM), False),
        (rss(ITEM)[:-6], False),
        (rss(ITEM)[:-16], True),
        (rss(ITEM)[:-30], None),
        (rss(ITEM * 2)[:-30], True),
        (rss(ITEM * 2) + "<script>x</script>", False),
        (rss("<item><title>a <b>x</title></item>" + ITEM), False),
        (rss("<item><title>a <b>x</title></item>" + ITEM)[:-16], True),
        (rss("<b>")[:-16], None),
        (atom("<entry><id>1</id></entry>"), False),
        (atom("<entry><id>1</id></entry>")[:-7], True),
        (f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
         f"<channel><title>T</title></channel>{ITEM}", True),
    ],
)  # fmt: skip
def test_a_document_is_cut_off_where_items_may_be_missing(text: str, cut_off: bool | None) -> None:
    """`</rss>` alone may be missing: the channel with all items has ended."""
    if cut_off is None:
        with pytest.raises(NotAFeed, match="cut off before its first item ends"):
            parse_feed(text.encode())
    else:
        assert parse_feed(text.encode()).cut_off == cut_off


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        ("<title>t</title><description>d</description>", 0),
        ("<title>t</title><description>d</description><pubDate>2026-01-01</pubDate>", 0),
        ("<title>t</title><description>e</description>", 1),
        ("<title>t</title><description>d</description><enclosure url='http://e.example/b.mp3'/>", 1),
    ],
)
def test_a_double_is_a_loss_where_it_shows_something_else(other: str, shared: int) -> None:
    link = "<link>http://e.example/</link>"
    first = f"<item>{link}<title>t</title><description>d</description></item>"
    parsed = parse_feed(rss(f"{first}<item>{link}{other}</item>").encode())
    assert (len(parsed.items), len(parsed.duplicate_guids), parsed.shared_guids) == (1, 1, shared)
