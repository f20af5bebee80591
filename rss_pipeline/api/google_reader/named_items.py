"""The call for the contents of items that the client names: stream/items/contents.

Lists of a stream's items are listings.py's.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial

import orjson
from starlette.responses import Response, StreamingResponse

from rss_pipeline.api.answers import BrokenOff, takes_gzip
from rss_pipeline.api.google_reader import failing
from rss_pipeline.api.google_reader.answers import PRIVATE, Refused, packed_json
from rss_pipeline.api.google_reader.call import Call, Service, SignedIn, signed_in_by_token
from rss_pipeline.api.google_reader.entries import contents, entry_as_json
from rss_pipeline.api.google_reader.ids import item_numbers
from rss_pipeline.api.google_reader.listed_items import packed_items
from rss_pipeline.api.google_reader.streams import READING_LIST
from rss_pipeline.api.google_reader.times import in_microseconds
from rss_pipeline.api.gzip_member import GzipStream, Packed, plain
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.items import ItemRow, items_by_number

MOST_NAMED = 10_000
"""Items of one items/contents; RSS Guard requests 9,999, and there is no continuation."""
AT_ONCE = 200
"""Items that are read and made into JSON together."""
WHOLE_BYTES = 4_000_000
"""An answer up to this size, some 1,000 items, is made before its first byte is sent. It is compressed, and
where the store fails in the middle, it is an error."""
_JSON = "application/json"
_COMMA = Packed.short(b",")


async def item_contents(call: Call) -> Response:
    """stream/items/contents: named items in their order; those that are unknown, or others', are left out.

    A large answer is sent piece by piece, so that it is never in memory as a whole.
    """
    session = signed_in_by_token(call)
    numbers = item_numbers(call.fields.all("i"))
    if len(numbers) > MOST_NAMED:
        raise Refused(413, f"At most {MOST_NAMED:,} items can be read at once.")
    updated = in_microseconds(call.service.clock()) // 1_000_000
    as_gzip = takes_gzip(call.request.scope)
    pieces = _pieces(session, numbers, updated=updated, as_gzip=as_gzip)
    first, size = list[Packed](), 0
    async for piece in pieces:
        first += piece
        size += sum([part.length for part in piece])
        if size > WHOLE_BYTES:
            headers = {**PRIVATE, "Content-Encoding": "gzip"} if as_gzip else PRIVATE
            sent = _or_broken_off(first, pieces, GzipStream() if as_gzip else None)
            return StreamingResponse(sent, headers=headers, media_type=_JSON)
    return await packed_json(first, as_gzip=as_gzip)


async def _pieces(
    session: SignedIn, numbers: Sequence[int], *, updated: int, as_gzip: bool
) -> AsyncIterator[list[Packed]]:
    """The JSON of these items, at most `AT_ONCE` of them and some 4 MB at a time."""
    empty = orjson.dumps(contents(READING_LIST, [], updated=updated, title=READING_LIST.title))
    before, after = empty.split(b'"items":[')
    yield [Packed.short(before + b'"items":[')]
    is_first = True
    # Without items the session is looked up all the same.
    for start in range(0, max(len(numbers), 1), AT_ONCE):
        async for items in _named(session, numbers[start : start + AT_ONCE], as_gzip=as_gzip):
            found = [part for parts in items for part in (_COMMA, *parts)]
            if found:
                yield found[1:] if is_first else found
                is_first = False
    yield [Packed.short(after)]


async def _or_broken_off(
    first: Sequence[Packed], rest: AsyncIterator[Sequence[Packed]], stream: GzipStream | None
) -> AsyncIterator[bytes]:
    """The pieces of an answer that has begun: 503 or 401 can no longer be its status."""
    make = plain if stream is None else stream.of
    yield make(first)
    try:
        async for piece in rest:
            yield make(piece)
    except (InfrastructureError, Refused) as error:
        raise BrokenOff(str(error)) from error
    if stream is not None:
        yield stream.end()


async def _named(
    session: SignedIn, numbers: Sequence[int], *, as_gzip: bool
) -> AsyncIterator[list[tuple[Packed, ...]]]:
    """The parts of each of these items, in their order, as many at a time as are made together. What has to
    be sanitized waits for its turn; the rest does not."""
    make = partial(_made, session.service, as_gzip=as_gzip)

    def read(caller: Caller) -> tuple[int, _Made]:
        rows = caller.ask(items_by_number(caller.user_id, numbers))
        ordered = [rows[number] for number in numbers if number in rows]
        return len(ordered), make(ordered, caller, sanitizes=False)

    known, (made, left) = await session.run(read)
    items: dict[int, tuple[Packed, ...]] = {**made}
    if known < len(numbers) and failing.may_be_entries(numbers):
        for entry in (await failing.read_failing(session)).entries:
            items[entry.number] = (Packed.of(orjson.dumps(entry_as_json(entry))),)
    place = 0
    while place < len(numbers):
        end = numbers.index(left[0].arrived, place) if left else len(numbers)
        yield [items.pop(number) for number in numbers[place:end] if number in items]
        place = end
        if left:
            before = len(left)
            made, left = await session.run(partial(make, left, sanitizes=False))
            if len(left) == before:
                made, left = await session.make(partial(make, left, sanitizes=True))
            items |= made


_Made = tuple[dict[int, tuple[Packed, Packed]], Sequence[ItemRow]]


def _made(
    service: Service, rows: Sequence[ItemRow], caller: Caller, *, as_gzip: bool, sanitizes: bool
) -> _Made:
    return packed_items(
        rows, service.bodies, service.parts, caller.database, as_gzip=as_gzip, sanitizes=sanitizes
    )
