"""Apps that read by the Google Reader API, and what to type into each. docs/reader.md has the same table."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Client:
    """An app: the kind of account to choose in it. `is_tried`: it was used with the reader, or its source
    code was read."""

    name: str
    account: str
    address: str = "with `/greader`"
    is_tried: bool = True


CLIENTS: Sequence[Client] = (
    Client("newsboat 2.21 (Debian 12) to 2.23", '`urls-source "feedhq"`'),
    Client("newsboat from 2.24", '`urls-source "freshrss"`'),
    Client("Liferea 1.14", "New Source, Google Reader API"),
    Client("NetNewsWire", "FreshRSS"),
    Client("Read You", "FreshRSS, or Google Reader"),
    Client("Capy Reader", "FreshRSS"),
    Client("Readrops", "FreshRSS", "with `/greader`; if that fails without it"),
    Client("RSS Guard 4.0", "FreshRSS, in the group of Google Reader"),
    Client("Fluent Reader", "Google Reader API"),
    Client("FeedMe", "FreshRSS", is_tried=False),
    Client("Reeder", "FreshRSS", is_tried=False),
)


def newsboat_lines(server: str, user_name: str, password: str | None) -> str:
    """The lines for the configuration file of newsboat from 2.24 on."""
    return "\n".join(
        (
            'urls-source "freshrss"',
            f'freshrss-url "{server}"',
            f'freshrss-login "{user_name}"',
            f'freshrss-password "{password or "the app password"}"',
            'freshrss-flag-star "s"',
            "freshrss-min-items 100",
        )
    )
