"""Labels that the UI shows: group, owners, a tag to filter by, and the kinds of ops.

The storage of each asset is in build.py.
https://docs.dagster.io/guides/build/assets/metadata-and-tags
"""

import warnings

import dagster as dg

from rss_pipeline.orchestration.dagster_private import COMPUTE_KIND_TAG

GROUP = "feeds"
OWNERS = ["team:rss_pipeline"]
CONCERNS = "rss_pipeline/concerns"
"""A tag of schedules and sensors, besides those of their runs: `feeds`, `topics`, `images`, `upkeep` or
`alerts`."""

# Owners of jobs, schedules and sensors are a beta feature; Dagster warns at each definition and each copy of
# one, and a reader can do nothing about it. Here, because every module with a definition imports this one
# first.
warnings.filterwarnings("ignore", message="Parameter `owners`", category=dg.BetaWarning)


def kind(name: str) -> dict[str, str]:
    """The tags of an op of this kind; the graph of a run shows it.

    The same for all stores: `sql` works on tables, `file` on objects. The UI does not show
    `dagster/kind/...`, the tag of assets, for ops. An op that yields an asset has no kind: it would replace
    the asset's kinds.
    """
    return {COMPUTE_KIND_TAG: name}
