"""Names that the main machine and the workers share: queues of the broker, and tags of runs."""

HIGH, DEFAULT = "high", "default"
"""The queues: of runs that a person waits for, and of all others. Each worker has a place of its own for the
first."""
INCARNATION_TAG = "rss_pipeline/worker_incarnation"
"""A tag of each run that a worker has begun: the start of the worker. A later one did not execute it."""
