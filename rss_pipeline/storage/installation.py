"""The table `installation`: values that all processes of an installation share.

The cursor of alerts is there so that each thing is reported once, whoever noticed it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database, Result, Statement, one
from rss_pipeline.storage.sql import compact, storable


def alert_cursor(database: Database) -> str | None:
    """The cursor as it was written last; None before the first time."""
    rows = database.query(
        "SELECT value FROM installation WHERE name = 'alerts'", name="read the cursor of alerts"
    ).rows
    return rows[0]["value"] if rows else None


def replace_alert_cursor(database: Database, before: str | None, after: str) -> bool:
    """Replace the cursor; False, and nothing is written, if another process has replaced it meanwhile."""
    if before is None:
        sql = "INSERT INTO installation (name, value) VALUES ('alerts', ?) ON CONFLICT (name) DO NOTHING"
        params = [storable(after)]
    else:
        sql = "UPDATE installation SET value = ? WHERE name = 'alerts' AND value = ?"
        params = [storable(after), before]
    return database.query(sql, params, name="write the cursor of alerts").changes > 0


# The contact that publishers get where RSS_USER_AGENT_CONTACT names none: given on the first user's page.
#
# In the database, so that every machine of the installation sends it from its next run on.


def read_contact(database: Database) -> str | None:
    """The address or web page; None where nobody has given one."""
    row = one(
        database.query("SELECT value FROM installation WHERE name = 'contact'", name="read the contact")
    )
    return None if row is None else str(row["value"])


def put_contact(contact: str) -> Statement:
    """A statement that keeps it."""
    return Statement(
        """INSERT INTO installation (name, value) VALUES ('contact', ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        [contact],
        name="keep the contact",
    )


# What the last poll met that kept it from visiting feeds: pages say so. It goes with the next poll that can.

TroubleKind = Literal["offline", "objects"]
"""No host was reached; the object store cannot be used."""
_TROUBLE = "poll trouble"


@dataclass(frozen=True, slots=True, kw_only=True)
class PollTrouble:
    """A reason why a poll visited no feed."""

    kind: TroubleKind
    since: datetime


def poll_trouble() -> Statement:
    """A query for it, for `poll_trouble_of`."""
    return Statement(
        "SELECT value FROM installation WHERE name = ?", [_TROUBLE], name="read what the last poll met"
    )


def poll_trouble_of(found: Result) -> PollTrouble | None:
    """The result of that query; None where the last poll met nothing."""
    if not found.values:
        return None
    kind, since = json.loads(found.values[0][0])
    return PollTrouble(kind=kind, since=datetime.fromisoformat(since))


def note_poll_trouble(database: Database, kind: TroubleKind, *, now: datetime) -> None:
    """Keep it. The time of the first poll that met the same stays."""
    database.query(
        """INSERT INTO installation (name, value) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
        WHERE json_extract(installation.value, '$[0]') <> json_extract(excluded.value, '$[0]')""",
        [_TROUBLE, compact([kind, instant(now)])],
        name="note what a poll met",
    )


def forget_poll_trouble() -> Statement:
    """A statement that forgets it: a poll has got an answer."""
    return Statement("DELETE FROM installation WHERE name = ?", [_TROUBLE], name="forget what a poll met")


# The dates of publishers that are far from our clock: `clean` believes them more than a clock.


@dataclass(frozen=True, slots=True)
class FarDate:
    """One answer whose Date was far behind our clock."""

    at: datetime
    """By our clock."""
    ahead: int
    """Seconds by which this was ahead."""


FAR = timedelta(days=1)
_MOST_FAR_DATES = 50


def far_dates(database: Database) -> dict[str, FarDate]:
    """The latest of each network, by its name."""
    row = one(
        database.query("SELECT value FROM installation WHERE name = 'far dates'", name="read far dates")
    )
    kept = {} if row is None else json.loads(row["value"])
    return {network: FarDate(datetime.fromisoformat(at), ahead) for network, (at, ahead) in kept.items()}


def note_far_dates(database: Database, found: Mapping[str, FarDate]) -> None:
    """Keep these, with the latest of other networks. Of two runs at once, one may be left out."""
    latest = sorted({**far_dates(database), **found}.items(), key=lambda each: each[1].at)[-_MOST_FAR_DATES:]
    kept = {network: [instant(each.at), each.ahead] for network, each in latest}
    database.query(
        """INSERT INTO installation (name, value) VALUES ('far dates', ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        [compact(kept)],
        name="write far dates",
    )
