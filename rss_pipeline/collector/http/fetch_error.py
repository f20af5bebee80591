"""`FetchError`, the exception that ends a visit.

Not the value that leaves the collector (`models.failure.Failure`), not the errors of our own stores, and not
its translation from exceptions of the network (`network_errors.py`), which needs the libraries of requests.
A message names hosts only: a path or a query may hold a secret.
"""

from rss_pipeline.collector.models.failure import FailureKind


class FetchError(Exception):
    """Ends a visit: a kind, a message, and further fields of the `Failure`.

    `advice` is one more sentence for the person who registered the URL; it is left out for images, which
    no one registers.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        advice: str = "",
        status: int | None = None,
        retry_after: int | None = None,
        reached: bool = False,
        document_hash: str | None = None,
        body_bytes: int | None = None,
    ) -> None:
        self.kind: FailureKind = kind
        self.message = message
        self.advised = f"{message} {advice}" if advice else message
        self.status = status
        self.retry_after = retry_after
        self.reached = reached
        """Somebody refused or reset the connection."""
        self.document_hash = document_hash
        self.body_bytes = body_bytes
        super().__init__(kind, message)


class NotSent(Exception):
    """The caller no longer wanted the request when its connection was ready."""


def bad_host(host: str) -> FetchError:
    return FetchError("bad_url", f"{host[:100]!r} is not a valid host name.", advice="Check the URL.")
