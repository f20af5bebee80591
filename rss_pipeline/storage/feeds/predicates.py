"""Conditions on rows of `feeds`, each written once, for every report, check, alert and claim.

A feed that is not polled (disabled, or neither in feeds.yaml nor subscribed) meets none of those about
visits: there is nothing to do about it. The conditions of a claim, which also needs leases and holds, are in
claimable.py.
"""

from typing import Literal

from rss_pipeline.collector.models.feed import NOT_ANSWERING_FAILURES, PROMINENT_FAILURES
from rss_pipeline.collector.models.warning import WarningKind
from rss_pipeline.features import FEED_KEYS

POLLED = "registered = 1 AND enabled = 1"
"""In feeds.yaml and not `enabled: false`, or subscribed by somebody."""

SUBSCRIBED = "EXISTS (SELECT 1 FROM subscriptions WHERE subscriptions.feed_id = feeds.id)"
"""A user of the reader subscribes to it. `registered` is 1 if this holds or feeds.yaml lists the feed."""

UNLISTED = "registered = 0 AND forgotten = 0"
"""Neither in feeds.yaml nor subscribed any more. Only such feeds are ever removed."""

UNUSED = f"{UNLISTED} AND unused_since IS NOT NULL"
"""Its last subscriber has left, and feeds.yaml did not list it then. Retention removes such feeds; those that
were taken out of feeds.yaml stay."""

OPEN = """((needs_access = 0 AND allow_private = 0 AND private_hosts IS NULL)
  OR (listed = 1 AND shared = 1))"""
"""Users may subscribe to it by its address, and do: without headers, password and private hosts, or with
`shared: true` in feeds.yaml."""

PRIVATE = "needs_access = 1 OR allow_private = 1 OR private_hosts IS NOT NULL"
"""With headers, a password or private hosts: what it has is not for everybody, nor are its images."""

WITHOUT_DOCUMENT = "last_body_at IS NULL AND content_hash IS NULL AND failed_hash IS NULL"
"""No visit that was closed has brought a document, a readable or an unreadable one."""

GONE = f"{POLLED} AND last_error_kind IS 'gone'"
"""The publisher answered the last visit with 410 Gone. Such a feed is not counted as failing: it needs
another decision."""

LAST_VISIT_FAILED = f"{POLLED} AND consecutive_failures > 0"
"""Failing or gone."""

FAILING = f"{LAST_VISIT_FAILED} AND last_error_kind IS NOT 'gone'"
"""The last visit failed."""

NOT_ANSWERING = f"""{FAILING}
  AND (last_success_at IS NULL OR consecutive_failures >= {NOT_ANSWERING_FAILURES})"""
"""The last three visits failed, or more; or it failed and was never read: its address is probably wrong."""

FAILING_LONG = f"{FAILING} AND consecutive_failures >= {PROMINENT_FAILURES}"
"""The last ten visits failed, or more. The comparison is that of the index feeds_failing."""

ANSWERED_BY = "coalesce(answered_url, move_url, fetch_url, url)"
"""The address that a feed leads to, as far as it is known: the same text for two feeds that lead to one."""

MOVED = f"{POLLED} AND fetch_url IS NOT NULL"
"""Requested at another address than the registered one: a permanent redirect was adopted."""

REDIRECTING = f"{POLLED} AND fetch_url IS NULL AND move_url IS NOT NULL"
"""Permanent redirects lead elsewhere, but were not adopted: they are too young, or would give up https or a
password's server."""

WARNED = f"{POLLED} AND warning IS NOT NULL"
"""The newest stored document has a warning of any kind."""

MAY_ACCEPT = " OR ".join(key.may_accept for key in FEED_KEYS.values() if key.may_accept) or "0"
"""Its document is no feed, or not what it was: a user may take what would be collected of it now."""

Health = Literal[
    "ok", "new", "warning", "moved", "failing", "gone", "disabled", "unwatched", "unlisted", "unused"
]
"""The words of `HEALTH`."""

UNREAD_HEALTH = frozenset[Health]({"failing", "gone"})
"""The words for `LAST_VISIT_FAILED`."""

NOT_COLLECTED_HEALTH = frozenset[Health]({"disabled", "unwatched", "unlisted", "unused"})
"""The words for feeds that are not `POLLED`."""

DISABLED = "registered = 1 AND enabled = 0 AND watched = 1"
"""`enabled: false` in feeds.yaml."""

UNWATCHED = "registered = 1 AND watched = 0"
"""`watch: false` in feeds.yaml: a name and a page, without any source."""

HEALTH = f"""CASE WHEN {UNUSED} THEN 'unused' WHEN {UNLISTED} THEN 'unlisted'
  WHEN watched = 0 THEN 'unwatched' WHEN enabled = 0 THEN 'disabled'
  WHEN {GONE} THEN 'gone' WHEN {FAILING} THEN 'failing' WHEN last_visited_at IS NULL THEN 'new'
  WHEN {MOVED} THEN 'moved' WHEN {WARNED} THEN 'warning' ELSE 'ok' END"""
"""The state of a feed that is not forgotten in one word, for a person: the most urgent one that it is in."""


def has_warning(kind: WarningKind) -> str:
    """The condition of a warning of this kind."""
    return f"(instr(coalesce(warning_kinds, ''), '\"{kind}\"') > 0)"
