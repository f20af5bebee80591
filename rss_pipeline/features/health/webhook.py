"""The user's webhook: one message to it, in the JSON that Slack's incoming webhooks take.

Mattermost, Rocket.Chat and Discord (with /slack at the end of its URL) take it as well. What is
sent, and when, is alerts.py's and the doctor's. No message and no error contains a URL or
secret of the user's.

A publisher's text is text in all of them: it calls no one, hides no link behind a text, and formats nothing.
Slack would show the backslashes that Discord and Mattermost take. So a zero-width space comes between the
characters of their syntax, and characters that look alike replace those of emphasis.
https://docs.slack.dev/messaging/formatting-message-text#escaping
https://docs.mattermost.com/collaborate/format-messages.html
https://support.discord.com/hc/en-us/articles/210298617
https://discord.com/developers/docs/resources/message#embed-object-embed-limits
"""

import logging
import re
from collections.abc import Sequence
from html import escape
from itertools import accumulate
from typing import Any
from urllib.parse import urlsplit

from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.httpx_without_cli import httpx
from rss_pipeline.settings import Settings
from rss_pipeline.tls import tls_context

SECONDS = 10.0

# Characters as sent. Discord refuses a message with more than 256, 1,024 and 25 of these, or 6,000 in all.
_TITLE = 250
_VALUE = 1_000
_FACTS = 20
_TEXT = 500
_ALL_FACTS = 4_500

_APART = "\u200b"
_SYNTAX = re.compile(
    r"(?<=@)|(?<=(?<![\w/?=&.-])#)|(?<=\])(?=[(\[:])|(?<=<)(?=\S)|(?<=:)(?=[\w+-]+:)|^(?=[>#+=|-].|\d+[.)])"
)
"""Places for a zero-width space: after @ (mentions) and # (channels), between ] and ( (links), after < (other
mentions), within :emoji:, before what begins a list, a heading or a quote."""
_EMPHASIS = str.maketrans({"*": "\u2217", "~": "\u223c", "`": "\u02cb", "|": "\u2223", "\\": "\u2216"})
_UNDERSCORE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
"""Within a word, as in http_status, it formats nothing."""

Fact = tuple[str, str]
"""A title and a value, shown as a field of the message."""


class AlertFailed(Exception):
    """The webhook did not accept the alert. The text says why, without the URL."""


def send(settings: Settings, text: str, facts: Sequence[Fact] = (), *, is_good: bool = False) -> None:
    """POST one alert to the webhook that is set: `text` and at most `room_for(facts)` of the facts.

    `is_good` only gives it another color. A text that is too long is cut. No character of it is markup: a
    publisher's text cannot call a whole channel.

    Raises:
        AlertFailed: no answer, or another status than 2xx.
    """
    for name in ("httpx", "httpcore"):
        # Below, they log the URL of each request.
        logging.getLogger(name).setLevel(logging.WARNING)
    url = settings.alert_webhook or ""
    message: dict[str, Any] = {"text": _sent(text, _TEXT)}
    if facts:
        color = "good" if is_good else "danger"
        fields = [_field(fact) for fact in facts[: room_for(facts)]]
        message["attachments"] = [{"color": color, "fallback": message["text"], "fields": fields}]
    try:
        with httpx.Client(
            timeout=SECONDS, trust_env=False, proxy=settings.proxy, verify=tls_context(settings.ca_file)
        ) as client:
            answer = client.post(url, json=message)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError) as error:
        raise AlertFailed(f"the alert could not be sent: {_cause(error)}") from None
    if not answer.is_success:
        said = " ".join(_without_url(answer.text, url).split())[:300]
        raise AlertFailed(f"the alert was refused with {answer.status_code}: {said}")


def mistake(url: str) -> str | None:
    """The reason why this URL cannot accept an alert, as far as that shows without a request; else None."""
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return "it is no URL that can be requested"
    discord = address.host.removeprefix("www.") in ("discord.com", "discordapp.com")
    if discord and not address.path.rstrip("/").endswith("/slack"):
        return "Discord accepts alerts only at a URL with /slack at its end"
    return None


def room_for(facts: Sequence[Fact]) -> int:
    """The number of these facts, from the first on, that fit into a message; at least three."""
    lengths = accumulate(len(field["title"]) + len(field["value"]) for field in map(_field, facts[:_FACTS]))
    return sum(length <= _ALL_FACTS for length in lengths)


def _field(fact: Fact) -> dict[str, Any]:
    title, value = fact
    return {"title": _sent(title, _TITLE), "value": _sent(value, _VALUE), "short": len(value) < 40}


def _sent(text: str, longest: int) -> str:
    """The text as one line, escaped, of at most that many characters; Discord refuses an empty one."""
    line = " ".join(one_line(text.encode("utf-8", "replace").decode()).split()) or "-"
    whole = _escaped(line)
    if len(whole) <= longest:
        return whole
    kept = longest - 1
    while len(_escaped(line[:kept])) > longest - 1:
        kept -= max(1, (len(_escaped(line[:kept])) - longest) // 12)
    return _escaped(line[:kept]) + "…"


def _escaped(line: str) -> str:
    line = _UNDERSCORE.sub(lambda match: "\uff3f" * len(match[0]), line).translate(_EMPHASIS)
    return escape(_SYNTAX.sub(_APART, line), quote=False)


def _cause(error: Exception) -> str:
    name = type(error).__name__
    # Others quote parts of the URL.
    harmless = httpx.NetworkError | httpx.TimeoutException | httpx.ProxyError | httpx.RemoteProtocolError
    return f"{name}: {error}" if isinstance(error, harmless) and str(error) else name


def _without_url(text: str, url: str) -> str:
    """Remove the URL: an answer may repeat it, and anyone who has it can post there."""
    parts = urlsplit(url)
    for part in (url, parts.path, parts.query):
        text = text.replace(part, "…") if len(part) > 1 else text
    return text
