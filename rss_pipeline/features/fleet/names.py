"""A name that the worker and the processes of its runs share."""

INCARNATION_TAG = "rss_pipeline/worker_incarnation"
"""A tag of each run that a worker has begun: the start of the worker. A later one did not execute it."""
