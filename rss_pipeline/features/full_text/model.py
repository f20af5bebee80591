"""The values of an article that is read of the page behind an item."""

from dataclasses import dataclass
from typing import Literal, get_args

Verdict = Literal[
    "article",
    "no_html",
    "unreadable",
    "empty",
    "scripts",
    "error_page",
    "login",
    "paywall",
    "consent",
    "robot_check",
    "list",
    "stub",
    "other_page",
    "too_large",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

REASONS: dict[Verdict, str] = {
    "article": "the page has the article",
    "no_html": "the address leads to a file that is no web page",
    "unreadable": "the page cannot be read",
    "empty": "the page has no text",
    "scripts": "the page is made by scripts and needs a browser",
    "error_page": "the page says that there is no such page",
    "login": "the page wants a login",
    "paywall": "the page shows the beginning to readers without a subscription",
    "consent": "the page wants consent to cookies first",
    "robot_check": "the page wants proof that a person reads it",
    "list": "the page is a list of other pages",
    "stub": "the page has a few words only",
    "other_page": "the page is not about this item",
    "too_large": "the article is too large to be stored",
}
"""Sentences without a capital and a full stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """The article of a page, or the reason why there is none."""

    verdict: Verdict
    html: str = ""
    """Sanitized, with absolute links and images; empty unless the verdict is `article`."""
    text: str = ""
    """The text of it, a line for each paragraph."""

    @property
    def reason(self) -> str:
        """The verdict in words."""
        return REASONS[self.verdict]
