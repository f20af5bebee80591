"""The pauses that hosts asked for: `hosts` for all of a host, `image_holds` for its images alone.

Who is left alone because of them is the claims' business (leases.py, image_claims.py).
"""

from collections.abc import Sequence
from typing import Literal

from rss_pipeline.collector.models import HostHold, instant
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.feeds import chunked
from rss_pipeline.storage.rows import compact, storable


def hold_statements(table: Literal["hosts", "image_holds"], holds: Sequence[HostHold]) -> list[Statement]:
    """Write these pauses; one that is there is prolonged and never shortened."""
    pauses = (compact([hold.host, instant(hold.until), storable(hold.reason)]) for hold in holds)
    sql = f"""INSERT INTO {table} (host, hold_until, reason)
      SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
      FROM json_each(?) WHERE true
      ON CONFLICT (host) DO UPDATE SET hold_until = excluded.hold_until, reason = excluded.reason
      WHERE excluded.hold_until > hold_until"""
    return [Statement(sql, [chunk]) for chunk in chunked(pauses)]
