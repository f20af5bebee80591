"""The packages that features need where they are switched on (`Feature.packages`), and what is missing."""

from rss_pipeline.extras import Extra
from rss_pipeline.features import FEATURES
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database


def missing_packages(database: Database, settings: Settings) -> list[tuple[Extra, str]]:
    """The packages of what is switched on and cannot work, each with a clause on what is missing."""
    needed = [each.packages for each in FEATURES if each.packages is not None]
    return [
        (each.extra, problem)
        for each in needed
        # Which takes longer is asked of the fewest.
        if (each.extra.missing is not None or each.extra.imported)
        and each.is_on.load()(database, settings)
        and (problem := each.extra.problem) is not None
    ]


def is_installed(feature: str) -> bool:
    """True if no package of this feature is missing."""
    [packages] = [each.packages for each in FEATURES if each.name == feature]
    return packages is None or packages.extra.missing is None
