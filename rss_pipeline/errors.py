"""The exceptions of this project, as one tree.

A feed's own trouble is not here: it is a value (`collector.models.Failure`).

RssPipelineError
 ├ SettingsError            the environment says something that cannot be
 ├ RegistryError            feeds.yaml has mistakes; carries all of them
 ├ NotAFeed                 bytes that no reading of ours turns into a feed
 ├ BackupUnreadable         an object under backups/ that no replay can read
 ├ CopyRefused              moving house would lose or mix something
 ├ ExportRefused            a file that cannot be written as asked
 ├ StorageRejected          one statement's or object's data is refused by the store
 └ InfrastructureError      a store cannot do its work now; the run fails
    ├ DatabaseUnavailable
    ├ ObjectStoreUnavailable
    └ NetworkUnavailable    every feed of a round failed at once: our network, not theirs
"""


class RssPipelineError(Exception):
    """Base of every exception this project raises on purpose. Its text is a sentence for a person."""


class SettingsError(RssPipelineError):
    """The environment is incomplete or contradicts itself; the text names the variable."""


class RegistryError(RssPipelineError):
    """feeds.yaml is refused. `mistakes` has one line of text each: where, what, and what to write."""

    def __init__(self, path: str, mistakes: list[str]) -> None:
        self.path = path
        self.mistakes = mistakes
        super().__init__(path, mistakes)

    def __str__(self) -> str:
        head = f"{self.path}: {len(self.mistakes)} mistake(s); nothing was changed."
        return "\n".join([head, *(f"  {mistake}" for mistake in self.mistakes)])


class NotAFeed(RssPipelineError):
    """A document without a feed in it. `kind` is the failure kind a visit ends with."""

    def __init__(self, message: str, kind: str = "not_a_feed") -> None:
        self.kind = kind
        super().__init__(message, kind)

    def __str__(self) -> str:
        return str(self.args[0])


class BackupUnreadable(RssPipelineError):
    """A backup without what a replay needs to know of it; one backup's trouble and no other's."""


class CopyRefused(RssPipelineError):
    """A copy from one pair of stores to another cannot begin, or did not end alike; nothing was deleted."""


class ExportRefused(RssPipelineError):
    """Items cannot be written as asked: the format's library is missing, or the file cannot be made."""


class StorageRejected(RssPipelineError):
    """The store refuses this data (a constraint, a limit): it ends one visit and no other."""


class InfrastructureError(RssPipelineError):
    """A store or the network is not there. Nothing was half-written; the feeds are due again."""


class DatabaseUnavailable(InfrastructureError):
    """The database is locked, read-only, full, unreachable or answers with a server error."""


class ObjectStoreUnavailable(InfrastructureError):
    """The object store is not writable, full, unreachable or answers with a server error."""


class NetworkUnavailable(InfrastructureError):
    """Every visit of a round failed in the network although its hosts answered before."""
