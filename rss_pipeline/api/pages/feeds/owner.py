"""The parts of a feed that only the owner sees: its partition in Dagster's UI, and its backups."""

from urllib.parse import quote

from rss_pipeline.api.asgi import Scope, header
from rss_pipeline.api.hosts import EVERY_ADDRESS, is_https
from rss_pipeline.settings import Settings
from rss_pipeline.web.authority import own_authorities, read_authority


def partition_url(settings: Settings, scope: Scope, feed_id: str) -> str | None:
    """The address of a feed's partition in Dagster's UI, as the browser of this request reaches it.

    On the machine itself, and through a tunnel to it, the UI is beside the reader. Elsewhere it has a name of
    its own (RSS_UI_HOSTS), or an address that it listens on; None where it has neither.
    """
    ui = _ui_url(settings, scope)
    return ui and f"{ui}/assets/feed_items?view=partitions&partition={quote(feed_id, safe='')}"


def _ui_url(settings: Settings, scope: Scope) -> str | None:
    host = read_authority(header(scope, b"host") or "")
    if host is not None and host in own_authorities(settings.reader_port, ()):
        return f"http://{host.host}:{settings.port}"
    if settings.ui_hosts:
        return f"{'https' if is_https(scope) else 'http'}://{settings.ui_hosts[0]}"
    if settings.ui_address != EVERY_ADDRESS and not settings.ui_address.startswith("127."):
        return f"http://{settings.ui_address}:{settings.port}"
    return None
