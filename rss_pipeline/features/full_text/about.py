"""Full text for people: of a feed its decision and what waits, of an item why it has the feed's own text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.extras import ARTICLES
from rss_pipeline.features.feature import ItemNote
from rss_pipeline.features.full_text import sql
from rss_pipeline.features.full_text.auto import Decision, read_decision
from rss_pipeline.features.full_text.model import REASONS
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.failures import shown_error, shown_kind
from rss_pipeline.reader.query import Query
from rss_pipeline.reader.refresh import set_mark
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Result, Row, one
from rss_pipeline.storage.subscriptions.item_lists import known_ids

HOST_A_DAY = 200
"""Requests for articles to one host within 24 hours."""
NOT_YET = "its page was not requested yet"
_SHOWN: dict[str, str] = {
    **{str(verdict): reason for verdict, reason in REASONS.items()},
    "storage_rejected": "the article could not be stored",
}
CANNOT_READ = "this server cannot read articles now; its operator sees why in `rss-pipeline doctor`"
"""For users, while packages are missing (extras.py): of these they learn no more."""


def can_read() -> bool:
    """True if articles can be read here; it may take a fifth of a second."""
    return ARTICLES.problem is None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDay:
    """A host with its requests for articles within 24 hours, of all feeds."""

    host: str
    requests: int
    most: int = HOST_A_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why some items of a feed have its own text."""

    verdict: str
    items: int
    example: str
    """The reason of one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutFeed:
    """Full text of a feed."""

    in_registry: str | None
    """`on` or `auto` of feeds.yaml."""
    switched: bool
    """A subscriber's switch is on."""
    decision: Decision | None
    """The decision of `auto`."""
    shown: int
    waiting: int
    until: datetime | None
    """The time from which the last of those that wait is requested."""
    reasons: tuple[Reason, ...]
    hosts: tuple[HostDay, ...]

    @property
    def has_articles(self) -> bool:
        """True if new items get articles, or could once `auto` has decided."""
        return self.in_registry is not None or self.switched

    @property
    def sentences(self) -> list[str]:
        """All of it for people, a sentence each without a full stop."""
        if not self.has_articles and not (self.shown or self.waiting or self.reasons):
            return ["off: items have the feed's own text"]
        by = [f"`{self.in_registry}` in feeds.yaml"] if self.in_registry else []
        by += ["a subscriber's switch"] if self.switched else []
        found = [f"on by {' and '.join(by)}" if by else "off for new items"]
        if self.decision is not None:
            found.append(self.decision.sentence)
        elif self.in_registry == "auto":
            found.append("`auto` has not decided yet: it compares five items with their pages")
        found.append(f"articles that are shown: {self.shown:,}")
        if self.waiting:
            until = (
                "" if self.until is None else f", the last of them until {self.until:%-d %B %Y, %H:%M} UTC"
            )
            found.append(f"pages that wait for their request: {self.waiting:,}{until}")
        found += [f"items with the feed's own text: {each.items:,}, {each.example}" for each in self.reasons]
        found += [
            f"requests for articles to {each.host} within 24 hours: {each.requests:,} of {each.most:,}"
            for each in self.hosts
        ]
        return found

    def as_json(self) -> dict[str, Any]:
        """All of it for programs."""
        return {
            "in_registry": self.in_registry,
            "switched": self.switched,
            "decision": None
            if self.decision is None
            else {**asdict(self.decision), "summary": self.decision.sentence},
            "shown": self.shown,
            "waiting": self.waiting,
            "waiting_until": None if self.until is None else instant(self.until),
            "reasons": [asdict(each) for each in self.reasons],
            "hosts": [asdict(each) for each in self.hosts],
        }


def about_feed(feed_id: str, *, now: datetime, user_id: str | None = None) -> Query[AboutFeed | None]:
    """Full text of a feed; None where there is none, or the user does not subscribe to it. Without a user it
    is for the operator, who sees each reason in full."""

    def read(results: Sequence[Result]) -> AboutFeed | None:
        feed, counted, hosts = results
        row = one(feed)
        if row is None:
            return None
        ended = {each["status"]: each for each in counted.rows if each["status"] != "none"}
        return AboutFeed(
            in_registry=row["full_text"],
            switched=bool(row["switched"]),
            decision=read_decision(row["full_text_decision"]),
            shown=int(ended["shown"]["items"]) if "shown" in ended else 0,
            waiting=int(ended["pending"]["items"]) if "pending" in ended else 0,
            until=from_instant(ended["pending"]["until"]) if "pending" in ended else None,
            reasons=_reasons(counted.rows, is_operator=user_id is None),
            hosts=tuple(HostDay(host=each["host"], requests=int(each["n"])) for each in hosts.rows),
        )

    statements = (
        sql.look_at_feed(feed_id, user_id),
        sql.count_articles(feed_id),
        sql.hosts_of_feed(feed_id, sql.day_before(now)),
    )
    return Query(statements, read)


def _reasons(rows: Sequence[Row], *, is_operator: bool) -> tuple[Reason, ...]:
    found: dict[str, Reason] = {}
    for row in rows:
        if row["status"] != "none":
            continue
        kind, reason, items = row["verdict"], row["reason"], int(row["items"])
        if not is_operator:
            kind, reason = shown_kind(kind), shown_reason(kind, reason)
        items += found[kind].items if kind in found else 0
        found[kind] = Reason(verdict=kind, items=items, example=reason)
    return tuple(found.values())


def shown_reason(kind: str | None, reason: str) -> str:
    """The reason of a verdict or of a failure, for users: without what only the operator may know."""
    if kind is None or reason in (NOT_YET, sql.SOON, sql.IN_TURN):
        return reason
    return _SHOWN.get(kind) or (shown_error(kind, reason) or reason).rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutItem:
    """Full text of an item for one user: `off`, `shown`, `none` or `pending`, with the reason where the
    feed's own text is shown."""

    status: str
    verdict: str | None = None
    reason: str | None = None
    until: str | None = None
    """The earliest time of the next request."""
    own_characters: int | None = None
    page_characters: int | None = None
    can_fetch: bool = False
    """A request shows it, or has its page requested, or requested again."""
    can_hide: bool = False
    """It is shown to who requested it: the feed's own text can be shown again."""

    def as_json(self) -> dict[str, Any]:
        """All of it for programs."""
        return asdict(self)

    @property
    def sentence(self) -> str | None:
        """Why the feed's own text is shown; None where the article is, or nobody wants it."""
        if self.status == "none":
            return f"This is the feed's own text, not the article: {self.reason}."
        if self.status == "pending":
            return f"This is the feed's own text. The article is not here yet: {self.reason}."
        return None


NO_LINK = "no_link"
"""The verdict on an item that leads to no page."""
_WITHOUT_LINK = AboutItem(status="none", verdict=NO_LINK, reason="the item has no link to a page")
_OF_CLOSED_FEED = "; the password and headers of its feed are sent to the feed alone, never to its pages"


def about_item(user_id: str, item_id: str) -> Query[AboutItem | None]:
    """Full text of an item; None where the user's feeds have no such item.

    What others requested is not told: for them it is as if it were not there.
    """

    def read(found: Result) -> AboutItem | None:
        row = one(found)
        if row is None:
            return None
        if row["status"] is None or not (row["for_all"] or row["is_reader"]):
            return AboutItem(status="off", can_fetch=True) if row["link"] else _WITHOUT_LINK
        is_pending, is_shown = row["status"] == "pending", row["status"] == "shown"
        has_failed = is_pending and int(row["attempts"]) > 0 and row["reason"] != sql.SOON
        reason = None if is_shown else shown_reason(row["verdict"], row["reason"] or NOT_YET)
        if is_pending and ARTICLES.missing is not None:
            reason = CANNOT_READ
        if row["needs_access"] and reason is not None and (has_failed or not is_pending):
            reason += _OF_CLOSED_FEED
        return AboutItem(
            status=row["status"],
            verdict=None if is_pending else shown_kind(row["verdict"]),
            reason=reason,
            until=row["next_attempt_at"] if is_pending else None,
            own_characters=row["own_characters"],
            page_characters=row["page_characters"],
            can_fetch=has_failed or row["verdict"] == sql.INTERRUPTED,
            can_hide=is_shown and not row["for_all"],
        )

    return Query.of(sql.look_at_item(user_id, item_id), read)


def note_of_item(user_id: str, item_id: str) -> Query[ItemNote | None]:
    """The sentence on an item's page, and the button that shows the article or the feed's own text."""

    def note(found: AboutItem | None) -> ItemNote | None:
        if found is None:
            return None
        can_act = found.can_fetch or found.can_hide
        return ItemNote(
            sentence=found.sentence,
            # Said to who asks for it: most items without a link are whole.
            is_quiet=found.verdict == NO_LINK,
            button="Show the feed's text" if found.can_hide else "Show the article",
            action=f"/full-text/{item_id}" if can_act else None,
            value="feed" if found.can_hide else "article",
            is_coming=found.status == "pending" and not found.can_fetch,
        )

    return about_item(user_id, item_id).then(note)


def request_article(caller: Caller, settings: Settings, item_id: str) -> bool:
    """Show the article of an item to this user, and request its page within the limits if nobody has; False
    where the user's feeds have no such item."""
    *_, found = caller.write(
        *sql.request_article(caller.user_id, item_id, now=caller.clock()),
        known_ids(caller.user_id, [item_id]),
    )
    set_mark(settings)
    return bool(found.values)


def hide_article(caller: Caller, item_id: str) -> bool:
    """Show the feed's own text to this user again, likewise."""
    *_, found = caller.write(sql.hide_article(caller.user_id, item_id), known_ids(caller.user_id, [item_id]))
    return bool(found.values)
