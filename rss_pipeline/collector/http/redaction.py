"""The secrets of a feed's access, and their search and removal in texts of servers.

Servers repeat what they were sent: in a Location, an ETag, the title of an error page. Secrets are sent in
`client.py`, to the registered origin only.
"""

import base64
import re
from urllib.parse import quote, unquote

from rss_pipeline.collector.models.feed import Access

_SHORTEST = 6
"""Characters: a shorter password would also be found within ordinary words."""
_NO_SECRETS = frozenset({"accept", "accept-language", "from", "user-agent"})
_PARTS = re.compile(r"[\s;,\"]+")
_DIGIT = re.compile(r"[0-9]")


def secrets_of(access: Access) -> frozenset[str]:
    """The password, the values of headers and their parts, in each form that a text may repeat."""
    plain: set[str] = set()
    if access.password is not None:
        pair = f"{access.username or ''}:{access.password}"
        plain |= {access.password, base64.b64encode(pair.encode()).decode("ascii")}
    for name, value in access.headers.items():
        if name.strip().lower() not in _NO_SECRETS:
            # A part without a digit is no secret: `Bearer` and cookie names also occur in URLs.
            parts = (form for part in _PARTS.split(value) for form in (part, part.partition("=")[2]))
            plain |= {value.strip(), *filter(_DIGIT.search, parts)}
    long = {secret for secret in plain if len(secret) >= _SHORTEST}
    return frozenset(long | {quote(secret, safe="") for secret in long} | {quote(secret) for secret in long})


def repeats_a_secret(text: str, access: Access) -> bool:
    """True if `text`, a URL for instance, contains a secret, percent-encoded or not."""
    if access.is_open:
        return False
    forms = (text.lower(), unquote(text).lower())
    return any(secret.lower() in form for secret in secrets_of(access) for form in forms)


def scrubbed(text: str, access: Access) -> str:
    """`text` with each secret replaced by three stars."""
    if access.is_open:
        return text
    for secret in sorted(secrets_of(access), key=len, reverse=True):
        text = re.sub(re.escape(secret), "***", text, flags=re.IGNORECASE)
    return text
