"""What everything that the UI shows is labelled with: group, owners, and a tag to filter by.

Where things come from and lie is told in lineage.py.
https://docs.dagster.io/guides/build/assets/metadata-and-tags
"""

import warnings

import dagster as dg
from dagster._core.storage.tags import COMPUTE_KIND_TAG

GROUP = "feeds"
OWNERS = ["team:rss_pipeline"]
CONCERNS = "rss_pipeline/concerns"
"""A tag of schedules and sensors: `feeds`, `images`, `upkeep` or `alerts`; beside those of their runs."""

# Of jobs, schedules and sensors they are a beta feature, which Dagster says at each of them and at each copy
# that it makes of one: nothing a reader could act on. Here, so that it stands before the first of them.
warnings.filterwarnings("ignore", message="Parameter `owners`", category=dg.BetaWarning)


def kind(name: str) -> dict[str, str]:
    """The tags of an op of this kind, which the graph of a run shows.

    True whatever the stores are: `sql` works on tables, `file` on objects. `dagster/kind/...`, which assets
    have, is not shown for ops. An op that gives an asset has none: it would stand in place of the asset's.
    """
    return {COMPUTE_KIND_TAG: name}
