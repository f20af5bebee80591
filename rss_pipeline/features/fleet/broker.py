"""The servers of a fleet: do the broker and the database of Dagster's tables answer?"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from rss_pipeline.errors import BrokerUnavailable
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.features.health.model import Finding
from rss_pipeline.settings import Settings

ANSWER_SECONDS = 5.0


def broker(settings: Settings) -> Finding | None:
    """The broker, for `doctor`."""
    if (fleet := settings.of(FleetSettings)) is None:
        return None
    check_broker(fleet, ca_file=settings.ca_file)
    return Finding("broker", "ok", f"{fleet.broker_where} takes runs")


def dagster_tables(settings: Settings) -> None:
    """The database of Dagster's tables, for `doctor`: an error where it cannot be used."""
    # Where the driver is missing, the check of the database has said it.
    with suppress(ImportError):
        if (fleet := settings.of(FleetSettings)) is not None:
            from rss_pipeline.storage.backends.postgres.schemas import check_options

            check_options(fleet.libpq_url, schema=fleet.schema)


def check_broker(fleet: FleetSettings, *, ca_file: Path | None = None) -> None:
    """Check that the broker answers, and that it takes messages. `ca_file` is trusted besides the usual
    authorities, where it speaks TLS.

    Raises:
        BrokerUnavailable: with a sentence that says what to do. It never has the password.
    """
    try:
        from redis import Redis
        from redis import exceptions as problems
    except ImportError as error:
        raise BrokerUnavailable(
            f"a fleet needs more packages: run `pip install 'rss_pipeline[fleet]'` ({error})"
        ) from error
    advice: tuple[tuple[type[Exception], str], ...] = (
        (problems.AuthenticationWrongNumberOfArgsError, "check user and password in RSS_BROKER_URL"),
        (problems.AuthenticationError, "check user and password in RSS_BROKER_URL"),
        (
            problems.NoPermissionError,
            "the user of RSS_BROKER_URL may not use it: give it all commands and keys",
        ),
        (problems.BusyLoadingError, "Redis is starting; try again in a moment"),
        (
            problems.ReadOnlyError,
            "it is a replica that takes no messages: name the primary in RSS_BROKER_URL",
        ),
        (problems.OutOfMemoryError, "Redis has no memory left: raise its maxmemory"),
        (problems.TimeoutError, "it does not answer: check host and port in RSS_BROKER_URL, and the network"),
        (
            problems.ConnectionError,
            "the server there is not Redis: check RSS_BROKER_URL, and start it",
        ),
    )
    is_tls = fleet.broker_where.startswith("rediss")
    tls: dict[str, Any] = {"ssl_ca_certs": str(ca_file)} if is_tls and ca_file is not None else {}
    try:
        with Redis.from_url(
            fleet.broker_url,
            socket_timeout=ANSWER_SECONDS,
            socket_connect_timeout=ANSWER_SECONDS,
            **tls,
        ) as client:
            client.ping()
            # An answer is no proof that it takes a message: it may be a replica, or full.
            client.set("rss_pipeline:check", "1", ex=1)
    except (problems.RedisError, OSError, ValueError) as error:
        text = " ".join(str(error).split())
        what = next((said for kind, said in advice if isinstance(error, kind)), "see the log of Redis")
        if "invalid password" in text.lower() or "WRONGPASS" in text or "NOAUTH" in text:
            what = "check user and password in RSS_BROKER_URL"
        elif "CERTIFICATE_VERIFY_FAILED" in text:
            what = (
                "its certificate is not trusted: name its authority in RSS_CA_FILE, and its name in the URL"
            )
        elif isinstance(error, problems.TimeoutError) and is_tls:
            what += "; rediss:// is for one with TLS"
        elif "DB index" in text:
            what = "it has fewer databases: correct the number at the end of RSS_BROKER_URL"
        raise BrokerUnavailable(
            f"the broker cannot be used: {what}. {fleet.broker_where}: {text or type(error).__name__}"
        ) from error
